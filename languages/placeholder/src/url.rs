//! Values in URLs: the part of the URL that contains a placeholder, and the values allowed there.
//!
//! The literal text alone determines where scheme, host, path and query begin. A value never does, except as
//! the whole URL or as its leading `http://host/base`.

use super::authority::{self, AUTHORITY_END};
use super::{Part, PlaceholderError};

pub(super) fn render(parts: &[Part<'_>]) -> Result<String, PlaceholderError> {
    check_literals(parts)?;
    if let [Part::Argument { name, value }] = *parts {
        return whole(name, value);
    }
    let (mut output, tail) = start(parts)?;
    let mut authority = Vec::new();
    let mut rest = Vec::new();
    for part in tail {
        match part {
            Part::Literal(_) | Part::Argument { .. } if !rest.is_empty() => rest.push(part),
            Part::Literal(text) => {
                let (before, after) = text.split_at(text.find(AUTHORITY_END).unwrap_or(text.len()));
                authority.push(Part::Literal(before));
                if !after.is_empty() {
                    rest.push(Part::Literal(after));
                }
            }
            Part::Argument { .. } => authority.push(part),
        }
    }
    authority.retain(|part| *part != Part::Literal(""));
    output.push_str(&authority::render(&authority)?);
    append(&rest, &mut output)?;
    Ok(output)
}

/// Renders everything up to `://`, and returns it with the remaining parts.
fn start<'a>(parts: &[Part<'a>]) -> Result<(String, Vec<Part<'a>>), PlaceholderError> {
    let not_absolute = || PlaceholderError::new("a URL must start with http:// or https://");
    let (first, rest) = parts.split_first().ok_or_else(not_absolute)?;
    match (*first, rest.first()) {
        (Part::Literal(text), _) => {
            let (scheme, after) = split_scheme(text).ok_or_else(not_absolute)?;
            let tail = [Part::Literal(after)].into_iter().chain(rest.iter().copied());
            Ok((scheme.to_owned(), tail.collect()))
        }
        (Part::Argument { name, value }, Some(Part::Literal(next))) if next.starts_with("://") => {
            if !matches!(value, "http" | "https") {
                let message = format!("args.{name} is the scheme of the URL and must be http or https");
                return Err(PlaceholderError::new(message));
            }
            let after = Part::Literal(next.get(3..).unwrap_or_default());
            let tail = [after].into_iter().chain(rest.iter().skip(1).copied());
            Ok((format!("{value}://"), tail.collect()))
        }
        (Part::Argument { name, value }, _) => base(name, value, rest),
    }
}

/// Renders a value at the beginning of the URL: `http://host:port/base`.
fn base<'a>(
    name: &'a str,
    value: &'a str,
    rest: &[Part<'a>],
) -> Result<(String, Vec<Part<'a>>), PlaceholderError> {
    let error = |what: &str| {
        Err(PlaceholderError::new(format!(
            "args.{name} is at the start of the URL and {what}"
        )))
    };
    let Some((scheme, after)) = split_scheme(value) else {
        return error("must start with http:// or https://");
    };
    let (host, path) = after.split_at(after.find('/').unwrap_or(after.len()));
    let host = Part::Argument { name, value: host };
    if path.is_empty() {
        return Ok((
            scheme.to_owned(),
            [host].into_iter().chain(rest.iter().copied()).collect(),
        ));
    }
    let legal = |next: char| next.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:@%/".contains(next);
    if !path.chars().all(legal) {
        return error("may contain only http://host:port/path if more text follows");
    }
    if !matches!(rest.first(), Some(Part::Literal(next)) if next.starts_with(AUTHORITY_END)) {
        return error("has a path, so /, ? or # must follow it");
    }
    let output = format!("{scheme}{}", authority::render(&[host])?);
    // The base is complete; an empty authority is followed by the literal path.
    let mut tail = vec![Part::Literal(path)];
    tail.extend(rest.iter().copied());
    Ok((output, tail))
}

