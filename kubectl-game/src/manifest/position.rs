//! Positions of the fields of a YAML document: maps paths, as the operators write them, to line and column.

use std::collections::BTreeMap;

use granit_parser::{Event, Parser, Span};

/// Line and column, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

/// Positions of the fields of one document.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places(BTreeMap<String, Place>);

impl Places {
    /// Returns the position of a path, or of its closest existing parent.
    pub(crate) fn of(&self, path: &str) -> Place {
        let mut path = path;
        loop {
            if let Some(place) = self.0.get(path) {
                return *place;
            }
            match path.rfind(['.', '[']) {
                Some(end) => path = path.get(..end).unwrap_or_default(),
                None => return self.0.get("").copied().unwrap_or(Place { line: 1, column: 1 }),
            }
        }
    }
}

impl Places {
    /// Returns the positions of each item of a list, as if the item were a document.
    pub(super) fn items(&self, count: usize) -> Vec<Self> {
        let mut items = vec![Self::default(); count];
        for (path, place) in &self.0 {
            let Some((number, rest)) = path.strip_prefix("items[").and_then(|path| path.split_once(']'))
            else {
                continue;
            };
            if let Some(item) = number
                .parse()
                .ok()
                .and_then(|number: usize| items.get_mut(number))
            {
                let rest = rest.strip_prefix('.').unwrap_or(rest);
                item.0.insert(rest.to_owned(), *place);
            }
        }
        items
    }
}

/// A collection that is being parsed.
enum Open {
    List { path: String, next: usize },
    Map { path: String, key: Option<String> },
}

impl Open {
    /// Returns the path of the next value; `None` if the next event is a key.
    fn next_path(&mut self) -> Option<String> {
        match self {
            Self::List { path, next } => {
                *next += 1;
                Some(format!("{path}[{}]", *next - 1))
            }
            Self::Map { path, key } => {
                let key = key.take()?;
                Some(if path.is_empty() {
                    key
                } else {
                    format!("{path}.{key}")
                })
            }
        }
    }
}

/// Maximum depth of nested collections. The parser of values has the same limit with a different message.
const MAX_DEPTH: usize = 64;
/// Message for a greater depth.
pub(super) const TOO_DEEP: &str = "nested deeper than";

/// Returns the positions of every document that is not empty.
pub(super) fn places(text: &str) -> Result<Vec<Places>, String> {
    let mut documents = Vec::new();
    let mut current = Places::default();
    let mut open: Vec<Open> = Vec::new();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| error.to_string())?;
        if open.len() > MAX_DEPTH {
            let (line, column) = (span.start.line(), span.start.col() + 1);
            return Err(format!("{line}:{column}: {TOO_DEEP} {MAX_DEPTH} levels"));
        }
        match event {
            Event::DocumentEnd => {
                let document = std::mem::take(&mut current);
                documents.extend((!document.0.is_empty()).then_some(document));
            }
            Event::Scalar(value, ..) => scalar(&mut open, &mut current, &value, span),
            Event::Alias(..) => scalar(&mut open, &mut current, "*", span),
            Event::SequenceStart(..) => {
                let path = enter(&mut open, &mut current, span);
                open.push(Open::List { path, next: 0 });
            }
            Event::MappingStart(..) => {
                let path = enter(&mut open, &mut current, span);
                open.push(Open::Map { path, key: None });
            }
            Event::SequenceEnd | Event::MappingEnd => {
                open.pop();
            }
            _ => {}
        }
    }
    Ok(documents)
}

fn scalar(open: &mut [Open], places: &mut Places, value: &str, span: Span) {
    match open.last_mut() {
        // A document with a single scalar; ignored if it is empty.
        None => {
            if !value.is_empty() && value != "~" && value != "null" {
                note(places, String::new(), span);
            }
        }
        Some(top) => match top.next_path() {
            Some(path) => note(places, path, span),
            None => {
                if let Open::Map { key, .. } = top {
                    *key = Some(value.to_owned());
                }
            }
        },
    }
}

/// Records the position of a new collection, and returns its path.
fn enter(open: &mut [Open], places: &mut Places, span: Span) -> String {
    let path = open
        .last_mut()
        .map_or_else(|| Some(String::new()), Open::next_path)
        .unwrap_or_default();
    note(places, path.clone(), span);
    path
}

fn note(places: &mut Places, path: String, span: Span) {
    places.0.insert(
        path,
        Place {
            line: span.start.line(),
            column: span.start.col() + 1,
        },
    );
}
