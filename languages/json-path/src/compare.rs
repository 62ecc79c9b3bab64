//! Comparisons in filters. Both sides must have the same type. A whole number in the path has a different
//! type from a number of the document, as in client-go. Evaluates no steps.

use serde_json::{Number, Value};

use super::{Constant, Operator};

/// A value that a filter can compare.
#[derive(Debug, Clone)]
pub(super) enum Comparable<'a> {
    Bool(bool),
    Text(&'a str),
    /// A number of the document, or a number with a dot in the path.
    Number(Number),
    /// A whole number in the path.
    Int(i64),
    /// A byte of a text that `.*` split.
    Byte(u8),
}

impl<'a> Comparable<'a> {
    /// Converts a JSON value; `None` for null, lists and objects, which filters cannot compare.
    pub(super) fn from_json(value: &'a Value) -> Option<Self> {
        match value {
            Value::Bool(value) => Some(Self::Bool(*value)),
            Value::String(value) => Some(Self::Text(value)),
            Value::Number(value) => Some(Self::Number(value.clone())),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    }

    pub(super) fn from_constant(constant: &'a Constant) -> Option<Self> {
        match constant {
            Constant::Text(value) => Some(Self::Text(value)),
            Constant::Int(value) => Some(Self::Int(*value)),
            Constant::Float(value) => Number::from_f64(*value).map(Self::Number),
            Constant::Bool(value) => Some(Self::Bool(*value)),
        }
    }

    /// Returns the cost of a comparison with this value, in steps of the budget.
    pub(super) fn cost(&self) -> usize {
        match self {
            Self::Text(text) => 1 + text.len() / 64,
            Self::Bool(_) | Self::Number(_) | Self::Int(_) | Self::Byte(_) => 1,
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Bool(_) => "true or false",
            Self::Text(_) => "text",
            Self::Number(_) => "a number",
            Self::Int(_) => "an integer in the path",
            Self::Byte(_) => "a byte",
        }
    }
}

/// Compares two values. The error describes why they cannot be compared.
pub(super) fn compare(
    operator: Operator,
    left: &Comparable<'_>,
    right: &Comparable<'_>,
) -> Result<bool, String> {
    use std::cmp::Ordering;
    let ordering = match (left, right) {
        (Comparable::Bool(left), Comparable::Bool(right)) => match operator {
            Operator::Equal | Operator::NotEqual => left.cmp(right),
            Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual => {
                return Err("true and false have no order; use == or !=".to_owned());
            }
        },
        (Comparable::Text(left), Comparable::Text(right)) => left.cmp(right),
        (Comparable::Int(left), Comparable::Int(right)) => left.cmp(right),
        (Comparable::Byte(left), Comparable::Byte(right)) => left.cmp(right),
        (Comparable::Number(left), Comparable::Number(right)) => numbers(left, right),
        (Comparable::Number(_), Comparable::Int(int)) | (Comparable::Int(int), Comparable::Number(_)) => {
            return Err(format!(
                "a number in the document cannot be compared with `{int}`; write {int}.0"
            ));
        }
        _ => {
            return Err(format!(
                "{} cannot be compared with {}",
                left.kind(),
                right.kind()
            ));
        }
    };
    Ok(match operator {
        Operator::Equal => ordering == Ordering::Equal,
        Operator::NotEqual => ordering != Ordering::Equal,
        Operator::Less => ordering == Ordering::Less,
        Operator::LessOrEqual => ordering != Ordering::Greater,
        Operator::Greater => ordering == Ordering::Greater,
        Operator::GreaterOrEqual => ordering != Ordering::Less,
    })
}

/// Compares whole numbers of the document exactly, all others as 64-bit floats (JSON has no NaN).
fn numbers(left: &Number, right: &Number) -> std::cmp::Ordering {
    if let (Some(left), Some(right)) = (left.as_i128(), right.as_i128()) {
        return left.cmp(&right);
    }
    let float = |number: &Number| number.as_f64().unwrap_or(f64::NAN) + 0.0;
    float(left).total_cmp(&float(right))
}
