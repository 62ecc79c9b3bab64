use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::template::Template;

fn base() -> Value {
    json!({
        "metadata": {"labels": {"app": "game", "old": "x"}, "annotations": {"note": "1"}},
        "spec": {
            "initContainers": [{"name": "init", "image": "init:v1"}],
            "containers": [
                {"name": "game", "image": "game:v1", "env": [{"name": "A", "value": "1"}]},
                {"name": "side", "image": "side:v1"},
            ],
        },
    })
}

fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

fn between(from: &Value, to: &Value) -> Result<Change, NotInPlace> {
    change(&Template::read(from), &Template::read(to))
}

/// The base with one place changed by a closure.
fn with(edit: impl FnOnce(&mut Value)) -> Value {
    let mut value = base();
    edit(&mut value);
    value
}

#[test]
fn the_same_template_changes_nothing() {
    let change = between(&base(), &base()).unwrap();
    assert!(change.is_empty());
    let defaulted = with(|base| {
        base["spec"]["containers"][0]["resources"] = json!({});
        base["spec"]["containers"][0]["imagePullPolicy"] = json!("IfNotPresent");
    });
    assert!(between(&base(), &defaulted).unwrap().is_empty());
}

#[test]
fn images_labels_and_annotations_change_in_place() {
    let to = with(|base| {
        base["spec"]["containers"][1]["image"] = json!("side:v2");
        base["metadata"]["labels"] = json!({"app": "game2", "new": ""});
        base["metadata"]["annotations"] = json!(null);
    });
    let expected = Change {
        images: texts(&[("side", "side:v2")]),
        labels: MetadataChange {
            set: texts(&[("app", "game2"), ("new", "")]),
            removed: vec!["old".to_owned()],
        },
        annotations: MetadataChange {
            set: texts(&[]),
            removed: vec!["note".to_owned()],
        },
    };
    assert_eq!(between(&base(), &to), Ok(expected));
}

#[test]
fn everything_else_is_named_with_its_path() {
    type Edit = fn(&mut Value);
    let rows: &[(Edit, &[&str])] = &[
        (
            |t| t["spec"]["containers"][0]["env"][0]["value"] = json!("2"),
            &["spec.template.spec.containers[game].env"],
        ),
        (
            |t| t["spec"]["containers"][0]["resources"] = json!({"limits": {"cpu": 1}}),
            &["spec.template.spec.containers[game].resources"],
        ),
        (
            |t| t["spec"]["initContainers"][0]["image"] = json!("init:v2"),
            &["spec.template.spec.initContainers"],
        ),
        (
            |t| t["spec"]["hostNetwork"] = json!(true),
            &["spec.template.spec.hostNetwork"],
        ),
        (
            |t| t["spec"]["tomorrow"] = json!({}),
            &["spec.template.spec.tomorrow"],
        ),
        (
            |t| t["metadata"]["finalizers"] = json!(["x"]),
            &["spec.template.metadata.finalizers"],
        ),
        (
            |t| t["metadata"]["labels"]["n"] = json!(1),
            &["spec.template.metadata.labels (a value is no text)"],
        ),
        (|t| t["tomorrow"] = json!(1), &["spec.template.tomorrow"]),
        (
            |t| t["spec"]["containers"] = json!([null]),
            &["spec.template.spec.containers"],
        ),
        (
            |t| {
                t["spec"]["containers"] = json!([t["spec"]["containers"][0], t["spec"]["containers"][1],
                {"name": "bot", "image": "h:v1"}])
            },
            &["spec.template.spec.containers (bot was added)"],
        ),
        (
            |t| t["spec"]["containers"] = json!([t["spec"]["containers"][0]]),
            &["spec.template.spec.containers (side was removed)"],
        ),
        (
            |t| t["spec"]["containers"] = json!([t["spec"]["containers"][1], t["spec"]["containers"][0]]),
            &["spec.template.spec.containers (their order changed)"],
        ),
        (
            |t| t["spec"]["containers"][1]["name"] = json!("game"),
            &[
                "spec.template.spec.containers (side was removed)",
                "spec.template.spec.containers (two have the same name)",
            ],
        ),
        (
            |t| t["spec"]["containers"][0]["image"] = json!(""),
            &["spec.template.spec.containers[game].image (is empty)"],
        ),
        (
            |t| t["spec"] = json!(1),
            &[
                "spec.template.spec",
                "spec.template.spec.containers (game was removed)",
                "spec.template.spec.containers (side was removed)",
            ],
        ),
        (
            |t| {
                t["spec"]["containers"][0]["image"] = json!("game:v2");
                t["spec"]["containers"][0]["args"] = json!(["x"]);
                t["spec"]["containers"][1]["tty"] = json!(true);
                t["spec"]["dnsPolicy"] = json!("None");
            },
            &[
                "spec.template.spec.dnsPolicy",
                "spec.template.spec.containers[game].args",
                "spec.template.spec.containers[side].tty",
            ],
        ),
    ];
    for (edit, expected) in rows {
        let fields = between(&base(), &with(edit)).expect_err(expected[0]).fields;
        assert_eq!(fields, *expected);
    }
}

#[test]
fn a_policy_that_follows_the_tag_is_no_obstacle() {
    // Image and policy before and after, and whether that works in place.
    let rows = [
        (("game:latest", None), ("game:v2", None), true),
        (("game:v1", None), ("game", None), true),
        (("game", Some("Always")), ("game:v2", Some("IfNotPresent")), true),
        (("game:latest", Some("Always")), ("game:v2", Some("Always")), true),
        (("game:latest", None), ("game:v2", Some("Always")), true),
        (("game:v1", Some("Never")), ("game:v2", Some("Never")), true),
        (("game:v1", None), ("game:v2", Some("Always")), false),
        (("game:v1", Some("Always")), ("game:v2", None), false),
        (("game:v1", Some("Never")), ("game:v2", None), false),
    ];
    let template = |(image, policy): (&str, Option<&str>)| json!({"spec": {"containers": [{"name": "game", "image": image, "imagePullPolicy": policy}]}});
    for (from, to, works) in rows {
        let result = between(&template(from), &template(to));
        if works {
            assert_eq!(
                result.unwrap().images,
                texts(&[("game", to.0)]),
                "{from:?} {to:?}"
            );
        } else {
            let fields = result.unwrap_err().fields;
            assert_eq!(
                fields,
                ["spec.template.spec.containers[game].imagePullPolicy"],
                "{from:?} {to:?}"
            );
        }
    }
}

#[test]
fn the_message_names_the_fields_and_the_remedy() {
    let to = with(|base| base["spec"]["containers"][0]["args"] = json!(["x"]));
    let message = between(&base(), &to).unwrap_err().to_string();
    assert!(
        message.contains("spec.template.spec.containers[game].args,"),
        "{message}"
    );
    assert!(message.contains("fallback to Recreate"), "{message}");
}
