//! Fields of an object of the cluster: compared with values, and judged by conditions.

use json_path::Found;
use serde_json::{Map, Value};
use shared_api::HookRun;
use shared_api::names::hook_run_label;

use super::json_or_text::value_of;
use super::{HIDDEN, MeasurementFailure, MeasurementReason, ProviderResponse, malformed, to_judge};
use crate::request::{AnnotateRequest, FieldPath, ObjectName, ReadRequest};
use crate::value::{MetricValue, cut};

/// Annotation with which kubectl repeats the manifest that it applied.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Longest value that a message quotes, in bytes.
const QUOTED_BYTES: usize = 120;
/// Most annotation keys that a message lists.
const LISTED_KEYS: usize = 10;

/// Interprets the JSON text of an object that was read. `run_pod` is the UID of the run's pod, if the run has one.
///
/// # Errors
/// `ObjectGone` if the object is another pod of the same name. `PathNotFound` if a field is missing or null.
/// `MalformedAnswer` if a value cannot be compared, or begins as JSON and is not JSON.
pub fn interpret_object(
    request: &ReadRequest,
    run_pod: Option<&str>,
    object: &[u8],
) -> Result<ProviderResponse, MeasurementFailure> {
    let object = plain_json::from_slice(object);
    let mut object: Value = object.map_err(|error| {
        malformed(format!(
            "the JSON of {} cannot be parsed: {error}",
            request.object
        ))
    })?;
    check_pod(&request.object, run_pod, object["metadata"]["uid"].as_str())?;
    remove_copies(&mut object);
    let paths = request.fields.iter().map(|(path, _)| path);
    let values = paths.map(|path| find(request, path, &object));
    compare(request, values.collect::<Result<_, _>>()?)
}

/// Interprets a text that stands for the fields of the request, for evaluation without a cluster: the value of its only
/// field, or a JSON object by path.
///
/// # Errors
/// As [`interpret_object`].
pub fn interpret_fields(request: &ReadRequest, text: &str) -> Result<ProviderResponse, MeasurementFailure> {
    if request.fields.len() == 1 {
        return compare(request, vec![Value::String(text.to_owned())]);
    }
    let missing = |message: String| MeasurementFailure::new(MeasurementReason::PathNotFound, message);
    let Ok(Value::Object(given)) = plain_json::from_str(text) else {
        return Err(missing(
            "the result must be a JSON object with the paths as keys".to_owned(),
        ));
    };
    let values = request.fields.iter().map(|(path, _)| {
        let value = given.get(&path.to_string()).filter(|value| !value.is_null());
        value
            .cloned()
            .ok_or_else(|| missing(format!("the result has no key {path}")))
    });
    compare(request, values.collect::<Result<_, _>>()?)
}

/// Compares the values of the fields, in their order, with those that are expected. Conditions judge them if they are
/// equal.
fn compare(request: &ReadRequest, values: Vec<Value>) -> Result<ProviderResponse, MeasurementFailure> {
    let fields = || request.fields.iter().zip(&values);
    let mut difference = None;
    for ((path, expected), value) in fields() {
        let Some(expected) = expected else { continue };
        let text = comparable(request, path, value)?;
        if text != *expected && difference.is_none() {
            difference = Some(differs(request, path, &text, expected));
        }
    }
    if let Some(message) = difference {
        return Ok(ProviderResponse::Decided {
            successful: false,
            message,
            value: Some(MetricValue::Json(result_of(request, values))),
        });
    }
    if !request.is_judged {
        let paths: Vec<String> = request.fields.iter().map(|(path, _)| path.to_string()).collect();
        return Ok(ProviderResponse::Decided {
            successful: true,
            message: format!("{} has the expected {}", request.object, paths.join(", ")),
            value: Some(MetricValue::Json(result_of(request, values))),
        });
    }
    let read = fields().map(|((path, _), value)| readable(path, value));
    let read = read.collect::<Result<_, _>>()?;
    let no_data = |kind: &str| format!("the field is {kind}");
    Ok(to_judge(result_of(request, read), None, no_data))
}

