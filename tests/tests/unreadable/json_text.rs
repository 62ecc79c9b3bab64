//! JSON as text: `serde_json` neither builds nor takes apart values that are nested thousands of levels deep.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

/// Text that [`with_text`] replaces.
const PLACEHOLDER: &str = "@placeholder@";

/// Builds lists within lists.
pub(crate) fn lists(levels: usize) -> String {
    "[".repeat(levels) + &"]".repeat(levels)
}

/// Builds objects within objects.
pub(crate) fn objects(levels: usize) -> String {
    let within = levels.saturating_sub(1);
    r#"{"a":"#.repeat(within) + "{}" + &"}".repeat(within)
}

/// Returns the nesting of a JSON text: one for a list or an object without others in it.
pub(crate) fn levels(json: &str) -> usize {
    let (mut level, mut deepest) = (0_usize, 0);
    let (mut is_in_text, mut is_escaped) = (false, false);
    for byte in json.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_in_text => is_escaped = true,
            b'"' => is_in_text = !is_in_text,
            b'[' | b'{' if !is_in_text => {
                level += 1;
                deepest = deepest.max(level);
            }
            b']' | b'}' if !is_in_text => level -= 1,
            _ => {}
        }
    }
    deepest
}

/// Returns the fields of an object, each as text.
pub(crate) fn fields(object: &str) -> BTreeMap<String, Box<RawValue>> {
    serde_json::from_str(object).unwrap_or_else(|error| panic!("{error}: {}", beginning(object)))
}

/// Parses one field, which must not be deep; null if there is none.
pub(crate) fn field(object: &str, name: &str) -> Value {
    let fields = fields(object);
    fields
        .get(name)
        .map_or(Value::Null, |value| serde_json::from_str(value.get()).unwrap())
}

/// Returns the metadata of an object without its managed fields.
pub(crate) fn metadata(object: &str) -> Value {
    let object = fields(object);
    let mut metadata = fields(object["metadata"].get());
    metadata.remove("managedFields");
    let parsed = metadata.into_iter().map(|(name, value)| {
        let value: Value = serde_json::from_str(value.get()).unwrap();
        (name, value)
    });
    parsed.collect()
}

/// Sets the field at a JSON pointer to a JSON text.
pub(crate) fn with_text(mut object: Value, pointer: &str, text: &str) -> String {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    object.pointer_mut(parent).unwrap()[key] = PLACEHOLDER.into();
    object
        .to_string()
        .replacen(&format!("\"{PLACEHOLDER}\""), text, 1)
}

/// Returns the beginning of a text, for messages.
pub(crate) fn beginning(text: &str) -> String {
    text.chars().take(300).collect()
}
