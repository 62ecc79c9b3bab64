//! Member access, indexes, slices and `in`.

use crate::absent::Absent;
use crate::error::Fault;
use crate::number;
use crate::run::budget::Budget;
use crate::run::compare::{equal, identical, unlike};
use crate::run::kleene;
use crate::value::{CUT_BYTES, List, Map, Text, Value};

/// Returns an index or bound. Truncates floats, as in Go.
pub(crate) fn integer(value: &Value<'_>) -> Result<i64, Fault> {
    match value {
        Value::Int(n) => Ok(*n),
        Value::Float(n) => number::truncate(*n).ok_or_else(|| Fault::runtime("the number is out of range")),
        Value::Whole(n) => i64::try_from(*n).map_err(|_| Fault::runtime("the number is out of range")),
        other => Err(Fault::runtime(format!(
            "an integer is required here, not {}",
            other.describe()
        ))),
    }
}

/// Evaluates `base.name`.
pub(crate) fn field<'a>(base: &Value<'a>, name: &'a str, budget: &mut Budget) -> Result<Value<'a>, Fault> {
    match base {
        Value::Map(map @ (Map::Json(..) | Map::Made { .. })) => Ok(map
            .get(name)
            .unwrap_or_else(|| Absent::key(&Value::Str(Text::Borrowed(name)), map))),
        other => fetch(other, &Value::Str(Text::Borrowed(name)), budget),
    }
}

/// Evaluates `base.key` and `base[key]`. A missing key is [`Value::Missing`]; any other absence is an error.
pub(crate) fn fetch<'a>(base: &Value<'a>, key: &Value<'a>, budget: &mut Budget) -> Result<Value<'a>, Fault> {
    match base {
        Value::List(list) => {
            let at = position(key, list.len())?;
            list.get(at).ok_or_else(|| out_of_range(key, list.len()))
        }
        Value::Str(text) => {
            let at = position(key, text.as_str().len())?;
            let byte = text.as_str().as_bytes().get(at).copied();
            byte.map(|byte| Value::Int(i64::from(byte)))
                .ok_or_else(|| out_of_range(key, text.as_str().len()))
        }
        Value::Map(map) => Ok(match (lookup(map, key, budget)?, map) {
            (Some(value), _) => value,
            (None, Map::Pairs { groups: true, .. }) => Value::absent_list(),
            (None, _) => Absent::key(key, map),
        }),
        Value::Missing(absent) => Err(absent.fault()),
        Value::Nil => Err(Fault::runtime(match key.as_str() {
            Some(name) => {
                format!(
                    "cannot read `{name}` of {}; use ?.{name} if the value may be absent",
                    base.describe()
                )
            }
            None => format!("{} cannot be indexed", base.describe()),
        })),
        other => Err(Fault::runtime(match key.as_str() {
            Some(name) => format!("{} has no field `{name}`", other.describe()),
            None => format!("{} cannot be indexed", other.describe()),
        })),
    }
}

fn position(key: &Value<'_>, len: usize) -> Result<usize, Fault> {
    let index = integer(key)?;
    let length = i64::try_from(len).unwrap_or(i64::MAX);
    let at = if index < 0 {
        length.saturating_add(index)
    } else {
        index
    };
    usize::try_from(at)
        .ok()
        .filter(|at| *at < len)
        .ok_or_else(|| out_of_range(key, len))
}

fn out_of_range(key: &Value<'_>, len: usize) -> Fault {
    let at = integer(key).unwrap_or(0);
    Fault::runtime(format!(
        "index {at} is out of range: the length is {len}; check len(…) first"
    ))
}

fn lookup<'a>(map: &Map<'a>, key: &Value<'a>, budget: &mut Budget) -> Result<Option<Value<'a>>, Fault> {
    budget.read(key.as_str().map_or(0, str::len).saturating_mul(16))?;
    Ok(match (map, key) {
        (Map::Json(..) | Map::Made { .. }, Value::Str(name)) => map.get(name.as_str()),
        (Map::Pairs { entries, .. }, key) => {
            let mut found = None;
            for (own, value) in entries.iter() {
                if identical(own, key, budget)? {
                    found = Some(value.clone());
                    break;
                }
            }
            found
        }
        (_, Value::Nil) => map.get(""),
        (_, other) => {
            return Err(Fault::runtime(format!(
                "an object's key must be text, not {}",
                other.describe()
            )));
        }
    })
}

