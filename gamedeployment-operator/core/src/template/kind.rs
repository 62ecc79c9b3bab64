//! The language of the tables that say which values mean the same as their absence.

use serde_json::{Map, Value};

/// A kind of object: what is known of its fields. A field that no table names is kept as it stands, so that a change
/// of a field from a newer Kubernetes still counts.
pub(super) struct Kind {
    /// Known fields.
    pub(super) fields: &'static [(&'static str, Field)],
    /// What one field alone cannot tell, applied after the fields.
    pub(super) finish: Option<fn(&mut Map<String, Value>)>,
}

impl Kind {
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

/// What is known of a field.
pub(super) enum Field {
    /// A text, number or switch. Each of these values means the same as none.
    Plain(&'static [Literal]),
    /// A map or list whose content is taken as it stands; empty means the same as none.
    Content,
    /// A list of objects; empty means the same as none. Its order counts.
    List(&'static Kind),
    /// An object; empty means the same as none.
    Object(&'static Kind),
    /// An object whose presence says something even when it is empty.
    Present(&'static Kind),
    /// A quantity; the second names a value that means the same as none.
    Quantity(&'static [&'static str]),
    /// A map of amounts of resources.
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

/// Go writes no empty text.
pub(super) const NO_TEXT: Field = Field::Plain(&[Literal::Text("")]);
/// Go writes no zero.
pub(super) const NO_NUMBER: Field = Field::Plain(&[Literal::Number(0)]);
/// Go writes no `false`.
pub(super) const NO_SWITCH: Field = Field::Plain(&[Literal::Switch(false)]);
/// Nothing is known of its fields.
pub(super) static ANY: Kind = Kind::of(&[]);
