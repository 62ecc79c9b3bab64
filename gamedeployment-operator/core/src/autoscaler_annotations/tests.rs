use serde_json::{Value, json};
use shared_api::GameDeployment;
use shared_api::names::pod::{DO_NOT_DISRUPT, REMOVAL_GUARD, SAFE_TO_EVICT, SKIP_HOOK};
use shared_api::names::workload::ASK_BEFORE_REMOVAL;

use super::*;
use crate::decide::decide;
use crate::guard_check::PlannedCheck;
use crate::plan::{GatedWrite, Plan};
use crate::samples::{FakeCluster, decided, names, now, object, pod, revisions, template, view};
use crate::template::Template;
use crate::view::{View, WriteErrors};

const REVISION: &str = "/metadata/labels/controller-revision-hash";
const ANNOTATIONS: &str = "/spec/template/metadata/annotations";
const FIELD: &str = "/spec/disruption/autoscalerAnnotations";
const HOOK: &str = "/spec/preDeleteUpdateStrategy";

/// Value of an annotation before a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    Unset,
    Right,
    Other,
}

/// Change of an annotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    Unchanged,
    Set,
    Removed,
}

/// Cases of an annotation: whether it is needed, its value, whether the marker lists it; then its change, and
/// whether the marker lists it after that.
const CASES: [(bool, Before, bool, Effect, bool); 12] = [
    (false, Before::Unset, false, Effect::Unchanged, false),
    (false, Before::Unset, true, Effect::Unchanged, false),
    (false, Before::Right, false, Effect::Unchanged, false),
    (false, Before::Right, true, Effect::Removed, false),
    (false, Before::Other, false, Effect::Unchanged, false),
    (false, Before::Other, true, Effect::Unchanged, false),
    (true, Before::Unset, false, Effect::Set, true),
    (true, Before::Unset, true, Effect::Set, true),
    (true, Before::Right, false, Effect::Unchanged, false),
    (true, Before::Right, true, Effect::Unchanged, true),
    (true, Before::Other, false, Effect::Set, true),
    (true, Before::Other, true, Effect::Set, true),
];

fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let pairs = pairs.iter();
    pairs
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

fn marker(keys: &[&str]) -> Option<String> {
    (!keys.is_empty()).then(|| keys.join(","))
}

/// Returns the change of these annotations by the operator alone.
fn changed(found: &BTreeMap<String, String>, is_needed: bool) -> Changes {
    patch(found, &Changes::new(), is_needed).annotations
}

fn apply(found: &mut BTreeMap<String, String>, changes: Changes) {
    for (key, value) in changes {
        found.remove(&key);
        found.extend(value.map(|value| (key, value)));
    }
}

#[test]
fn each_annotation_changes_as_its_value_and_the_marker_require() {
    let mut compared = 0;
    for first in CASES {
        for second in CASES.into_iter().filter(|second| second.0 == first.0) {
            let is_needed = first.0;
            let mut found: BTreeMap<String, String> = BTreeMap::new();
            let mut expected = Changes::new();
            let (mut listed, mut listed_after) = (Vec::<&str>::new(), Vec::<&str>::new());
            for ((key, value), case) in KEEPS_NODE.into_iter().zip([first, second]) {
                let (_, before, is_listed, effect, is_listed_after) = case;
                match before {
                    Before::Unset => {}
                    Before::Right => found.extend(texts(&[(key, value)])),
                    Before::Other => found.extend(texts(&[(key, "maybe")])),
                }
                match effect {
                    Effect::Unchanged => {}
                    Effect::Set => drop(expected.insert(key.to_owned(), Some(value.to_owned()))),
                    Effect::Removed => drop(expected.insert(key.to_owned(), None)),
                }
                listed.extend(is_listed.then_some(key));
                listed_after.extend(is_listed_after.then_some(key));
            }
            if let Some(text) = marker(&listed) {
                found.insert(AUTOSCALER_ANNOTATIONS.to_owned(), text);
            }
            if listed != listed_after {
                expected.insert(AUTOSCALER_ANNOTATIONS.to_owned(), marker(&listed_after));
            }
            let change = changed(&found, is_needed);
            assert_eq!(change, expected, "{found:?} {is_needed}");
            apply(&mut found, change);
            assert_eq!(changed(&found, is_needed), Changes::new(), "a second change");
            compared += 1;
        }
    }
    assert_eq!(compared, 72);
}

