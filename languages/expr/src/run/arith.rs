//! Arithmetic at run time: `+ - * / % **`.

use jiff::{SignedDuration, Timestamp};

use crate::error::Fault;
use crate::number;
use crate::rules::Rules;
use crate::run::budget::Budget;
use crate::syntax::ast::BinaryOp;
use crate::value::Value;

/// Evaluates `a op b`. JSON integers keep all their digits, and `/` always returns a float. Other integers wrap
/// silently under Go's rules; under strict rules an overflow is an error.
pub(crate) fn arithmetic<'a>(
    op: BinaryOp,
    a: &Value<'a>,
    b: &Value<'a>,
    budget: &mut Budget,
) -> Result<Value<'a>, Fault> {
    if let Some(exact) = without_rounding(op, a, b)? {
        return Ok(exact);
    }
    if budget.rules.are_strict() {
        // These turn an infinity into an ordinary number, which no later comparison would notice.
        if op == BinaryOp::Divide || op == BinaryOp::Power {
            b.comparable(budget.rules)?;
        }
        if op == BinaryOp::Power {
            a.comparable(budget.rules)?;
        }
    }
    let out = match op {
        BinaryOp::Modulo => return modulo(a, b),
        BinaryOp::Divide => floats(a, b).map(|(x, y)| Value::Float(x / y)),
        BinaryOp::Power => floats(a, b).map(|(x, y)| Value::Float(x.powf(y))),
        BinaryOp::Add => match (a, b) {
            (Value::Str(x), Value::Str(y)) => {
                let (x, y) = (x.as_str(), y.as_str());
                budget.text(x.len().saturating_add(y.len()))?;
                Some(Value::text(format!("{x}{y}")))
            }
            (Value::Time(time), Value::Duration(span)) | (Value::Duration(span), Value::Time(time)) => {
                return shift(*time, *span);
            }
            (Value::Duration(x), Value::Duration(y)) => {
                Some(Value::Duration(fitted(x.overflowing_add(*y), budget.rules)?))
            }
            (Value::Int(x), Value::Int(y)) => Some(Value::Int(fitted(x.overflowing_add(*y), budget.rules)?)),
            _ => floats(a, b).map(|(x, y)| Value::Float(x + y)),
        },
        BinaryOp::Subtract => match (a, b) {
            (Value::Time(x), Value::Time(y)) => Some(Value::Duration(between(*x, *y))),
            (Value::Time(time), Value::Duration(span)) => return shift(*time, span.wrapping_neg()),
            (Value::Duration(x), Value::Duration(y)) => {
                Some(Value::Duration(fitted(x.overflowing_sub(*y), budget.rules)?))
            }
            (Value::Int(x), Value::Int(y)) => Some(Value::Int(fitted(x.overflowing_sub(*y), budget.rules)?)),
            _ => floats(a, b).map(|(x, y)| Value::Float(x - y)),
        },
        BinaryOp::Multiply => match (a, b) {
            (Value::Duration(x), Value::Duration(y) | Value::Int(y))
            | (Value::Int(x), Value::Duration(y)) => {
                Some(Value::Duration(fitted(x.overflowing_mul(*y), budget.rules)?))
            }
            (Value::Duration(span), Value::Float(factor)) | (Value::Float(factor), Value::Duration(span)) => {
                Some(Value::Float(nanos(*span) * factor))
            }
            (Value::Int(x), Value::Int(y)) => Some(Value::Int(fitted(x.overflowing_mul(*y), budget.rules)?)),
            _ => floats(a, b).map(|(x, y)| Value::Float(x * y)),
        },
        _ => None,
    };
    out.ok_or_else(|| unfit(op.text(), a, b))
}

