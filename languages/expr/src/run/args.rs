//! Error messages for arguments of the wrong type.

use crate::error::Fault;
use crate::syntax::names::Function;
use crate::value::Value;

/// Returns the error for an argument. An absent argument is unknown.
pub(crate) fn refused(function: Function, value: &Value<'_>) -> Fault {
    match value {
        Value::Missing(absent) => absent.fault(),
        other => Fault::runtime(format!("{function} does not accept {}", other.describe())),
    }
}

/// Returns the text of an argument that must be a string.
pub(crate) fn text_arg<'v>(function: Function, value: &'v Value<'_>) -> Result<&'v str, Fault> {
    value.as_str().ok_or_else(|| refused(function, value))
}