/// Interprets the pod to which annotations were written.
pub fn annotated(request: &AnnotateRequest) -> ProviderResponse {
    let keys: Vec<&str> = request.annotations.keys().map(String::as_str).collect();
    ProviderResponse::Decided {
        successful: true,
        message: format!("annotated {} with {}", request.pod, keys.join(", ")),
        value: None,
    }
}

/// Returns the UID of a run's pod; `None` if the run has no pod of its own.
pub fn pod_uid(run: &HookRun) -> Option<&str> {
    let labels = run.metadata.labels.as_ref()?;
    labels.get(hook_run_label::POD_UID).map(String::as_str)
}

/// Rejects another pod of the same name, by its UID.
pub(super) fn check_pod(
    name: &ObjectName,
    run_pod: Option<&str>,
    found: Option<&str>,
) -> Result<(), MeasurementFailure> {
    match run_pod.filter(|_| name.is_pod_of_run) {
        Some(uid) if found != Some(uid) => Err(MeasurementFailure::new(
            MeasurementReason::ObjectGone,
            format!("{name} was replaced by another pod with the same name"),
        )),
        Some(_) | None => Ok(()),
    }
}

/// Removes the parts of the metadata that repeat the spec, which may hold more than may be shown.
fn remove_copies(object: &mut Value) {
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.remove("managedFields");
        if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
            annotations.remove(LAST_APPLIED);
        }
    }
}

fn find(request: &ReadRequest, path: &FieldPath, object: &Value) -> Result<Value, MeasurementFailure> {
    let missing = |message: String| MeasurementFailure::new(MeasurementReason::PathNotFound, message);
    let name = &request.object;
    match path {
        FieldPath::Annotation(key) => {
            let annotations = object["metadata"]["annotations"].as_object();
            let value = annotations.and_then(|annotations| annotations.get(key));
            value
                .filter(|value| !value.is_null())
                .cloned()
                .ok_or_else(|| missing(format!("{path} is not set on {name}; {}", keys(annotations))))
        }
        FieldPath::Json(json_path) => match json_path.find(object) {
            Ok(Found::One(Value::Null)) => Err(missing(format!("{path} of {name} is null"))),
            Ok(Found::One(value)) if json_path.is_plural() => Ok(Value::Array(vec![value])),
            Ok(Found::One(value)) => Ok(value),
            Ok(Found::Many(values)) => Ok(Value::Array(values)),
            Ok(Found::Nothing) => Ok(Value::Array(Vec::new())),
            Err(error) if request.shows_values => Err(missing(format!("{name}: {}", error.message))),
            Err(_) => Err(missing(format!(
                "{path} matches no value in {name}; the object is {HIDDEN}"
            ))),
        },
    }
}

/// Lists the keys of annotations that are there.
fn keys(annotations: Option<&Map<String, Value>>) -> String {
    let keys: Vec<&String> = annotations.into_iter().flat_map(Map::keys).collect();
    if keys.is_empty() {
        return "it has no annotations".to_owned();
    }
    let shown: Vec<&str> = keys.iter().take(LISTED_KEYS).map(|key| key.as_str()).collect();
    let more = match keys.len().saturating_sub(LISTED_KEYS) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("its annotations are {}{more}", shown.join(", "))
}

/// Returns the text of a value that can be compared.
fn comparable(request: &ReadRequest, path: &FieldPath, value: &Value) -> Result<String, MeasurementFailure> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Bool(_) | Value::Number(_) => Ok(value.to_string()),
        Value::Array(_) | Value::Object(_) | Value::Null => {
            let kind = if value.is_array() { "a list" } else { "an object" };
            let name = &request.object;
            Err(malformed(format!(
                "{path} of {name} is {kind}, which cannot be compared with a value; use a condition"
            )))
        }
    }
}

