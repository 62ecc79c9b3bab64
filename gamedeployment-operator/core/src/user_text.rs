//! Texts of others in messages and events: printable and bounded in length.

/// Maximum number of characters of an annotation: events limit the length of their messages.
const MAX_CHARS: usize = 300;
/// Maximum length of what a hook or an error says in an entry of the status, in bytes. Anyone can write the status
/// of a HookRun, and all entries together must stay well below the size that the API server stores.
const MAX_TEXT_BYTES: usize = 500;

/// Returns the text of an annotation without characters that do not belong on a terminal; `None` if nothing is
/// left.
pub fn user_text(text: &str) -> Option<String> {
    let text: String = redact::printable(text.trim()).chars().take(MAX_CHARS).collect();
    (!text.trim().is_empty()).then_some(text)
}

/// Bounds the length of a text, also as JSON: without control characters only quotes and backslashes are
/// escaped.
pub(crate) fn bounded(text: &str) -> String {
    cut(redact::printable(text), MAX_TEXT_BYTES)
}

/// Truncates a message to this number of bytes and marks that something is missing.
pub(crate) fn cut(mut message: String, max_bytes: usize) -> String {
    if message.len() > max_bytes {
        message.truncate(message.floor_char_boundary(max_bytes));
        message.push_str(" …");
    }
    message
}
