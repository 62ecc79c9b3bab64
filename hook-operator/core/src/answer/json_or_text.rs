//! Texts of web endpoints, containers, commands and fields: JSON, or plain text that cannot be mistaken for it.

use serde_json::Value;

use super::{MeasurementFailure, malformed};

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Content of a body.
pub(super) enum JsonOrText {
    /// JSON.
    Json(Value),
    /// Text without whitespace around it, and the reason why it is not JSON.
    Text(String, serde_json::Error),
}

/// Reason why a body is neither JSON nor text.
pub(super) enum Unreadable {
    /// It begins as JSON: half of it would pass for another value.
    BrokenJson(serde_json::Error),
    /// It has bytes that are no text from this one on.
    NotText(String),
}

/// Returns the body without the mark that some programs begin texts with.
pub(super) fn without_mark(body: &[u8]) -> &[u8] {
    body.strip_prefix(BYTE_ORDER_MARK).unwrap_or(body)
}

/// Reads a body as JSON if it parses, otherwise as text.
pub(super) fn json_or_text(body: &[u8]) -> Result<JsonOrText, Unreadable> {
    let error = match plain_json::from_slice(body) {
        Ok(value) => return Ok(JsonOrText::Json(value)),
        Err(error) => error,
    };
    let text = std::str::from_utf8(body)
        .map_err(|error| Unreadable::NotText(format!("invalid UTF-8 at byte {}", error.valid_up_to())))?;
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    if text.starts_with(['{', '[', '"']) {
        return Err(Unreadable::BrokenJson(error));
    }
    if let Some(at) = text.find('\0') {
        return Err(Unreadable::NotText(format!("NUL character at byte {at}")));
    }
    Ok(JsonOrText::Text(text.to_owned(), error))
}

/// Reads a text as JSON if it parses, otherwise as text. `about` names it in messages.
pub(super) fn value_of(body: &[u8], about: &str) -> Result<Value, MeasurementFailure> {
    match json_or_text(body) {
        Ok(JsonOrText::Json(value)) => Ok(value),
        Ok(JsonOrText::Text(text, _)) => Ok(Value::String(text)),
        Err(Unreadable::BrokenJson(error)) => Err(malformed(format!(
            "{about} looks like JSON but is not valid JSON: {error}"
        ))),
        Err(Unreadable::NotText(at)) => Err(malformed(format!(
            "{about} is neither JSON nor UTF-8 text ({at})"
        ))),
    }
}