fn differs(request: &ReadRequest, path: &FieldPath, found: &str, expected: &str) -> String {
    let name = &request.object;
    if request.shows_values {
        let (found, expected) = (cut(found, QUOTED_BYTES), cut(expected, QUOTED_BYTES));
        format!("{path} of {name} is {found:?}, not {expected:?}")
    } else {
        format!("{path} of {name} differs from the expected value; the current value is {HIDDEN}")
    }
}

/// Returns the value of the only field, or an object by path.
fn result_of(request: &ReadRequest, mut values: Vec<Value>) -> Value {
    if values.len() == 1 {
        return values.pop().unwrap_or_default();
    }
    let paths = request.fields.iter().map(|(path, _)| path.to_string());
    paths.zip(values).collect()
}

/// Reads a text as JSON if it parses, as the answers of other providers.
fn readable(path: &FieldPath, value: &Value) -> Result<Value, MeasurementFailure> {
    match value {
        Value::String(text) => value_of(text.as_bytes(), &path.to_string()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Ok(value.clone())
        }
    }
}

#[cfg(test)]
mod tests {
    use json_path::JsonPath;
    use serde_json::json;

    use super::*;
    use crate::request::ObjectKind;

    const UID: &str = "uid-of-the-run";

    fn request(fields: &[(&str, Option<&str>)], is_judged: bool) -> ReadRequest {
        let path = |text: &str| match text.strip_prefix("metadata.annotations.") {
            Some(key) => FieldPath::Annotation(key.to_owned()),
            None => FieldPath::Json(JsonPath::parse(text).unwrap()),
        };
        let fields = fields
            .iter()
            .map(|(text, value)| (path(text), value.map(str::to_owned)));
        ReadRequest {
            object: ObjectName {
                kind: ObjectKind::pod(),
                name: "arena-x".to_owned(),
                namespace: None,
                is_pod_of_run: true,
            },
            fields: fields.collect(),
            is_judged,
            shows_values: true,
        }
    }

    fn pod() -> Value {
        json!({
            "metadata": {
                "uid": UID, "name": "arena-x", "labels": { "app": "arena" },
                "annotations": { "players": "3", "none": "", "data": "{\"rooms\": [1, 2]}", "broken": "{\"rooms\"", "null": null,
                    "kubectl.kubernetes.io/last-applied-configuration": "{\"spec\": 1}" },
                "managedFields": [{ "manager": "kubelet" }],
            },
            "spec": { "priority": 3, "containers": [{ "name": "game" }, { "name": "proxy" }] },
            "status": { "phase": "Running", "ready": true },
        })
    }

    fn interpret(request: &ReadRequest, object: &Value) -> Result<ProviderResponse, MeasurementFailure> {
        interpret_object(request, Some(UID), object.to_string().as_bytes())
    }

    /// Returns the outcome in one line.
    fn said(outcome: &Result<ProviderResponse, MeasurementFailure>) -> String {
        match outcome {
            Ok(ProviderResponse::Decided {
                successful,
                message,
                value,
            }) => {
                let value = value.as_ref().map(MetricValue::text).unwrap_or_default();
                format!("{successful}: {message} [{value}]")
            }
            Ok(ProviderResponse::Value { result, .. }) => format!("value {}", result.text()),
            Ok(ProviderResponse::NoData { message, .. }) => format!("no data: {message}"),
            Err(failure) => format!("{}: {failure}", failure.kind.as_str()),
        }
    }

