//! Special values that a condition handles itself (NaN and empty lists), and suspicious constructs.

use std::collections::BTreeSet;

use crate::check::ResultKind;
use crate::error::Fault;
use crate::number;
use crate::syntax::ast::{BinaryOp, Kind, NodeId, Tree};
use crate::syntax::names::{EnvFunction, Function};

/// Returns whether a function, such as `isNaN`, is called anywhere.
pub(crate) fn calls(tree: &Tree, function: EnvFunction) -> bool {
    tree.ids()
        .any(|id| matches!(tree.kind(id), Kind::EnvCall(called, _) if *called == function))
}

/// Returns whether the outcome depends on nothing that was measured.
pub(crate) fn is_constant(tree: &Tree, folded: &Tree) -> bool {
    let measured = |id| {
        matches!(
            tree.kind(id),
            Kind::Result | Kind::Response | Kind::Job | Kind::Exec | Kind::Env
        )
    };
    matches!(folded.kind(folded.root()), Kind::Bool(_)) || !tree.ids().any(measured)
}

/// Returns `result[0]`, `first(result)` or the like, which ignores the other elements. `None` in a condition that
/// contains `len(result) == 1`.
pub(crate) fn one_of_several(tree: &Tree) -> Option<String> {
    if tree.ids().any(|id| requires_one_element(tree, id)) {
        return None;
    }
    tree.ids().find_map(|id| match tree.kind(id) {
        Kind::Member { base, key, .. } if tree.is_result(*base) => match tree.kind(*key) {
            Kind::Int(index) => Some(format!("result[{index}]")),
            Kind::Unary(..) => Some("result[-1]".to_owned()),
            _ => None,
        },
        Kind::Call(function, _) if is_element_of_result(tree, id) => Some(format!("{function}(result)")),
        _ => None,
    })
}

fn requires_one_element(tree: &Tree, id: NodeId) -> bool {
    let is_one = |id| matches!(tree.kind(id), Kind::Int(1));
    match tree.kind(id) {
        Kind::Binary(BinaryOp::Equal, left, right) => {
            is_length_of_result(tree, *left) && is_one(*right)
                || is_one(*left) && is_length_of_result(tree, *right)
        }
        _ => false,
    }
}

fn is_length_of_result(tree: &Tree, id: NodeId) -> bool {
    match tree.kind(id) {
        Kind::Call(Function::Len, args) => args.first().is_some_and(|arg| tree.is_result(*arg)),
        _ => false,
    }
}

/// Fails if several expressions are separated by `;`, of which only the last is evaluated.
pub(crate) fn one_expression(tree: &Tree) -> Result<(), Fault> {
    let sequence = tree.ids().find_map(|id| match tree.kind(id) {
        Kind::Sequence(parts) => parts.get(1).copied(),
        _ => None,
    });
    sequence.map_or(Ok(()), |second| {
        let message = "only the last of several expressions is evaluated; join them with && instead of `;`";
        Err(Fault::syntax(tree.span(second), message))
    })
}

/// Returns whether a condition may hold although a part of it fails.
fn is_alternative(kind: &Kind) -> bool {
    matches!(
        kind,
        Kind::Binary(BinaryOp::Or | BinaryOp::And | BinaryOp::Coalesce, ..)
            | Kind::Choice { .. }
            | Kind::EnvCall(EnvFunction::Default | EnvFunction::IsNil, _)
    )
}

/// Fails if `asInt` or `asFloat` is called with a `result` that is never a number, such as a list.
pub(crate) fn convertible(tree: &Tree, result: ResultKind) -> Result<(), Fault> {
    if result.may_be_number() || tree.ids().any(|id| is_alternative(tree.kind(id))) {
        return Ok(());
    }
    let refused = tree.ids().find_map(|id| match tree.kind(id) {
        Kind::EnvCall(function @ (EnvFunction::AsInt | EnvFunction::AsFloat), args)
            if args.first().is_some_and(|arg| tree.is_result(*arg)) =>
        {
            Some((function, id))
        }
        _ => None,
    });
    refused.map_or(Ok(()), |(function, id)| {
        let remedy = if result.ty().is_list() {
            "; use all(result, …) or max(result)"
        } else {
            ""
        };
        let message = format!("{}: {} is not a number{remedy}", function.name(), result.ty());
        Err(Fault::mismatch(message).at(tree.span(id)))
    })
}

