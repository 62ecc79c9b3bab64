//! Values in `PromQL` and in conditions, two languages with the same three kinds of string literals. Parses
//! only enough to know where a placeholder is, and checks no grammar.

use std::fmt::Write as _;

use super::{Part, PlaceholderError};

#[derive(Clone, Copy, PartialEq, Eq)]
enum QuoteContext {
    Outside,
    /// Inside `"…"` or `'…'`.
    Quoted(char),
    /// After a backslash inside `"…"` or `'…'`.
    Escape(char),
    /// Inside backticks.
    Raw,
    /// From `//` or `#` to the end of the line.
    LineComment,
    /// Inside `/* … */`.
    BlockComment,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Language {
    PromQl,
    Condition,
}

pub(super) fn render_promql(parts: &[Part<'_>]) -> Result<String, PlaceholderError> {
    render(parts, Language::PromQl)
}

pub(super) fn render_condition(parts: &[Part<'_>]) -> Result<String, PlaceholderError> {
    render(parts, Language::Condition)
}

fn render(parts: &[Part<'_>], language: Language) -> Result<String, PlaceholderError> {
    let mut output = String::new();
    let mut context = QuoteContext::Outside;
    for (index, part) in parts.iter().enumerate() {
        let (name, value) = match *part {
            Part::Literal(text) => {
                let mut previous = '\0';
                for next in text.chars() {
                    let following = follow(context, previous, next, language);
                    // A delimiter is consumed: the `*` of `/*` cannot also begin `*/`.
                    previous = if following == context { next } else { '\0' };
                    context = following;
                }
                output.push_str(text);
                continue;
            }
            Part::Argument { name, value } => (name, value),
        };
        match context {
            QuoteContext::Quoted(quote) => escape(value, quote, &mut output),
            QuoteContext::Escape(_) => {
                let message = format!("args.{name} follows a backslash; remove the backslash");
                return Err(PlaceholderError::new(message));
            }
            QuoteContext::Raw if value.contains(['`', '\r']) => {
                let message =
                    format!("args.{name} contains a backtick or a carriage return; use \"…\" instead of `…`");
                return Err(PlaceholderError::new(message));
            }
            QuoteContext::Raw => output.push_str(value),
            QuoteContext::Outside | QuoteContext::LineComment | QuoteContext::BlockComment => {
                match language {
                    Language::PromQl => output.push_str(plain_promql(name, value)?),
                    Language::Condition => {
                        check_alone(name, parts, index)?;
                        output.push_str(&plain_condition(name, value)?);
                    }
                }
            }
        }
    }
    Ok(output)
}

fn follow(context: QuoteContext, previous: char, next: char, language: Language) -> QuoteContext {
    let condition = language == Language::Condition;
    match (context, next) {
        (QuoteContext::Outside, '"' | '\'') => QuoteContext::Quoted(next),
        (QuoteContext::Outside, '`') => QuoteContext::Raw,
        (QuoteContext::Outside, '#') if !condition => QuoteContext::LineComment,
        (QuoteContext::Outside, '/') if condition && previous == '/' => QuoteContext::LineComment,
        (QuoteContext::Outside, '*') if condition && previous == '/' => QuoteContext::BlockComment,
        (QuoteContext::Quoted(quote), '\\') => QuoteContext::Escape(quote),
        (QuoteContext::Escape(quote), _) => QuoteContext::Quoted(quote),
        (QuoteContext::Quoted(quote), next) if next == quote => QuoteContext::Outside,
        (QuoteContext::Raw, '`') | (QuoteContext::LineComment, '\n') => QuoteContext::Outside,
        (QuoteContext::BlockComment, '/') if previous == '*' => QuoteContext::Outside,
        (other, _) => other,
    }
}

/// Escapes a value for a string literal delimited by `quote`. Both languages support Go's escapes, and only
/// the literal's own quote may be escaped.
fn escape(value: &str, quote: char, output: &mut String) {
    for next in value.chars() {
        match next {
            '\\' => output.push_str("\\\\"),
            '\n' => output.push_str("\\n"),
            '\t' => output.push_str("\\t"),
            next if next == quote => output.extend(['\\', next]),
            next if next.is_control()
                || matches!(
                    next,
                    '\u{200b}'..='\u{200f}' | '\u{2028}' | '\u{2029}' | '\u{feff}'
                ) =>
            {
                // Writing to a String cannot fail.
                let _ = write!(output, "\\u{:04x}", u32::from(next));
            }
            next => output.push(next),
        }
    }
}

fn plain_promql<'v>(name: &str, value: &'v str) -> Result<&'v str, PlaceholderError> {
    let plain = |next: char| next.is_ascii_alphanumeric() || matches!(next, '_' | ':' | '.' | '-' | '+');
    if value.chars().all(plain) {
        return Ok(value);
    }
    let message = format!(
        "args.{name} is outside of a string in the query, so it may contain only A-Z a-z 0-9 _ : . - +; put the \
         placeholder in quotes"
    );
    Err(PlaceholderError::new(message))
}

/// Renders a number, true or false. Encloses a negative number in parentheses, so that `2 ** -1` and
/// `5 -{{args.x}}` keep their apparent meaning.
fn plain_condition(name: &str, value: &str) -> Result<String, PlaceholderError> {
    if matches!(value, "true" | "false") || is_number(value) {
        return Ok(if value.starts_with('-') {
            format!("({value})")
        } else {
            value.to_owned()
        });
    }
    let message = format!("args.{name} is not a number; put the placeholder in quotes");
    Err(PlaceholderError::new(message))
}

/// Returns whether a text is a number: digits, an optional fraction and an optional exponent.
fn is_number(value: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|next| next.is_ascii_digit());
    let value = value.strip_prefix('-').unwrap_or(value);
    let (mantissa, exponent) = match value.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (
            mantissa,
            Some(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)),
        ),
        None => (value, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    digits(whole) && fraction.is_none_or(digits) && exponent.is_none_or(digits)
}

/// Checks that the placeholder does not touch a word, a string or another number: the value would become part
/// of it.
fn check_alone(name: &str, parts: &[Part<'_>], index: usize) -> Result<(), PlaceholderError> {
    let joins = |next: char| next.is_alphanumeric() || matches!(next, '_' | '$' | '#' | '"' | '\'' | '`');
    let before = match index.checked_sub(1).and_then(|index| parts.get(index)) {
        Some(Part::Literal(text)) => {
            text.ends_with(joins)
                || text.ends_with([')', ']', '}'])
                || (text.ends_with('.') && !text.ends_with(".."))
        }
        Some(Part::Argument { .. }) => true,
        None => false,
    };
    let after = match parts.get(index + 1) {
        Some(Part::Literal(text)) => {
            text.starts_with(joins) || (text.starts_with('.') && !text.starts_with(".."))
        }
        Some(Part::Argument { .. }) => true,
        None => false,
    };
    if before || after {
        let message = format!(
            "args.{name} is not separated from the text next to it; put spaces around the placeholder"
        );
        return Err(PlaceholderError::new(message));
    }
    Ok(())
}
