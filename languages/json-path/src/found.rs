//! Intermediate results of an evaluation, and their conversion to the final value. Evaluates nothing.

use serde_json::Value;

use super::{Constant, Found, JsonPathError, MAX_FOUND, Slice, Until};

/// Maximum size of the values copied from the document, in bytes: 16 per value, plus the bytes of its texts
/// and keys.
const MAX_COPIED: usize = 8 << 20;

/// Maximum nesting of a copied value. None of our JSON parsers returns a value that deep.
const MAX_DEPTH: usize = 256;

/// An intermediate value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Item<'a> {
    Json(&'a Value),
    /// A byte of a text that `.*` split.
    Byte(u8),
    /// A document that is null. Unlike a null within a document, it cannot be skipped.
    NullDocument,
}

pub(super) type Items<'a> = Vec<Item<'a>>;

impl<'a> Item<'a> {
    /// Converts the value from which the first step starts.
    pub(super) fn root(value: &'a Value) -> Self {
        if value.is_null() {
            Self::NullDocument
        } else {
            Self::Json(value)
        }
    }

    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::Json(Value::Null) | Self::NullDocument => "null",
            Self::Json(Value::Bool(_)) => "true or false",
            Self::Json(Value::Number(_)) | Self::Byte(_) => "a number",
            Self::Json(Value::String(_)) => "text",
            Self::Json(Value::Array(_)) => "a list",
            Self::Json(Value::Object(_)) => "an object",
        }
    }
}

/// Returns the bounds of a slice for a list of `length`, without checking them.
pub(super) fn bounds(slice: &Slice, length: usize) -> (i128, i128) {
    let length = i128::try_from(length).unwrap_or(i128::MAX);
    let mut from = i128::from(slice.from);
    let mut until = match slice.until {
        // For the index -1, `from + 1` would be 0, which does not count from the end.
        Until::Next if from == -1 => length,
        Until::Next => from + 1,
        Until::At(index) => i128::from(index),
        Until::End => length,
    };
    if from < 0 {
        from += length;
    }
    if until < 0 {
        until += length;
    }
    (from, until)
}

pub(super) fn written(slice: &Slice) -> String {
    match slice.until {
        Until::End if slice.from == 0 => "[*]".to_owned(),
        Until::Next => format!("[{}]", slice.from),
        Until::At(until) => format!("[{}:{until}]", slice.from),
        Until::End => format!("[{}:]", slice.from),
    }
}

pub(super) fn constant_value(constant: &Constant) -> Value {
    match constant {
        Constant::Text(text) => Value::from(text.as_str()),
        Constant::Int(int) => Value::from(*int),
        Constant::Float(float) => Value::from(*float),
        Constant::Bool(bool) => Value::from(*bool),
    }
}

pub(super) fn copy_out(items: &[Item<'_>]) -> Result<Found, JsonPathError> {
    if items.len() > MAX_FOUND {
        let message = format!(
            "jsonPath matches {} values; the limit is {MAX_FOUND}",
            items.len()
        );
        return Err(JsonPathError {
            message,
            position: None,
        });
    }
    let mut left = MAX_COPIED;
    let mut values = Vec::with_capacity(items.len());
    for item in items {
        values.push(match item {
            Item::Json(value) => {
                left = size(value).and_then(|size| left.checked_sub(size)).ok_or_else(|| JsonPathError {
                    message: format!(
                        "the values that jsonPath matches are larger than {MAX_COPIED} bytes or nested more than {MAX_DEPTH} \
                         levels deep; select fewer values"
                    ),
                    position: None,
                })?;
                (*value).clone()
            }
            Item::Byte(byte) => Value::from(*byte),
            Item::NullDocument => Value::Null,
        });
    }
    match values.pop() {
        None => Ok(Found::Nothing),
        Some(value) if values.is_empty() => Ok(Found::One(value)),
        Some(last) => {
            values.push(last);
            Ok(Found::Many(values))
        }
    }
}

/// Returns the size of a copy of the value; `None` if it is nested too deeply. Uses a loop, because recursion
/// could overflow the stack.
fn size(value: &Value) -> Option<usize> {
    let mut total = 0usize;
    let mut pending = vec![(value, 0usize)];
    while let Some((value, depth)) = pending.pop() {
        if depth > MAX_DEPTH {
            return None;
        }
        total += 16;
        match value {
            Value::String(text) => total += text.len(),
            Value::Array(list) => pending.extend(list.iter().map(|value| (value, depth + 1))),
            Value::Object(map) => {
                total += map.keys().map(String::len).sum::<usize>();
                pending.extend(map.values().map(|value| (value, depth + 1)));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    Some(total)
}
