use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use proptest::prelude::*;
use serde_json::{Value, json};
use shared_api::limits::MAX_SPEC_BYTES;

use super::*;

fn template(image: &str) -> Template {
    Template::read(&json!({"spec": {"containers": [{"name": "game", "image": image}]}}))
}

fn revision(name: &str, number: i64, template: &Template) -> Revision {
    Revision {
        name: name.to_owned(),
        uid: format!("uid-{name}"),
        resource_version: "1".to_owned(),
        number,
        is_reused: false,
        template: template.clone(),
        orphan: None,
    }
}

/// Returns the history after the one write.
fn apply(settled: &Settled, history: &[Revision]) -> Vec<Revision> {
    let mut history = history.to_vec();
    match settled {
        Settled::Newest { .. } => {}
        Settled::Reuse { name, number } => {
            let found = history
                .iter_mut()
                .find(|revision| revision.name == *name)
                .unwrap();
            found.number = *number;
        }
        Settled::Create {
            name, number, data, ..
        } => {
            assert!(
                history.iter().all(|revision| revision.name != *name),
                "{name} is taken"
            );
            history.push(revision(name, *number, &template_in(data).unwrap()));
        }
    }
    history
}

fn read(object: &ControllerRevision) -> Option<Revision> {
    let data = object.data.as_ref().map(|data| JsonText::from(&data.0));
    Revision::read(&object.metadata, object.revision, data.as_ref())
}

/// A ControllerRevision of the original operator: Go's serialization of the stored template.
fn of_the_original() -> ControllerRevision {
    serde_json::from_value(json!({
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": "game-5f7d8c9b64", "namespace": "play", "uid": "0c9d", "resourceVersion": "812",
            "creationTimestamp": "2021-03-04T05:06:07Z",
            "labels": {"app": "game", "controller.kubernetes.io/hash": "5f7d8c9b64"},
            "ownerReferences": [{"apiVersion": "tkex.tencent.com/v1alpha1", "kind": "GameDeployment", "name": "game",
                "uid": "77", "controller": true, "blockOwnerDeletion": true}],
        },
        "revision": 3,
        "data": {"spec": {"template": {
            "$patch": "replace",
            "metadata": {"creationTimestamp": null, "labels": {"app": "game"}},
            "spec": {"containers": [{
                "env": [{"name": "MODE", "value": "ranked"},
                    {"name": "CPU", "valueFrom": {"resourceFieldRef": {"divisor": "0", "resource": "limits.cpu"}}}],
                "image": "reg.example:5000/game:v1", "imagePullPolicy": "IfNotPresent", "name": "game",
                "ports": [{"containerPort": 7777, "protocol": "UDP"}],
                "resources": {},
            }]},
        }}},
    }))
    .unwrap()
}

fn of_the_user() -> Template {
    Template::read(&json!({
        "metadata": {"labels": {"app": "game"}},
        "spec": {"containers": [{
            "name": "game", "image": "reg.example:5000/game:v1",
            "ports": [{"protocol": "UDP", "containerPort": 7777}],
            "env": [{"name": "MODE", "value": "ranked"},
                {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}],
        }]},
    }))
}

#[test]
fn a_fleet_of_the_original_gets_no_new_revision() {
    let read = read(&of_the_original()).unwrap();
    assert_eq!((read.uid.as_str(), read.number), ("0c9d", 3));
    assert_eq!(read.resource_version, "812");
    assert_eq!(read.template.raw().get("$patch"), None);
    let name = "game-5f7d8c9b64".to_owned();
    let ours = name_of("game", &of_the_user(), 0);
    assert_eq!(ours, "game-645ff65b8f", "stored revisions have this name");
    assert_ne!(ours, name, "the original's hash is another");
    let settled = settle(&of_the_user(), &[read], "game", 0);
    assert_eq!(settled, Settled::Newest { name });
}

#[test]
fn what_is_no_revision_is_not_read() {
    let without = |change: fn(&mut ControllerRevision)| {
        let mut object = of_the_original();
        change(&mut object);
        read(&object)
    };
    assert!(without(|_| ()).is_some());
    assert_eq!(without(|object| object.metadata.name = None), None);
    assert_eq!(without(|object| object.metadata.uid = None), None);
    assert_eq!(without(|object| object.metadata.resource_version = None), None);
    assert_eq!(without(|object| object.data = None), None);
    for data in [
        json!(null),
        json!(1),
        json!({}),
        json!({"spec": {}}),
        json!({"spec": []}),
    ] {
        assert_eq!(template_in(&JsonText::from(&data)), None, "{data}");
    }
}

