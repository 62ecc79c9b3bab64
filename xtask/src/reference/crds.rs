//! `docs/reference/crds.md`: every field of every kind, from the definitions that the API server enforces.

use std::error::Error;
use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::{beginning, cell};
use crate::generate::trim;

const INTRODUCTION: &str = "
All kinds belong to `tkex.tencent.com/v1alpha1` and are namespaced. `[]` is an element of a list. Fields that are not
marked *required* are optional. For optional fields, the column *default* shows what applies if they are unset; *set to*
means that the API server stores the default in the object. The API server drops fields that are not listed here.

For how the fields work together, see [concepts](../concepts.md) for hooks and
[game-deployments](../game-deployments.md) for workloads. The definitions are in
[`shared-api/crds`](../../shared-api/crds).
";

pub(super) fn page() -> Result<String, Box<dyn Error>> {
    let mut text = beginning("Fields of the kinds", "shared-api");
    text.push_str(INTRODUCTION);
    for definition in shared_api::crd::all() {
        let mut definition = serde_json::to_value(definition)?;
        trim(&mut definition);
        kind(&definition["spec"], &mut text);
    }
    Ok(text)
}

fn kind(definition: &Value, text: &mut String) {
    let names = &definition["names"];
    let name = names["kind"].as_str().unwrap_or_default();
    let short = names["shortNames"][0].as_str().unwrap_or_default();
    let version = &definition["versions"][0];
    let _ = write!(text, "\n## {name}\n\nShort name `{short}`. ");
    let subresources: Vec<String> = {
        version["subresources"]
            .as_object()
            .into_iter()
            .flat_map(Map::keys)
    }
    .map(|name| format!("`{name}`"))
    .collect();
    let _ = writeln!(text, "Subresources: {}.", subresources.join(", "));
    let schema = &version["schema"]["openAPIV3Schema"]["properties"];
    for part in ["spec", "status"] {
        let fields = &schema[part];
        if fields.is_null() {
            continue;
        }
        let _ = write!(text, "\n### {name} {part}\n\n{}\n", sentence(fields).0);
        text.push_str("\n| field | type | default | limits | meaning |\n| --- | --- | --- | --- | --- |\n");
        let mut rules = Vec::new();
        properties(fields, part, text, &mut rules);
        if !rules.is_empty() {
            let _ = write!(
                text,
                "\nFurther rules, checked by the operators, and also by the API server from Kubernetes 1.25 on:\n\n{}",
                rules.concat()
            );
        }
    }
}

/// Appends rows for the fields of an object, recursively. Collects the messages of rules that a schema can
/// express only in CEL.
fn properties(schema: &Value, path: &str, text: &mut String, rules: &mut Vec<String>) {
    let shown = path.split_once('.').map_or("", |(_, path)| path);
    for rule in schema["x-kubernetes-validations"]
        .as_array()
        .into_iter()
        .flatten()
    {
        let message = rule["message"].as_str().unwrap_or_default();
        let about = if shown.is_empty() { path } else { shown };
        rules.push(format!("- `{about}`: {message}\n"));
    }
    let required: Vec<&str> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let whole = format!("{path}.{name}");
        let (_, shown) = whole.split_once('.').unwrap_or_default();
        let (meaning, default) = sentence(field);
        let default = match &field["default"] {
            _ if required.contains(&name.as_str()) => "*required*".to_owned(),
            Value::Null => default,
            stored => format!("set to `{}`", plain(stored)),
        };
        let cells = [
            type_of(field),
            cell(&default),
            cell(&limits(field)),
            cell(&meaning),
        ];
        let _ = writeln!(text, "| `{shown}` | {} |", cells.join(" | "));
        properties(field, &whole, text, rules);
        if !field["items"].is_null() {
            properties(&field["items"], &format!("{whole}[]"), text, rules);
        }
    }
}

/// Splits a description into the meaning of a field and what applies if the field is unset.
fn sentence(field: &Value) -> (String, String) {
    let text = field["description"].as_str().unwrap_or_default();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (mut meaning, mut default) = (String::new(), String::new());
    for sentence in text.split_inclusive(". ") {
        let words = ["Defaults to ", "If unset, "]
            .into_iter()
            .find_map(|start| sentence.strip_prefix(start));
        match words {
            Some(words) => words.trim_end_matches([' ', '.']).clone_into(&mut default),
            None => meaning.push_str(sentence),
        }
    }
    (meaning.trim_end().to_owned(), default)
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn type_of(field: &Value) -> String {
    if field["x-kubernetes-int-or-string"] == true {
        return "number or percentage".to_owned();
    }
    let plain = |schema: &Value| schema["type"].as_str().unwrap_or("any").to_owned();
    match (field["format"].as_str(), plain(field).as_str()) {
        (Some("date-time"), _) => "time".to_owned(),
        (_, "array") => format!("list of {}", plain(&field["items"])),
        (_, "object") if field["additionalProperties"].is_object() => {
            format!("map to {}", plain(&field["additionalProperties"]))
        }
        (_, kind) => kind.to_owned(),
    }
}

/// Describes what every version of the API server rejects.
fn limits(field: &Value) -> String {
    let mut limits = Vec::new();
    if let Some(values) = field["enum"].as_array() {
        let values: Vec<String> = values
            .iter()
            .filter(|value| !value.is_null())
            .map(|value| format!("`{}`", plain(value)))
            .collect();
        limits.push(format!("one of {}", values.join(", ")));
    }
    for (limit, words) in [
        ("minimum", "at least"),
        ("maximum", "at most"),
        ("minItems", "items: at least"),
        ("maxItems", "items: at most"),
        ("minLength", "characters: at least"),
        ("maxLength", "characters: at most"),
    ] {
        if let Some(number) = field[limit].as_f64() {
            limits.push(format!("{words} {number}"));
        }
    }
    limits.join("; ")
}
