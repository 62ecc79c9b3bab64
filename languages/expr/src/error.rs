//! Errors of conditions, with their position in the source.
//!
//! Inside the crate, errors are [`Fault`]s, which may not know their position yet. The public
//! [`ConditionError`] always has one.

use std::fmt;

/// Class of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConditionErrorKind {
    /// The text is not a condition: an unexpected character, an unclosed bracket, an invalid literal.
    Syntax,
    /// An unknown name or function.
    UnknownName,
    /// An operator or function does not accept the type of a value.
    TypeMismatch,
    /// An operation needs a key that the response does not have or that is null, or an element that was not
    /// found.
    MissingKey,
    /// A comparison of values of different kinds, such as text with a number.
    DifferentKinds,
    /// A comparison with NaN or an infinity.
    NotANumber,
    /// The evaluation failed on this value: an index out of range, text that is not a number.
    Runtime,
    /// A limit on size, nesting, steps or memory was exceeded.
    Budget,
    /// The result of the condition is neither true nor false.
    NotBoolean,
}

/// Byte range `start..end` of the source.
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

    /// Returns the smallest span that covers both.
    pub(crate) fn to(self, other: Span) -> Span {
        Span {
            start: self.start.min(other.start),
            end: self.end.max(other.end),
        }
    }
}

/// Reason why a condition has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditionError {
    /// Class of the error.
    pub kind: ConditionErrorKind,
    /// Description of the problem, with a remedy if there is one.
    pub message: String,
    /// Part of the source that the error refers to.
    pub span: Span,
    /// 1-based line of the span's start.
    pub line: u32,
    /// 1-based column (in characters) of the span's start.
    pub column: u32,
}

impl ConditionErrorKind {
    /// Describes the class without quoting any value of the response.
    pub fn words(self) -> &'static str {
        match self {
            Self::Syntax => "it has a syntax error",
            Self::UnknownName => "it uses an unknown name",
            Self::TypeMismatch => "a value has the wrong type",
            Self::MissingKey => "a key is missing or null",
            Self::DifferentKinds => "it compares values of different types",
            Self::NotANumber => "it compares NaN or an infinity",
            Self::Runtime => "it fails on this value",
            Self::Budget => "it takes too many steps or too much memory",
            Self::NotBoolean => "its result is neither true nor false",
        }
    }
}

impl ConditionError {
    /// Describes the error without quoting any value of the response.
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

/// An error on its way out. The innermost node with a position sets the span.
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

    /// Creates the error for a comparison with NaN.
    pub(crate) fn nan() -> Self {
        let message = "a value is NaN and cannot be compared; check isNaN(…) first";
        Fault::new(ConditionErrorKind::NotANumber, message)
    }

    /// Creates the error for a comparison with an infinity.
    pub(crate) fn infinity() -> Self {
        let message = "a value is infinite, such as n/0, and cannot be compared; check isInf(…) first";
        Fault::new(ConditionErrorKind::NotANumber, message)
    }

    /// Returns whether this is the third truth value rather than a mistake. `and`, `or` and `? :` may not
    /// need the value.
    pub(crate) fn is_unknown(&self) -> bool {
        matches!(
            self.kind,
            ConditionErrorKind::MissingKey
                | ConditionErrorKind::DifferentKinds
                | ConditionErrorKind::NotANumber
        )
    }

    pub(crate) fn budget(message: impl Into<String>) -> Self {
        Fault::new(ConditionErrorKind::Budget, message)
    }

    /// Sets the position, unless a deeper node already did.
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
