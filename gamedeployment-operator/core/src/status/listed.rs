//! Lists in sentences: the first few, and how many more.

/// Names shown in a sentence.
const NAMED: usize = 5;

/// The first few names, and how many more.
pub(super) fn named(all: &[&str]) -> String {
    some(all, |name| (*name).to_owned())
}

/// The first few in words, and how many more.
pub(super) fn some<T>(all: &[T], words: impl Fn(&T) -> String) -> String {
    let shown = all.iter().take(NAMED).map(words).collect::<Vec<_>>().join(", ");
    if all.len() > NAMED {
        format!("{shown} and {} more", all.len() - NAMED)
    } else {
        shown
    }
}
