//! Static rules of the binary operators.

use crate::check::types::Ty;
use crate::check::{Checker, Notes};
use crate::error::Fault;
use crate::syntax::ast::{BinaryOp, Kind, NodeId, Tree, UnaryOp};

/// Returns the type of `left op right`, or an error if the operands do not fit.
pub(crate) fn binary(
    checker: &mut Checker<'_>,
    id: NodeId,
    op: BinaryOp,
    left: NodeId,
    right: NodeId,
) -> Result<Ty, Fault> {
    let (l, r) = (checker.ty(left), checker.ty(right));
    if let Some(ty) = rule(op, &l, &r) {
        annotate(checker, id, op, (left, &l), (right, &r));
        return Ok(ty);
    }
    if let Some(ty) = across_kinds(checker, id, op, (left, &l), (right, &r)) {
        return Ok(ty);
    }
    Err(Fault::mismatch(explain(checker, op, left, right)))
}

fn annotate(
    checker: &mut Checker<'_>,
    id: NodeId,
    op: BinaryOp,
    (_, l): (NodeId, &Ty),
    (right, r): (NodeId, &Ty),
) {
    match op {
        BinaryOp::Equal | BinaryOp::NotEqual => match (l, r) {
            (Ty::Int, Ty::Int) => checker.note(id, Notes::INTEGERS),
            (Ty::Str, Ty::Str) => checker.note(id, Notes::TEXTS),
            _ => {}
        },
        BinaryOp::In => {
            let range = matches!(checker.tree.kind(right), Kind::Binary(BinaryOp::Range, ..));
            if *l == Ty::Int && range {
                checker.note(id, Notes::WITHIN);
            }
        }
        _ => {}
    }
}

/// Reads a JSON scalar `result` as text if the operator then fits.
fn across_kinds(
    checker: &mut Checker<'_>,
    id: NodeId,
    op: BinaryOp,
    (left, l): (NodeId, &Ty),
    (right, r): (NodeId, &Ty),
) -> Option<Ty> {
    let takes_text = matches!(
        op,
        BinaryOp::Equal
            | BinaryOp::NotEqual
            | BinaryOp::In
            | BinaryOp::Contains
            | BinaryOp::StartsWith
            | BinaryOp::EndsWith
            | BinaryOp::Matches
            | BinaryOp::Add
    ) || op.is_comparison();
    let first = checker.readable_as_text(left);
    let second = checker.readable_as_text(right) && op != BinaryOp::In;
    if !takes_text || !(first || second) {
        return None;
    }
    let ty = rule(
        op,
        if first { &Ty::Str } else { l },
        if second { &Ty::Str } else { r },
    )?;
    if first {
        checker.note(id, Notes::FIRST_AS_TEXT);
    }
    if second {
        checker.note(id, Notes::SECOND_AS_TEXT);
    }
    Some(ty)
}

fn is_ordered(ty: &Ty) -> bool {
    ty.is_number() || matches!(ty, Ty::Str | Ty::Time | Ty::Duration)
}

