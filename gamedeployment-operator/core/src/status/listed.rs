//! Lists in messages: the first few entries and the number of others.

/// Number of entries shown in a message.
const NAMED: usize = 5;

/// Formats the first few names and the number of others.
pub(super) fn named(all: &[&str]) -> String {
    some(all, |name| (*name).to_owned())
}

/// Formats the first few entries and the number of others.
pub(super) fn some<T>(all: &[T], words: impl Fn(&T) -> String) -> String {
    let shown = all.iter().take(NAMED).map(words).collect::<Vec<_>>().join(", ");
    if all.len() > NAMED {
        format!("{shown} and {} more", all.len() - NAMED)
    } else {
        shown
    }
}