/// Evaluates `+ - *` of integers without rounding, where a float would round the result. `None`: the general rules
/// apply.
fn without_rounding<'a>(op: BinaryOp, a: &Value<'a>, b: &Value<'a>) -> Result<Option<Value<'a>>, Fault> {
    let (Some(x), Some(y)) = (number::integer(a), number::integer(b)) else {
        return Ok(None);
    };
    let exact = match op {
        BinaryOp::Add => x.checked_add(y),
        BinaryOp::Subtract => x.checked_sub(y),
        BinaryOp::Multiply => x.checked_mul(y),
        _ => return Ok(None),
    };
    let exact = exact.map(number::exact).ok_or_else(overflow)?;
    Ok(match (a, b) {
        (Value::Int(_), Value::Int(_)) => None,
        (Value::Whole(_), _) | (_, Value::Whole(_)) => Some(exact),
        // Floats hold small results exactly, and tell 0 from -0.
        _ => Some(exact).filter(|value| matches!(value, Value::Whole(_))),
    })
}

/// Returns the result of 64-bit arithmetic. Go's rules let it wrap.
pub(crate) fn fitted<T>((result, wrapped): (T, bool), rules: Rules) -> Result<T, Fault> {
    if wrapped && rules.are_strict() {
        return Err(overflow());
    }
    Ok(result)
}

fn overflow() -> Fault {
    Fault::runtime(
        "integer overflow: the result needs more than 64 bits; use asFloat(…) for an approximate result",
    )
}

/// Returns the error for an operator that does not fit its operands.
pub(crate) fn unfit(op: &str, a: &Value<'_>, b: &Value<'_>) -> Fault {
    let mut message = format!(
        "`{op}` cannot be applied to {} and {}",
        a.describe(),
        b.describe()
    );
    if a.is_nil() || b.is_nil() {
        message.push_str("; use default(…, 0) or ?? for a value that may be absent");
    } else if (a.as_str().is_some() && b.is_number()) || (a.is_number() && b.as_str().is_some()) {
        message.push_str("; use asInt(…) or asFloat(…) on the text");
    }
    Fault::runtime(message)
}

fn floats(a: &Value<'_>, b: &Value<'_>) -> Option<(f64, f64)> {
    Some((a.as_float()?, b.as_float()?))
}

fn modulo<'a>(a: &Value<'a>, b: &Value<'a>) -> Result<Value<'a>, Fault> {
    match (a, b) {
        (Value::Int(_), Value::Int(0)) => Err(Fault::runtime("integer divide by zero")),
        (Value::Int(x), Value::Int(y)) => Ok(Value::Int(x.wrapping_rem(*y))),
        _ if a.is_number() && b.is_number() => Err(Fault::runtime(
            "`%` needs integers, which JSON numbers are not; use asInt(…) % 2",
        )),
        _ => Err(unfit("%", a, b)),
    }
}

fn shift<'a>(time: Timestamp, span: i64) -> Result<Value<'a>, Fault> {
    time.checked_add(SignedDuration::from_nanos(span))
        .map(Value::Time)
        .map_err(|_| Fault::runtime("the time is out of range"))
}

/// Returns the nanoseconds from `y` to `x`, limited to 64 bits.
pub(crate) fn between(x: Timestamp, y: Timestamp) -> i64 {
    let nanos = x.as_nanosecond() - y.as_nanosecond();
    i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
}

#[expect(
    clippy::cast_precision_loss,
    reason = "Go converts to float64 in the same way"
)]
pub(crate) fn nanos(span: i64) -> f64 {
    span as f64
}

/// Evaluates `-value`.
pub(crate) fn negate<'a>(value: &Value<'a>, rules: Rules) -> Result<Value<'a>, Fault> {
    match value {
        Value::Missing(absent) => Err(absent.fault()),
        Value::Int(n) => fitted(n.overflowing_neg(), rules).map(Value::Int),
        Value::Whole(n) => Ok(Value::Whole(-n)),
        Value::Float(n) => Ok(Value::Float(-n)),
        _ => Err(Fault::runtime(format!(
            "unary `+` and `-` need a number, not {}",
            value.describe()
        ))),
    }
}