/// Returns whether the outcome depends on `result`.
pub(crate) fn mentions_result(tree: &Tree) -> bool {
    tree.ids()
        .any(|id| matches!(tree.kind(id), Kind::Result | Kind::Env))
}

/// Returns whether the condition reads `exec.exitCode` by its name.
pub(crate) fn mentions_exit_code(tree: &Tree) -> bool {
    tree.ids().any(|id| base_of_exit_code(tree, id).is_some())
}

/// Returns whether the outcome may depend on the standard error of a command: on anything but `exec.exitCode`.
pub(crate) fn mentions_stderr(tree: &Tree) -> bool {
    let exit_codes: BTreeSet<NodeId> = tree.ids().filter_map(|id| base_of_exit_code(tree, id)).collect();
    tree.ids().any(|id| match tree.kind(id) {
        Kind::Exec => !exit_codes.contains(&id),
        Kind::Env => true,
        _ => false,
    })
}

/// Returns the node `exec` of `exec.exitCode`.
fn base_of_exit_code(tree: &Tree, id: NodeId) -> Option<NodeId> {
    let Kind::Member { base, key, .. } = tree.kind(id) else {
        return None;
    };
    let is_exit_code = matches!(tree.kind(*key), Kind::Str(name) if name.as_ref() == "exitCode");
    (matches!(tree.kind(*base), Kind::Exec) && is_exit_code).then_some(*base)
}

/// Returns whether the condition tests `result` for an empty list or text, or judges only the exchange, command or Job
/// (`response.code == 204`) and not its result.
pub(crate) fn handles_empty(tree: &Tree) -> bool {
    let any = |wanted: fn(&Kind) -> bool| tree.ids().any(|id| wanted(tree.kind(id)));
    let of_the_origin = any(|kind| matches!(kind, Kind::Response | Kind::Job | Kind::Exec))
        && !any(|kind| matches!(kind, Kind::Result | Kind::Env));
    of_the_origin || looks_at_emptiness(tree)
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
        Kind::Call(Function::Len, _) => is_length_of_result(tree, id),
        Kind::Binary(BinaryOp::Equal | BinaryOp::NotEqual, left, right) => {
            (tree.is_result(*left) && is_empty(tree, *right))
                || (tree.is_result(*right) && is_empty(tree, *left))
                || (is_element_of_result(tree, *left) && is_nil(tree, *right))
                || (is_element_of_result(tree, *right) && is_nil(tree, *left))
        }
        Kind::Binary(BinaryOp::Coalesce, left, _) => is_element_of_result(tree, *left),
        Kind::EnvCall(EnvFunction::Default | EnvFunction::IsNil, args) => {
            args.first().is_some_and(|arg| is_element_of_result(tree, *arg))
        }
        _ => false,
    })
}

fn is_nil(tree: &Tree, id: NodeId) -> bool {
    matches!(tree.kind(id), Kind::Nil)
}

fn is_empty(tree: &Tree, id: NodeId) -> bool {
    match tree.kind(id) {
        Kind::Array(items) => items.is_empty(),
        Kind::Map(pairs) => pairs.is_empty(),
        Kind::Str(text) => text.is_empty(),
        _ => false,
    }
}

/// Returns whether a node is `first(result)`, `last(result)` or `get(result, 0)`, which are nil for an empty
/// list.
fn is_element_of_result(tree: &Tree, id: NodeId) -> bool {
    match tree.kind(tree.behind(id)) {
        Kind::Call(Function::First | Function::Last | Function::Get, args) => {
            args.first().is_some_and(|arg| tree.is_result(*arg))
        }
        _ => false,
    }
}
