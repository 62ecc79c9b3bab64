//! Output formats `-o json`, `yaml` and `name`.

use std::fmt::Write as _;

use clap::ValueEnum;
use kube::ResourceExt;
use redact::is_printable;
use serde::Serialize;
use serde_json::{Value, json};

use super::text::clean_lines;
use crate::cluster::{Failure, Kind};

/// Machine-readable output formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// JSON
    Json,
    /// YAML
    Yaml,
    /// Kind and name, one per line
    Name,
}

/// Returns a name such as `gamedeployment.tkex.tencent.com/arena`.
pub(crate) fn name<K: Kind>(object: &str) -> String {
    let kind = K::kind(&()).to_lowercase();
    let group = K::group(&());
    if group.is_empty() {
        format!("{kind}/{object}\n")
    } else {
        format!("{kind}.{group}/{object}\n")
    }
}

/// Renders a value as JSON or YAML, with a trailing newline. JSON escapes what a terminal must not get; YAML
/// has no escapes outside of quotes, so it is removed there.
pub(crate) fn structured(value: &impl Serialize, output: OutputFormat) -> Result<String, Failure> {
    let failed =
        |error: &dyn std::fmt::Display| Failure::Other(format!("failed to format the output: {error}"));
    match output {
        OutputFormat::Yaml => {
            let text = serde_saphyr::to_string(value).map_err(|error| failed(&error))?;
            Ok(clean_lines(&text) + "\n")
        }
        OutputFormat::Json | OutputFormat::Name => {
            let text = serde_json::to_string_pretty(value).map_err(|error| failed(&error))?;
            Ok(escaped(&text) + "\n")
        }
    }
}

/// Escapes the characters of a JSON text that are not printable; only its strings have any.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if c == '\n' || is_printable(c) {
            text.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(text, "\\u{unit:04x}");
            }
        }
    }
    text
}

/// Renders one object.
pub(crate) fn object<K: Kind>(object: &K, output: OutputFormat) -> Result<String, Failure> {
    match output {
        OutputFormat::Name => Ok(name::<K>(&object.name_any())),
        OutputFormat::Json | OutputFormat::Yaml => structured(&typed(object), output),
    }
}

/// Renders several objects as a list, like kubectl.
pub(crate) fn list<K: Kind>(objects: &[K], output: OutputFormat) -> Result<String, Failure> {
    match output {
        OutputFormat::Name => Ok(objects
            .iter()
            .map(|object| name::<K>(&object.name_any()))
            .collect()),
        OutputFormat::Json | OutputFormat::Yaml => {
            let items: Vec<Value> = objects.iter().map(typed).collect();
            structured(
                &json!({ "apiVersion": "v1", "kind": "List", "metadata": {}, "items": items }),
                output,
            )
        }
    }
}

/// Returns the object with its kind, which lists omit, and without fields that only servers use.
fn typed<K: Kind>(object: &K) -> Value {
    let mut value = serde_json::to_value(object).unwrap_or_default();
    if let Value::Object(fields) = &mut value {
        fields.insert("apiVersion".to_owned(), json!(K::api_version(&())));
        fields.insert("kind".to_owned(), json!(K::kind(&())));
        if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
            metadata.remove("managedFields");
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_cannot_command_the_terminal_in_any_format() {
        let value = json!({ "text": "a\u{1b}\u{9b}\u{202e}\u{e0041}b\nc" });
        let json = structured(&value, OutputFormat::Json).unwrap();
        assert_eq!(
            json,
            "{\n  \"text\": \"a\\u001b\\u009b\\u202e\\udb40\\udc41b\\nc\"\n}\n"
        );
        assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), value);
        let yaml = structured(&value, OutputFormat::Yaml).unwrap();
        assert!(yaml.chars().all(|c| c == '\n' || is_printable(c)), "{yaml:?}");
    }
}
