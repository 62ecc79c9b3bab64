//! Values during evaluation. JSON is borrowed, never copied; ranges are never expanded.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value as Json;

use crate::absent::Absent;
use crate::error::Fault;
use crate::number;
use crate::rules::Rules;

/// Text that is borrowed from the response or the source, or was built during evaluation.
#[derive(Debug, Clone)]
pub(crate) enum Text<'a> {
    Borrowed(&'a str),
    Made(Arc<str>),
}

/// Base of the private-use characters for the bytes of a character that a slice cut: `CUT_BYTES` plus the
/// byte.
pub(crate) const CUT_BYTES: u32 = 0x0010_FF00;

/// Returns whether text contains bytes of a cut character. Their order differs from Go's, and no pattern may
/// contain them.
pub(crate) fn holds_cut_bytes(text: &str) -> bool {
    // Their UTF-8 form starts with this byte, which is rare in other text.
    text.as_bytes().contains(&0xF4) && text.chars().any(|sign| u32::from(sign) >= CUT_BYTES + 0x80)
}

impl Text<'_> {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Text::Borrowed(text) => text,
            Text::Made(text) => text,
        }
    }
}

impl From<String> for Text<'_> {
    fn from(text: String) -> Self {
        Text::Made(Arc::from(text))
    }
}

