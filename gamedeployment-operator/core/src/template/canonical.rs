//! Canonical form: removes every value from a template that is equal to its absence, using the tables.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::pod::TEMPLATE;
use super::quantity::{self, Grain};
use super::schema::{Field, Schema};

/// Returns the canonical form of a template.
pub(super) fn canonical(raw: &Value) -> Value {
    let mut value = without_nulls(raw);
    if let Value::Object(template) = &mut value {
        // A merge directive, not a part of the pod.
        template.remove("$patch");
    }
    shape(&mut value, &TEMPLATE);
    value
}

/// Removes null fields at any depth: null equals absent. A null in a list occupies a position and is kept.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(
            fields
                .iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(name, value)| (name.clone(), without_nulls(value)))
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        other => other.clone(),
    }
}

/// Applies the rules of a schema. A value that is not an object is kept as is.
fn shape(value: &mut Value, schema: &Schema) {
    let Value::Object(fields) = value else {
        return;
    };
    for (name, field) in schema.fields {
        if let Some(value) = fields.get_mut(*name)
            && reduce(value, field) == Presence::Absent
        {
            fields.remove(*name);
        }
    }
    if let Some(finish) = schema.finish {
        finish(fields);
    }
}

#[derive(PartialEq)]
enum Presence {
    Kept,
    Absent,
}

impl Presence {
    fn absent_if(absent: bool) -> Self {
        if absent { Self::Absent } else { Self::Kept }
    }
}

fn reduce(value: &mut Value, field: &Field) -> Presence {
    match field {
        Field::Plain(defaults) => Presence::absent_if(defaults.iter().any(|default| default.is(value))),
        Field::Content => Presence::absent_if(is_empty(value)),
        Field::List(schema) => {
            for item in value.as_array_mut().into_iter().flatten() {
                shape(item, schema);
            }
            Presence::absent_if(is_empty(value))
        }
        Field::Object(schema) => {
            shape(value, schema);
            Presence::absent_if(is_empty(value))
        }
        Field::Present(schema) => {
            shape(value, schema);
            Presence::Kept
        }
        Field::Quantity(defaults) => {
            *value = quantity::canonical(value, Grain::Exact);
            Presence::absent_if(value.as_str().is_some_and(|text| defaults.contains(&text)))
        }
        Field::Amounts => {
            if let Value::Object(amounts) = value {
                for amount in amounts.values_mut() {
                    *amount = quantity::canonical(amount, Grain::Resource);
                }
            }
            Presence::absent_if(is_empty(value))
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// Serializes to JSON with sorted keys, regardless of the map's own order.
pub(super) fn text(value: Value) -> String {
    sorted(value).to_string()
}

fn sorted(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let pairs = fields.into_iter().map(|(name, value)| (name, sorted(value)));
            let by_name: BTreeMap<String, Value> = pairs.collect();
            Value::Object(by_name.into_iter().collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        other => other,
    }
}
