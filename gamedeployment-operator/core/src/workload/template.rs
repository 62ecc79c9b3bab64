//! Validation of a pod template, as far as possible before a pod is created from it.

use serde_json::Value;
use shared_api::game_deployment::GameDeploymentSpec;
use shared_api::names::eviction::{MAX_RESPONDERS, RESPONDER};
use shared_api::names::pod::{KEEPS_NODE, RESERVED_ANNOTATIONS, RESERVED_LABELS};
use shared_api::syntax::{is_name, is_qualified_name};

use super::{AutoscalerAnnotations, DisruptionPolicy, FieldError};

const BASE: &str = "spec.template";
/// Maximum total size of an object's annotations in bytes, names and values together.
const ANNOTATION_BYTES: usize = 256 * 1024;
/// Requirement for values of labels.
pub(super) const VALUE: &str = "must be at most 63 characters long, contain only letters, digits, '-', '_' and '.', \
                                and start and end with a letter or digit";
/// Requirement for keys of labels and annotations.
pub(super) const KEY: &str = "must be a name of at most 63 characters (letters, digits, '-', '_' and '.', starting and \
                              ending with a letter or digit), optionally prefixed by a DNS name and '/'";
const RESERVED: &str =
    "must not be set, because the operator sets it on each pod; remove it from the template";

/// Checks the template of a spec.
pub(super) fn check(template: &Value, spec: &GameDeploymentSpec, problems: &mut Vec<FieldError>) {
    check_labels(template, problems);
    check_annotations(template, problems);
    let disruption = spec.disruption.as_ref();
    let pre_delete = spec.pre_delete_update_strategy.as_ref();
    let has_hook = pre_delete.is_some_and(|strategy| strategy.hook.is_some());
    if has_hook && DisruptionPolicy::read(disruption) == Some(DisruptionPolicy::Ask) {
        check_responders(template, problems);
    }
    if AutoscalerAnnotations::read(disruption) == Some(AutoscalerAnnotations::Managed) {
        check_autoscaler_annotations(template, problems);
    }
    let pod = |field: &str| template.pointer(&format!("/spec/{field}"));
    if pod("containers")
        .and_then(|list| list.as_array())
        .is_none_or(Vec::is_empty)
    {
        problems.push(FieldError::new(
            &format!("{BASE}.spec.containers"),
            "",
            "must list at least one container",
        ));
    }
    if let Some(policy) = pod("restartPolicy").and_then(|policy| policy.as_str())
        && policy != "Always"
    {
        problems.push(FieldError::new(
            &format!("{BASE}.spec.restartPolicy"),
            policy,
            "must be Always or unset, because pods of a GameDeployment run until they are deleted",
        ));
    }
}

/// Checks that the operator can register itself as a responder to the Evictions of the pods.
fn check_responders(template: &Value, problems: &mut Vec<FieldError>) {
    let responders = template.pointer("/spec/evictionResponders");
    let responders = responders
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let path = format!("{BASE}.spec.evictionResponders");
    if responders.iter().any(|responder| responder["name"] == RESPONDER) {
        problems.push(FieldError::new(&path, RESPONDER, RESERVED));
    }
    if responders.len() >= MAX_RESPONDERS {
        let found = responders.len().to_string();
        let remedy = "too many responders; list at most 9, because the operator adds one if spec.disruption.policy is Ask";
        problems.push(FieldError::new(&path, &found, remedy));
    }
}

/// Checks that the template sets none of the autoscaler annotations to another value than the operator.
fn check_autoscaler_annotations(template: &Value, problems: &mut Vec<FieldError>) {
    let annotations = template.pointer("/metadata/annotations");
    for (key, value) in KEEPS_NODE {
        let found = annotations.and_then(|annotations| annotations[key].as_str());
        if let Some(found) = found.filter(|found| *found != value) {
            let path = format!("{BASE}.metadata.annotations[{key}]");
            let remedy =
                format!("must be {value:?} or unset while spec.disruption.autoscalerAnnotations is Managed");
            problems.push(FieldError::new(&path, found, remedy));
        }
    }
}

fn check_labels(template: &Value, problems: &mut Vec<FieldError>) {
    for (key, path, value) in texts(template, "labels", &RESERVED_LABELS, problems) {
        if !is_qualified_name(key) {
            problems.push(FieldError::new(&path, key, KEY));
        }
        if !value.is_empty() && !is_name(value) {
            problems.push(FieldError::new(&path, value, VALUE));
        }
    }
}

