//! What functions say of arguments that they cannot take.

use crate::error::Fault;
use crate::syntax::names::Function;
use crate::value::Value;

/// The refusal of an argument.
pub(crate) fn refused(function: Function, value: &Value<'_>) -> Fault {
    Fault::runtime(format!("{function} cannot take {}", value.describe()))
}

/// An argument that must be text.
pub(crate) fn text_arg<'v>(function: Function, value: &'v Value<'_>) -> Result<&'v str, Fault> {
    value.as_str().ok_or_else(|| refused(function, value))
}
