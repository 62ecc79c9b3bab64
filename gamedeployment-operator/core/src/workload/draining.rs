//! Labels of pods that are selected for deletion or for an update.

use std::collections::BTreeMap;

use shared_api::GameDeploymentSpec;
use shared_api::game_deployment::UpdateStrategy;
use shared_api::syntax::{is_name, is_qualified_name, is_reserved_label};

use super::template::{KEY, VALUE};
use super::{FieldError, Selector};

/// Maximum number of labels.
const MAX_LABELS: usize = 8;

/// Reads the labels of pods that are selected for deletion.
pub(super) fn for_scaling(
    spec: &GameDeploymentSpec,
    selector: &Selector,
    problems: &mut Vec<FieldError>,
) -> BTreeMap<String, String> {
    let strategy = spec.scale_strategy.as_ref();
    let labels = strategy.and_then(|strategy| strategy.draining_labels.as_ref());
    read("spec.scaleStrategy.drainingLabels", labels, selector, problems)
}

/// Reads the labels of pods that are selected for an update.
pub(super) fn for_updates(
    strategy: &UpdateStrategy,
    selector: &Selector,
    problems: &mut Vec<FieldError>,
) -> BTreeMap<String, String> {
    let labels = strategy.outdated_labels.as_ref();
    read("spec.updateStrategy.outdatedLabels", labels, selector, problems)
}

/// Returns the labels; none if one of them is not valid.
fn read(
    path: &str,
    labels: Option<&BTreeMap<String, String>>,
    selector: &Selector,
    problems: &mut Vec<FieldError>,
) -> BTreeMap<String, String> {
    let labels = labels.cloned().unwrap_or_default();
    let known = problems.len();
    if labels.len() > MAX_LABELS {
        let remedy = format!("labels are too many; set at most {MAX_LABELS}");
        problems.push(FieldError::new(path, &labels.len().to_string(), remedy));
    }
    for (key, value) in &labels {
        if let Some((shown, remedy)) = problem_of(key, value, selector) {
            problems.push(FieldError::new(&format!("{path}[{key}]"), shown, remedy));
        }
    }
    if problems.len() > known {
        BTreeMap::new()
    } else {
        labels
    }
}

/// Returns whether a label may be a draining label: it is valid, and neither the selector nor the operator
/// depends on it.
pub(crate) fn is_draining_label(key: &str, value: &str, selector: &Selector) -> bool {
    problem_of(key, value, selector).is_none()
}

/// Returns the invalid part of a label, or an empty text if the message does not repeat it, and the remedy;
/// `None` if the label is valid.
fn problem_of<'a>(key: &'a str, value: &'a str, selector: &Selector) -> Option<(&'a str, &'static str)> {
    if !is_qualified_name(key) {
        Some((key, KEY))
    } else if is_reserved_label(key) {
        let remedy = "must not be set, because Kubernetes or the operator uses this label; use another one";
        Some(("", remedy))
    } else if selector.has_key(key) {
        let remedy = "must not be set, because spec.selector uses this label; use another one";
        Some(("", remedy))
    } else if !value.is_empty() && !is_name(value) {
        Some((value, VALUE))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::assert_refused;
    use crate::samples::{object, workload};
    use crate::workload::Workload;

    const FIELD: &str = "/spec/scaleStrategy/drainingLabels";

    #[test]
    fn labels_for_updates_are_read_by_the_same_rules() {
        let field = "/spec/updateStrategy/outdatedLabels";
        let labels = json!({ "accepts-players": "false" });
        let read = workload(&[(field, labels.clone())]);
        assert_eq!(json!(read.outdated_labels), labels);
        assert!(read.draining_labels.is_empty());
        let path = "spec.updateStrategy.outdatedLabels[app]";
        let over = [(field, json!({ "app": "game" }))];
        assert_refused(&over, path, "", "spec.selector uses this label");
    }

    #[test]
    fn labels_are_read_also_if_the_template_sets_them() {
        let template = ("/spec/template/metadata/labels/accepts-players", json!("true"));
        let longest = "a".repeat(63);
        for labels in [
            json!({ "accepts-players": "false" }),
            json!({ "games.example.com/accepts-players": "", "x": "v1.2_3-Z", "y": longest }),
        ] {
            let read = workload(&[(FIELD, labels.clone()), template.clone()]);
            assert_eq!(json!(read.draining_labels), labels);
        }
        for none in [json!({}), Value::Null] {
            assert!(workload(&[(FIELD, none)]).draining_labels.is_empty());
        }
    }

    #[test]
    fn a_label_that_the_operator_must_not_change_is_refused() {
        let long = "a".repeat(64);
        let selector = json!({
            "matchLabels": { "app": "game" },
            "matchExpressions": [
                { "key": "in", "operator": "In", "values": ["a"] },
                { "key": "not-in", "operator": "NotIn", "values": ["a"] },
                { "key": "exists", "operator": "Exists" },
                { "key": "absent", "operator": "DoesNotExist" },
            ],
        });
        let template = json!({ "app": "game", "in": "a", "exists": "" });
        for (key, value, shown, remedy) in [
            ("a b", "false", "a b", "must be a name of at most 63 characters"),
            ("Games.io/x", "false", "Games.io/x", "a DNS name"),
            ("x", "-x", "-x", "start and end with"),
            ("x", &long, &long, "at most 63"),
            ("app", "game", "", "spec.selector uses this label"),
            ("in", "a", "", "spec.selector uses this label"),
            ("not-in", "b", "", "spec.selector uses this label"),
            ("exists", "", "", "spec.selector uses this label"),
            ("absent", "", "", "spec.selector uses this label"),
            (
                "controller-revision-hash",
                "x",
                "",
                "the operator uses this label",
            ),
            (
                "tkex.tencent.com/removal-guard",
                "Ask",
                "",
                "the operator uses this label",
            ),
            (
                "tkex.bkbcs.tencent.com/gamedeployment-instance-id",
                "x",
                "",
                "use another one",
            ),
            ("app.kubernetes.io/name", "x", "", "Kubernetes or the operator"),
        ] {
            let over = [
                (FIELD, json!({ "fine": "", key: value })),
                ("/spec/selector", selector.clone()),
                ("/spec/template/metadata/labels", template.clone()),
            ];
            let path = format!("spec.scaleStrategy.drainingLabels[{key}]");
            assert_refused(&over, &path, shown, remedy);
            let (read, problems) = Workload::examine(&object(&over));
            assert!(read.draining_labels.is_empty());
            assert!(
                !problems[0].is_of_template(),
                "no pod is touched until it is fixed"
            );
        }
    }

    #[test]
    fn at_most_eight_labels_are_accepted() {
        let labels = |count: usize| {
            let labels = (0..count).map(|number| (format!("key-{number}"), json!("x")));
            Value::Object(labels.collect())
        };
        assert_eq!(workload(&[(FIELD, labels(8))]).draining_labels.len(), 8);
        let remedy = "labels are too many; set at most 8";
        assert_refused(
            &[(FIELD, labels(9))],
            "spec.scaleStrategy.drainingLabels",
            "9",
            remedy,
        );
    }
}
