//! What a condition takes care of by itself: NaN, and lists without elements.

use crate::condition::syntax::ast::{BinaryOp, Kind, NodeId, Tree};
use crate::condition::syntax::names::{EnvFunction, Function};

/// Whether `isNaN` is called anywhere.
pub(in crate::condition) fn is_nan(tree: &Tree) -> bool {
    tree.ids()
        .any(|id| matches!(tree.kind(id), Kind::EnvCall(EnvFunction::IsNaN, _)))
}

/// Whether an empty list in `result` is looked at on purpose.
pub(in crate::condition) fn handles_empty(tree: &Tree) -> bool {
    tree.ids().any(|id| match tree.kind(id) {
        Kind::Call(Function::Len, args) => args.first().is_some_and(|arg| tree.is_result(*arg)),
        Kind::Binary(BinaryOp::Equal | BinaryOp::NotEqual, left, right) => {
            (tree.is_result(*left) && is_empty_list(tree, *right))
                || (tree.is_result(*right) && is_empty_list(tree, *left))
        }
        Kind::Binary(BinaryOp::Coalesce, left, _) => is_first_of_result(tree, *left),
        Kind::EnvCall(EnvFunction::Default | EnvFunction::IsNil, args) => {
            args.first().is_some_and(|arg| is_first_of_result(tree, *arg))
        }
        _ => false,
    })
}

fn is_empty_list(tree: &Tree, id: NodeId) -> bool {
    matches!(tree.kind(id), Kind::Array(items) if items.is_empty())
}

/// `first(result)`, `last(result)`, `get(result, 0)`: nil for an empty list.
fn is_first_of_result(tree: &Tree, id: NodeId) -> bool {
    match tree.kind(tree.behind(id)) {
        Kind::Call(Function::First | Function::Last | Function::Get, args) => {
            args.first().is_some_and(|arg| tree.is_result(*arg))
        }
        _ => false,
    }
}
