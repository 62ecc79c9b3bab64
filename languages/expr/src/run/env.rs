//! Functions of the original environment: asInt, asFloat, isNaN, isInf, isNil, default.

use crate::error::Fault;
use crate::number;
use crate::rules::Rules;
use crate::syntax::names::EnvFunction;
use crate::value::Value;

/// Calls a function. `literal`: the argument is an integer literal, which Go passes as a float.
pub(crate) fn call<'a>(
    function: EnvFunction,
    first: Value<'a>,
    second: Option<Value<'a>>,
    literal: bool,
    rules: Rules,
) -> Result<Value<'a>, Fault> {
    if !matches!(function, EnvFunction::IsNil | EnvFunction::Default) {
        first.present()?;
    }
    match function {
        EnvFunction::AsInt => as_int(&first, rules).map(Value::Int),
        EnvFunction::AsFloat => as_float(&first).map(Value::Float),
        EnvFunction::IsNaN => Ok(Value::Bool(float(function, &first, literal)?.is_nan())),
        EnvFunction::IsInf => Ok(Value::Bool(float(function, &first, literal)?.is_infinite())),
        EnvFunction::IsNil => Ok(Value::Bool(is_nothing(&first))),
        EnvFunction::Default => Ok(if is_nothing(&first) {
            second.unwrap_or(Value::Nil)
        } else {
            first
        }),
    }
}

fn is_nothing(value: &Value<'_>) -> bool {
    matches!(value, Value::Nil | Value::Missing(_))
}

fn float(function: EnvFunction, value: &Value<'_>, literal: bool) -> Result<f64, Fault> {
    match value {
        Value::Int(_) if !literal => None,
        other => other.as_float(),
    }
    .ok_or_else(|| {
        let name = function.name();
        Fault::runtime(format!(
            "{name} takes a floating-point number, not {}; use {name}(asFloat(…))",
            value.describe()
        ))
    })
}

fn as_int(value: &Value<'_>, rules: Rules) -> Result<i64, Fault> {
    if let Value::Float(number) = value
        && rules.are_strict()
        && number.fract() != 0.0
        && number.is_finite()
    {
        return Err(Fault::runtime(format!(
            "asInt: {} is not an integer; use asFloat(…) to compare it, or int(…) to truncate it",
            number::float_text(*number)
        )));
    }
    let found = match value {
        Value::Int(n) => Some(*n),
        Value::Whole(n) => i64::try_from(*n).ok(),
        Value::Float(n) => number::truncate(*n),
        Value::Str(text) => number::parse_int(text.as_str()),
        _ => None,
    };
    found.ok_or_else(|| not_a_number("asInt", "a 64-bit integer", value))
}

fn as_float(value: &Value<'_>) -> Result<f64, Fault> {
    let found = match value {
        Value::Str(text) => number::parse_float(text.as_str()),
        other => other.as_float(),
    };
    found.ok_or_else(|| not_a_number("asFloat", "a number", value))
}

/// Maximum length of a text quoted in an error, in bytes.
const MAX_QUOTE_BYTES: usize = 40;

fn not_a_number(function: &str, wanted: &str, value: &Value<'_>) -> Fault {
    let shown = match value {
        Value::Str(text) => {
            // Quotes the text completely or not at all, and as in JSON. Secrets are redacted later, and the
            // redactor would not find a part of a secret or a different notation.
            match text.as_str() {
                long if long.len() > MAX_QUOTE_BYTES => format!("text of {} bytes", long.len()),
                short => serde_json::Value::from(short).to_string(),
            }
        }
        Value::Float(n) => number::float_text(*n),
        other => other.describe().to_owned(),
    };
    Fault::runtime(format!("{function}: {shown} is not {wanted}"))
}
