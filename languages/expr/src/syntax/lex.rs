//! Lexer with the rules of Go expr (numbers, quotes, comments, words).
//!
//! Does not know the grammar: `&` or `=*` are operators here and fail in the parser.

use crate::error::{Fault, Span};
use crate::syntax::escape::unescape;
use crate::syntax::spelling::{is_word_sign, parse_number};

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Token {
    Word(String),
    Int(i64),
    Float(f64),
    Str(String),
    /// Symbols, and words that act as operators (`in`, `not`, `let` …).
    Op(String),
    /// One of `( ) [ ] { }`.
    Bracket(char),
    End,
}

impl Token {
    pub(crate) fn is_op(&self, text: &str) -> bool {
        matches!(self, Token::Op(op) if op == text)
    }

    pub(crate) fn is_bracket(&self, sign: char) -> bool {
        matches!(self, Token::Bracket(own) if *own == sign)
    }

    /// Describes the token for messages.
    pub(crate) fn describe(&self) -> String {
        match self {
            Token::Word(word) => format!("`{word}`"),
            Token::Int(number) => format!("`{number}`"),
            Token::Float(number) => format!("`{number}`"),
            Token::Str(text) => format!("text {text:?}"),
            Token::Op(op) => format!("`{op}`"),
            Token::Bracket(sign) => format!("`{sign}`"),
            Token::End => "the end of the condition".to_owned(),
        }
    }
}

/// A token, its position, and its text as written (map keys keep a number's spelling).
#[derive(Debug, Clone)]
pub(crate) struct Lexeme {
    pub(crate) token: Token,
    pub(crate) span: Span,
    pub(crate) text: String,
}

/// Splits the whole source into tokens.
pub(crate) fn lex(source: &str) -> Result<Vec<Lexeme>, Fault> {
    let mut lexer = Lexer {
        source,
        at: 0,
        out: Vec::new(),
    };
    while lexer.step()? {}
    Ok(lexer.out)
}

