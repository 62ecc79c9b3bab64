//! Constant folding, and those rewrites of Go expr's optimizer that can be observed.
//!
//! `x or true` is true regardless of `x`; `filter(l, p)[0]` stops at the first match. The result is a second
//! tree with the same node numbers. The checker works on the tree as written.

use std::sync::Arc;

use crate::error::Fault;
use crate::rules::Rules;
use crate::run::arith::fitted;
use crate::syntax::ast::{BinaryOp, Kind, NodeId, Tree, UnaryOp};
use crate::syntax::names::Function;

/// Rewrites one node, in evaluation order.
pub(crate) fn fold(tree: &Tree, id: NodeId, folded: &Tree, rules: Rules) -> Result<Option<Kind>, Fault> {
    Ok(match tree.kind(id) {
        Kind::Unary(op, operand) => unary(*op, folded.kind(*operand)),
        Kind::Binary(op, left, right) => binary(tree, folded, *op, (*left, *right), rules)?,
        Kind::Member {
            base,
            key,
            optional: false,
        } => match (folded.kind(*base), folded.kind(*key)) {
            (Kind::Call(Function::Filter, args), Kind::Int(at @ (0 | -1))) => {
                first_match(args, *at == -1, true)
            }
            _ => None,
        },
        Kind::Call(function, args) => call(folded, *function, args, rules),
        _ => None,
    })
}

fn unary(op: UnaryOp, operand: &Kind) -> Option<Kind> {
    match (op, operand) {
        (UnaryOp::Minus, Kind::Int(n)) => Some(Kind::Int(n.wrapping_neg())),
        (UnaryOp::Minus, Kind::Float(n)) => Some(Kind::Float(-n)),
        (UnaryOp::Plus, Kind::Int(n)) => Some(Kind::Int(*n)),
        (UnaryOp::Plus, Kind::Float(n)) => Some(Kind::Float(*n)),
        (UnaryOp::Not, Kind::Bool(b)) => Some(Kind::Bool(!b)),
        _ => None,
    }
}

fn binary(
    tree: &Tree,
    folded: &Tree,
    op: BinaryOp,
    (left, right): (NodeId, NodeId),
    rules: Rules,
) -> Result<Option<Kind>, Fault> {
    let (l, r) = (folded.kind(left), folded.kind(right));
    Ok(match op {
        BinaryOp::And | BinaryOp::Or => {
            // Value that makes the other side the answer.
            let neutral = op == BinaryOp::And;
            match (l, r) {
                (Kind::Bool(b), _) if *b == neutral => Some(Kind::Same(right)),
                (_, Kind::Bool(b)) if *b == neutral => Some(Kind::Same(left)),
                (Kind::Bool(b), _) | (_, Kind::Bool(b)) => Some(Kind::Bool(*b)),
                _ => None,
            }
        }
        BinaryOp::Equal => match (l, r) {
            (Kind::Int(a), Kind::Int(b)) => Some(Kind::Bool(a == b)),
            (Kind::Str(a), Kind::Str(b)) => Some(Kind::Bool(a == b)),
            (Kind::Bool(a), Kind::Bool(b)) => Some(Kind::Bool(a == b)),
            _ => None,
        },
        BinaryOp::Add => match (l, r) {
            (Kind::Str(a), Kind::Str(b)) => Some(Kind::Str(Arc::from(format!("{a}{b}")))),
            _ => arithmetic(op, l, r, rules),
        },
        BinaryOp::Subtract | BinaryOp::Multiply | BinaryOp::Divide | BinaryOp::Power => {
            arithmetic(op, l, r, rules)
        }
        BinaryOp::Modulo => match (l, r) {
            (Kind::Int(_), Kind::Int(0)) => return Err(Fault::runtime("integer divide by zero")),
            (Kind::Int(a), Kind::Int(b)) => Some(Kind::Int(a.wrapping_rem(*b))),
            _ => None,
        },
        BinaryOp::In => words(tree, right).map(|words| Kind::InWords(left, words)),
        BinaryOp::Less | BinaryOp::More | BinaryOp::LessOrEqual | BinaryOp::MoreOrEqual => match (l, r) {
            (Kind::Call(Function::Count, args), Kind::Int(n)) => counting(op, args, *n, left, right),
            _ => None,
        },
        _ => None,
    })
}

