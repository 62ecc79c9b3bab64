//! Rules that hookgate adds to the language of Go expr.

/// Rules of an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rules {
    /// A condition has an answer only if the response proves it. In addition to [`Rules::Go`]:
    ///
    /// - JSON null is an absent value, like a missing key;
    /// - `==`, `!=` and `in` between values of different kinds are unknown;
    /// - comparisons with an infinity are unknown, and integer arithmetic that overflows is an error;
    /// - `asInt` of a fraction is an error;
    /// - a `;` that does not end a `let` is an error.
    #[default]
    Strict,
    /// The rules of Go expr, except for the differences that all rules have in common.
    Go,
}

impl Rules {
    /// Returns whether the rules are [`Rules::Strict`].
    pub(crate) fn are_strict(self) -> bool {
        match self {
            Rules::Strict => true,
            Rules::Go => false,
        }
    }
}
