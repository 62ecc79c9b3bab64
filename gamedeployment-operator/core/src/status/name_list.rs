//! Lists in messages: the first few entries and the number of others.

/// Number of entries shown in a message.
const MAX_NAMES: usize = 5;

/// Formats the first few names and the number of others.
pub(super) fn join_names(all: &[&str]) -> String {
    join_first(all, |name| (*name).to_owned())
}

/// Formats the first few entries and the number of others.
pub(super) fn join_first<T>(all: &[T], words: impl Fn(&T) -> String) -> String {
    let shown = all
        .iter()
        .take(MAX_NAMES)
        .map(words)
        .collect::<Vec<_>>()
        .join(", ");
    if all.len() > MAX_NAMES {
        format!("{shown} and {} more", all.len() - MAX_NAMES)
    } else {
        shown
    }
}
