//! Lexical rules for numbers and identifiers.

use std::sync::LazyLock;

use regex::Regex;

use crate::syntax::lex::Token;

/// Parses a number literal: decimal, `0x`, `0o`, `0b`, `_` between digits, a point, an exponent.
pub(crate) fn parse_number(text: &str) -> Result<Token, String> {
    let plain = text.replace('_', "").to_ascii_lowercase();
    let based = |digits: &str, base| {
        i64::from_str_radix(digits, base)
            .ok()
            .filter(|_| !digits.starts_with(['+', '-']))
            .map(Token::Int)
            .ok_or_else(|| format!("`{text}` is not a 64-bit integer"))
    };
    if let Some(digits) = plain.strip_prefix("0x") {
        return based(digits, 16);
    }
    if plain.contains(['.', 'e']) {
        return match plain.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Token::Float(number)),
            _ => Err(format!("`{text}` is not a 64-bit number")),
        };
    }
    if let Some(digits) = plain.strip_prefix("0b") {
        return based(digits, 2);
    }
    if let Some(digits) = plain.strip_prefix("0o") {
        return based(digits, 8);
    }
    based(&plain, 10)
}

/// Returns whether a character may be part of a word: letters, decimal digits of any script, `_` and `$`.
pub(crate) fn is_word_sign(sign: char) -> bool {
    // Rust's `is_alphanumeric` accepts more than Go's classes for letters (L*) and digits (Nd).
    static WORD: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^[\p{L}\p{Nd}]$").ok());
    if sign.is_ascii() {
        return sign.is_ascii_alphanumeric() || sign == '_' || sign == '$';
    }
    let mut buffer = [0; 4];
    WORD.as_ref()
        .is_some_and(|word| word.is_match(sign.encode_utf8(&mut buffer)))
}
