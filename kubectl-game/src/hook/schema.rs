//! Comparison of a document with the schema of its kind: unknown fields (with a suggestion), wrong types,
//! values outside an enum, missing fields. It reports what the API server would drop silently. The operator
//! itself reports unknown fields that the API server preserves (those of a hook's spec and its metrics).

use std::collections::BTreeMap;
use std::sync::LazyLock;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Map, Value};
use shared_api::spelling::{is_part, is_slip};

use super::wrong_type;

/// Schema of each kind.
static SCHEMAS: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| {
    let definitions = shared_api::crd::all().into_iter();
    let schema = |definition: CustomResourceDefinition| {
        let version = definition.spec.versions.into_iter().next();
        let schema = version.and_then(|version| version.schema?.open_api_v3_schema);
        let schema = serde_json::to_value(schema).unwrap_or_default();
        (definition.spec.names.kind, schema)
    };
    definitions.map(schema).collect()
});

/// A problem, with the path of its field.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) path: String,
    pub(super) message: String,
    /// Field whose value was replaced so that the rest can be parsed. Problems of the replacement are
    /// meaningless.
    repaired: Option<String>,
}

impl Finding {
    pub(super) fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            message: message.into(),
            repaired: None,
        }
    }

    fn repaired(path: &str, message: String, field: &str) -> Self {
        Self {
            repaired: Some(field.to_owned()),
            ..Self::new(path, message)
        }
    }

    /// Returns whether this finding already covers a problem of the path.
    pub(super) fn covers(&self, path: &str) -> bool {
        let repaired = self.repaired.as_deref();
        self.path == path || repaired.is_some_and(|field| is_within(path, field) || is_within(field, path))
    }
}