#[derive(Debug, Clone)]
pub(crate) enum Value<'a> {
    Nil,
    /// An absent value. It counts as nil for `??`, `?.`, `default`, `isNil` and next to a literal `nil`; any
    /// other use is unknown.
    Missing(Box<Absent<'a>>),
    Bool(bool),
    Int(i64),
    /// A JSON integer beyond 2^53, kept exact; in all other respects a float.
    Whole(i128),
    Float(f64),
    Str(Text<'a>),
    Time(Timestamp),
    /// Nanoseconds.
    Duration(i64),
    List(List<'a>),
    Map(Map<'a>),
    Function,
}

#[derive(Debug, Clone)]
pub(crate) enum List<'a> {
    Json(&'a [Json], Rules),
    Floats(&'a [f64]),
    /// `from`, `from + 1`, …; an `[]int` in Go.
    Range {
        from: i64,
        len: usize,
    },
    Made {
        items: Arc<[Value<'a>]>,
        from: usize,
        to: usize,
        shape: Shape,
        depth: u8,
    },
}

/// Element type of a built list, as in Go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Any,
    /// Strings, built by `split`: `[]string`.
    Words,
    /// Built by `toPairs`: `[][2]any`.
    Pairs,
    /// A list that does not exist (the group of an absent key): empty, and equal to nil.
    Absent,
}

#[derive(Debug, Clone)]
pub(crate) enum Map<'a> {
    Json(&'a serde_json::Map<String, Json>, Rules),
    Made {
        entries: Arc<BTreeMap<Arc<str>, Value<'a>>>,
        depth: u8,
    },
    /// Keys of any type. In the result of `groupBy`, an absent key is an empty list.
    Pairs {
        entries: Arc<[(Value<'a>, Value<'a>)]>,
        groups: bool,
        depth: u8,
    },
}

/// Maximum nesting of lists and objects that a condition builds.
const MAX_DEPTH: u8 = 100;

impl<'a> Value<'a> {
    pub(crate) fn json(json: &'a Json, rules: Rules) -> Self {
        match json {
            Json::Null => Absent::null(None, rules),
            Json::Bool(b) => Value::Bool(*b),
            Json::Number(n) => number::from_json(n),
            Json::String(s) => Value::Str(Text::Borrowed(s)),
            Json::Array(items) => Value::List(List::Json(items, rules)),
            Json::Object(entries) => Value::Map(Map::Json(entries, rules)),
        }
    }

    pub(crate) fn text(text: impl Into<String>) -> Self {
        Value::Str(Text::from(text.into()))
    }

    pub(crate) fn list(items: Vec<Value<'a>>) -> Result<Self, Fault> {
        let depth = deeper(items.iter())?;
        let to = items.len();
        Ok(Value::List(List::Made {
            items: Arc::from(items),
            from: 0,
            to,
            shape: Shape::Any,
            depth,
        }))
    }

    pub(crate) fn words(words: Vec<Value<'a>>) -> Self {
        let to = words.len();
        Value::List(List::Made {
            items: Arc::from(words),
            from: 0,
            to,
            shape: Shape::Words,
            depth: 1,
        })
    }

    pub(crate) fn list_of_pairs(pairs: Vec<Value<'a>>) -> Result<Self, Fault> {
        let depth = deeper(pairs.iter())?;
        let to = pairs.len();
        Ok(Value::List(List::Made {
            items: Arc::from(pairs),
            from: 0,
            to,
            shape: Shape::Pairs,
            depth,
        }))
    }

    pub(crate) fn map(entries: BTreeMap<Arc<str>, Value<'a>>) -> Result<Self, Fault> {
        let depth = deeper(entries.values())?;
        Ok(Value::Map(Map::Made {
            entries: Arc::new(entries),
            depth,
        }))
    }

    pub(crate) fn pairs(entries: Vec<(Value<'a>, Value<'a>)>, groups: bool) -> Result<Self, Fault> {
        let depth = deeper(entries.iter().flat_map(|(key, value)| [key, value]))?;
        Ok(Value::Map(Map::Pairs {
            entries: Arc::from(entries),
            groups,
            depth,
        }))
    }

    /// Returns a list that does not exist.
    pub(crate) fn absent_list() -> Self {
        Value::List(List::Made {
            items: Arc::from([]),
            from: 0,
            to: 0,
            shape: Shape::Absent,
            depth: 1,
        })
    }

    /// Returns whether the value equals nil for `==`, `??` and `?.`.
    pub(crate) fn is_nil(&self) -> bool {
        matches!(
            self,
            Value::Nil
                | Value::Missing(_)
                | Value::List(List::Made {
                    shape: Shape::Absent,
                    ..
                })
        )
    }

    /// Fails with unknown if the value is absent.
    pub(crate) fn present(&self) -> Result<(), Fault> {
        match self {
            Value::Missing(absent) => Err(absent.fault()),
            _ => Ok(()),
        }
    }

    /// Fails with unknown for a number that no comparison can decide: NaN, and under strict rules an infinity.
    pub(crate) fn comparable(&self, rules: Rules) -> Result<(), Fault> {
        match self {
            Value::Float(number) if number.is_nan() => Err(Fault::nan()),
            Value::Float(number) if number.is_infinite() && rules.are_strict() => Err(Fault::infinity()),
            _ => Ok(()),
        }
    }

    pub(crate) fn is_number(&self) -> bool {
        matches!(self, Value::Int(_) | Value::Whole(_) | Value::Float(_))
    }

    /// Describes the value for messages.
    pub(crate) fn describe(&self) -> &'static str {
        match self {
            Value::Nil => "nil",
            Value::Missing(_) => "a missing key",
            Value::Bool(_) => "true/false",
            Value::Int(_) => "an integer",
            Value::Whole(_) | Value::Float(_) => "a number",
            Value::Str(_) => "text",
            Value::Time(_) => "a time",
            Value::Duration(_) => "a duration",
            Value::List(_) => "a list",
            Value::Map(_) => "an object",
            Value::Function => "a function",
        }
    }

    /// Returns a number as a float.
    pub(crate) fn as_float(&self) -> Option<f64> {
        #[expect(
            clippy::cast_precision_loss,
            reason = "Go converts to float64 in the same way"
        )]
        match self {
            Value::Int(n) => Some(*n as f64),
            Value::Whole(n) => Some(*n as f64),
            Value::Float(n) => Some(*n),
            _ => None,
        }
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        match self {
            Value::Str(text) => Some(text.as_str()),
            _ => None,
        }
    }

    fn depth(&self) -> u8 {
        match self {
            // The JSON parser limits the depth of JSON.
            Value::List(List::Made { depth, .. })
            | Value::Map(Map::Made { depth, .. } | Map::Pairs { depth, .. }) => *depth,
            _ => 0,
        }
    }
}

/// Returns one more than the depth of the deepest part. The depth is bounded, because comparing and dropping
/// recurse.
fn deeper<'v, 'a: 'v>(parts: impl Iterator<Item = &'v Value<'a>>) -> Result<u8, Fault> {
    let depth = parts.map(Value::depth).max().unwrap_or(0) + 1;
    if depth > MAX_DEPTH {
        return Err(Fault::budget(format!(
            "lists are nested deeper than {MAX_DEPTH} levels"
        )));
    }
    Ok(depth)
}