#[test]
fn a_marker_in_another_form_is_rewritten_and_its_known_keys_count() {
    let both = format!("{SAFE_TO_EVICT},{DO_NOT_DISRUPT}");
    let reversed = format!("{DO_NOT_DISRUPT},{SAFE_TO_EVICT}");
    let unknown = format!("acme.io/other,{DO_NOT_DISRUPT}");
    let found = |marker: &str| {
        texts(&[
            (SAFE_TO_EVICT, "false"),
            (DO_NOT_DISRUPT, "true"),
            ("acme.io/other", "x"),
            (AUTOSCALER_ANNOTATIONS, marker),
        ])
    };
    let one = DO_NOT_DISRUPT.to_owned();
    for (text, rewritten) in [
        (both.as_str(), None),
        (&reversed, Some(Some(both.clone()))),
        (&unknown, Some(Some(one))),
        ("", Some(None)),
        ("true", Some(None)),
    ] {
        let change = changed(&found(text), true);
        let expected: Changes = rewritten
            .into_iter()
            .map(|value| (AUTOSCALER_ANNOTATIONS.to_owned(), value))
            .collect();
        assert_eq!(change, expected, "{text}");
    }
    for (text, removed) in [
        (reversed.as_str(), &[SAFE_TO_EVICT, DO_NOT_DISRUPT][..]),
        (&unknown, &[DO_NOT_DISRUPT]),
        ("", &[]),
        ("true", &[]),
    ] {
        let change = changed(&found(text), false);
        let expected: Changes = removed
            .iter()
            .chain(&[AUTOSCALER_ANNOTATIONS])
            .map(|key| ((*key).to_owned(), None))
            .collect();
        assert_eq!(change, expected, "{text}");
    }
}

#[test]
fn an_update_keeps_the_annotations_and_leaves_those_of_its_template_to_the_template() {
    let set = |value: &str| Some(value.to_owned());
    let mine = (AUTOSCALER_ANNOTATIONS, SAFE_TO_EVICT);
    let kept = (DO_NOT_DISRUPT, "true");
    // The annotations of a pod, the one that the update writes because of the template, whether the pod needs
    // the autoscaler annotations, and its annotations after the update.
    for (found, written, is_needed, after) in [
        // The template drops the annotation: the operator sets it in its place.
        (
            vec![(SAFE_TO_EVICT, "false"), kept],
            (SAFE_TO_EVICT, None),
            true,
            vec![(SAFE_TO_EVICT, "false"), kept, mine],
        ),
        // The template sets the annotation that the operator has set.
        (
            vec![(SAFE_TO_EVICT, "false"), kept, mine],
            (SAFE_TO_EVICT, set("false")),
            true,
            vec![(SAFE_TO_EVICT, "false"), kept],
        ),
        (
            vec![(SAFE_TO_EVICT, "false"), kept, mine],
            (SAFE_TO_EVICT, set("false")),
            false,
            vec![(SAFE_TO_EVICT, "false"), kept],
        ),
        // An earlier template, to which the rollout is taken back, sets another value.
        (
            vec![(SAFE_TO_EVICT, "false"), kept],
            (SAFE_TO_EVICT, set("true")),
            true,
            vec![(SAFE_TO_EVICT, "false"), kept, mine],
        ),
        (
            vec![(SAFE_TO_EVICT, "false"), kept],
            (SAFE_TO_EVICT, set("true")),
            false,
            vec![(SAFE_TO_EVICT, "true"), kept],
        ),
        // Another annotation changes, and the write of the operator has not been made yet.
        (
            vec![kept],
            ("note", set("x")),
            true,
            vec![(SAFE_TO_EVICT, "false"), kept, ("note", "x"), mine],
        ),
        (
            vec![(SAFE_TO_EVICT, "false"), kept, mine],
            ("note", set("x")),
            false,
            vec![kept, ("note", "x")],
        ),
    ] {
        let field = if is_needed { "Managed" } else { "Unmanaged" };
        let (workload, _) = Workload::examine(&managed(&[(FIELD, json!(field))]));
        let mut pod = pod("a", &[]);
        pod.annotations = texts(&found);
        let (key, value) = written;
        let mut update = BTreeMap::from([(key.to_owned(), value)]);
        add_to_update(&pod, &workload, &mut update);
        let mut updated = pod.annotations.clone();
        apply(&mut updated, update);
        assert_eq!(updated, texts(&after), "{found:?} {key}");
        assert_eq!(changed(&updated, is_needed), Changes::new(), "a write follows");
    }
}