    #[test]
    fn a_field_that_equals_its_value_is_a_success_and_any_other_is_a_failure() {
        let players = "metadata.annotations.players";
        let here = "its annotations are broken, data, none, null, players";
        for (fields, wanted) in [
            (vec![(players, Some("3"))], "true: Pod arena-x has the expected metadata.annotations.players [3]".to_owned()),
            (vec![(players, Some("0"))], "false: metadata.annotations.players of Pod arena-x is \"3\", not \"0\" [3]".to_owned()),
            (vec![(players, Some(" 3"))], "false: metadata.annotations.players of Pod arena-x is \"3\", not \" 3\" [3]".to_owned()),
            (vec![(players, Some("3.0"))], "false: metadata.annotations.players of Pod arena-x is \"3\", not \"3.0\" [3]".to_owned()),
            (vec![("metadata.annotations.none", Some(""))], "true: Pod arena-x has the expected metadata.annotations.none []".to_owned()),
            (vec![("{.status.phase}", Some("Running"))], "true: Pod arena-x has the expected {.status.phase} [Running]".to_owned()),
            (
                vec![("{.status.phase}", Some("Run"))],
                "false: {.status.phase} of Pod arena-x is \"Running\", not \"Run\" [Running]".to_owned(),
            ),
            (vec![("{.status.phase}", Some("running"))], "false: {.status.phase} of Pod arena-x is \"Running\", not \"running\" [Running]".to_owned()),
            (vec![("{.status.ready}", Some("true"))], "true: Pod arena-x has the expected {.status.ready} [true]".to_owned()),
            (vec![("{.spec.priority}", Some("3"))], "true: Pod arena-x has the expected {.spec.priority} [3]".to_owned()),
            (
                vec![(players, Some("3")), ("{.status.phase}", Some("Failed"))],
                "false: {.status.phase} of Pod arena-x is \"Running\", not \"Failed\" [{\"metadata.annotations.players\":\"3\",\"{.status.phase}\":\"Running\"}]".to_owned(),
            ),
            (vec![("metadata.annotations.absent", Some(""))], format!("PathNotFound: metadata.annotations.absent is not set on Pod arena-x; {here}")),
            (vec![("metadata.annotations.null", Some("null"))], format!("PathNotFound: metadata.annotations.null is not set on Pod arena-x; {here}")),
            (vec![(players, Some("0")), ("metadata.annotations.absent", Some("1"))], format!("PathNotFound: metadata.annotations.absent is not set on Pod arena-x; {here}")),
            (vec![("{.metadata.managedFields[0].manager}", Some("kubelet"))], "PathNotFound: Pod arena-x: ".to_owned()),
            (vec![("{.spec}", Some("3"))], "MalformedAnswer: {.spec} of Pod arena-x is an object, which cannot be compared".to_owned()),
            (vec![("{.spec.containers}", Some("3"))], "MalformedAnswer: {.spec.containers} of Pod arena-x is a list, which".to_owned()),
        ] {
            for is_judged in [false, true] {
                let said = said(&interpret(&request(&fields, is_judged), &pod()));
                // A condition is asked only about values that are as expected.
                if is_judged && wanted.starts_with("true") {
                    assert!(said.starts_with("value ") || said.starts_with("no data"), "{fields:?}: {said}");
                } else {
                    assert!(said.starts_with(&wanted), "{fields:?}: {said}\nwanted: {wanted}");
                }
            }
        }
    }

    #[test]
    fn a_condition_judges_the_text_as_json_if_it_is_json() {
        for (paths, wanted) in [
            (vec!["metadata.annotations.players"], "value 3"),
            (vec!["metadata.annotations.data"], "value {\"rooms\":[1,2]}"),
            (
                vec!["metadata.annotations.broken"],
                "MalformedAnswer: metadata.annotations.broken looks like JSON but is not valid JSON",
            ),
            (
                vec!["metadata.annotations.none"],
                "no data: the field is an empty string",
            ),
            (
                vec!["metadata.annotations.kubectl.kubernetes.io/last-applied-configuration"],
                "PathNotFound",
            ),
            (vec!["{.spec.containers[*].name}"], "value [\"game\",\"proxy\"]"),
            (
                vec!["{.spec.containers[?(@.name == 'game')].name}"],
                "value [\"game\"]",
            ),
            (
                vec!["{.spec.containers[?(@.name == 'x')].name}"],
                "no data: the field is an empty list",
            ),
            (
                vec!["metadata.annotations.players", "{.status.phase}"],
                "value {\"metadata.annotations.players\":3,\"{.status.phase}\":\"Running\"}",
            ),
        ] {
            let fields: Vec<_> = paths.iter().map(|path| (*path, None)).collect();
            let said = said(&interpret(&request(&fields, true), &pod()));
            assert!(said.starts_with(wanted), "{paths:?}: {said}");
        }
    }

