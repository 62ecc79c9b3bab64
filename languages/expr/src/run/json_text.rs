//! `toJSON` and `fromJSON`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;

use crate::absent::Absent;
use crate::error::Fault;
use crate::number;
use crate::run::args::refused;
use crate::run::budget::Budget;
use crate::syntax::names::Function;
use crate::value::Value;

/// Writes JSON with an indentation of two spaces, like Go's `json.MarshalIndent`.
pub(crate) fn write(value: &Value<'_>, budget: &mut Budget) -> Result<String, Fault> {
    let json = to_json(value, budget)?;
    let text = serde_json::to_string_pretty(&json).map_err(|_| refused(Function::ToJson, value))?;
    budget.text(text.len())?;
    // Go escapes these characters, so that the text is safe in HTML.
    Ok(text
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026"))
}

fn to_json(value: &Value<'_>, budget: &mut Budget) -> Result<Json, Fault> {
    budget.step(1)?;
    Ok(match value {
        Value::Nil => Json::Null,
        Value::Missing(absent) => return Err(absent.fault()),
        Value::Bool(b) => Json::from(*b),
        Value::Int(n) => Json::from(*n),
        Value::Whole(n) => i64::try_from(*n)
            .map(Json::from)
            .or_else(|_| u64::try_from(*n).map(Json::from))
            .map_err(|_| refused(Function::ToJson, value))?,
        Value::Float(n) if n.is_finite() => {
            match number::truncate(*n)
                .filter(|whole| n.trunc().to_bits() == n.to_bits() && whole.abs() <= 1 << 53)
            {
                // Go writes 3, not 3.0.
                Some(whole) if *n != 0.0 || n.is_sign_positive() => Json::from(whole),
                _ => Json::from(*n),
            }
        }
        Value::Str(text) => {
            budget.text(text.as_str().len())?;
            Json::from(text.as_str())
        }
        Value::List(list) => {
            budget.elements(list.len())?;
            Json::Array(
                list.iter()
                    .map(|item| to_json(&item, budget))
                    .collect::<Result<_, _>>()?,
            )
        }
        Value::Map(map) => {
            budget.elements(map.len())?;
            let mut out = serde_json::Map::new();
            for (key, value) in map.entries() {
                budget.text(key.as_str().map_or(0, str::len))?;
                let name = key
                    .as_str()
                    .ok_or_else(|| refused(Function::ToJson, &key))?
                    .to_owned();
                out.insert(name, to_json(&value, budget)?);
            }
            Json::Object(out)
        }
        Value::Time(time) => Json::from(time.to_string()),
        Value::Duration(span) => Json::from(*span),
        Value::Float(_) | Value::Function => return Err(refused(Function::ToJson, value)),
    })
}

pub(crate) fn read<'a>(text: &str, budget: &mut Budget) -> Result<Value<'a>, Fault> {
    budget.text(text.len())?;
    let json: Json =
        plain_json::from_str(text).map_err(|error| Fault::runtime(format!("fromJSON: {error}")))?;
    own(&json, budget)
}

fn own<'a>(json: &Json, budget: &mut Budget) -> Result<Value<'a>, Fault> {
    match json {
        Json::Null => Ok(Absent::null(None, budget.rules)),
        Json::Bool(b) => Ok(Value::Bool(*b)),
        Json::Number(n) => Ok(number::from_json(n)),
        Json::String(s) => Ok(Value::text(s.clone())),
        Json::Array(items) => {
            budget.elements(items.len())?;
            Value::list(
                items
                    .iter()
                    .map(|item| own(item, budget))
                    .collect::<Result<_, _>>()?,
            )
        }
        Json::Object(entries) => {
            budget.elements(entries.len())?;
            let mut out = BTreeMap::new();
            for (key, value) in entries {
                out.insert(Arc::from(key.as_str()), own(value, budget)?);
            }
            Value::map(out)
        }
    }
}
