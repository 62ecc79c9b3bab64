#![doc = include_str!("../README.md")]

mod layer;
mod printable;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use layer::{Layer, layers};
pub use printable::{is_printable, printable};

/// Replacement for a secret.
const MASK: &str = "*****";
/// Number of consecutive letters and digits of a secret that are masked as a part of it.
const PIECE: usize = 8;
/// Minimum number of letters and digits to search for without the characters between them. Shorter texts are
/// too common.
const MIN_SEARCHED_CHARS: usize = 4;
/// Number of bytes shown of a text longer than [`SEARCHED_BYTES`].
const SHOWN_BYTES: usize = 32 * 1024;
/// Number of bytes searched. A secret that begins in the shown part ends within this limit, even if it is
/// escaped.
const SEARCHED_BYTES: usize = 256 * 1024;

/// Masks the secrets of one request. Cheap to clone.
#[derive(Clone, Default)]
pub struct Redactor {
    terms: Arc<SearchTerms>,
    hides: bool,
}

/// Forms of the known texts that are searched for.
#[derive(Default)]
struct SearchTerms {
    /// Exact texts, as given and with their own escapes resolved at every level.
    exact: Vec<String>,
    /// Letters and digits of texts that are masked only as a whole.
    whole: Vec<String>,
    /// Pieces of Secrets by length: letters and digits, packed and sorted.
    pieces: BTreeMap<usize, Vec<u64>>,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({} texts)", self.terms.exact.len())
    }
}

impl Redactor {
    /// Creates a redactor for the secrets of a request. If there is any secret, responses are hidden
    /// completely.
    pub fn new<'a>(secrets: impl Iterator<Item = &'a str>) -> Self {
        let mut terms = SearchTerms::default();
        let mut hides = false;
        for secret in secrets {
            hides = true;
            terms.learn(secret, true);
        }
        terms.settle();
        Self {
            terms: Arc::new(terms),
            hides,
        }
    }

    /// Creates a redactor for texts that are not secrets, such as literal header values. Each is masked only
    /// as a whole, and not at all if it has fewer than 4 bytes.
    pub fn of_parts<'a>(parts: impl Iterator<Item = &'a str>) -> Self {
        let mut terms = SearchTerms::default();
        for part in parts.filter(|part| part.len() >= MIN_SEARCHED_CHARS) {
            terms.learn(part, false);
        }
        terms.settle();
        Self {
            terms: Arc::new(terms),
            hides: false,
        }
    }

    /// Shows responses with all known texts masked, instead of hiding them.
    #[must_use]
    pub fn quoting(self) -> Self {
        Self { hides: false, ..self }
    }

    /// Hides responses completely.
    #[must_use]
    pub fn hiding(self) -> Self {
        Self { hides: true, ..self }
    }

    /// Returns whether responses must be hidden completely.
    pub fn hides(&self) -> bool {
        self.hides
    }

    /// Masks every secret in a text, regardless of how it is escaped. If any text is known, returns only the
    /// first 32 KiB of a text of more than 256 KiB.
    pub fn clean(&self, text: &str) -> String {
        self.cleaned(text).into_owned()
    }

    fn cleaned<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.terms.exact.is_empty() {
            return Cow::Borrowed(text);
        }
        let beginning = |bytes: usize| text.get(..text.floor_char_boundary(bytes)).unwrap_or(text);
        let searched = beginning(SEARCHED_BYTES);
        let shown = if searched.len() < text.len() {
            beginning(SHOWN_BYTES)
        } else {
            text
        };
        let mut found = Vec::new();
        for layer in layers(searched) {
            self.terms.find(&layer, &mut found);
        }
        found.retain(|(start, _)| *start < shown.len());
        Cow::Owned(masked(shown, found))
    }
}

impl SearchTerms {
    fn learn(&mut self, text: &str, is_secret: bool) {
        for text in [text, text.trim()] {
            for (depth, layer) in layers(text).into_iter().enumerate() {
                let folded = layer.folded();
                // A short remainder after resolving escapes is too common.
                if depth == 0 || folded.len() >= MIN_SEARCHED_CHARS {
                    self.exact.push(folded);
                }
                let (letters, _) = layer.letters();
                if letters.len() < MIN_SEARCHED_CHARS {
                    continue;
                }
                if is_secret {
                    let length = letters.len().min(PIECE);
                    let pieces = self.pieces.entry(length).or_default();
                    pieces.extend(letters.as_bytes().windows(length).map(packed));
                } else {
                    self.whole.push(letters);
                }
            }
        }
    }

    /// Sorts the search terms.
    fn settle(&mut self) {
        for texts in [&mut self.exact, &mut self.whole] {
            texts.retain(|text| !text.is_empty());
            texts.sort();
            texts.dedup();
        }
        for pieces in self.pieces.values_mut() {
            pieces.sort_unstable();
            pieces.dedup();
        }
    }

    /// Adds the ranges of the original text where this layer contains a secret.
    fn find(&self, layer: &Layer, found: &mut Vec<(usize, usize)>) {
        let folded = layer.folded();
        for text in &self.exact {
            found.extend(
                folded
                    .match_indices(text)
                    .map(|(at, _)| layer.source(at, text.len())),
            );
        }
        let (letters, places) = layer.letters();
        let source = |at: usize, length: usize| {
            let first = places.get(at).copied().unwrap_or_default();
            let last = places.get(at + length - 1).copied().unwrap_or(first);
            layer.source(first, last + 1 - first)
        };
        for text in &self.whole {
            found.extend(letters.match_indices(text).map(|(at, _)| source(at, text.len())));
        }
        for (length, pieces) in &self.pieces {
            for (at, window) in letters.as_bytes().windows(*length).enumerate() {
                if pieces.binary_search(&packed(window)).is_ok() {
                    found.push(source(at, *length));
                }
            }
        }
    }
}

/// Packs at most eight bytes into a number.
fn packed(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

/// Masks these ranges, which may overlap.
fn masked(text: &str, mut places: Vec<(usize, usize)>) -> String {
    places.sort_unstable();
    let mut clean = String::with_capacity(text.len());
    let mut shown = 0;
    for (start, end) in places {
        if start >= shown {
            clean.push_str(text.get(shown..start).unwrap_or_default());
            // Adjacent ranges share one mask.
            if start > shown || !clean.ends_with(MASK) {
                clean.push_str(MASK);
            }
        }
        shown = shown.max(end);
    }
    clean.push_str(text.get(shown..).unwrap_or_default());
    clean
}

#[cfg(test)]
mod tests;