fn check_annotations(template: &Value, problems: &mut Vec<FieldError>) {
    let mut bytes = 0;
    for (key, path, value) in texts(template, "annotations", &RESERVED_ANNOTATIONS, problems) {
        bytes += key.len() + value.len();
        if !is_qualified_name(&key.to_lowercase()) {
            problems.push(FieldError::new(&path, key, KEY));
        }
    }
    if bytes > ANNOTATION_BYTES {
        problems.push(FieldError::new(
            &format!("{BASE}.metadata.annotations"),
            "",
            format!("are {bytes} bytes in total; the limit is {ANNOTATION_BYTES}"),
        ));
    }
}

/// Returns the key, path and value of each string entry whose key is not reserved, and reports the others.
fn texts<'a>(
    template: &'a Value,
    field: &str,
    reserved: &[&str],
    problems: &mut Vec<FieldError>,
) -> Vec<(&'a str, String, &'a str)> {
    let map = template.pointer(&format!("/metadata/{field}"));
    let mut texts = Vec::new();
    for (key, value) in map.and_then(Value::as_object).into_iter().flatten() {
        let path = format!("{BASE}.metadata.{field}[{key}]");
        match value {
            Value::String(_) if reserved.contains(&key.as_str()) => {
                problems.push(FieldError::new(&path, "", RESERVED));
            }
            Value::String(value) => texts.push((key.as_str(), path, value.as_str())),
            // Null counts as absent.
            Value::Null => {}
            other => {
                let remedy = "must be a string; enclose it in quotes";
                problems.push(FieldError::new(&path, &other.to_string(), remedy));
            }
        }
    }
    texts
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::assert_refused;
    use super::*;
    use crate::samples::workload;

    const LABELS: &str = "/spec/template/metadata/labels";
    const ANNOTATIONS: &str = "/spec/template/metadata/annotations";

    #[test]
    fn labels_are_what_the_api_server_takes() {
        let long = "a".repeat(64);
        let table = [
            ("build", "feature/new maps", "feature/new maps", "at most 63"),
            ("build", "-x", "-x", "start and end with"),
            ("build", &long, &long, "at most 63"),
            ("a b", "x", "a b", "at most 63"),
            ("/x", "x", "/x", "a DNS name"),
            ("Games.io/x", "x", "Games.io/x", "a DNS name"),
            ("controller-revision-hash", "x", "", "the operator sets it"),
            (
                "tkex.bkbcs.tencent.com/gamedeployment-instance-id",
                "x",
                "",
                "remove it from the template",
            ),
        ];
        for (key, value, shown, remedy) in table {
            let path = format!("spec.template.metadata.labels[{key}]");
            assert_refused(
                &[(LABELS, json!({"app": "game", key: value}))],
                &path,
                shown,
                remedy,
            );
        }
        let number = json!({"app": "game", "build": 5});
        let path = "spec.template.metadata.labels[build]";
        assert_refused(&[(LABELS, number)], path, "5", "enclose it in quotes");
        let fine = json!({"app": "game", "build": "", "games.io/Build_1.x": "v1.2_3-Z", "x": "a".repeat(63)});
        workload(&[(LABELS, fine)]);
    }

    #[test]
    fn annotations_are_what_the_api_server_takes() {
        let table = [
            ("a b", "x", "a b", "at most 63"),
            ("inplace-update-state", "{}", "", "the operator sets it"),
            ("tkex.tencent.com/skip-hook", "x", "", "the operator sets it"),
        ];
        for (key, value, shown, remedy) in table {
            let path = format!("spec.template.metadata.annotations[{key}]");
            assert_refused(&[(ANNOTATIONS, json!({key: value}))], &path, shown, remedy);
        }
        let long = "x".repeat(ANNOTATION_BYTES);
        let path = "spec.template.metadata.annotations";
        assert_refused(
            &[(ANNOTATIONS, json!({"a": long}))],
            path,
            "",
            "the limit is 262144",
        );
        let fine =
            json!({"Games.IO/x": "any text / at all", "controller.kubernetes.io/pod-deletion-cost": "5"});
        workload(&[(ANNOTATIONS, fine)]);
    }
}