#[test]
fn data_is_a_patch_that_replaces_the_template() {
    let raw = json!({"metadata": {"creationTimestamp": null}, "spec": {"tomorrow": {}}});
    let data = data_of(&Template::read(&raw));
    let expected = json!({"spec": {"template": {
        "metadata": {"creationTimestamp": null}, "spec": {"tomorrow": {}}, "$patch": "replace"}}});
    assert_eq!(data.value(), expected);
    assert_eq!(template_in(&data).unwrap().raw(), raw);
}

#[test]
fn a_template_is_found_renumbered_or_created() {
    let (a, b, c) = (template("a"), template("b"), template("c"));
    let newest = |name: &str| Settled::Newest {
        name: name.to_owned(),
    };
    let reuse = |name: &str, number| Settled::Reuse {
        name: name.to_owned(),
        number,
    };
    let rows = [
        (vec![("a", 1, &a)], newest("a")),                 // the only one
        (vec![("b", 1, &b), ("a", 2, &a)], newest("a")),   // the newest
        (vec![("a", 1, &a), ("b", 2, &b)], reuse("a", 3)), // a rollback
        (vec![("x", 4, &a), ("a", 1, &a), ("b", 5, &b)], reuse("x", 6)), // the newest of several equal ones
        (vec![("x", 2, &a), ("a", 2, &a)], newest("a")),   // equal ones do not compete
        (vec![("a", 2, &a), ("b", 2, &b)], reuse("a", 3)), // a shared highest number
        (vec![("a", i64::MAX, &a), ("b", i64::MAX, &b)], newest("a")), // no higher number exists
        (vec![("a", -5, &a), ("b", -4, &b)], reuse("a", 1)), // negative numbers
    ];
    for (history, expected) in rows {
        let history = history.into_iter();
        let history: Vec<_> = history
            .map(|(name, number, template)| revision(name, number, template))
            .collect();
        assert_eq!(settle(&a, &history, "game", 0), expected, "{history:?}");
    }
    for (history, number) in [(vec![], 1), (vec![revision("a", 1, &a), revision("b", 7, &b)], 8)] {
        let expected = Settled::Create {
            name: name_of("game", &c, 0),
            number,
            data: data_of(&c),
            collision_count: 0,
        };
        assert_eq!(settle(&c, &history, "game", 0), expected);
    }
}

#[test]
fn rolling_back_and_forth_needs_two_revisions() {
    let (a, b) = (template("a"), template("b"));
    let mut history = Vec::new();
    let mut names = Vec::new();
    for template in [&a, &b, &a, &b, &a] {
        let settled = settle(template, &history, "game", 0);
        names.push(settled.name().to_owned());
        history = apply(&settled, &history);
    }
    assert_eq!(history.len(), 2);
    assert_eq!(
        names,
        [&*names[0], &*names[1], &*names[0], &*names[1], &*names[0]]
    );
}

#[test]
fn a_taken_name_is_evaded() {
    let (a, b) = (template("a"), template("b"));
    let taken = [
        revision(&name_of("game", &a, 0), 1, &b),
        revision(&name_of("game", &a, 1), 2, &b),
    ];
    let settled = settle(&a, &taken, "game", 0);
    let Settled::Create {
        name,
        collision_count,
        number,
        ..
    } = &settled
    else {
        panic!("{settled:?}");
    };
    assert_eq!((name, *collision_count, *number), (&name_of("game", &a, 2), 2, 3));
    let history = apply(&settled, &taken);
    assert_eq!(
        settle(&a, &history, "game", 2),
        Settled::Newest { name: name.clone() }
    );
    assert_eq!(
        settle(&a, &history, "game", 0),
        Settled::Newest { name: name.clone() }
    );
}

