//! Types of the tables that define which values are equal to absent ones.

use serde_json::{Map, Value};

/// A kind of object with its known fields. A field in no table is kept as is, so that a change to a field of
/// a newer Kubernetes still counts.
pub(super) struct Schema {
    /// Known fields.
    pub(super) fields: &'static [(&'static str, Field)],
    /// Rule that involves several fields, applied after the field rules.
    pub(super) finish: Option<fn(&mut Map<String, Value>)>,
}

impl Schema {
    pub(super) const fn of(fields: &'static [(&'static str, Field)]) -> Self {
        Self { fields, finish: None }
    }

    pub(super) const fn finished(
        fields: &'static [(&'static str, Field)],
        finish: fn(&mut Map<String, Value>),
    ) -> Self {
        Self {
            fields,
            finish: Some(finish),
        }
    }
}

/// Rule for a field.
pub(super) enum Field {
    /// A string, number or boolean. Each of these values equals an absent one.
    Plain(&'static [Literal]),
    /// A map or list whose content is kept as is; empty equals absent.
    Content,
    /// A list of objects; empty equals absent. The order counts.
    List(&'static Schema),
    /// An object; empty equals absent.
    Object(&'static Schema),
    /// An object whose presence is significant even if it is empty.
    Present(&'static Schema),
    /// A quantity; each of these values equals an absent one.
    Quantity(&'static [&'static str]),
    /// A map of resource amounts.
    Amounts,
}

/// A value in a table.
pub(super) enum Literal {
    Text(&'static str),
    Number(i64),
    Switch(bool),
}

impl Literal {
    pub(super) fn is(&self, value: &Value) -> bool {
        match self {
            Self::Text(text) => value.as_str() == Some(text),
            Self::Number(number) => value.as_i64() == Some(*number),
            Self::Switch(switch) => value.as_bool() == Some(*switch),
        }
    }
}

/// A string that Go omits if empty.
pub(super) const NO_TEXT: Field = Field::Plain(&[Literal::Text("")]);
/// A number that Go omits if zero.
pub(super) const NO_NUMBER: Field = Field::Plain(&[Literal::Number(0)]);
/// A boolean that Go omits if false.
pub(super) const NO_SWITCH: Field = Field::Plain(&[Literal::Switch(false)]);
/// An object with no known fields.
pub(super) static ANY: Schema = Schema::of(&[]);