/// A workload with two pods and a hook that runs before a deletion. Others may remove the pods.
fn managed(more: &[(&str, Value)]) -> GameDeployment {
    let mut over = vec![
        ("/spec/replicas", json!(2)),
        (FIELD, json!("Managed")),
        (HOOK, json!({ "hook": { "templateName": "ask" } })),
    ];
    over.extend_from_slice(more);
    object(&over)
}

/// A pod at the update revision with these annotations.
fn annotated(name: &str, annotations: &[(&str, &str)]) -> Pod {
    let annotations = ("/metadata/annotations", json!(texts(annotations)));
    pod(name, &[(REVISION, json!("new")), annotations])
}

/// A pod on which the operator has set both annotations.
fn kept(name: &str) -> Pod {
    let both = format!("{SAFE_TO_EVICT},{DO_NOT_DISRUPT}");
    let values = [(SAFE_TO_EVICT, "false"), (DO_NOT_DISRUPT, "true")];
    let marker = [(AUTOSCALER_ANNOTATIONS, both.as_str())];
    annotated(name, &[&values[..], &marker].concat())
}

/// Name of a pod, and its changed annotations.
type Written<'a> = (&'a str, Vec<(&'a str, Option<&'a str>)>);

/// Returns the pods whose annotations the plan changes.
fn written(plan: &Plan) -> Vec<Written<'_>> {
    let writes = plan.actions.iter().filter_map(|action| match action {
        Action::SetAutoscalerAnnotations(pod, patch) => {
            let annotations = patch.annotations.iter();
            let annotations = annotations.map(|(key, value)| (key.as_str(), value.as_deref()));
            Some((pod.name.as_str(), annotations.collect::<Vec<_>>()))
        }
        _ => None,
    });
    writes.collect()
}

/// Returns the names of the pods whose annotations the plan changes.
fn names_of(plan: &Plan) -> Vec<&str> {
    written(plan).into_iter().map(|(name, _)| name).collect()
}

#[test]
fn existing_pods_get_the_annotations_with_one_write_each_and_none_follows() {
    let bare = [annotated("a", &[]), annotated("b", &[(DO_NOT_DISRUPT, "false")])];
    for more in [
        vec![],
        vec![("/spec/disruption/policy", json!("Unguarded"))],
        vec![("/spec/updateStrategy/paused", json!(true))],
    ] {
        let plan = decided(&managed(&more), &bare, &[]);
        assert_eq!(names(&plan), ["annotate_pod", "annotate_pod"]);
        let both = format!("{SAFE_TO_EVICT},{DO_NOT_DISRUPT}");
        let all = vec![
            (SAFE_TO_EVICT, Some("false")),
            (DO_NOT_DISRUPT, Some("true")),
            (AUTOSCALER_ANNOTATIONS, Some(both.as_str())),
        ];
        assert_eq!(written(&plan), [("a", all.clone()), ("b", all)]);
        let rest = decided(&managed(&more), &[kept("a"), kept("b")], &[]);
        assert_eq!(names(&rest), [""; 0]);
    }
}