#[test]
fn the_oldest_unused_revisions_are_surplus() {
    let a = template("a");
    let history = [5, 1, 4, 2, 3].map(|number| revision(&format!("r{number}"), number, &a));
    for (live, limit, expected) in [
        (vec![], 5, vec![]),
        (vec![], 3, vec!["r1", "r2"]),
        (vec!["r1", "r5"], 3, vec![]),
        (vec!["r1", "r5"], 1, vec!["r2", "r3"]),
        (vec!["r1", "r5", "gone"], 0, vec!["r2", "r3", "r4"]),
        (vec!["r1", "r2", "r3", "r4", "r5"], 0, vec![]),
    ] {
        let keep: BTreeSet<&str> = live.iter().copied().collect();
        let found = surplus(&history, &keep, limit);
        let names: Vec<_> = found.iter().map(|revision| revision.name.as_str()).collect();
        assert_eq!(names, expected, "{live:?} {limit}");
    }
}

fn histories() -> impl Strategy<Value = Vec<Revision>> {
    let entries = prop::collection::vec((0..4u8, prop_oneof![-2..6i64, Just(i64::MAX)]), 0..6);
    entries.prop_map(|entries| {
        let entries = entries.into_iter().enumerate();
        entries
            .map(|(index, (meaning, number))| {
                let template = template(&format!("image{meaning}:v1"));
                // Some have the name that another template would get.
                let name = match index % 3 {
                    0 => format!("old-{index}"),
                    _ => name_of("game", &self::template(&format!("image{}:v1", index % 4)), 0),
                };
                revision(&name, number, &template)
            })
            .fold(Vec::new(), |mut history: Vec<Revision>, next| {
                if history.iter().all(|other| other.name != next.name) {
                    history.push(next);
                }
                history
            })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn after_its_one_write_nothing_is_left_to_write(
        history in histories(), wanted in 0..5u8, count in prop_oneof![0..3i32, Just(i32::MAX)],
    ) {
        let template = template(&format!("image{wanted}:v1"));
        let settled = settle(&template, &history, "game", count);
        let known = history.iter().any(|revision| revision.template == template);
        prop_assert_eq!(known, !matches!(settled, Settled::Create { .. }));
        let after = apply(&settled, &history);
        let expected = Settled::Newest { name: settled.name().to_owned() };
        prop_assert_eq!(settle(&template, &after, "game", count), expected.clone());
        let mut turned = after;
        turned.reverse();
        prop_assert_eq!(settle(&template, &turned, "game", count), expected);
    }

    #[test]
    fn nothing_in_use_is_surplus(history in histories(), limit in 0..4usize, live in 0..64u8) {
        let live = history.iter().enumerate().filter(|(index, _)| live & (1 << index) != 0);
        let live: BTreeSet<&str> = live.map(|(_, revision)| revision.name.as_str()).collect();
        let found = surplus(&history, &live, limit);
        prop_assert!(found.iter().all(|revision| !live.contains(revision.name.as_str())));
        prop_assert_eq!(found.len(), history.len().saturating_sub(live.len()).saturating_sub(limit));
        prop_assert!(found.is_sorted_by_key(|revision| revision.number));
    }

    #[test]
    fn any_data_reads_back(name in "[a-z.-]{0,80}|.{0,30}", image in ".{0,10}", count in any::<i32>()) {
        let template = template(&image);
        prop_assert_eq!(template_in(&data_of(&template)), Some(template.clone()));
        prop_assert!(name_of(&name, &template, count).len() <= 63);
    }
}

#[test]
fn garbage_has_a_name_and_data_too() {
    for raw in [Value::Null, json!(1), json!([]), json!("x")] {
        let template = Template::read(&raw);
        assert!(name_of("game", &template, 0).starts_with("game-"));
        assert_eq!(template_in(&data_of(&template)), Some(template));
    }
}

#[test]
fn a_template_that_no_workload_can_have_is_not_read() {
    let with = |bytes: usize| {
        let template = json!({ "spec": "x".repeat(bytes) });
        let filler = bytes - (template.to_string().len() - bytes);
        let template = json!({ "spec": "x".repeat(filler) });
        assert_eq!(template.to_string().len(), bytes);
        let mut object = of_the_original();
        object.data = Some(RawExtension(
            json!({ "spec": { "template": template }, "more": [1] }),
        ));
        read(&object)
    };
    assert!(with(MAX_SPEC_BYTES).is_some());
    assert_eq!(with(MAX_SPEC_BYTES + 1), None);
}