/// Checks a value that is the whole URL, and returns it unchanged.
fn whole(name: &str, value: &str) -> Result<String, PlaceholderError> {
    let clean = !value
        .chars()
        .any(|next| next.is_control() || next.is_whitespace() || next == '\\');
    let host = split_scheme(value).map(|(_, after)| after.split(AUTHORITY_END).next().unwrap_or_default());
    if clean && host.is_some_and(|host| !host.is_empty()) {
        return Ok(value.to_owned());
    }
    let message = format!("args.{name} is the whole URL and must be http://… or https://… without spaces");
    Err(PlaceholderError::new(message))
}

fn split_scheme(text: &str) -> Option<(&str, &str)> {
    ["http://", "https://"].iter().find_map(|scheme| {
        let (head, tail) = text.split_at_checked(scheme.len())?;
        head.eq_ignore_ascii_case(scheme).then_some((head, tail))
    })
}

/// Rejects control characters and backslashes in literal text, because URL parsers drop line breaks and treat
/// a backslash as a slash. Also rejects a placeholder inside a percent escape.
fn check_literals(parts: &[Part<'_>]) -> Result<(), PlaceholderError> {
    for (index, part) in parts.iter().enumerate() {
        let Part::Literal(text) = *part else { continue };
        if text.contains(|next: char| next.is_control() || next == '\\') {
            let message = "the URL contains a backslash or a control character; remove it";
            return Err(PlaceholderError::new(message));
        }
        if let Some(Part::Argument { name, .. }) = parts.get(index + 1)
            && ends_in_escape(text)
        {
            let message = format!("args.{name} is inside a percent escape of the URL; complete the escape");
            return Err(PlaceholderError::new(message));
        }
    }
    Ok(())
}

fn ends_in_escape(text: &str) -> bool {
    let mut tail = text.chars().rev();
    match (tail.next(), tail.next()) {
        (Some('%'), _) => true,
        (Some(last), Some('%')) => last.is_ascii_hexdigit(),
        _ => false,
    }
}

/// Appends path, query and fragment.
fn append(parts: &[Part<'_>], output: &mut String) -> Result<(), PlaceholderError> {
    let path = output.len();
    let mut in_path = true;
    let mut segment = Segment {
        start: path,
        names: Vec::new(),
    };
    for part in parts {
        match *part {
            Part::Literal(text) => {
                for next in text.chars() {
                    if in_path && AUTHORITY_END.contains(&next) {
                        segment.check(output)?;
                        in_path = next == '/';
                        segment = Segment {
                            start: output.len() + 1,
                            names: Vec::new(),
                        };
                    }
                    output.push(next);
                }
            }
            Part::Argument { name, value } => {
                encode(value, output);
                segment.names.push(name);
            }
        }
    }
    if in_path { segment.check(output) } else { Ok(()) }
}

/// A path segment with its arguments.
struct Segment<'a> {
    start: usize,
    names: Vec<&'a str>,
}

impl Segment<'_> {
    /// Rejects a value that makes the segment `.` or `..`: URL parsers treat these as relative steps even if
    /// they are percent-encoded.
    fn check(&self, output: &str) -> Result<(), PlaceholderError> {
        let text = output.get(self.start..).unwrap_or_default();
        let dots = text.to_ascii_lowercase().replace("%2e", ".");
        match self.names.first() {
            Some(name) if matches!(dots.as_str(), "." | "..") => {
                let message =
                    format!("args.{name} makes `{dots}` a path segment of the URL, which changes the path");
                Err(PlaceholderError::new(message))
            }
            _ => Ok(()),
        }
    }
}

/// Percent-encodes all characters except the unreserved ones of RFC 3986.
pub(super) fn encode(value: &str, output: &mut String) {
    const DIGITS: [char; 16] = [
        '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F',
    ];
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            output.push(char::from(byte));
        } else {
            let digit = |nibble: u8| DIGITS.get(usize::from(nibble)).copied().unwrap_or('0');
            output.extend(['%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
}