struct Lexer<'s> {
    source: &'s str,
    at: usize,
    out: Vec<Lexeme>,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        self.source.get(self.at..).unwrap_or("")
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let sign = self.peek()?;
        self.at += sign.len_utf8();
        Some(sign)
    }

    fn accept(&mut self, valid: &str) -> bool {
        let found = self.peek().is_some_and(|sign| valid.contains(sign));
        if found {
            self.bump();
        }
        found
    }

    fn accept_run(&mut self, valid: &str) {
        while self.accept(valid) {}
    }

    fn since(&self, start: usize) -> &str {
        self.source.get(start..self.at).unwrap_or("")
    }

    fn emit(&mut self, start: usize, token: Token) {
        let text = self.since(start).to_owned();
        self.out.push(Lexeme {
            token,
            span: Span::new(start, self.at),
            text,
        });
    }

    fn emit_op(&mut self, start: usize) {
        let op = self.since(start).to_owned();
        self.emit(start, Token::Op(op));
    }

    fn fail<T>(&self, start: usize, message: impl Into<String>) -> Result<T, Fault> {
        Err(Fault::syntax(Span::new(start, self.at.max(start + 1)), message))
    }

    /// Reads one token. Returns false after the last one.
    fn step(&mut self) -> Result<bool, Fault> {
        let start = self.at;
        let Some(sign) = self.bump() else {
            self.emit(start, Token::End);
            return Ok(false);
        };
        match sign {
            sign if sign.is_whitespace() => {}
            '\'' | '"' => self.quoted(start, sign)?,
            '`' => self.raw(start)?,
            'b' | 'B' if matches!(self.peek(), Some('\'' | '"')) => {
                return self.fail(start, "bytes literals (b\"…\") are not supported; use plain text");
            }
            '0'..='9' => {
                self.at = start;
                self.number(start)?;
            }
            '?' => {
                self.accept(".?");
                self.emit_op(start);
            }
            '/' => self.slash(start)?,
            '#' => self.pointer(start),
            '|' | ':' => {
                let same = if sign == '|' { "|" } else { ":" };
                self.accept(same);
                self.emit_op(start);
            }
            '(' | ')' | '[' | ']' | '{' | '}' => self.emit(start, Token::Bracket(sign)),
            ',' | ';' | '%' | '+' | '-' | '^' => self.emit_op(start),
            '&' | '!' | '=' | '*' | '<' | '>' => {
                self.accept("&=*");
                self.emit_op(start);
            }
            '.' => self.dot(start)?,
            sign if is_word_sign(sign) => self.word(start),
            sign => {
                return self.fail(
                    start,
                    format!("unrecognized character {sign:?} (U+{:04X})", u32::from(sign)),
                );
            }
        }
        Ok(true)
    }

    fn quoted(&mut self, start: usize, quote: char) -> Result<(), Fault> {
        loop {
            match self.bump() {
                None | Some('\n') => {
                    return self.fail(start, format!("unterminated string: missing closing {quote}"));
                }
                Some('\\') => {
                    self.bump();
                }
                Some(sign) if sign == quote => break,
                Some(_) => {}
            }
        }
        let body = self.source.get(start + 1..self.at - 1).unwrap_or("");
        match unescape(body, quote) {
            Ok(text) => self.emit(start, Token::Str(text)),
            Err(message) => return self.fail(start, message),
        }
        Ok(())
    }

    /// Reads a backtick literal: no escapes, and a doubled backtick stands for one.
    fn raw(&mut self, start: usize) -> Result<(), Fault> {
        let mut text = String::new();
        loop {
            match self.bump() {
                None => return self.fail(start, "unterminated string: missing closing `"),
                Some('`') if self.peek() == Some('`') => {
                    self.bump();
                    text.push('`');
                }
                Some('`') => break,
                Some(sign) => text.push(sign),
            }
        }
        self.emit(start, Token::Str(text));
        Ok(())
    }

    fn slash(&mut self, start: usize) -> Result<(), Fault> {
        if self.accept("/") {
            while let Some(sign) = self.bump() {
                if sign == '\n' {
                    break;
                }
            }
        } else if self.accept("*") {
            let Some(end) = self.rest().find("*/") else {
                return self.fail(start, "unterminated comment: missing closing */");
            };
            self.at += end + 2;
        } else {
            self.emit_op(start);
        }
        Ok(())
    }

    /// Reads `#` and the word attached to it (`#index`, `#acc`).
    fn pointer(&mut self, start: usize) {
        self.accept("#");
        self.emit_op(start);
        let word = self.at;
        while self.peek().is_some_and(is_word_sign) {
            self.bump();
        }
        if self.at > word {
            let text = self.since(word).to_owned();
            self.emit(word, Token::Word(text));
        }
    }

    fn dot(&mut self, start: usize) -> Result<(), Fault> {
        if self.peek().is_some_and(|sign| sign.is_ascii_digit()) {
            return self.number(start);
        }
        self.accept(".");
        self.emit_op(start);
        Ok(())
    }

    fn word(&mut self, start: usize) {
        while self.peek().is_some_and(is_word_sign) {
            self.bump();
        }
        let word = self.since(start).to_owned();
        let token = match word.as_str() {
            "not" | "in" | "or" | "and" | "matches" | "contains" | "startsWith" | "endsWith" | "let"
            | "if" | "else" => Token::Op(word),
            _ => Token::Word(word),
        };
        self.emit(start, token);
    }

    fn number(&mut self, start: usize) -> Result<(), Fault> {
        let mut digits = "0123456789_";
        if self.accept("0") {
            if self.accept("xX") {
                digits = "0123456789abcdefABCDEF_";
            } else if self.accept("oO") {
                digits = "01234567_";
            } else if self.accept("bB") {
                digits = "01_";
            }
        }
        self.accept_run(digits);
        let whole = self.at;
        if self.accept(".") {
            if self.peek() == Some('.') {
                // `1..2`: the dots are the range operator.
                self.at = whole;
                return self.emit_number(start);
            }
            self.accept_run(digits);
        }
        if self.accept("eE") {
            self.accept("+-");
            self.accept_run(digits);
        }
        if self.peek().is_some_and(is_word_sign) {
            self.bump();
            let text = self.since(start).to_owned();
            return self.fail(
                start,
                format!("invalid number `{text}`; put a space after the number"),
            );
        }
        self.emit_number(start)
    }

    fn emit_number(&mut self, start: usize) -> Result<(), Fault> {
        match parse_number(self.since(start)) {
            Ok(token) => {
                self.emit(start, token);
                Ok(())
            }
            Err(message) => self.fail(start, message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(source: &str) -> Vec<Token> {
        lex(source)
            .expect("lexes")
            .into_iter()
            .map(|lexeme| lexeme.token)
            .collect()
    }

    #[test]
    fn numbers_follow_go() {
        for (text, want) in [
            ("010", Token::Int(10)),
            ("0x10", Token::Int(16)),
            ("0b11", Token::Int(3)),
            ("0o17", Token::Int(15)),
            ("1_000", Token::Int(1000)),
            ("5.", Token::Float(5.0)),
            (".5", Token::Float(0.5)),
            ("1e3", Token::Float(1000.0)),
            ("1e-400", Token::Float(0.0)),
        ] {
            assert_eq!(tokens(text), vec![want, Token::End], "{text}");
        }
        for text in ["1e309", "9223372036854775808", "0x", "1and", "1e", "0x1.5", "0b2"] {
            assert!(lex(text).is_err(), "{text}");
        }
    }

    #[test]
    fn dots_between_numbers_are_a_range() {
        assert_eq!(
            tokens("1..2"),
            vec![Token::Int(1), Token::Op("..".into()), Token::Int(2), Token::End]
        );
    }

    #[test]
    fn comments_and_raw_text() {
        assert_eq!(tokens("1 /* 2 */ // 3"), vec![Token::Int(1), Token::End]);
        assert_eq!(tokens("`a\\n``b`"), vec![Token::Str("a\\n`b".into()), Token::End]);
        for text in [
            "/* 1",
            "`a",
            "'a",
            "\"a\nb\"",
            "@",
            "\u{feff}1",
            "1\0",
            "\u{200b}",
        ] {
            assert!(lex(text).is_err(), "{text:?}");
        }
    }
}
