//! Equality and order with Go's rules: numbers compare across types, lists element by element, objects
//! strictly.

use std::cmp::Ordering;

use crate::error::{ConditionErrorKind, Fault};
use crate::number;
use crate::rules::Rules;
use crate::run::budget::Budget;
use crate::run::kleene;
use crate::value::{List, Map, Shape, Value, holds_cut_bytes};

/// Evaluates `a == b`. Only nil equals nil, and numbers of all types compare. A comparison with NaN is
/// unknown, except with nil. Values of different kinds are unknown under strict rules, else not equal.
pub(crate) fn equal(a: &Value<'_>, b: &Value<'_>, budget: &mut Budget) -> Result<bool, Fault> {
    budget.step(1)?;
    match (a, b) {
        // Two absent values may differ.
        (Value::Missing(absent), Value::Missing(_)) => return Err(absent.fault()),
        _ if a.is_nil() && b.is_nil() => return Ok(true),
        (Value::Missing(absent), _) | (_, Value::Missing(absent)) => return Err(absent.fault()),
        _ if a.is_nil() || b.is_nil() => {}
        _ => {
            a.comparable(budget.rules)?;
            b.comparable(budget.rules)?;
        }
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
        _ => match numbers(a, b) {
            Ok(order) => order == Some(Ordering::Equal) && exactly_equal(a, b, budget.rules)?,
            Err(NotComparable) => unlike(a, b, budget.rules)?,
        },
    })
}

/// Answers `a == b` for values of different kinds: false, but unknown under strict rules, where a server that
/// changed the type of a value does not pass for one that answers "no".
pub(crate) fn unlike(a: &Value<'_>, b: &Value<'_>, rules: Rules) -> Result<bool, Fault> {
    match rules {
        Rules::Strict => Err(different_kinds(a, b)),
        Rules::Go => Ok(false),
    }
}

/// Returns the error for a comparison of different kinds.
pub(crate) fn different_kinds(a: &Value<'_>, b: &Value<'_>) -> Fault {
    let remedy = match (a, b) {
        (Value::List(_), _) | (_, Value::List(_)) => "; use any(…) or all(…) on the list",
        (Value::Map(_), _) | (_, Value::Map(_)) => "; name a field of the object",
        (Value::Bool(_), _) | (_, Value::Bool(_)) => {
            "; use string(…) on the true/false value, or have the server return true or false"
        }
        (Value::Str(_), number) | (number, Value::Str(_)) if number.is_number() => {
            "; use asFloat(…) on the text"
        }
        _ => "",
    };
    let message = format!(
        "{} cannot be compared with {}{remedy}",
        a.describe(),
        b.describe()
    );
    Fault::new(ConditionErrorKind::DifferentKinds, message)
}

/// Smallest JSON integer that the parser rounds: beyond 64 bits it is a float.
const ROUNDED: f64 = 18_446_744_073_709_551_616.0;

/// Confirms that two equal numbers were equal before they were rounded.
pub(crate) fn exactly_equal(a: &Value<'_>, b: &Value<'_>, rules: Rules) -> Result<bool, Fault> {
    let rounded = |value: &Value<'_>| matches!(value, Value::Float(number) if number.abs() >= ROUNDED);
    if rules.are_strict() && rounded(a) && rounded(b) {
        return Err(Fault::runtime(
            "numbers of 2^64 and more are rounded, so they cannot be compared for equality; return them as text",
        ));
    }
    Ok(true)
}

/// Two values without an order, such as text and a number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NotComparable;

/// Orders two numbers; `None` if one is NaN.
fn numbers(a: &Value<'_>, b: &Value<'_>) -> Result<Option<Ordering>, NotComparable> {
    // Go compares an integer with a float as floats.
    let exact = !matches!(
        (a, b),
        (Value::Int(_), Value::Float(_)) | (Value::Float(_), Value::Int(_))
    );
    if exact && let (Some(x), Some(y)) = (number::integer(a), number::integer(b)) {
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
    let unequal_types = matches!((typed(x), typed(y)), (Some(a), Some(b)) if a != b);
    // Pairs only equal pairs; the others may equal a list of anything.
    let one_of_pairs = (typed(x) == Some(3)) != (typed(y) == Some(3));
    if x.len() != y.len() {
        return Ok(false);
    }
    if unequal_types || one_of_pairs {
        return unlike(&Value::List(x.clone()), &Value::List(y.clone()), budget.rules);
    }
    let pairs = x.iter().zip(y.iter());
    kleene::any(pairs.map(|(a, b)| Ok(!equal(&a, &b, budget)?))).map(|differ| !differ)
}

fn identical_maps(x: &Map<'_>, y: &Map<'_>, budget: &mut Budget) -> Result<bool, Fault> {
    if x.len() != y.len() {
        return Ok(false);
    }
    if matches!(x, Map::Pairs { .. }) != matches!(y, Map::Pairs { .. }) {
        return unlike(&Value::Map(x.clone()), &Value::Map(y.clone()), budget.rules);
    }
    budget.step(x.len())?;
    let (x, y) = (x.entries(), y.entries());
    let differs = |(key, value): &(Value<'_>, Value<'_>)| {
        for (own, other) in &y {
            if identical(key, own, budget)? {
                return Ok(!identical(value, other, budget)?);
            }
        }
        Ok(true)
    };
    kleene::any(x.iter().map(differs)).map(|differ| !differ)
}

/// Equality inside objects and of keys: in Go, an integer never equals a float, not even of the same value.
pub(crate) fn identical(a: &Value<'_>, b: &Value<'_>, budget: &mut Budget) -> Result<bool, Fault> {
    match (a, b) {
        (Value::Int(_), Value::Float(_) | Value::Whole(_))
        | (Value::Float(_) | Value::Whole(_), Value::Int(_)) => {
            if equal(a, b, budget)? {
                unlike(a, b, budget.rules)
            } else {
                Ok(false)
            }
        }
        (Value::List(x), Value::List(y)) => {
            budget.step(1)?;
            let made = |list: &List<'_>| {
                matches!(
                    list,
                    List::Json(..)
                        | List::Made {
                            shape: Shape::Any,
                            ..
                        }
                )
            };
            if x.len() != y.len() {
                return Ok(false);
            }
            if made(x) != made(y) {
                return unlike(a, b, budget.rules);
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
