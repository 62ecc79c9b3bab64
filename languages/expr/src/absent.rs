//! Absent values, and their error messages.

use near_names::keys_there;

use crate::error::{ConditionErrorKind, Fault};
use crate::value::{Map, Text, Value};

/// Reason why a value is absent.
#[derive(Debug, Clone)]
pub(crate) enum Absent<'a> {
    /// An object without this key.
    Key { name: Text<'a>, of: Map<'a> },
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

    pub(crate) fn nothing(found_by: &'static str) -> Value<'a> {
        Value::Missing(Box::new(Absent::Nothing(found_by)))
    }

    /// Returns the error for an operation on the absent value.
    pub(crate) fn fault(&self) -> Fault {
        let message = match self {
            Absent::Key { name, of } => {
                let there = match of {
                    Map::Json(entries) => keys_there(name.as_str(), entries.keys().map(String::as_str)),
                    Map::Made { entries, .. } => keys_there(name.as_str(), entries.keys().map(AsRef::as_ref)),
                    Map::Pairs { entries, .. } => {
                        keys_there(name.as_str(), entries.iter().filter_map(|(key, _)| key.as_str()))
                    }
                };
                format!("key {:?} is not found{there}", name.as_str())
            }
            Absent::Nothing(found_by) => format!("{found_by} found nothing"),
        };
        let remedy = if message.ends_with('?') {
            ""
        } else {
            "; ask `x ?? default` or `x != nil` where it may be absent"
        };
        Fault::new(ConditionErrorKind::MissingKey, message + remedy)
    }
}
