#![doc = include_str!("../README.md")]

mod layer;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use layer::{Layer, layers};

/// What stands in a secret's place.
const MASK: &str = "*****";
/// This many letters and digits of a secret in a row are masked as a piece of it.
const PIECE: usize = 8;
/// Fewer letters and digits than this are too common to be searched for without what stands between them.
const SHORTEST: usize = 4;
/// Of a text longer than [`SEARCHED_BYTES`] only this much is shown.
const SHOWN_BYTES: usize = 32 * 1024;
/// Only this much of a text is searched: a secret that begins within what is shown ends here, however it is escaped.
const SEARCHED_BYTES: usize = 256 * 1024;

/// Knows the secrets of one request. Cheap to clone.
#[derive(Clone, Default)]
pub struct Redactor {
    known: Arc<Known>,
    hides: bool,
}

/// What is searched for.
#[derive(Default)]
struct Known {
    /// Texts as they are, at every depth of their own escapes.
    exact: Vec<String>,
    /// Letters and digits of texts that are masked only as a whole.
    whole: Vec<String>,
    /// Pieces of Secrets by their length: letters and digits, packed and sorted.
    pieces: BTreeMap<usize, Vec<u64>>,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({} texts)", self.known.exact.len())
    }
}

impl Redactor {
    /// A redactor for the secrets that a request carries. If there is one, the answer is to be hidden as a whole.
    pub fn new<'a>(secrets: impl Iterator<Item = &'a str>) -> Self {
        let mut known = Known::default();
        let mut hides = false;
        for secret in secrets {
            hides = true;
            known.learn(secret, true);
        }
        known.settle();
        Self {
            known: Arc::new(known),
            hides,
        }
    }

    /// A redactor for texts that are no secrets, such as literal header values: each is masked only as a whole, and not
    /// at all if it has fewer than 4 bytes.
    pub fn of_parts<'a>(parts: impl Iterator<Item = &'a str>) -> Self {
        let mut known = Known::default();
        for part in parts.filter(|part| part.len() >= SHORTEST) {
            known.learn(part, false);
        }
        known.settle();
        Self {
            known: Arc::new(known),
            hides: false,
        }
    }

    /// The same, but answers are shown without the texts that it knows.
    #[must_use]
    pub fn quoting(self) -> Self {
        Self { hides: false, ..self }
    }

    /// Whether nothing of an answer may be shown.
    pub fn hides(&self) -> bool {
        self.hides
    }

    /// The text with every secret masked, whatever escapes it is written with. Of a text of more than 256 KiB only the
    /// first 32 KiB are returned.
    pub fn clean(&self, text: &str) -> String {
        self.cleaned(text).into_owned()
    }

    fn cleaned<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.known.exact.is_empty() {
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
            self.known.find(&layer, &mut found);
        }
        found.retain(|(start, _)| *start < shown.len());
        Cow::Owned(masked(shown, found))
    }
}

impl Known {
    fn learn(&mut self, text: &str, is_secret: bool) {
        for text in [text, text.trim()] {
            for (depth, layer) in layers(text).into_iter().enumerate() {
                let folded = layer.folded();
                // What little is left of a text of escapes is too common.
                if depth == 0 || folded.len() >= SHORTEST {
                    self.exact.push(folded);
                }
                let (letters, _) = layer.letters();
                if letters.len() < SHORTEST {
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

    /// Puts what was learnt in order.
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

    /// Adds the places of the original text where something of this layer must not be shown.
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

/// At most eight bytes as a number.
fn packed(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

/// The text with a mask in each of these places, which may overlap.
fn masked(text: &str, mut places: Vec<(usize, usize)>) -> String {
    places.sort_unstable();
    let mut clean = String::with_capacity(text.len());
    let mut shown = 0;
    for (start, end) in places {
        if start >= shown {
            clean.push_str(text.get(shown..start).unwrap_or_default());
            // Two places that touch are one.
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