#[expect(
    clippy::cast_precision_loss,
    reason = "Go converts int to float64 in the same way"
)]
fn arithmetic(op: BinaryOp, left: &Kind, right: &Kind, rules: Rules) -> Option<Kind> {
    // The evaluator reports an overflow with its place.
    let fits = |result| fitted(result, rules).map(Kind::Int).ok();
    let (a, b) = match (left, right) {
        (Kind::Int(a), Kind::Int(b)) => match op {
            BinaryOp::Add => return fits(a.overflowing_add(*b)),
            BinaryOp::Subtract => return fits(a.overflowing_sub(*b)),
            BinaryOp::Multiply => return fits(a.overflowing_mul(*b)),
            _ => (*a as f64, *b as f64),
        },
        (Kind::Int(a), Kind::Float(b)) => (*a as f64, *b),
        (Kind::Float(a), Kind::Int(b)) => (*a, *b as f64),
        (Kind::Float(a), Kind::Float(b)) => (*a, *b),
        _ => return None,
    };
    Some(Kind::Float(match op {
        BinaryOp::Add => a + b,
        BinaryOp::Subtract => a - b,
        BinaryOp::Multiply => a * b,
        BinaryOp::Divide => a / b,
        BinaryOp::Power => a.powf(b),
        _ => return None,
    }))
}

/// Returns the words of a non-empty list literal of strings. `in` then looks up keys and rejects numbers.
fn words(tree: &Tree, list: NodeId) -> Option<Arc<[Arc<str>]>> {
    let Kind::Array(items) = tree.kind(list) else {
        return None;
    };
    if items.is_empty() {
        return None;
    }
    items
        .iter()
        .map(|item| match tree.kind(*item) {
            Kind::Str(text) => Some(text.clone()),
            _ => None,
        })
        .collect()
}

/// Rewrites `count(l, p) > 0` to `any`, and stops a count as soon as the comparison is decided.
fn counting(op: BinaryOp, args: &[NodeId], n: i64, left: NodeId, right: NodeId) -> Option<Kind> {
    let [list, body] = args else { return None };
    if (op == BinaryOp::More && n == 0) || (op == BinaryOp::MoreOrEqual && n == 1) {
        return Some(Kind::Call(Function::Any, vec![*list, *body]));
    }
    let limit = match op {
        BinaryOp::More | BinaryOp::LessOrEqual => n.checked_add(1)?,
        _ => n,
    };
    (limit > 1).then_some(Kind::CountAgainst {
        op,
        count: left,
        limit,
        bound: right,
    })
}

fn call(folded: &Tree, function: Function, args: &[NodeId], rules: Rules) -> Option<Kind> {
    let first = args.first().map(|id| folded.kind(*id));
    match (function, first) {
        (Function::First, Some(Kind::Call(Function::Filter, inner))) => first_match(inner, false, false),
        (Function::Last, Some(Kind::Call(Function::Filter, inner))) => first_match(inner, true, false),
        (Function::Len, Some(Kind::Call(Function::Filter, inner))) => {
            Some(Kind::Call(Function::Count, inner.clone()))
        }
        (Function::Sum, Some(Kind::Binary(BinaryOp::Range, from, to))) if args.len() == 1 => {
            match (folded.kind(*from), folded.kind(*to)) {
                (Kind::Int(from), Kind::Int(to)) if to >= from => {
                    let count = to.wrapping_sub(*from).wrapping_add(1);
                    let ends = fitted(from.overflowing_add(*to), rules).ok()?;
                    let twice = fitted(count.overflowing_mul(ends), rules).ok()?;
                    Some(Kind::Int(twice.wrapping_div(2)))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

fn first_match(args: &[NodeId], backwards: bool, required: bool) -> Option<Kind> {
    let [list, body] = args else { return None };
    Some(Kind::Match {
        list: *list,
        body: *body,
        backwards,
        required,
    })
}