#[test]
fn without_the_field_or_a_hook_only_annotations_of_the_operator_are_removed() {
    let own = annotated("own", &[(SAFE_TO_EVICT, "false"), (DO_NOT_DISRUPT, "true")]);
    let mixed = [
        (SAFE_TO_EVICT, "false"),
        (DO_NOT_DISRUPT, "true"),
        (AUTOSCALER_ANNOTATIONS, SAFE_TO_EVICT),
    ];
    let pods = [own, annotated("mixed", &mixed)];
    for over in [
        (FIELD, json!("Unmanaged")),
        (FIELD, json!("")),
        (FIELD, Value::Null),
        (HOOK, Value::Null),
    ] {
        let plan = decided(&managed(&[over]), &pods, &[]);
        assert_eq!(names(&plan), ["annotate_pod"]);
        let removed = vec![(SAFE_TO_EVICT, None), (AUTOSCALER_ANNOTATIONS, None)];
        assert_eq!(written(&plan), [("mixed", removed)]);
    }
    let plan = decided(&managed(&[]), &pods, &[]);
    assert_eq!(names(&plan), [""; 0], "both pods have both annotations");
}

#[test]
fn a_pod_that_skips_its_hooks_does_not_need_the_annotations() {
    for (uid, is_annotated) in [("uid-a", false), ("uid-b", true), ("", true)] {
        let mut skips = kept("a");
        skips.annotations.insert(SKIP_HOOK.to_owned(), uid.to_owned());
        let plan = decided(&managed(&[]), &[skips, kept("b")], &[]);
        assert_eq!(names_of(&plan).is_empty(), is_annotated, "{uid}");
        let mut bare = annotated("a", &[]);
        bare.annotations.insert(SKIP_HOOK.to_owned(), uid.to_owned());
        let plan = decided(&managed(&[]), &[bare, kept("b")], &[]);
        assert_eq!(!names_of(&plan).is_empty(), is_annotated, "{uid}");
    }
}

#[test]
fn pods_that_terminate_or_are_written_anyway_are_not_annotated() {
    let mut terminating = annotated("a", &[]);
    terminating.terminating = true;
    let mut ended = annotated("c", &[]);
    ended.phase = crate::pod::PodPhase::Failed;
    let pods = [terminating, ended, annotated("b", &[])];
    assert_eq!(names_of(&decided(&managed(&[]), &pods, &[])), ["b"]);
    let named = managed(&[("/spec/scaleStrategy/podsToDelete", json!(["b"]))]);
    let plan = decided(&named, &[annotated("b", &[]), kept("c")], &[]);
    assert_eq!(names(&plan), ["mark_pod"]);
    // The label of guarded pods is set first.
    let guarded = managed(&[
        ("/spec/disruption/policy", json!("Ask")),
        ("/metadata/finalizers", json!([ASK_BEFORE_REMOVAL])),
    ]);
    let mut labelled = annotated("c", &[]);
    labelled.labels.insert(REMOVAL_GUARD.to_owned(), "Ask".to_owned());
    let plan = decided(&guarded, &[annotated("b", &[]), labelled], &[]);
    assert_eq!(names(&plan), ["annotate_pod", "label_pod"]);
    assert_eq!(names_of(&plan), ["c"]);
    // A write that is denied again and again does not keep the guard from being checked.
    assert!(matches!(&plan.guard_check, PlannedCheck::With(pods) if pods.len() == 1));
}

#[test]
fn a_pod_whose_state_cannot_be_read_is_not_annotated() {
    let (cluster, revisions) = (FakeCluster::with_hook(), revisions());
    let (a, b) = (annotated("a", &[]), annotated("b", &[]));
    let (pods, revisions): (Vec<_>, Vec<_>) = (vec![&a, &b], revisions.iter().collect());
    let errors = WriteErrors {
        unread_pods: [a.name.clone()].into(),
        ..WriteErrors::default()
    };
    let object = managed(&[]);
    let view = View {
        accepted: Some("new"),
        write_errors: Some(&errors),
        ..view(&object, &pods, &revisions, &cluster)
    };
    assert_eq!(names_of(&decide(&view, now())), ["b"]);
}

#[test]
fn a_new_pod_has_the_annotations_from_its_creation() {
    let more = managed(&[("/spec/replicas", json!(3))]);
    let plan = decided(&more, &[kept("a"), kept("b")], &[]);
    assert_eq!(names(&plan), ["create_pod"]);
    let Some(Action::CreatePod(new)) = plan.actions.first() else {
        panic!("{plan:#?}")
    };
    let annotations = &new.manifest["metadata"]["annotations"];
    assert_eq!(*annotations, json!(kept("c").annotations));
}

