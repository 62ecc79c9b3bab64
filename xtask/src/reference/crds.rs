//! `docs/reference/crds.md`: every field of every kind, from the definitions that the API server enforces.

use std::error::Error;
use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::{beginning, cell};
use crate::generate::trim;

const INTRODUCTION: &str = "
All kinds belong to `tkex.tencent.com/v1alpha1` and to a namespace. `[]` is an element of a list. A field that is not
marked *required* may be left out; what that means stands with it. Fields that are not here are dropped by the API server.

What the fields do together: [concepts](../concepts.md) for hooks, [game-deployments](../game-deployments.md) for
workloads. The definitions themselves: [`shared-api/crds`](../../shared-api/crds).
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
        let _ = write!(text, "\n### {name} {part}\n\n{}\n", sentence(fields));
        text.push_str("\n| field | type | unset means, and limits | meaning |\n| --- | --- | --- | --- |\n");
        properties(fields, part, text);
    }
}

fn properties(schema: &Value, path: &str, text: &mut String) {
    let required: Vec<&str> = { schema["required"].as_array().into_iter().flatten() }
        .filter_map(Value::as_str)
        .collect();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        let limits = limits(field, required.contains(&name.as_str()));
        let _ = writeln!(
            text,
            "| `{}` | {} | {limits} | {} |",
            path.split_once('.').map_or("", |(_, path)| path),
            type_of(field),
            cell(&sentence(field))
        );
        properties(field, &path, text);
        if !field["items"].is_null() {
            properties(&field["items"], &format!("{path}[]"), text);
        }
    }
}

fn sentence(field: &Value) -> String {
    let own = field["description"].as_str().unwrap_or_default();
    own.trim().to_owned()
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

/// Whether it must be there, what it is set to, and what the API server refuses.
fn limits(field: &Value, required: bool) -> String {
    let mut limits: Vec<String> = required.then(|| "*required*".to_owned()).into_iter().collect();
    let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    if !field["default"].is_null() {
        limits.push(format!("set to `{}`", shown(&field["default"])));
    }
    if let Some(values) = field["enum"].as_array() {
        let values: Vec<String> = { values.iter().filter(|value| !value.is_null()) }
            .map(|value| format!("`{}`", shown(value)))
            .collect();
        limits.push(format!("one of {}", values.join(", ")));
    }
    for (limit, words) in [
        ("minimum", "at least"),
        ("maximum", "at most"),
        ("minItems", "elements: at least"),
        ("maxItems", "elements: at most"),
        ("minLength", "letters: at least"),
        ("maxLength", "letters: at most"),
    ] {
        if let Some(number) = field[limit].as_f64() {
            limits.push(format!("{words} {number}"));
        }
    }
    for schema in [field, &field["items"]] {
        let rules = schema["x-kubernetes-validations"]
            .as_array()
            .into_iter()
            .flatten();
        limits.extend(
            rules
                .filter_map(|rule| rule["message"].as_str())
                .map(str::to_owned),
        );
    }
    cell(&limits.join("; "))
}
