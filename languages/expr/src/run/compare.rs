//! Equality and order with Go's rules: numbers compare across types, lists element by element, objects
//! strictly.

use std::cmp::Ordering;

use crate::error::Fault;
use crate::run::budget::Budget;
use crate::run::kleene;
use crate::value::{List, Map, Shape, Value, holds_cut_bytes};

/// Evaluates `a == b`. Only nil equals nil. Values of different types are not equal, except numbers. A
/// comparison with NaN is unknown, except with nil.
pub(crate) fn equal(a: &Value<'_>, b: &Value<'_>, budget: &mut Budget) -> Result<bool, Fault> {
    budget.step(1)?;
    if (a.is_nan() && !b.is_nil()) || (b.is_nan() && !a.is_nil()) {
        return Err(Fault::nan());
    }
    Ok(match (a, b) {
        (Value::Str(x), Value::Str(y)) => {
            budget.read(x.as_str().len().min(y.as_str().len()))?;
            x.as_str() == y.as_str()
        }
        (Value::Bool(x), Value::Bool(y)) => x == y,
        (Value::Time(x), Value::Time(y)) => x == y,
        (Value::Duration(x), Value::Duration(y)) => x == y,
        (Value::List(x), Value::List(y)) => lists(x, y, budget)?,
        (Value::Map(x), Value::Map(y)) => identical_maps(x, y, budget)?,
        _ if a.is_nil() && b.is_nil() => true,
        _ => numbers(a, b).is_ok_and(|order| order == Some(Ordering::Equal)),
    })
}

/// Two values without an order, such as text and a number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NotComparable;

/// Orders two numbers; `None` if one is NaN.
fn numbers(a: &Value<'_>, b: &Value<'_>) -> Result<Option<Ordering>, NotComparable> {
    let exact = |value: &Value<'_>| match value {
        Value::Int(n) => Some(i128::from(*n)),
        Value::Whole(n) => Some(*n),
        _ => None,
    };
    if let (Some(x), Some(y)) = (exact(a), exact(b)) {
        return Ok(Some(x.cmp(&y)));
    }
    match (a.as_float(), b.as_float()) {
        (Some(x), Some(y)) => Ok(x.partial_cmp(&y)),
        _ => Err(NotComparable),
    }
}

fn lists(x: &List<'_>, y: &List<'_>, budget: &mut Budget) -> Result<bool, Fault> {
    // In Go these are slices with different element types, which are never equal.
    let typed = |list: &List<'_>| match list {
        List::Floats(_) => Some(0),
        List::Range { .. } => Some(1),
        List::Made {
            shape: Shape::Words, ..
        } => Some(2),
        List::Made {
            shape: Shape::Pairs, ..
        } => Some(3),
        _ => None,
    };
    if let (Some(a), Some(b)) = (typed(x), typed(y))
        && a != b
    {
        return Ok(false);
    }
    // Pairs only equal pairs; the others may equal a list of anything.
    if x.len() != y.len() || (typed(x) == Some(3)) != (typed(y) == Some(3)) {
        return Ok(false);
    }
    let pairs = x.iter().zip(y.iter());
    kleene::any(pairs.map(|(a, b)| Ok(!equal(&a, &b, budget)?))).map(|differ| !differ)
}

fn identical_maps(x: &Map<'_>, y: &Map<'_>, budget: &mut Budget) -> Result<bool, Fault> {
    if x.len() != y.len() || matches!(x, Map::Pairs { .. }) != matches!(y, Map::Pairs { .. }) {
        return Ok(false);
    }
    budget.step(x.len())?;
    let (x, y) = (x.entries(), y.entries());
    for (key, value) in &x {
        let mut found = false;
        for (own, other) in &y {
            if identical(key, own, budget)? {
                found = identical(value, other, budget)?;
                break;
            }
        }
        if !found {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Equality inside objects and of keys: an integer never equals a float.
pub(crate) fn identical(a: &Value<'_>, b: &Value<'_>, budget: &mut Budget) -> Result<bool, Fault> {
    match (a, b) {
        (Value::Int(_), Value::Float(_) | Value::Whole(_))
        | (Value::Float(_) | Value::Whole(_), Value::Int(_)) => Ok(false),
        (Value::List(x), Value::List(y)) => {
            budget.step(1)?;
            let made = |list: &List<'_>| {
                matches!(
                    list,
                    List::Json(_)
                        | List::Made {
                            shape: Shape::Any,
                            ..
                        }
                )
            };
            if x.len() != y.len() || made(x) != made(y) {
                return Ok(false);
            }
            let pairs = x.iter().zip(y.iter());
            kleene::any(pairs.map(|(a, b)| Ok(!identical(&a, &b, budget)?))).map(|differ| !differ)
        }
        _ => equal(a, b, budget),
    }
}

/// Orders two numbers, texts, times or durations; `None` if one is NaN.
pub(crate) fn order(a: &Value<'_>, b: &Value<'_>) -> Result<Option<Ordering>, NotComparable> {
    match (a, b) {
        (Value::Str(x), Value::Str(y)) if holds_cut_bytes(x.as_str()) || holds_cut_bytes(y.as_str()) => {
            Err(NotComparable)
        }
        (Value::Str(x), Value::Str(y)) => Ok(Some(x.as_str().as_bytes().cmp(y.as_str().as_bytes()))),
        (Value::Time(x), Value::Time(y)) => Ok(Some(x.cmp(y))),
        (Value::Duration(x), Value::Duration(y)) => Ok(Some(x.cmp(y))),
        _ => numbers(a, b),
    }
}