#[test]
fn an_update_writes_the_annotations_that_its_template_no_longer_sets() {
    let mut old = template("game:v1");
    old["metadata"]["annotations"] = json!({ SAFE_TO_EVICT: "false" });
    let (cluster, mut revisions) = (FakeCluster::with_hook(), revisions());
    revisions[0].template = Template::read(&old);
    let revisions: Vec<_> = revisions.iter().collect();
    let object = managed(&[
        ("/spec/replicas", json!(1)),
        ("/spec/updateStrategy/type", json!("HotPatchUpdate")),
    ]);
    let mut pod = annotated(
        "a",
        &[
            (SAFE_TO_EVICT, "false"),
            (DO_NOT_DISRUPT, "true"),
            (AUTOSCALER_ANNOTATIONS, DO_NOT_DISRUPT),
        ],
    );
    pod.labels
        .insert("controller-revision-hash".to_owned(), "old".to_owned());
    let pods = [&pod];
    let view = View {
        accepted: Some("new"),
        ..view(&object, &pods, &revisions, &cluster)
    };
    let plan = decide(&view, now());
    assert_eq!(names(&plan), ["update_pod"]);
    let Some(Action::Gated(GatedWrite::WriteUpdate(_, change))) = plan.actions.first() else {
        panic!("{plan:#?}")
    };
    let both = format!("{SAFE_TO_EVICT},{DO_NOT_DISRUPT}");
    let value = |key: &str| change.annotations.get(key).cloned();
    assert_eq!(value(SAFE_TO_EVICT), Some(Some("false".to_owned())));
    assert_eq!(value(AUTOSCALER_ANNOTATIONS), Some(Some(both)));
    assert_eq!(value(DO_NOT_DISRUPT), None);
}

#[test]
fn an_unknown_value_makes_the_spec_invalid_and_nothing_is_written() {
    for value in ["managed", "Always", "true"] {
        let object = managed(&[(FIELD, json!(value))]);
        let (workload, problems) = Workload::examine(&object);
        let [problem] = problems.as_slice() else {
            panic!("{problems:#?}")
        };
        assert_eq!(problem.path, "spec.disruption.autoscalerAnnotations");
        assert_eq!(problem.value, value);
        assert_eq!(problem.remedy, "must be one of Unmanaged, Managed");
        let read = workload.disruption.autoscaler_annotations;
        assert_eq!(read, AutoscalerAnnotations::Unmanaged);
        let plan = decided(&object, &[kept("a"), annotated("b", &[])], &[]);
        assert_eq!(names(&plan), [""; 0]);
    }
}

#[test]
fn a_template_that_lets_autoscalers_evict_is_invalid_with_managed_annotations() {
    let problems = |field: &str, annotations: Value| {
        let object = managed(&[(FIELD, json!(field)), (ANNOTATIONS, annotations)]);
        Workload::examine(&object).1
    };
    for (key, value, other) in [
        (SAFE_TO_EVICT, "false", "true"),
        (SAFE_TO_EVICT, "false", ""),
        (DO_NOT_DISRUPT, "true", "false"),
        (DO_NOT_DISRUPT, "true", "1h"),
    ] {
        assert_eq!(problems("Unmanaged", json!({ key: other })), []);
        assert_eq!(problems("Managed", json!({ key: value })), []);
        let found = problems("Managed", json!({ key: other, "note": "true" }));
        let [problem] = found.as_slice() else {
            panic!("{found:#?}")
        };
        assert_eq!(problem.path, format!("spec.template.metadata.annotations[{key}]"));
        assert_eq!(problem.value, other);
        assert_eq!(
            problem.remedy,
            format!("must be \"{value}\" or unset while spec.disruption.autoscalerAnnotations is Managed")
        );
        // Existing pods are still replaced.
        assert!(problem.is_of_template());
    }
    let both = json!({ SAFE_TO_EVICT: "true", DO_NOT_DISRUPT: "false" });
    assert_eq!(problems("Managed", both).len(), 2);
    let marker = problems("Unmanaged", json!({ AUTOSCALER_ANNOTATIONS: SAFE_TO_EVICT }));
    assert_eq!(marker.len(), 1);
    assert!(marker[0].remedy.contains("the operator sets it"), "{marker:?}");
}