/// Returns whether a path is the field or lies within it.
fn is_within(path: &str, field: &str) -> bool {
    let rest = path.strip_prefix(field);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Result of comparing a document with its schema.
pub(super) struct SchemaCheck {
    pub(super) findings: Vec<Finding>,
    /// Document with wrong types converted or removed and missing fields filled in, so that later checks can run.
    pub(super) document: Value,
}

/// Fields of every kind, which are checked elsewhere.
const COMMON: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Compares a document with the schema of its kind: its spec, or the fields beside `metadata` of a kind without one.
pub(super) fn check(kind: &str, document: &Value) -> SchemaCheck {
    let nothing = Value::Null;
    let schema = SCHEMAS.get(kind).unwrap_or(&nothing);
    let mut findings = Vec::new();
    let mut checked = document.clone();
    let Value::Object(fields) = &mut checked else {
        return SchemaCheck {
            findings,
            document: checked,
        };
    };
    if let Some(schema) = schema.pointer("/properties/spec") {
        let spec = match document.get("spec") {
            None | Some(Value::Null) => {
                let slip = document
                    .as_object()
                    .into_iter()
                    .flat_map(Map::keys)
                    .find(|name| is_slip(name, "spec"));
                let given = slip.map_or_else(String::new, |name| format!("; you wrote {name}"));
                findings.push(Finding::repaired("spec", format!("is required{given}"), "spec"));
                None
            }
            Some(value) => compare("spec", schema, value, &mut findings),
        };
        fields.insert("spec".to_owned(), spec.unwrap_or_else(|| empty(schema)));
    } else {
        let is_common = |name: &str| COMMON.contains(&name);
        let mut own = fields.clone();
        own.retain(|name, _| !is_common(name));
        fields.retain(|name, _| is_common(name));
        fields.extend(compare_fields("", schema, &own, &mut findings));
    }
    SchemaCheck {
        findings,
        document: checked,
    }
}

/// Returns a value that can be parsed; `None` if the field must be removed.
fn compare(path: &str, schema: &Value, value: &Value, findings: &mut Vec<Finding>) -> Option<Value> {
    let flag = |name: &str| schema.get(name).and_then(Value::as_bool).unwrap_or_default();
    // The API server drops nulls.
    if value.is_null() {
        return None;
    }
    if flag("x-kubernetes-int-or-string") {
        if is_of("integer", value) || value.is_string() {
            return Some(value.clone());
        }
        let message = format!(
            "must be an integer or a string such as \"20%\", not {}",
            shown(value)
        );
        findings.push(Finding::repaired(path, message, path));
        return None;
    }
    let wrong = schema
        .get("type")
        .and_then(Value::as_str)
        .filter(|wanted| !is_of(wanted, value));
    if let Some(wanted) = wrong {
        let message = wrong_type::words(wanted, path, value);
        findings.push(Finding::repaired(path, message, path));
        return converted(wanted, value);
    }
    if let Some(message) = out_of_bounds(schema, value) {
        findings.push(Finding::repaired(path, message, path));
        return None;
    }
    Some(match value {
        Value::Object(fields) => Value::Object(compare_fields(path, schema, fields, findings)),
        Value::Array(items) => {
            let schema = schema.get("items").unwrap_or(&Value::Null);
            let items = items.iter().enumerate().map(|(index, item)| {
                let path = format!("{path}[{index}]");
                if item.is_null() && schema.get("type").is_some() {
                    findings.push(Finding::repaired(&path, "must not be null".to_owned(), &path));
                }
                compare(&path, schema, item, findings).unwrap_or_else(|| empty(schema))
            });
            Value::Array(items.collect())
        }
        other => other.clone(),
    })
}

/// Describes the problem of a value that has the right type.
fn out_of_bounds(schema: &Value, value: &Value) -> Option<String> {
    let allowed = schema.get("enum").and_then(Value::as_array);
    if let Some(allowed) = allowed.filter(|allowed| !allowed.contains(value)) {
        let words = allowed.iter().map(shown).collect::<Vec<_>>().join(", ");
        let known = allowed.iter().filter_map(Value::as_str);
        let meant = value
            .as_str()
            .map_or_else(String::new, |given| did_you_mean(given, known));
        return Some(format!("must be one of {words}, not {}{meant}", shown(value)));
    }
    if let (Some(items), Some(most)) = (value.as_array(), schema.get("maxItems").and_then(Value::as_u64))
        && items.len() as u64 > most
    {
        return Some(format!("has {} items; the maximum is {most}", items.len()));
    }
    let number = value.as_f64()?;
    let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
    let narrow = schema.get("format").and_then(Value::as_str) == Some("int32");
    let (low, high) = if narrow {
        (Some(f64::from(i32::MIN)), Some(f64::from(i32::MAX)))
    } else {
        (None, None)
    };
    if let Some(least) = bound("minimum").or(low).filter(|least| number < *least) {
        return Some(format!("{value} must be greater than or equal to {least}"));
    }
    let most = bound("maximum").or(high).filter(|most| number > *most)?;
    Some(format!("{value} must be less than or equal to {most}"))
}

/// Converts a value of the wrong type if its meaning is obvious.
fn converted(wanted: &str, value: &Value) -> Option<Value> {
    match (wanted, value) {
        ("string", Value::Number(_) | Value::Bool(_)) => Some(Value::String(value.to_string())),
        ("integer", Value::String(text)) => text.parse::<i64>().ok().map(Value::from),
        ("boolean", Value::String(text)) => text.parse::<bool>().ok().map(Value::from),
        _ => None,
    }
}

/// Returns the smallest value that can be parsed with a schema.
fn empty(schema: &Value) -> Value {
    let required = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    match schema.get("type").and_then(Value::as_str) {
        Some("string") => Value::String(String::new()),
        Some("integer" | "number") => Value::from(0),
        Some("boolean") => Value::Bool(false),
        Some("array") => Value::Array(Vec::new()),
        Some("object") => {
            let field = |name: &Value| {
                let name = name.as_str()?;
                let schema = schema.get("properties")?.get(name)?;
                Some((name.to_owned(), empty(schema)))
            };
            Value::Object(required.filter_map(field).collect())
        }
        _ => Value::Null,
    }
}

fn compare_fields(
    path: &str,
    schema: &Value,
    fields: &Map<String, Value>,
    findings: &mut Vec<Finding>,
) -> Map<String, Value> {
    let none = Map::new();
    let known = schema
        .get("properties")
        .and_then(Value::as_object)
        .unwrap_or(&none);
    let open = schema.get("x-kubernetes-preserve-unknown-fields").is_some();
    let free = schema.get("additionalProperties");
    let mut readable = Map::new();
    for (name, value) in fields {
        let path = joined(path, name);
        match (known.get(name), free) {
            (Some(schema), _) | (None, Some(schema)) => {
                let value = compare(&path, schema, value, findings);
                readable.extend(value.map(|value| (name.clone(), value)));
            }
            (None, None) => {
                if !open {
                    let meant = meant_field(name, known);
                    let message = format!("unknown field: the API server would drop it{meant}");
                    findings.push(Finding::new(path, message));
                }
                readable.insert(name.clone(), value.clone());
            }
        }
    }
    let required = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    for name in required.filter_map(Value::as_str) {
        if fields.get(name).is_none_or(Value::is_null) {
            let message = format!("field {name} is required");
            findings.push(Finding::repaired(path, message, &joined(path, name)));
        }
        if !readable.contains_key(name) {
            readable.insert(name.to_owned(), known.get(name).map_or(Value::Null, empty));
        }
    }
    readable
}

/// Returns the path of a field.
fn joined(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

/// Names of fields in Deployments, Rollouts and hand-written manifests: theirs, ours.
const NAMES_ELSEWHERE: [(&str, &str); 5] = [
    ("strategy", "updateStrategy"),
    ("setWeight", "partition"),
    ("analysis", "hook"),
    ("preDeleteHook", "preDeleteUpdateStrategy"),
    ("preInplaceHook", "preInplaceUpdateStrategy"),
];

/// Returns a suggestion for an unknown field, as the end of a sentence.
fn meant_field(name: &str, known: &Map<String, Value>) -> String {
    let names = known.keys().map(String::as_str);
    let elsewhere = NAMES_ELSEWHERE.into_iter().find(|(theirs, _)| *theirs == name);
    if let Some((_, ours)) = elsewhere.filter(|(_, ours)| known.contains_key(*ours)) {
        return format!("; did you mean {ours}?");
    }
    let has = |schema: &Value| {
        schema
            .pointer("/properties")
            .is_some_and(|fields| fields.get(name).is_some())
    };
    let mut around = known.iter().filter(|(_, schema)| has(schema));
    match (around.next(), around.next()) {
        (Some((around, _)), None) => format!("; move it to {around}"),
        _ => did_you_mean(name, names),
    }
}

/// Returns a suggestion for a wrong name, as the end of a sentence.
pub(super) fn did_you_mean<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    let near = known.clone().find(|known| is_slip(name, known));
    let near = near.or_else(|| known.clone().find(|known| is_part(name, known)));
    near.map_or_else(String::new, |name| format!("; did you mean {name}?"))
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

pub(super) fn shown(value: &Value) -> String {
    hook_core::value::cut(&value.to_string(), 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_the_api_server_would_drop_or_refuse_is_said() {
        let document = json!({ "spec": {
            "policy": "ordered", "timoutSeconds": 5,
            "args": [{ "name": "a", "valueFrom": { "secretKeyRef": { "name": "s", "key": "k", "kee": "k" } } }],
            "metrics": [{
                "name": 5, "sucessCondition": "true", "count": "3",
                "provider": { "web": { "jsonpath": "{$.a}" } }
            }]
        }});
        let SchemaCheck { findings, document } = check("HookTemplate", &document);
        let metric = &document["spec"]["metrics"][0];
        assert_eq!(
            (&metric["name"], &metric["count"]),
            (&json!("5"), &json!(3)),
            "as it was meant"
        );
        assert_eq!(metric["provider"]["web"]["url"], "", "as little as can be read");
        let lines: Vec<_> = findings
            .iter()
            .map(|finding| format!("{}: {}", finding.path, finding.message))
            .collect();
        assert_eq!(
            lines,
            [
                "spec.args[0].valueFrom.secretKeyRef.kee: unknown field: the API server would drop it; did you mean key?",
                "spec.metrics[0].count: must be an integer, not \"3\"; remove the quotes",
                "spec.metrics[0].name: must be a string, not 5; put it in quotes",
                "spec.metrics[0].provider.web: field url is required",
                "spec.policy: must be one of \"Parallel\", \"Ordered\", not \"ordered\"; did you mean Ordered?",
            ]
        );
    }

    #[test]
    fn bounds_and_nulls_are_those_of_the_api_server() {
        let spec = json!({ "spec": {
            "replicas": -1, "minReadySeconds": 3_000_000_000_u64, "selector": null, "template": {},
            "revisionHistoryLimit": null,
            "updateStrategy": { "partition": true, "maxUnavailable": "20%", "paused": "true" },
            "scaleStrategy": { "podsToDelete": [null] }
        }});
        let SchemaCheck {
            mut findings,
            document,
        } = check("GameDeployment", &spec);
        let spec = &document["spec"];
        findings.sort_by(|a, b| a.path.cmp(&b.path));
        let lines: Vec<_> = findings
            .iter()
            .map(|one| format!("{}: {}", one.path, one.message))
            .collect();
        assert_eq!(
            lines,
            [
                "spec: field selector is required",
                "spec.minReadySeconds: 3000000000 must be less than or equal to 2147483647",
                "spec.replicas: -1 must be greater than or equal to 0",
                "spec.scaleStrategy.podsToDelete[0]: must not be null",
                "spec.updateStrategy.partition: must be an integer or a string such as \"20%\", not true",
                "spec.updateStrategy.paused: must be a boolean, not \"true\"; remove the quotes",
            ]
        );
        assert_eq!(
            (&spec["selector"], &spec["updateStrategy"]["paused"]),
            (&json!({}), &json!(true))
        );
    }
}
