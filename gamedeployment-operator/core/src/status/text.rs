//! Texts of others in messages: bounded in length, so that the whole status is.

/// Truncates a message to this number of bytes and marks that something is missing.
pub(super) fn cut(mut message: String, max_bytes: usize) -> String {
    if message.len() > max_bytes {
        message.truncate(message.floor_char_boundary(max_bytes));
        message.push_str(" …");
    }
    message
}
