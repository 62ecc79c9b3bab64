#![doc = include_str!("../README.md")]
//!
//! ## Files
//!
//! | file | job |
//! | --- | --- |
//! | `url`, `authority` | values in a URL: percent-encoded, or checked as host or port |
//! | `header` | values in a header: no control characters |
//! | `json` | values in a JSON body: escaped, or a number, true, false, null |
//! | `quoted` | values in PromQL and in conditions: escaped, or plain |

use std::collections::BTreeMap;

mod authority;
mod header;
mod json;
mod quoted;
mod url;

/// Maximum bytes of a template, and of its rendered text.
pub const MAX_RENDERED: usize = 128 * 1024;
/// Maximum bytes for one escaped byte: `\u001f` in JSON.
const MAX_ESCAPE_BYTES: usize = 6;

/// A parsed template: literal parts and arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    source: String,
    segments: Vec<Segment>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    Literal(String),
    Argument(String),
}

/// A part of a template to render; an argument comes with its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part<'a> {
    Literal(&'a str),
    Argument { name: &'a str, value: &'a str },
}

/// Reason why a text is not a template or cannot be rendered. Never contains an argument's value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PlaceholderError {
    /// Message for users, with the argument or the tag and the remedy.
    pub message: String,
    /// Arguments without a value in the order of the text, without duplicates.
    pub missing: Vec<String>,
    /// Byte offset in the template's text, if known.
    pub position: Option<usize>,
}

impl PlaceholderError {
    fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            missing: Vec::new(),
            position: None,
        }
    }

    fn at(position: usize, message: impl Into<String>) -> Self {
        Self {
            position: Some(position),
            ..Self::new(message)
        }
    }
}

impl Template {
    /// Parses a text of at most [`MAX_RENDERED`] bytes.
    ///
    /// # Errors
    /// If a `{{` is not closed, or if tags are anything but `args.NAME`. The error lists all such tags.
    pub fn parse(text: &str) -> Result<Self, PlaceholderError> {
        check_size(text.len())?;
        let mut segments = Vec::new();
        let mut wrong: Vec<(usize, &str)> = Vec::new();
        let mut rest = text;
        while let Some((literal, after)) = rest.split_once("{{") {
            let position = text.len() - after.len() - 2;
            let Some((tag, next)) = after.split_once("}}") else {
                let message = format!("`{{{{` at byte {position} has no closing `}}}}`");
                return Err(PlaceholderError::at(position, message));
            };
            if !literal.is_empty() {
                segments.push(Segment::Literal(literal.to_owned()));
            }
            match tag.trim().strip_prefix("args.") {
                Some(name) => segments.push(Segment::Argument(name.to_owned())),
                None => wrong.push((position, tag)),
            }
            rest = next;
        }
        if !rest.is_empty() {
            segments.push(Segment::Literal(rest.to_owned()));
        }
        if let Some((position, _)) = wrong.first() {
            let tags: Vec<String> = wrong
                .iter()
                .map(|(at, tag)| format!("{{{{{tag}}}}} at byte {at}"))
                .collect();
            let message = format!("unknown placeholder {}; write {{{{args.NAME}}}}", tags.join(", "));
            return Err(PlaceholderError::at(*position, message));
        }
        Ok(Self {
            source: text.to_owned(),
            segments,
        })
    }

