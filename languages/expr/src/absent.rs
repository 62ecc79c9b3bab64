//! Absent values, and their error messages.

use near_names::keys_there;

use crate::error::{ConditionErrorKind, Fault};
use crate::rules::Rules;
use crate::value::{Map, Text, Value};

/// Reason why a value is absent.
#[derive(Debug, Clone)]
pub(crate) enum Absent<'a> {
    /// An object without this key.
    Key { name: Text<'a>, of: Map<'a> },
    /// JSON null, as the value of a key or elsewhere.
    Null(Option<&'a str>),
    /// An expression without a result, such as `first(…)` of an empty list.
    Nothing(&'static str),
}

impl<'a> Absent<'a> {
    pub(crate) fn key(key: &Value<'a>, of: &Map<'a>) -> Value<'a> {
        let name = match key {
            Value::Str(name) => name.clone(),
            other => Text::Borrowed(other.describe()),
        };
        Value::Missing(Box::new(Absent::Key { name, of: of.clone() }))
    }

    /// Returns the value of JSON null. `key` is the key that holds it.
    pub(crate) fn null(key: Option<&'a str>, rules: Rules) -> Value<'a> {
        match rules {
            Rules::Strict => Value::Missing(Box::new(Absent::Null(key))),
            Rules::Go => Value::Nil,
        }
    }

    pub(crate) fn nothing(found_by: &'static str) -> Value<'a> {
        Value::Missing(Box::new(Absent::Nothing(found_by)))
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self, Absent::Null(_))
    }

    /// Returns the error for an operation on the absent value.
    pub(crate) fn fault(&self) -> Fault {
        let message = match self {
            Absent::Key { name, of } => {
                let there = match of {
                    Map::Json(entries, _) => keys_there(name.as_str(), entries.keys().map(String::as_str)),
                    Map::Made { entries, .. } => keys_there(name.as_str(), entries.keys().map(AsRef::as_ref)),
                    Map::Pairs { entries, .. } => {
                        keys_there(name.as_str(), entries.iter().filter_map(|(key, _)| key.as_str()))
                    }
                };
                format!("key {:?} not found{there}", name.as_str())
            }
            Absent::Null(Some(key)) => format!("key {key:?} is null"),
            Absent::Null(None) => "the value is null".to_owned(),
            Absent::Nothing(found_by) => format!("{found_by} returned nothing"),
        };
        let remedy = if message.ends_with('?') {
            ""
        } else {
            "; use `x ?? default` or `x != nil` if the value may be absent"
        };
        Fault::new(ConditionErrorKind::MissingKey, message + remedy)
    }
}