    #[test]
    fn another_pod_of_the_same_name_and_half_an_answer_decide_nothing() {
        let fields = [("metadata.annotations.players", Some("3"))];
        let mut request = request(&fields, false);
        for uid in [json!("other"), json!(""), Value::Null] {
            let mut pod = pod();
            pod["metadata"]["uid"] = uid;
            let failure = interpret(&request, &pod).unwrap_err();
            assert_eq!(failure.kind, MeasurementReason::ObjectGone, "{failure}");
        }
        // A run that is for no pod, and an object that is no pod of the run.
        assert!(interpret_object(&request, None, pod().to_string().as_bytes()).is_ok());
        request.object.is_pod_of_run = false;
        let mut other = pod();
        other["metadata"]["uid"] = json!("other");
        assert!(interpret(&request, &other).is_ok());
        let text = pod().to_string();
        for end in 0..text.len() {
            let outcome = interpret_object(&request, None, &text.as_bytes()[..end]);
            assert_eq!(outcome.unwrap_err().kind, MeasurementReason::MalformedAnswer);
        }
        for odd in [
            "null",
            "[]",
            "3",
            "{}",
            "{\"metadata\":[]}",
            "{\"metadata\":{\"annotations\":[]}}",
        ] {
            let outcome = interpret_object(&request, None, odd.as_bytes());
            let failure = outcome.unwrap_err();
            assert_eq!(failure.kind, MeasurementReason::PathNotFound, "{odd}: {failure}");
            assert!(failure.message.contains("it has no annotations"), "{failure}");
        }
    }

    #[test]
    fn values_that_must_not_be_shown_are_in_no_message() {
        let expected = Some("also-secret");
        for (path, wanted) in [
            (
                "{.spec.env}",
                "differs from the expected value; the current value is hidden",
            ),
            (
                "{.spec.absent}",
                "matches no value in Pod arena-x; the object is hidden",
            ),
        ] {
            let mut request = request(&[(path, expected)], false);
            request.shows_values = false;
            let object = json!({ "metadata": { "uid": UID }, "spec": { "env": "secret-of-the-pod" } });
            let message = match interpret(&request, &object) {
                Ok(ProviderResponse::Decided { message, .. }) => message,
                Ok(other) => panic!("{other:?}"),
                Err(failure) => failure.message,
            };
            assert!(message.contains(wanted), "{message}");
            assert!(!message.contains("secret-of"), "{message}");
        }
    }

    #[test]
    fn a_text_stands_for_the_fields_in_evaluation_without_a_cluster() {
        let one = request(&[("metadata.annotations.players", Some("0"))], false);
        assert!(said(&interpret_fields(&one, "0")).starts_with("true: "));
        assert!(said(&interpret_fields(&one, "1")).starts_with("false: "));
        let two = request(
            &[
                ("metadata.annotations.players", Some("0")),
                ("{.status.phase}", None),
            ],
            true,
        );
        let both = json!({ "metadata.annotations.players": "0", "{.status.phase}": "Running" });
        assert_eq!(
            said(&interpret_fields(&two, &both.to_string())),
            "value {\"metadata.annotations.players\":0,\"{.status.phase}\":\"Running\"}"
        );
        for (text, wanted) in [
            (
                "0",
                "PathNotFound: the result must be a JSON object with the paths as keys",
            ),
            (
                "{\"{.status.phase}\": null}",
                "PathNotFound: the result has no key metadata.annotations.players",
            ),
        ] {
            assert_eq!(said(&interpret_fields(&two, text)), wanted);
        }
    }
}