/// Evaluates `base[from:to]`. Clamps bounds to the length.
pub(crate) fn slice<'a>(
    base: &Value<'a>,
    from: Option<&Value<'a>>,
    to: Option<&Value<'a>>,
    budget: &mut Budget,
) -> Result<Value<'a>, Fault> {
    let len = match base {
        Value::List(list) => list.len(),
        Value::Str(text) => text.as_str().len(),
        Value::Missing(absent) => return Err(absent.fault()),
        other => return Err(Fault::runtime(format!("{} cannot be sliced", other.describe()))),
    };
    let end = to.map_or(Ok(len), |to| bound(to, len))?;
    let start = from.map_or(Ok(0), |from| bound(from, len))?.min(end);
    match base {
        Value::List(list) => Ok(Value::List(list.slice(start, end))),
        Value::Str(Text::Borrowed(text)) if text.get(start..end).is_some() => {
            Ok(Value::Str(Text::Borrowed(text.get(start..end).unwrap_or(""))))
        }
        Value::Str(text) => {
            budget.text(end.saturating_sub(start))?;
            Ok(Value::text(bytes_as_text(
                text.as_str().as_bytes().get(start..end),
            )))
        }
        _ => Ok(Value::Nil),
    }
}

/// Converts bytes to text. Slices count bytes and may cut a character in two. Text is UTF-8 here, so each
/// byte of a cut character becomes one private-use character (U+10FF80 and up), which is equal only to
/// itself.
fn bytes_as_text(bytes: Option<&[u8]>) -> String {
    let mut out = String::new();
    for chunk in bytes.unwrap_or(&[]).utf8_chunks() {
        out.push_str(chunk.valid());
        for byte in chunk.invalid() {
            out.push(char::from_u32(CUT_BYTES + u32::from(*byte)).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
    }
    out
}

fn bound(value: &Value<'_>, len: usize) -> Result<usize, Fault> {
    let index = integer(value)?;
    let length = i64::try_from(len).unwrap_or(i64::MAX);
    let at = if index < 0 {
        length.saturating_add(index)
    } else {
        index
    };
    Ok(usize::try_from(at.clamp(0, length)).unwrap_or(len))
}

/// Evaluates `needle in haystack`.
pub(crate) fn contains<'a>(
    haystack: &Value<'a>,
    needle: &Value<'a>,
    budget: &mut Budget,
) -> Result<bool, Fault> {
    match haystack {
        Value::Nil => Ok(false),
        Value::List(List::Range { from, len }) => in_range(*from, *len, needle, budget),
        Value::List(list) => kleene::any(list.iter().map(|item| equal(&item, needle, budget))),
        Value::Map(map) => match lookup(map, needle, budget)? {
            // A key that is null is neither there nor missing.
            Some(value) => value.present().map(|()| true),
            None => Ok(false),
        },
        other => Err(Fault::runtime(format!(
            "`in` needs a list or an object, not {}",
            other.describe()
        ))),
    }
}

fn in_range(from: i64, len: usize, needle: &Value<'_>, budget: &mut Budget) -> Result<bool, Fault> {
    needle.comparable(budget.rules)?;
    let Some(last) = i64::try_from(len).ok().and_then(|len| len.checked_sub(1)) else {
        return Ok(false);
    };
    let Some(number) = needle.as_float() else {
        return unlike(&Value::Int(from), needle, budget.rules);
    };
    let Some(number) = number::truncate(number) else {
        return Ok(false);
    };
    if len == 0 || number < from || number > from.saturating_add(last) {
        return Ok(false);
    }
    equal(&Value::Int(number), needle, budget)
}
