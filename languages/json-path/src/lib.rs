#![doc = include_str!("../README.md")]
//!
//! ## Files
//!
//! | file | job |
//! | --- | --- |
//! | `parse` | text to blocks, with the position and the remedy of each mistake |
//! | `action` | the content of braces to steps, likewise |
//! | `filter` | the text of `[?(…)]` to two operands and an operator |
//! | `eval`, `found` | steps over a JSON value, within a budget |
//! | `compare` | the comparisons of filters, with their typing rules |

mod action;
mod compare;
mod eval;
mod filter;
mod found;
mod parse;

use serde_json::Value;

/// Maximum length of a path's text, in bytes.
pub const MAX_TEXT: usize = 1024;
/// Maximum number of values that a path may find.
pub const MAX_FOUND: usize = 10_000;

/// A parsed JSON path.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonPath {
    source: String,
    blocks: Vec<Block>,
    rules: Rules,
}

/// Rules of evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rules {
    /// Values that a path cannot walk, searches and filters whose key does not exist are errors.
    Strict,
    /// The rules of client-go, which finds nothing, or the bytes of a text, in such cases.
    ClientGo,
}

/// Result of a path.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    /// One match.
    One(Value),
    /// Several matches.
    Many(Vec<Value>),
    /// The path is well-formed and was evaluated on an empty list: no match, and no missing key.
    Nothing,
}

/// Reason why a path is rejected or finds no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct JsonPathError {
    /// Message for users, with the part of the path and the remedy.
    pub message: String,
    /// Byte offset in the path's text, if known.
    pub position: Option<usize>,
}

/// One part of the template.
#[derive(Debug, Clone, PartialEq)]
enum Block {
    /// Text outside of braces, `{"text"}`, `{1}`, `{true}`: independent of the document.
    Constant(Constant),
    /// `{.a.b}`.
    Path(Vec<Step>),
    /// `{range .items[*]}`: the blocks up to `{end}` are evaluated once per match.
    Range(Vec<Step>),
    /// `{end}`.
    End,
}

/// A literal value in the path.
#[derive(Debug, Clone, PartialEq)]
enum Constant {
    Text(String),
    Int(i64),
    Float(f64),
    Bool(bool),
}

/// A step from the current values to the next ones.
#[derive(Debug, Clone, PartialEq)]
struct Step {
    /// Byte offset in the text, for messages.
    at: usize,
    kind: StepKind,
}

#[derive(Debug, Clone, PartialEq)]
enum StepKind {
    /// `.name`.
    Field(String),
    /// `.*`.
    Wildcard,
    /// `..`.
    Descend,
    /// `[0]`, `[1:3]`, `[*]`.
    Slice(Slice),
    /// `['a','b']`, `[0,2]`.
    Union(Vec<Vec<Step>>),
    /// `[?(@.a == "x")]`.
    Filter(Filter),
}

/// `[from:until:step]`; negative positions count from the end.
#[derive(Debug, Clone, PartialEq)]
struct Slice {
    from: i64,
    until: Until,
    step: usize,
}

#[derive(Debug, Clone, PartialEq)]
enum Until {
    /// A single index.
    Next,
    /// `[1:3]`.
    At(i64),
    /// `[1:]`.
    End,
}

#[derive(Debug, Clone, PartialEq)]
struct Filter {
    left: Operand,
    /// Comparison; without one, the left side only has to exist.
    test: Option<(Operator, Operand)>,
}

#[derive(Debug, Clone, PartialEq)]
enum Operand {
    Path(Vec<Step>),
    Constant(Constant),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl JsonPath {
    /// Parses a path in Kubernetes syntax, with strict rules. `$.age` and `.age` without braces are parsed as
    /// `{$.age}` and `{.age}`.
    pub fn parse(text: &str) -> Result<Self, JsonPathError> {
        Self::parse_as(text, Rules::Strict)
    }

    /// Parses a path that is evaluated by the given rules.
    pub fn parse_as(text: &str, rules: Rules) -> Result<Self, JsonPathError> {
        Ok(Self {
            source: text.to_owned(),
            blocks: parse::template(text)?,
            rules,
        })
    }

    /// Finds the value of the path in a document. A missing key is an error; an empty list is
    /// [`Found::Nothing`].
    pub fn find(&self, document: &Value) -> Result<Found, JsonPathError> {
        eval::find(&self.blocks, self.rules, document)
    }

    /// Returns whether the path may find several values (`[*]`, `.*`, `..`, `[1:]`, a filter). Its result is
    /// then always a list, even of one value, because no condition fits a type that depends on the number of
    /// matches.
    pub fn is_plural(&self) -> bool {
        let of = |block: &Block| match block {
            Block::Path(steps) => steps.iter().any(|step| step.kind.is_plural()),
            Block::Constant(_) | Block::Range(_) | Block::End => false,
        };
        self.blocks.iter().any(of)
    }

    /// Returns the field of the document that the path reads; `None` if it may read several.
    pub fn first_field(&self) -> Option<&str> {
        let [Block::Path(steps)] = self.blocks.as_slice() else {
            return None;
        };
        match &steps.first()?.kind {
            StepKind::Field(name) => Some(name),
            StepKind::Wildcard
            | StepKind::Descend
            | StepKind::Slice(_)
            | StepKind::Union(_)
            | StepKind::Filter(_) => None,
        }
    }

    /// Returns the source text.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns a warning for a valid template whose value is less than its text suggests: a constant, several
    /// blocks, or a `{range}`.
    pub fn notice(&self) -> Option<&'static str> {
        let ranges = self.blocks.iter().any(|block| matches!(block, Block::Range(_)));
        let measures = self.blocks.iter().any(Block::measures);
        match (ranges, measures, self.blocks.len()) {
            (true, ..) => Some(
                "jsonPath contains a {range}, which returns only the value of its first item; \
                 write {.items[*].name} to get a list",
            ),
            (_, false, _) => Some("jsonPath is a constant, so its result does not depend on the response"),
            (_, true, 2..) => Some("jsonPath has several parts, but only the value of the first one is used"),
            (_, true, _) => None,
        }
    }
}

impl StepKind {
    /// Returns whether the step may find several values in one.
    fn is_plural(&self) -> bool {
        match self {
            Self::Field(_) => false,
            Self::Slice(slice) => slice.until != Until::Next,
            Self::Union(parts) => parts.iter().flatten().any(|step| step.kind.is_plural()),
            Self::Wildcard | Self::Descend | Self::Filter(_) => true,
        }
    }
}

impl Block {
    /// Returns whether the block's value comes from the document.
    fn measures(&self) -> bool {
        matches!(self, Self::Path(_) | Self::Range(_))
    }
}

impl std::fmt::Display for JsonPath {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.source)
    }
}

impl JsonPathError {
    fn at(position: usize, message: impl Into<String>) -> Self {
        Self {
            message: format!("{} (at byte {position} of jsonPath)", message.into()),
            position: Some(position),
        }
    }
}

#[cfg(test)]
mod tests;
