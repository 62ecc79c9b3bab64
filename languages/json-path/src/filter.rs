//! Parser for the text of a filter: `@.status == "idle"`. Evaluates nothing.

use super::action::{Node, Parser, constant, steps};
use super::{Filter, JsonPathError, Operand, Operator};

/// Finds the `)` that ends a filter whose `(` is the first byte of `text`, at `base` of the whole text.
///
/// As in client-go, only the first quoted text of a filter protects a `)`.
pub(super) fn closing(text: &str, base: usize) -> Result<usize, JsonPathError> {
    let mut quote = None;
    let mut closed = false;
    let mut previous = '(';
    for (offset, next) in text.char_indices().skip(1) {
        match (next, quote) {
            ('\n', _) => break,
            ('"' | '\'', None) => quote = Some(next),
            (_, Some(open)) if next == open && previous != '\\' => closed = true,
            (')', _) if quote.is_some() == closed => return Ok(base + offset),
            _ => {}
        }
        previous = next;
    }
    Err(JsonPathError::at(base, "the filter `[?(` has no closing `)]`"))
}

/// Parses the text between `start` and `end`.
pub(super) fn parse(text: &str, start: usize, end: usize) -> Result<Filter, JsonPathError> {
    let body = text.get(start..end).unwrap_or_default();
    let is_operator = |next: char| matches!(next, '!' | '<' | '>' | '=');
    let Some(at) = body.find(is_operator).filter(|at| *at > 0) else {
        let left = operand(text, start, end)?;
        return Ok(Filter { left, test: None });
    };
    let tail = body.get(at..).unwrap_or_default();
    let length = tail.find(|next| !is_operator(next)).unwrap_or(tail.len());
    let written = tail.get(..length).unwrap_or_default();
    if length == tail.len() {
        let message = format!("nothing follows `{written}` in the filter");
        return Err(JsonPathError::at(start + at, message));
    }
    let operator = match written {
        "==" => Operator::Equal,
        "!=" => Operator::NotEqual,
        "<" => Operator::Less,
        "<=" => Operator::LessOrEqual,
        ">" => Operator::Greater,
        ">=" => Operator::GreaterOrEqual,
        other => {
            let message = format!("`{other}` is not an operator; use == != < <= > >=");
            return Err(JsonPathError::at(start + at, message));
        }
    };
    let left = operand(text, start, start + at)?;
    let right = operand(text, start + at + length, end)?;
    Ok(Filter {
        left,
        test: Some((operator, right)),
    })
}

fn operand(text: &str, start: usize, end: usize) -> Result<Operand, JsonPathError> {
    let nodes = Parser::new(text, start, end).action(false)?;
    if let Some(Node::Word(at, word)) = nodes.first() {
        let message =
            format!("`{word}` is not a path; write @.{word} for a key of the element, or put text in quotes");
        return Err(JsonPathError::at(*at, message));
    }
    match constant(nodes) {
        Ok(constant) => Ok(Operand::Constant(constant)),
        Err(nodes) => steps(nodes).map(Operand::Path),
    }
}

/// Resolves Go's escapes in the text between quotes; `None` for an unknown escape.
pub(super) fn unquote(text: &str, quote: char) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(next) = rest.next() {
        if next != '\\' {
            if next == quote {
                return None;
            }
            bytes.extend(next.encode_utf8(&mut [0; 4]).bytes());
            continue;
        }
        let escape = rest.next()?;
        let simple = match escape {
            'a' => Some(7),
            'b' => Some(8),
            'f' => Some(12),
            'n' => Some(b'\n'),
            'r' => Some(b'\r'),
            't' => Some(b'\t'),
            'v' => Some(11),
            '\\' => Some(b'\\'),
            _ => None,
        };
        if let Some(byte) = simple {
            bytes.push(byte);
        } else if escape == quote {
            bytes.push(u8::try_from(quote).ok()?);
        } else {
            numeric_escape(escape, &mut rest, &mut bytes)?;
        }
    }
    String::from_utf8(bytes).ok()
}

/// Parses a numeric escape: `\xNN` and `\NNN` are bytes, `\uNNNN` and `\UNNNNNNNN` are characters.
fn numeric_escape(escape: char, rest: &mut std::str::Chars<'_>, bytes: &mut Vec<u8>) -> Option<()> {
    let (radix, count, mut code) = match escape {
        'x' => (16, 2, 0),
        'u' => (16, 4, 0),
        'U' => (16, 8, 0),
        '0'..='7' => (8, 2, escape.to_digit(8)?),
        _ => return None,
    };
    for _ in 0..count {
        code = code
            .checked_mul(radix)?
            .checked_add(rest.next()?.to_digit(radix)?)?;
    }
    if matches!(escape, 'u' | 'U') {
        bytes.extend(char::from_u32(code)?.encode_utf8(&mut [0; 4]).bytes());
    } else {
        bytes.push(u8::try_from(code).ok()?);
    }
    Some(())
}