impl<'a> List<'a> {
    pub(crate) fn len(&self) -> usize {
        match self {
            List::Json(items, _) => items.len(),
            List::Floats(items) => items.len(),
            List::Range { len, .. } => *len,
            List::Made { from, to, .. } => to.saturating_sub(*from),
        }
    }

    pub(crate) fn get(&self, index: usize) -> Option<Value<'a>> {
        match self {
            List::Json(items, rules) => items.get(index).map(|item| Value::json(item, *rules)),
            List::Floats(items) => items.get(index).copied().map(Value::Float),
            List::Range { from, len } => (index < *len)
                .then(|| Value::Int(from.wrapping_add(i64::try_from(index).unwrap_or(i64::MAX)))),
            List::Made { items, from, to, .. } => {
                let at = from.checked_add(index).filter(|at| at < to)?;
                items.get(at).cloned()
            }
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Value<'a>> + '_ {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// Returns the elements `from..to`; the bounds must lie within the list.
    pub(crate) fn slice(&self, from: usize, to: usize) -> List<'a> {
        match self {
            List::Json(items, rules) => List::Json(items.get(from..to).unwrap_or(&[]), *rules),
            List::Floats(items) => List::Floats(items.get(from..to).unwrap_or(&[])),
            List::Range { from: start, .. } => List::Range {
                from: start.wrapping_add(i64::try_from(from).unwrap_or(i64::MAX)),
                len: to.saturating_sub(from),
            },
            List::Made {
                items,
                from: start,
                shape,
                depth,
                ..
            } => List::Made {
                items: items.clone(),
                from: start + from,
                to: start + to,
                shape: *shape,
                depth: *depth,
            },
        }
    }
}

/// Returns the value of a key; a null names the key.
fn member<'a>(key: &'a str, value: &'a Json, rules: Rules) -> Value<'a> {
    match value {
        Json::Null => Absent::null(Some(key), rules),
        value => Value::json(value, rules),
    }
}

impl<'a> Map<'a> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Map::Json(entries, _) => entries.len(),
            Map::Made { entries, .. } => entries.len(),
            Map::Pairs { entries, .. } => entries.len(),
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<Value<'a>> {
        match self {
            Map::Json(entries, rules) => {
                let (key, value) = entries.get_key_value(key)?;
                Some(member(key, value, *rules))
            }
            Map::Made { entries, .. } => entries.get(key).cloned(),
            Map::Pairs { entries, .. } => entries
                .iter()
                .find(|(own, _)| own.as_str() == Some(key))
                .map(|(_, value)| value.clone()),
        }
    }

    /// Returns the entries in the order of their keys; those of [`Map::Pairs`] in the order in which they
    /// were added.
    pub(crate) fn entries(&self) -> Vec<(Value<'a>, Value<'a>)> {
        match self {
            Map::Json(entries, rules) => entries
                .iter()
                .map(|(key, value)| (Value::Str(Text::Borrowed(key)), member(key, value, *rules)))
                .collect(),
            Map::Made { entries, .. } => entries
                .iter()
                .map(|(key, value)| (Value::Str(Text::Made(key.clone())), value.clone()))
                .collect(),
            Map::Pairs { entries, .. } => entries.to_vec(),
        }
    }
}
