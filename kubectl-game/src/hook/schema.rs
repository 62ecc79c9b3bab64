//! Compares a document with its kind's schema: unknown fields (with what was probably meant), wrong types, words
//! that are not allowed, fields that are missing. What the API server would drop in silence is said here; of the fields
//! that it keeps (those of a metric) the operator speaks itself.

use serde_json::{Map, Value};

/// Something that the schema does not allow, with the path of the field.
pub(super) struct Finding {
    pub(super) path: String,
    pub(super) message: String,
    /// The type that the schema wants there, where the value has another.
    pub(super) wanted: Option<&'static str>,
}

impl Finding {
    pub(super) fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            message: message.into(),
            wanted: None,
        }
    }
}

/// All findings of a document of this kind; none for a kind that is not ours.
pub(super) fn check(kind: &str, document: &Value) -> Vec<Finding> {
    let definitions = shared_api::crd::all();
    let Some(definition) = definitions
        .into_iter()
        .find(|definition| definition.spec.names.kind == kind)
    else {
        return vec![];
    };
    let version = definition.spec.versions.into_iter().next();
    let schema = version
        .and_then(|version| version.schema)
        .and_then(|schema| schema.open_api_v3_schema);
    let schema = serde_json::to_value(schema).unwrap_or_default();
    let mut findings = Vec::new();
    let spec = schema.pointer("/properties/spec").unwrap_or(&Value::Null);
    match document.get("spec") {
        Some(value) => compare("spec", spec, value, &mut findings),
        None => findings.push(Finding::new("spec", "is missing")),
    }
    findings
}

fn compare(path: &str, schema: &Value, value: &Value, findings: &mut Vec<Finding>) {
    let flag = |name: &str| schema.get(name).and_then(Value::as_bool).unwrap_or_default();
    let allowed_type = schema.get("type").and_then(Value::as_str);
    if value.is_null() || flag("x-kubernetes-int-or-string") {
        return;
    }
    if let Some((wanted, words)) = allowed_type
        .and_then(type_of)
        .filter(|(wanted, _)| !is_of(wanted, value))
    {
        let message = format!("{} is not {words}", shown(value));
        findings.push(Finding {
            wanted: Some(wanted),
            ..Finding::new(path, message)
        });
        return;
    }
    if let Some(words) = schema
        .get("enum")
        .and_then(Value::as_array)
        .filter(|words| !words.contains(value))
    {
        let words = words.iter().map(shown).collect::<Vec<_>>().join(", ");
        findings.push(Finding::new(
            path,
            format!("{} is not one of {words}", shown(value)),
        ));
    }
    match value {
        Value::Object(fields) => compare_fields(path, schema, fields, findings),
        Value::Array(items) => {
            let schema = schema.get("items").unwrap_or(&Value::Null);
            for (index, item) in items.iter().enumerate() {
                compare(&format!("{path}[{index}]"), schema, item, findings);
            }
        }
        _ => {}
    }
}

fn compare_fields(path: &str, schema: &Value, fields: &Map<String, Value>, findings: &mut Vec<Finding>) {
    let empty = Map::new();
    let known = schema
        .get("properties")
        .and_then(Value::as_object)
        .unwrap_or(&empty);
    let open = schema.get("x-kubernetes-preserve-unknown-fields").is_some();
    let free = schema.get("additionalProperties");
    for (name, value) in fields {
        let path = format!("{path}.{name}");
        match (known.get(name), free) {
            (Some(schema), _) | (None, Some(schema)) => compare(&path, schema, value, findings),
            (None, None) if open => {}
            (None, None) => {
                let meant = nearest(name, known.keys());
                let meant = meant
                    .map(|name| format!("; did you mean {name}?"))
                    .unwrap_or_default();
                let message = format!("unknown field: the API server would drop it{meant}");
                findings.push(Finding::new(path, message));
            }
        }
    }
    let required = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    for name in required.filter(|name| !fields.contains_key(*name)) {
        findings.push(Finding::new(path, format!("field {name} is missing")));
    }
}

/// A type of the schema, and how people call it.
fn type_of(name: &str) -> Option<(&'static str, &'static str)> {
    const TYPES: [(&str, &str); 6] = [
        ("string", "text; put it in quotes"),
        ("integer", "a whole number; write it without quotes"),
        ("number", "a number; write it without quotes"),
        ("boolean", "true or false"),
        ("array", "a list"),
        ("object", "an object"),
    ];
    TYPES.into_iter().find(|(known, _)| *known == name)
}

fn is_of(wanted: &str, value: &Value) -> bool {
    match wanted {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    }
}

fn shown(value: &Value) -> String {
    hook_core::value::cut(&value.to_string(), 60)
}

/// The known name that differs least from a misspelt one, if it is near enough to have been meant.
fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a String>) -> Option<&'a String> {
    let near = known.map(|other| (distance(&name.to_lowercase(), &other.to_lowercase()), other));
    near.filter(|(distance, _)| *distance <= 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, other)| other)
}

/// How many letters must be added, dropped or changed (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (index, one) in a.chars().enumerate() {
        let mut next = vec![index + 1];
        for ((other, above), left_above) in b.chars().zip(row.iter().skip(1)).zip(&row) {
            let left = next.last().copied().unwrap_or_default();
            let changed = left_above + usize::from(one != other);
            next.push(changed.min(above + 1).min(left + 1));
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_the_api_server_would_drop_or_refuse_is_said() {
        let document = json!({ "spec": {
            "policy": "ordered", "timoutSeconds": 5,
            "metrics": [{
                "name": 5, "sucessCondition": "true", "count": "3",
                "provider": { "web": { "jsonpath": "{$.a}" } }
            }]
        }});
        let findings = check("HookTemplate", &document);
        let lines: Vec<_> = findings
            .iter()
            .map(|finding| format!("{}: {}", finding.path, finding.message))
            .collect();
        assert_eq!(
            lines,
            [
                "spec.metrics[0].count: \"3\" is not a whole number; write it without quotes",
                "spec.metrics[0].name: 5 is not text; put it in quotes",
                "spec.metrics[0].provider.web: field url is missing",
                "spec.policy: \"ordered\" is not one of \"Parallel\", \"Ordered\"",
                "spec.timoutSeconds: unknown field: the API server would drop it; did you mean timeoutSeconds?",
            ]
        );
    }
}
