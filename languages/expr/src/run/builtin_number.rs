//! Functions on numbers: abs, rounding, conversion, min, max, mean, median, bits.

use std::cmp::Ordering;

use crate::absent::Absent;
use crate::error::Fault;
use crate::number;
use crate::rules::Rules;
use crate::run::args::refused;
use crate::run::arith::fitted;
use crate::run::budget::Budget;
use crate::run::compare::order;
use crate::syntax::names::Function;
use crate::value::Value;

pub(crate) fn call<'a>(
    function: Function,
    args: &[Value<'a>],
    budget: &mut Budget,
) -> Result<Value<'a>, Fault> {
    match function {
        Function::Max => extreme(function, args, Ordering::Less, budget),
        Function::Min => extreme(function, args, Ordering::Greater, budget),
        Function::Mean | Function::Median => {
            let mut numbers = Vec::new();
            for arg in args {
                gather(function, arg, &mut numbers, budget)?;
            }
            if numbers.is_empty() {
                return Ok(Absent::nothing(if function == Function::Mean {
                    "mean(…) of an empty list"
                } else {
                    "median(…) of an empty list"
                }));
            }
            Ok(Value::Float(if function == Function::Mean {
                mean(&numbers)
            } else {
                median(numbers, budget.rules)
            }))
        }
        Function::BitNot => match args {
            [Value::Int(n)] => Ok(Value::Int(!n)),
            _ => Err(refused(function, args.first().unwrap_or(&Value::Nil))),
        },
        Function::BitAnd
        | Function::BitOr
        | Function::BitXor
        | Function::BitNand
        | Function::BitShl
        | Function::BitShr
        | Function::BitUshr => bits(function, args, budget.rules),
        _ => convert(function, args.first().unwrap_or(&Value::Nil), budget.rules),
    }
}

fn convert<'a>(function: Function, value: &Value<'a>, rules: Rules) -> Result<Value<'a>, Fault> {
    let refuse = || refused(function, value);
    match function {
        Function::Abs => match value {
            Value::Int(n) => fitted(n.overflowing_abs(), rules).map(Value::Int),
            Value::Whole(n) => Ok(Value::Whole(n.abs())),
            Value::Float(n) => Ok(Value::Float(n.abs())),
            _ => Err(refuse()),
        },
        Function::Int => {
            let found = match value {
                Value::Int(n) => Some(*n),
                Value::Whole(n) => i64::try_from(*n).ok(),
                Value::Float(n) => number::truncate(*n),
                Value::Str(text) => number::parse_int(text.as_str()),
                Value::Duration(span) => Some(*span),
                _ => None,
            };
            found.map(Value::Int).ok_or_else(refuse)
        }
        Function::Float => {
            let found = match value {
                Value::Str(text) => number::parse_float(text.as_str()),
                other => other.as_float(),
            };
            found.map(Value::Float).ok_or_else(refuse)
        }
        _ => {
            let number = value.as_float().ok_or_else(refuse)?;
            Ok(Value::Float(match function {
                Function::Ceil => number.ceil(),
                Function::Floor => number.floor(),
                _ => number.round(),
            }))
        }
    }
}

/// Returns the largest or smallest number of all arguments, including list elements. `worse` is how a number
/// compares with one that replaces it.
fn extreme<'a>(
    function: Function,
    args: &[Value<'a>],
    worse: Ordering,
    budget: &mut Budget,
) -> Result<Value<'a>, Fault> {
    if let [only] = args
        && !only.is_number()
        && !matches!(only, Value::List(_))
    {
        return Ok(only.clone());
    }
    let mut best = None;
    for arg in args {
        extreme_of(function, arg, worse, &mut best, budget)?;
    }
    // A number that cannot be compared is the result, so that any comparison with it fails.
    Ok(best.unwrap_or_else(|| {
        Absent::nothing(if function == Function::Max {
            "max(…)"
        } else {
            "min(…)"
        })
    }))
}

fn extreme_of<'a>(
    function: Function,
    value: &Value<'a>,
    worse: Ordering,
    best: &mut Option<Value<'a>>,
    budget: &mut Budget,
) -> Result<(), Fault> {
    budget.step(1)?;
    match value {
        Value::List(list) => {
            for item in list.iter() {
                extreme_of(function, &item, worse, best, budget)?;
            }
            Ok(())
        }
        number if number.is_number() => {
            let rules = budget.rules;
            let is_worse = |old: &Value<'a>| {
                old.comparable(rules).is_ok() && order(old, number).is_ok_and(|order| order == Some(worse))
            };
            if number.comparable(rules).is_err() || best.as_ref().is_none_or(is_worse) {
                *best = Some(number.clone());
            }
            Ok(())
        }
        other => Err(refused(function, other)),
    }
}

fn gather(
    function: Function,
    value: &Value<'_>,
    out: &mut Vec<f64>,
    budget: &mut Budget,
) -> Result<(), Fault> {
    budget.step(1)?;
    if let Value::List(list) = value {
        for item in list.iter() {
            gather(function, &item, out, budget)?;
        }
        return Ok(());
    }
    out.push(value.as_float().ok_or_else(|| refused(function, value))?);
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "a count of elements is far below 2^53")]
fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

fn median(mut numbers: Vec<f64>, rules: Rules) -> f64 {
    let incomparable = |number: &&f64| Value::Float(**number).comparable(rules).is_err();
    if let Some(number) = numbers.iter().find(incomparable) {
        return *number;
    }
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    let at = |index: usize| numbers.get(index).copied().unwrap_or(0.0);
    match numbers.len() {
        len if len % 2 == 1 => at(middle),
        _ => f64::midpoint(at(middle - 1), at(middle)),
    }
}

fn bits<'a>(function: Function, args: &[Value<'a>], rules: Rules) -> Result<Value<'a>, Fault> {
    let [Value::Int(x), Value::Int(y)] = args else {
        return Err(Fault::runtime(format!("{function} takes two integers")));
    };
    let (x, y) = (*x, *y);
    let shift = |apply: fn(i64, u32) -> i64, beyond: i64| match u32::try_from(y) {
        Ok(count) if count < 64 => Ok(apply(x, count)),
        _ if y < 0 => Err(Fault::runtime(format!("{function}: negative shift"))),
        _ => Ok(beyond),
    };
    Ok(Value::Int(match function {
        Function::BitAnd => x & y,
        Function::BitOr => x | y,
        Function::BitXor => x ^ y,
        Function::BitNand => x & !y,
        Function::BitShl => {
            let shifted = shift(|x, n| x << n, 0)?;
            fitted((shifted, shift(|x, n| x << n >> n, 0)? != x), rules)?
        }
        Function::BitShr => shift(|x, n| x >> n, if x < 0 { -1 } else { 0 })?,
        _ => shift(|x, n| (x.cast_unsigned() >> n).cast_signed(), 0)?,
    }))
}
