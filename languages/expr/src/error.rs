//! Why a condition has no answer, and where in its text.
//!
//! Inside the crate errors travel as [`Fault`], which need not know its place yet; the public
//! [`ConditionError`] always has one.

use std::fmt;

/// What kind of thing went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConditionErrorKind {
    /// The text is not a condition: a stray sign, an open bracket, a bad literal.
    Syntax,
    /// A name or function that does not exist here.
    UnknownName,
    /// An operator or function was given a kind of value that it does not take.
    TypeMismatch,
    /// Something was asked of a key that the answer does not have, or of an element that was not found.
    MissingKey,
    /// NaN was compared.
    NotANumber,
    /// It went wrong on this value: an index out of range, text that is not a number.
    Runtime,
    /// A limit on size, nesting, steps or memory was reached.
    Budget,
    /// The condition ran to its end, but the outcome is neither true nor false.
    NotBoolean,
}

/// Bytes `start..end` of the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    pub(crate) fn new(start: usize, end: usize) -> Self {
        let fit = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Span {
            start: fit(start),
            end: fit(end),
        }
    }

    /// The smallest span that holds both.
    pub(crate) fn to(self, other: Span) -> Span {
        Span {
            start: self.start.min(other.start),
            end: self.end.max(other.end),
        }
    }
}

/// Why a condition has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditionError {
    /// The class of the error.
    pub kind: ConditionErrorKind,
    /// What is wrong and, where there is one, the remedy.
    pub message: String,
    /// The part of the source that it is about.
    pub span: Span,
    /// 1-based line of the span's start.
    pub line: u32,
    /// 1-based column (in characters) of the span's start.
    pub column: u32,
}

impl ConditionErrorKind {
    /// The class in words, without anything of the answer.
    pub fn words(self) -> &'static str {
        match self {
            Self::Syntax => "it cannot be read",
            Self::UnknownName => "it names something that does not exist",
            Self::TypeMismatch => "it is given a kind of value that it does not take",
            Self::MissingKey => "the answer has no such key",
            Self::NotANumber => "it compares NaN",
            Self::Runtime => "it cannot be answered for this value",
            Self::Budget => "it takes too many steps or too much memory",
            Self::NotBoolean => "its outcome is neither true nor false",
        }
    }
}

impl ConditionError {
    /// The error without any value of the answer.
    pub fn without_values(&self) -> String {
        format!("{} ({}:{})", self.kind.words(), self.line, self.column)
    }
}

impl fmt::Display for ConditionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}:{})", self.message, self.line, self.column)
    }
}

impl std::error::Error for ConditionError {}

/// An error on its way out; the first node that knows its place sets the span.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    pub(crate) kind: ConditionErrorKind,
    pub(crate) message: String,
    pub(crate) span: Option<Span>,
}

impl Fault {
    pub(crate) fn new(kind: ConditionErrorKind, message: impl Into<String>) -> Self {
        Fault {
            kind,
            message: message.into(),
            span: None,
        }
    }

    pub(crate) fn syntax(span: Span, message: impl Into<String>) -> Self {
        Fault::new(ConditionErrorKind::Syntax, message).at(span)
    }

    pub(crate) fn mismatch(message: impl Into<String>) -> Self {
        Fault::new(ConditionErrorKind::TypeMismatch, message)
    }

    pub(crate) fn runtime(message: impl Into<String>) -> Self {
        Fault::new(ConditionErrorKind::Runtime, message)
    }

    /// A comparison of NaN.
    pub(crate) fn nan() -> Self {
        let message = "NaN is compared, and no comparison with it has an answer; ask isNaN(…) first";
        Fault::new(ConditionErrorKind::NotANumber, message)
    }

    /// Whether this is the third truth value rather than a mistake: what `and`, `or` and `? :` may do without.
    pub(crate) fn is_unknown(&self) -> bool {
        matches!(
            self.kind,
            ConditionErrorKind::MissingKey | ConditionErrorKind::NotANumber
        )
    }

    pub(crate) fn budget(message: impl Into<String>) -> Self {
        Fault::new(ConditionErrorKind::Budget, message)
    }

    /// Sets the place unless a deeper node already did.
    pub(crate) fn at(mut self, span: Span) -> Self {
        self.span.get_or_insert(span);
        self
    }

    pub(crate) fn bind(self, source: &str) -> ConditionError {
        let span = self.span.unwrap_or_default();
        let (line, column) = place(source, span.start as usize);
        ConditionError {
            kind: self.kind,
            message: self.message,
            span,
            line,
            column,
        }
    }
}

fn place(source: &str, offset: usize) -> (u32, u32) {
    let mut line = 1;
    let mut column = 1;
    for (at, sign) in source.char_indices() {
        if at >= offset {
            break;
        }
        if sign == '\n' {
            line += 1;
            column = 1;
        } else {
            column += 1;
        }
    }
    (line, column)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_counted_in_lines_and_characters() {
        assert_eq!(place("abc", 0), (1, 1));
        assert_eq!(place("abc", 2), (1, 3));
        assert_eq!(place("é\nab", 4), (2, 2));
        assert_eq!(place("a", 9), (1, 2));
    }

    #[test]
    fn the_deepest_place_wins() {
        let fault = Fault::runtime("x").at(Span::new(3, 4)).at(Span::new(0, 9));
        assert_eq!(fault.bind("0123456789").span, Span::new(3, 4));
    }
}