    /// Returns the names of the arguments in the order of the text, with duplicates.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().filter_map(|segment| match segment {
            Segment::Argument(name) => Some(name.as_str()),
            Segment::Literal(_) => None,
        })
    }

    /// Returns the source text.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns whether the text has no placeholders.
    pub fn is_literal(&self) -> bool {
        self.names().next().is_none()
    }

    /// Returns the maximum length of the rendered text in bytes, from the length of each value.
    pub fn longest(&self, length: &dyn Fn(&str) -> usize) -> usize {
        let lengths = self.segments.iter().map(|segment| match segment {
            Segment::Literal(text) => text.len(),
            Segment::Argument(name) => length(name).saturating_mul(MAX_ESCAPE_BYTES),
        });
        lengths
            .fold(0, usize::saturating_add)
            .min(MAX_ESCAPE_BYTES * MAX_RENDERED)
    }

    /// Renders a plain text body: a value is inserted verbatim.
    pub fn render(&self, lookup: &dyn Fn(&str) -> Option<String>) -> Result<String, PlaceholderError> {
        self.fill(lookup, |parts| {
            let text = |part: &Part<'_>| match *part {
                Part::Literal(text) | Part::Argument { value: text, .. } => text.to_owned(),
            };
            Ok(parts.iter().map(text).collect())
        })
    }

    /// Renders an absolute `http` or `https` URL. A value is percent-encoded in the path, query, fragment or
    /// user info. It is inserted verbatim as the whole URL or its leading `http://host/base`, and must be
    /// valid as host or port.
    pub fn render_url(&self, lookup: &dyn Fn(&str) -> Option<String>) -> Result<String, PlaceholderError> {
        self.fill(lookup, url::render)
    }

    /// Renders a header's value: control characters are an error.
    pub fn render_header(&self, lookup: &dyn Fn(&str) -> Option<String>) -> Result<String, PlaceholderError> {
        self.fill(lookup, header::render)
    }

    /// Renders a JSON body: a value is escaped inside a string, and must be a number, true, false or null
    /// elsewhere.
    pub fn render_json(&self, lookup: &dyn Fn(&str) -> Option<String>) -> Result<String, PlaceholderError> {
        self.fill(lookup, json::render)
    }

    /// Renders `PromQL`: a value is escaped inside a string, and must be plain (`A-Z a-z 0-9 _ : . - +`)
    /// elsewhere. It is not escaped as a regular expression.
    pub fn render_promql(&self, lookup: &dyn Fn(&str) -> Option<String>) -> Result<String, PlaceholderError> {
        self.fill(lookup, quoted::render_promql)
    }

    /// Renders a condition: a value is escaped inside a string, and must be a number, true or false
    /// elsewhere.
    pub fn render_condition(
        &self,
        lookup: &dyn Fn(&str) -> Option<String>,
    ) -> Result<String, PlaceholderError> {
        self.fill(lookup, quoted::render_condition)
    }

    /// Looks up all values, reports all missing ones in one error, and passes the parts to a renderer.
    fn fill(
        &self,
        lookup: &dyn Fn(&str) -> Option<String>,
        render: impl FnOnce(&[Part<'_>]) -> Result<String, PlaceholderError>,
    ) -> Result<String, PlaceholderError> {
        // Looks up each value once, even if it is used several times.
        let mut values: BTreeMap<&str, String> = BTreeMap::new();
        let mut missing: Vec<String> = Vec::new();
        for name in self.names() {
            if !values.contains_key(name) && !missing.iter().any(|known| known == name) {
                match lookup(name) {
                    Some(value) => drop(values.insert(name, value)),
                    None => missing.push(name.to_owned()),
                }
            }
        }
        if !missing.is_empty() {
            return Err(unsupplied(missing));
        }
        let value = |name: &str| values.get(name).map_or("", String::as_str);
        let parts: Vec<Part<'_>> = self
            .segments
            .iter()
            .map(|segment| match segment {
                Segment::Literal(text) => Part::Literal(text),
                Segment::Argument(name) => Part::Argument {
                    name,
                    value: value(name),
                },
            })
            .collect();
        check_size(self.source.len() + self.names().map(|name| value(name).len()).sum::<usize>())?;
        let rendered = render(&parts)?;
        check_size(rendered.len())?;
        Ok(rendered)
    }
}

/// Applies the rule of the original operator: an argument that is declared without a value fails every
/// template, even one without placeholders. The error lists all such arguments.
pub fn check_all_supplied<'a>(
    args: impl IntoIterator<Item = (&'a str, Option<&'a str>)>,
) -> Result<(), PlaceholderError> {
    let missing: Vec<String> = args
        .into_iter()
        .filter(|(_, value)| value.is_none())
        .map(|(name, _)| name.to_owned())
        .collect();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(unsupplied(missing))
    }
}

fn unsupplied(missing: Vec<String>) -> PlaceholderError {
    let names: Vec<String> = missing.iter().map(|name| format!("args.{name}")).collect();
    let them = if names.len() == 1 { "it" } else { "them" };
    let message = format!("no value for {}; set {them} in the run's args", names.join(", "));
    PlaceholderError {
        missing,
        ..PlaceholderError::new(message)
    }
}

fn check_size(size: usize) -> Result<(), PlaceholderError> {
    if size > MAX_RENDERED {
        return Err(PlaceholderError::new(format!(
            "the rendered text is longer than {MAX_RENDERED} bytes"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