fn rule(op: BinaryOp, l: &Ty, r: &Ty) -> Option<Ty> {
    let both_numbers = l.is_number() && r.is_number();
    match op {
        BinaryOp::Equal | BinaryOp::NotEqual => l.comparable_to(r).then_some(Ty::Bool),
        BinaryOp::Or | BinaryOp::And => {
            let is_bool = |ty: &Ty| *ty == Ty::Bool;
            (is_bool(l) && is_bool(r) || l.maybe(r, is_bool)).then_some(Ty::Bool)
        }
        BinaryOp::Less | BinaryOp::More | BinaryOp::LessOrEqual | BinaryOp::MoreOrEqual => {
            let same = both_numbers || (l == r && is_ordered(l));
            (same || l.maybe(r, is_ordered)).then_some(Ty::Bool)
        }
        BinaryOp::Add => add(l, r),
        BinaryOp::Subtract => match (l, r) {
            _ if both_numbers => Some(l.promote(r)),
            (Ty::Time, Ty::Time) | (Ty::Duration, Ty::Duration) => Some(Ty::Duration),
            (Ty::Time, Ty::Duration) => Some(Ty::Time),
            _ => {
                let fits = |ty: &Ty| ty.is_number() || matches!(ty, Ty::Time | Ty::Duration);
                l.maybe(r, fits).then_some(Ty::Unknown)
            }
        },
        BinaryOp::Multiply => match (l, r) {
            _ if both_numbers => Some(l.promote(r)),
            (Ty::Duration, other) | (other, Ty::Duration) if other.is_number() || *other == Ty::Duration => {
                Some(Ty::Duration)
            }
            _ => l
                .maybe(r, |ty| ty.is_number() || *ty == Ty::Duration)
                .then_some(Ty::Unknown),
        },
        BinaryOp::Divide | BinaryOp::Power => {
            (both_numbers || l.maybe(r, Ty::is_number)).then_some(Ty::Float)
        }
        BinaryOp::Modulo => integers(l, r).then_some(Ty::Int),
        BinaryOp::Range => integers(l, r).then(|| Ty::list_of(Ty::Int)),
        BinaryOp::In => contained(l, r).then_some(Ty::Bool),
        BinaryOp::Matches | BinaryOp::Contains | BinaryOp::StartsWith | BinaryOp::EndsWith => {
            let is_text = |ty: &Ty| *ty == Ty::Str;
            (is_text(l) && is_text(r) || l.maybe(r, is_text)).then_some(Ty::Bool)
        }
        BinaryOp::Coalesce => Some(match (l, r) {
            (Ty::Nil, other) | (other, Ty::Nil) => other.clone(),
            _ if r.assignable_to(l) => l.clone(),
            _ => Ty::Unknown,
        }),
    }
}

fn integers(l: &Ty, r: &Ty) -> bool {
    (l.is_integer() && r.is_integer()) || l.maybe(r, Ty::is_integer)
}

fn add(l: &Ty, r: &Ty) -> Option<Ty> {
    match (l, r) {
        _ if l.is_number() && r.is_number() => Some(l.promote(r)),
        (Ty::Str, Ty::Str) => Some(Ty::Str),
        (Ty::Time, Ty::Duration) | (Ty::Duration, Ty::Time) => Some(Ty::Time),
        (Ty::Duration, Ty::Duration) => Some(Ty::Duration),
        _ => l.maybe(r, is_ordered).then_some(Ty::Unknown),
    }
}

fn contained(l: &Ty, r: &Ty) -> bool {
    match r {
        Ty::Map => l.is_unknown() || *l == Ty::Str,
        Ty::Pairs | Ty::Groups => true,
        _ if r.is_list() => l.comparable_to(&r.element()),
        Ty::Str => l.is_unknown(),
        _ => r.is_unknown(),
    }
}

fn explain(checker: &Checker<'_>, op: BinaryOp, left: NodeId, right: NodeId) -> String {
    let (l, r) = (checker.ty(left), checker.ty(right));
    let mut message = format!("`{}` cannot be applied to {l} and {r}", op.text());
    for (side, other) in [(left, &r), (right, &l)] {
        let ty = checker.ty(side);
        if !checker.tree.is_result(side) {
            continue;
        }
        let remedy = match (&ty, other) {
            (Ty::Floats, _) => "; result is a list of numbers: use all(result, # > 1), or max(result)",
            (Ty::List(_), _) => {
                "; result is a list: use all(result, # > 1), any(result, # > 1) or len(result)"
            }
            (Ty::Map, _) => "; result is an object: name a field, such as result.status",
            (Ty::Str, other) if other.is_number() => "; result is text: use asInt(result) or asFloat(result)",
            (Ty::Nil, _) => "; result is null: use default(result, …) or result == nil",
            _ => "",
        };
        message.push_str(remedy);
        break;
    }
    message
}

/// Returns whether Go converts this integer expression to a float where a float argument is expected.
pub(crate) fn becomes_float(tree: &Tree, id: NodeId) -> bool {
    let mut pending = vec![id];
    while let Some(id) = pending.pop() {
        match tree.kind(id) {
            Kind::Int(_) => return true,
            Kind::Unary(UnaryOp::Minus | UnaryOp::Plus, operand) => pending.push(*operand),
            Kind::Binary(BinaryOp::Add | BinaryOp::Subtract | BinaryOp::Multiply, left, right) => {
                pending.push(*left);
                pending.push(*right);
            }
            _ => {}
        }
    }
    false
}
