//! Text that users write into annotations, for events and messages.

/// Maximum number of characters: events limit the length of their messages.
const MAX_CHARS: usize = 300;

/// Returns the text without characters that do not belong on a terminal; `None` if nothing is left.
pub fn user_text(text: &str) -> Option<String> {
    let text: String = redact::printable(text.trim()).chars().take(MAX_CHARS).collect();
    (!text.trim().is_empty()).then_some(text)
}
