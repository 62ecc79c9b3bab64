use std::collections::BTreeMap;

use proptest::prelude::*;
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

/// Returns the base template, modified by a closure.
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

/// Containers start anew only in a new pod. A pod that was restarted stays as it is when the annotation is removed.
#[test]
fn a_restart_is_not_possible_in_place() {
    let restarted = |at: &str| {
        with(|base| base["metadata"]["annotations"]["kubectl.kubernetes.io/restartedAt"] = json!(at))
    };
    let path = "spec.template.metadata.annotations[kubectl.kubernetes.io/restartedAt]";
    let fields = |from: &Value, to: &Value| between(from, to).map_err(|error| error.fields);
    for (from, to) in [(base(), restarted("1")), (restarted("1"), restarted("2"))] {
        assert_eq!(fields(&from, &to), Err(vec![path.to_owned()]));
    }
    assert!(between(&restarted("1"), &base()).is_ok());
    assert!(between(&restarted("1"), &restarted("1")).unwrap().is_empty());
}

type Edit = fn(&mut Value);

fn refused(edit: Edit, expected: &[&str]) {
    let error = between(&base(), &with(edit)).expect_err(expected[0]);
    assert_eq!(error.fields, expected);
}

#[test]
fn other_fields_of_the_template_are_named_with_their_paths() {
    let rows: &[(Edit, &str)] = &[
        (|t| t["tomorrow"] = json!(1), ".tomorrow"),
        (
            |t| t["metadata"]["finalizers"] = json!(["x"]),
            ".metadata.finalizers",
        ),
        (
            |t| t["metadata"]["labels"]["n"] = json!(1),
            ".metadata.labels (a value is not a string)",
        ),
        (
            |t| t["spec"]["initContainers"][0]["image"] = json!("v2"),
            ".spec.initContainers",
        ),
        (|t| t["spec"]["hostNetwork"] = json!(true), ".spec.hostNetwork"),
        (|t| t["spec"]["tomorrow"] = json!({}), ".spec.tomorrow"),
        (|t| t["spec"]["containers"] = json!([null]), ".spec.containers"),
    ];
    for (edit, path) in rows {
        refused(*edit, &[&format!("spec.template{path}")]);
    }
    refused(
        |t| t["spec"] = json!(1),
        &[
            "spec.template.spec",
            "spec.template.spec.containers (game was removed)",
            "spec.template.spec.containers (side was removed)",
        ],
    );
}

#[test]
fn other_fields_of_containers_are_named_with_the_container() {
    let rows: &[(Edit, &str)] = &[
        (|game| game["env"][0]["value"] = json!("2"), "env"),
        (
            |game| game["resources"] = json!({"limits": {"cpu": 1}}),
            "resources",
        ),
        (|game| game["tomorrow"] = json!(false), "tomorrow"),
        (|game| game["image"] = json!(""), "image (empty)"),
        (|game| game["image"] = json!(5), "image (empty)"),
    ];
    for (edit, field) in rows {
        let to = with(|base| edit(&mut base["spec"]["containers"][0]));
        let fields = between(&base(), &to).expect_err(field).fields;
        assert_eq!(fields, [format!("spec.template.spec.containers[game].{field}")]);
    }
    refused(
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
    );
}

#[test]
fn containers_that_come_go_or_move_are_named() {
    let list = base()["spec"]["containers"].clone();
    let (game, side) = (&list[0], &list[1]);
    let bot = json!({"name": "bot", "image": "bot:v1"});
    for (containers, expected) in [
        (json!([game, side, bot]), vec!["bot was added"]),
        (json!([bot, game, side]), vec!["bot was added"]),
        (json!([game]), vec!["side was removed"]),
        (json!([side, game]), vec!["order changed"]),
        (json!([bot, side, game]), vec!["bot was added", "order changed"]),
        (json!([game, game]), vec!["side was removed", "duplicate name"]),
        (json!([game, side, side]), vec!["duplicate name"]),
        (json!(null), vec!["game was removed", "side was removed"]),
    ] {
        let fields = between(&base(), &with(|base| base["spec"]["containers"] = containers))
            .unwrap_err()
            .fields;
        let expected: Vec<_> = expected
            .into_iter()
            .map(|what| format!("spec.template.spec.containers ({what})"))
            .collect();
        assert_eq!(fields, expected);
    }
}

fn templates() -> impl Strategy<Value = Value> {
    let labels = prop::collection::btree_map("[abc]", "[xy]?", 0..3);
    let images = prop::collection::vec(prop::sample::select(vec!["game", "game:v1", "game:v2"]), 0..3);
    let policy = prop::sample::select(vec![Value::Null, json!("Always"), json!("Never")]);
    (labels.clone(), labels, images, policy).prop_map(|(labels, annotations, images, policy)| {
        let containers = images.iter().enumerate().map(|(index, image)| {
            json!({"name": format!("c{index}"), "image": image, "imagePullPolicy": policy})
        });
        let containers: Vec<_> = containers.collect();
        json!({"metadata": {"labels": labels, "annotations": annotations}, "spec": {"containers": containers}})
    })
}

/// Applies the change to a pod of this template.
fn apply(template: &Value, change: &Change) -> Template {
    let mut template = template.clone();
    for (field, change) in [("labels", &change.labels), ("annotations", &change.annotations)] {
        let map = template["metadata"][field].as_object_mut().unwrap();
        map.retain(|key, _| !change.removed.contains(key));
        map.extend(change.set.iter().map(|(key, value)| (key.clone(), json!(value))));
    }
    for container in template["spec"]["containers"].as_array_mut().unwrap() {
        if let Some(image) = change.images.get(container["name"].as_str().unwrap()) {
            container["image"] = json!(image);
        }
    }
    Template::read(&template)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn a_change_that_is_possible_leads_to_the_other_template(from in templates(), to in templates()) {
        if let Ok(change) = between(&from, &to) {
            let after = apply(&from, &change);
            let to = Template::read(&to);
            prop_assert_eq!((after.labels(), after.annotations()), (to.labels(), to.annotations()));
            prop_assert_eq!(after.containers(), to.containers());
            prop_assert_eq!(change.is_empty(), Template::read(&from) == to);
        }
        prop_assert!(between(&from, &from).is_ok_and(|change| change.is_empty()));
    }
}

#[test]
fn a_policy_that_follows_the_tag_is_no_obstacle() {
    // Image and policy before and after, and whether an in-place update is possible.
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
