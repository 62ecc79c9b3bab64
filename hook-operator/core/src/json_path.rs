//! JSON path (in work).

use serde_json::Value;

/// A parsed JSON path.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonPath {}

/// What a path found.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    /// One match binds that value.
    One(Value),
    /// Several matches bind a list.
    Many(Vec<Value>),
    /// The path is well-formed and walked over an empty list: no match, and none missing.
    Nothing,
}

/// Why a path is refused, or found nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct JsonPathError {
    /// For people; names the part of the path and the remedy.
    pub message: String,
    /// Byte offset in the path's text, where known.
    pub position: Option<usize>,
}

impl JsonPath {
    /// Parses a path of the Kubernetes form.
    pub fn parse(_text: &str) -> Result<Self, JsonPathError> {
        Err(JsonPathError {
            message: "in work".into(),
            position: None,
        })
    }

    /// Finds the path's value in a document.
    pub fn find(&self, _document: &Value) -> Result<Found, JsonPathError> {
        Err(JsonPathError {
            message: "in work".into(),
            position: None,
        })
    }
}
