//! Special values that a condition handles itself (NaN and empty lists), and suspicious constructs.

use crate::number;
use crate::syntax::ast::{BinaryOp, Kind, NodeId, Tree};
use crate::syntax::names::{EnvFunction, Function};

/// Returns whether `isNaN` is called anywhere.
pub(crate) fn is_nan(tree: &Tree) -> bool {
    tree.ids()
        .any(|id| matches!(tree.kind(id), Kind::EnvCall(EnvFunction::IsNaN, _)))
}

/// Returns whether the condition tests `result` for an empty list or text, or judges only the exchange
/// (`response.code == 204`) and not its result.
pub(crate) fn handles_empty(tree: &Tree) -> bool {
    let any = |wanted: fn(&Kind) -> bool| tree.ids().any(|id| wanted(tree.kind(id)));
    let of_the_exchange =
        any(|kind| matches!(kind, Kind::Response)) && !any(|kind| matches!(kind, Kind::Result | Kind::Env));
    of_the_exchange || looks_at_emptiness(tree)
}

/// Returns a quoted number next to `<`, `<=`, `>` or `>=`.
pub(crate) fn ordered_text(tree: &Tree) -> Option<String> {
    tree.ids().find_map(|id| match tree.kind(id) {
        Kind::Binary(op, left, right) if op.is_comparison() => {
            [left, right].into_iter().find_map(|side| match tree.kind(*side) {
                Kind::Str(text) if number::parse_float(text).is_some() => Some(text.to_string()),
                _ => None,
            })
        }
        _ => None,
    })
}

fn looks_at_emptiness(tree: &Tree) -> bool {
    tree.ids().any(|id| match tree.kind(id) {
        Kind::Call(Function::Len, args) => args.first().is_some_and(|arg| tree.is_result(*arg)),
        Kind::Binary(BinaryOp::Equal | BinaryOp::NotEqual, left, right) => {
            (tree.is_result(*left) && is_empty(tree, *right))
                || (tree.is_result(*right) && is_empty(tree, *left))
        }
        Kind::Binary(BinaryOp::Coalesce, left, _) => is_first_of_result(tree, *left),
        Kind::EnvCall(EnvFunction::Default | EnvFunction::IsNil, args) => {
            args.first().is_some_and(|arg| is_first_of_result(tree, *arg))
        }
        _ => false,
    })
}

fn is_empty(tree: &Tree, id: NodeId) -> bool {
    match tree.kind(id) {
        Kind::Array(items) => items.is_empty(),
        Kind::Str(text) => text.is_empty(),
        _ => false,
    }
}

/// Returns whether a node is `first(result)`, `last(result)` or `get(result, 0)`, which are nil for an empty
/// list.
fn is_first_of_result(tree: &Tree, id: NodeId) -> bool {
    match tree.kind(tree.behind(id)) {
        Kind::Call(Function::First | Function::Last | Function::Get, args) => {
            args.first().is_some_and(|arg| tree.is_result(*arg))
        }
        _ => false,
    }
}
