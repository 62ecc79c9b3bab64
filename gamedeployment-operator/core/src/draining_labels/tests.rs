use serde_json::{Value, json};
use shared_api::GameDeployment;
use shared_api::names::pod::{CHOSEN_FOR, DELETING, REMOVAL_GUARD, REMOVAL_REQUESTED, REVISION};
use shared_api::names::workload::ASK_BEFORE_REMOVAL;
use shared_api::removal_request::{RemovalRequests, RemovalType};

use super::*;
use crate::decide::decide;
use crate::gate::Run;
use crate::plan::{GatedWrite, Plan};
use crate::pod::{Pod, PodPhase};
use crate::samples::{FakeCluster, names, now, object, pod, revisions, template, view};
use crate::template::Template;
use crate::view::{View, WriteErrors};

mod update;

/// Label that the template sets.
const KEY: &str = "accepts-players";
const FIELD: &str = "/spec/scaleStrategy/drainingLabels";
const REPLICAS: &str = "/spec/replicas";
const HOOK: &str = "/spec/preDeleteUpdateStrategy";
const TYPE: &str = "/spec/updateStrategy/type";

/// A template whose pods accept players, with this value of the label.
fn open(image: &str, value: &str) -> Value {
    let mut template = template(image);
    template["metadata"]["labels"][KEY] = json!(value);
    template
}

/// A workload with one pod and a hook that runs before a deletion.
fn drains(more: &[(&str, Value)]) -> GameDeployment {
    let mut over = vec![
        (REPLICAS, json!(1)),
        ("/spec/template", open("game:v2", "true")),
        (FIELD, json!({ KEY: "false" })),
        (HOOK, json!({ "hook": { "templateName": "ask" } })),
    ];
    over.extend_from_slice(more);
    object(&over)
}

/// A pod at the update revision with these labels and annotations in addition.
fn with(labels: &[(&str, &str)], annotations: &[(&str, &str)]) -> Pod {
    let mut pod = pod("a", &[]);
    let texts = |pairs: &[(&str, &str)]| {
        let pairs = pairs.iter();
        let owned = pairs.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        owned.collect::<BTreeMap<String, String>>()
    };
    pod.labels.insert(REVISION.to_owned(), "new".to_owned());
    pod.labels.extend(texts(labels));
    pod.annotations = texts(annotations);
    pod
}

/// The same pod, selected for deletion.
fn selected(labels: &[(&str, &str)], record: Option<&str>) -> Pod {
    let mut pod = with(labels, &[(DELETING, "true")]);
    let notes = &mut pod.annotations;
    notes.insert(CHOSEN_FOR.to_owned(), "delete@2024-05-01T00:00:00Z".to_owned());
    notes.extend(record.map(|record| (DRAINING_LABELS.to_owned(), record.to_owned())));
    pod
}

/// The same pod, which the operator has not selected, with the record of a selection.
fn recorded(labels: &[(&str, &str)], record: &str) -> Pod {
    with(labels, &[(DRAINING_LABELS, record)])
}

/// Decides about pods whose templates have different values of the label: `yes` in the old one, `true` in the
/// new one.
fn plan_of(object: &GameDeployment, pods: &[Pod], write_errors: Option<&WriteErrors>) -> Plan {
    plan_with(&FakeCluster::with_hook(), object, pods, &[], write_errors)
}

/// Decides about pods and these HookRuns.
fn plan_with(
    cluster: &FakeCluster,
    object: &GameDeployment,
    pods: &[Pod],
    runs: &[Run],
    write_errors: Option<&WriteErrors>,
) -> Plan {
    let mut revisions = revisions();
    revisions[0].template = Template::read(&open("game:v1", "yes"));
    revisions[1].template = Template::read(&open("game:v2", "true"));
    let (pods, revisions): (Vec<_>, Vec<_>) = (pods.iter().collect(), revisions.iter().collect());
    let view = View {
        accepted: Some("new"),
        write_errors,
        runs: &runs.iter().collect::<Vec<_>>(),
        ..view(object, &pods, &revisions, cluster)
    };
    decide(&view, now())
}

/// Returns the writes that concern draining labels.
fn written(plan: &Plan) -> Vec<&Action> {
    let is_about_labels = |action: &&Action| {
        matches!(
            action,
            Action::RecordSelection(..)
                | Action::ClearSelection(..)
                | Action::SetDrainingLabels(..)
                | Action::NoteQuestion(..)
        )
    };
    plan.actions.iter().filter(is_about_labels).collect()
}

/// Decides about a pod, and returns the only such write.
fn write_of(object: &GameDeployment, pod: &Pod) -> Action {
    let mut plan = plan_of(object, std::slice::from_ref(pod), None);
    assert_eq!(written(&plan).len(), 1, "{plan:#?}");
    plan.actions
        .retain(|action| action.object() == Some(pod.name.as_str()));
    plan.actions.pop().unwrap()
}

fn patch_of(action: &Action) -> &MetadataPatch {
    match action {
        Action::RecordSelection(_, _, patch)
        | Action::NoteQuestion(_, _, patch)
        | Action::ClearSelection(_, patch)
        | Action::SetDrainingLabels(_, patch) => patch,
        other => panic!("{other:#?}"),
    }
}

/// Asserts that a write is of this kind and changes exactly these labels, and the record: to the value in the
/// list, if there is one.
#[track_caller]
fn assert_writes(action: &Action, kind: &str, labels: &[(&str, Option<&str>)], record: &[Option<&str>]) {
    let owned = |(key, value): (&str, Option<&str>)| (key.to_owned(), value.map(str::to_owned));
    let labels: Labels = labels.iter().copied().map(owned).collect();
    let record = record.iter().map(|record| owned((DRAINING_LABELS, *record)));
    let record: Labels = record.collect();
    let patch = patch_of(action);
    assert_eq!(action.kind().as_str(), kind);
    assert_eq!((&patch.labels, &patch.annotations), (&labels, &record));
}

fn apply(found: &mut BTreeMap<String, String>, changes: Labels) {
    for (key, value) in changes {
        found.remove(&key);
        found.extend(value.map(|value| (key, value)));
    }
}

/// Returns the pod after a write.
fn after(pod: &Pod, action: &Action) -> Pod {
    let (mut pod, patch) = (pod.clone(), patch_of(action).clone());
    apply(&mut pod.labels, patch.labels);
    apply(&mut pod.annotations, patch.annotations);
    let notes = &mut pod.annotations;
    match action {
        Action::RecordSelection(_, text, _) => {
            notes.insert(DELETING.to_owned(), "true".to_owned());
            notes.insert(CHOSEN_FOR.to_owned(), text.clone());
        }
        Action::NoteQuestion(_, question, _) => {
            notes.insert(QUESTION.to_owned(), question.text.clone());
        }
        Action::ClearSelection(..) => notes.retain(|key, _| key != DELETING && key != CHOSEN_FOR),
        _ => {}
    }
    pod
}

#[test]
fn every_selection_for_deletion_sets_the_labels_in_the_same_write() {
    let busy = || with(&[(KEY, "true")], &[]);
    let guarded = || with(&[(KEY, "true"), (REMOVAL_GUARD, "Ask")], &[]);
    let mut requests = RemovalRequests::default();
    requests.record("drain", RemovalType::Eviction, now()).unwrap();
    let mut requested = guarded();
    let text = requests.text();
    requested.annotations.insert(REMOVAL_REQUESTED.to_owned(), text);
    let mut old = busy();
    old.labels.insert(REVISION.to_owned(), "old".to_owned());
    let ask = [
        ("/spec/disruption/policy", json!("Ask")),
        ("/metadata/finalizers", json!([ASK_BEFORE_REMOVAL])),
    ];
    let deletion = [
        &ask[..],
        &[("/metadata/deletionTimestamp", json!("2024-05-31T00:00:00Z"))],
    ]
    .concat();
    for (more, pod) in [
        (vec![(REPLICAS, json!(0))], busy()),
        (vec![("/spec/scaleStrategy/podsToDelete", json!(["a"]))], busy()),
        (ask.to_vec(), requested),
        (deletion, guarded()),
        (vec![(TYPE, json!("RollingUpdate"))], old.clone()),
        (vec![(TYPE, json!("Recreate"))], old),
    ] {
        let write = write_of(&drains(&more), &pod);
        let record = r#"{"accepts-players":"true"}"#;
        assert_writes(&write, "mark_pod", &[(KEY, Some("false"))], &[Some(record)]);
        let rest = plan_of(&drains(&more), &[after(&pod, &write)], None);
        assert_eq!(written(&rest), [] as [&Action; 0], "{more:?}");
    }
}

#[test]
fn a_pod_that_is_not_deleted_gets_no_labels() {
    let mut old = with(&[(KEY, "yes")], &[]);
    old.labels.insert(REVISION.to_owned(), "old".to_owned());
    let in_place = [(TYPE, json!("InplaceUpdate"))];
    let plan = plan_of(&drains(&in_place), std::slice::from_ref(&old), None);
    assert_eq!(names(&plan), ["create_hook_run"]);
    let mut other = with(&[(KEY, "true")], &[]);
    (other.name, other.uid) = ("b".to_owned(), "uid-b".to_owned());
    let candidates = drains(&[("/spec/scaleStrategy/selectionPolicy", json!("FirstIdle"))]);
    let plan = plan_of(&candidates, &[with(&[(KEY, "true")], &[]), other], None);
    assert_eq!(names(&plan), ["create_hook_run", "create_hook_run"]);
    // Without a hook, the pod is deleted at once.
    let gone = drains(&[(REPLICAS, json!(0)), (HOOK, Value::Null)]);
    let plan = plan_of(&gone, &[with(&[(KEY, "true")], &[])], None);
    assert_eq!(names(&plan), ["delete_pod"]);
    // Labels that users set are kept.
    for labels in [&[(KEY, "false")][..], &[]] {
        let plan = plan_of(&drains(&[]), &[with(labels, &[])], None);
        assert_eq!(names(&plan), [""; 0]);
    }
}

#[test]
fn a_pod_that_is_kept_has_exactly_its_former_labels() {
    let values = [None, Some("true"), Some("false"), Some("")];
    let fields = [
        json!({ KEY: "false" }),
        json!({ KEY: "false", "other": "" }),
        json!({ "other": "x" }),
        json!({}),
    ];
    for (one, two) in values.iter().flat_map(|one| values.map(|two| (*one, two))) {
        let labels = [(KEY, one), ("other", two)];
        let labels: Vec<(&str, &str)> = labels
            .into_iter()
            .filter_map(|(key, value)| Some((key, value?)))
            .collect();
        let pod = with(&labels, &[]);
        for field in &fields[..3] {
            let surplus = drains(&[(REPLICAS, json!(0)), (FIELD, field.clone())]);
            let marked = after(&pod, &write_of(&surplus, &pod));
            assert_drained(&marked, field);
            // Whatever labels the spec has by then.
            for later in &fields {
                let surplus = drains(&[(REPLICAS, json!(0)), (FIELD, later.clone())]);
                let plan = plan_of(&surplus, std::slice::from_ref(&marked), None);
                let corrected = match written(&plan)[..] {
                    [] => marked.clone(),
                    [write] => after(&marked, write),
                    _ => panic!("{plan:#?}"),
                };
                assert_drained(&corrected, later);
                for selected in [&marked, &corrected] {
                    let write = write_of(&drains(&[(FIELD, later.clone())]), selected);
                    assert_eq!(write.kind().as_str(), "unmark_pod");
                    assert_eq!(after(selected, &write), pod, "{field} {later}");
                }
            }
        }
    }
}

/// Asserts that a pod has the labels of the field.
#[track_caller]
fn assert_drained(pod: &Pod, field: &Value) {
    for (key, value) in field.as_object().unwrap() {
        assert_eq!(pod.labels.get(key).map(String::as_str), value.as_str(), "{key}");
    }
}

#[test]
fn the_labels_of_a_selected_pod_follow_the_spec_with_one_write() {
    let one = r#"{"accepts-players":"true"}"#;
    let both = r#"{"accepts-players":"true","other":null}"#;
    let set = || json!({ KEY: "false" });
    let closed = || vec![(KEY, "false")];
    let closed_and_x = || vec![(KEY, "false"), ("other", "x")];
    // The field, the labels of the pod, its record, the labels that are written, and the record.
    for (field, labels, record, expected, expected_record) in [
        // An older operator has selected the pod.
        (
            set(),
            vec![(KEY, "true")],
            None,
            vec![(KEY, Some("false"))],
            vec![Some(one)],
        ),
        (
            json!({ "other": "x" }),
            vec![],
            None,
            vec![("other", Some("x"))],
            vec![Some(r#"{"other":null}"#)],
        ),
        // The spec has changed.
        (
            json!({ KEY: "no" }),
            closed(),
            Some(one),
            vec![(KEY, Some("no"))],
            vec![],
        ),
        (
            json!({ KEY: "false", "other": "x" }),
            closed(),
            Some(one),
            vec![("other", Some("x"))],
            vec![Some(both)],
        ),
        (
            set(),
            closed_and_x(),
            Some(both),
            vec![("other", None)],
            vec![Some(one)],
        ),
        (
            Value::Null,
            closed(),
            Some(one),
            vec![(KEY, Some("true"))],
            vec![None],
        ),
        (
            json!({}),
            closed_and_x(),
            Some(both),
            vec![(KEY, Some("true")), ("other", None)],
            vec![None],
        ),
        // Somebody has changed the labels or the record.
        (
            set(),
            vec![(KEY, "maybe")],
            Some(one),
            vec![(KEY, Some("false"))],
            vec![],
        ),
        (set(), vec![], Some(one), vec![(KEY, Some("false"))], vec![]),
        (
            set(),
            closed(),
            Some(r#"{"accepts-players": "true"}"#),
            vec![],
            vec![Some(one)],
        ),
        (
            set(),
            closed(),
            Some(r#"{"accepts-players":"true","more":"x"}"#),
            vec![("more", Some("x"))],
            vec![Some(one)],
        ),
    ] {
        let surplus = drains(&[(REPLICAS, json!(0)), (FIELD, field.clone())]);
        let pod = selected(&labels, record);
        let write = write_of(&surplus, &pod);
        assert_writes(&write, "label_draining_pod", &expected, &expected_record);
        let rest = plan_of(&surplus, &[after(&pod, &write)], None);
        assert_eq!(written(&rest), [] as [&Action; 0], "{field} {labels:?}");
    }
}

#[test]
fn only_a_correction_of_a_selected_pod_may_revert_the_change_of_another_client() {
    let record = Some(r#"{"accepts-players":"true"}"#);
    let surplus = drains(&[(REPLICAS, json!(0))]);
    let more = drains(&[
        (REPLICAS, json!(0)),
        (FIELD, json!({ KEY: "false", "other": "x" })),
    ]);
    for (object, pod, reverts) in [
        (&surplus, selected(&[(KEY, "true")], record), true),
        (&surplus, selected(&[], record), true),
        (&surplus, selected(&[(KEY, "true")], None), true),
        (&surplus, selected(&[(KEY, "false")], None), true),
        (&surplus, with(&[(KEY, "true")], &[]), false),
        (&more, selected(&[(KEY, "false")], record), true),
        (&drains(&[]), selected(&[(KEY, "true")], record), false),
    ] {
        let write = write_of(object, &pod);
        assert_eq!(patch_of(&write).reverts, reverts, "{write:#?}");
    }
}

/// Annotations that no operator writes.
const INVALID: [&str; 9] = [
    "",
    "true",
    "[]",
    r#"{"accepts-players":1}"#,
    r#"{"accepts-players":"-x"}"#,
    r#"{"a b":"x"}"#,
    r#"{"app":"other"}"#,
    r#"{"controller-revision-hash":"old"}"#,
    r#"{"accepts-players":"true","tkex.tencent.com/removal-guard":null}"#,
];

/// The operator cannot know the former values. With those of the template, a pod that is kept gets players
/// again.
#[test]
fn with_a_lost_record_the_values_of_the_template_count_as_the_former_ones() {
    let field = (FIELD, json!({ KEY: "false", "other": "x" }));
    let surplus = drains(&[(REPLICAS, json!(0)), field.clone()]);
    let kept = drains(&[field]);
    let labels = [(KEY, "false"), ("other", "x")];
    let known = r#"{"accepts-players":"true","other":null}"#;
    let restored = [(KEY, Some("true")), ("other", None)];
    for record in INVALID.map(Some).into_iter().chain([None]) {
        let removed: &[Option<&str>] = if record.is_some() { &[None] } else { &[] };
        let pod = selected(&labels, record);
        assert_writes(
            &write_of(&surplus, &pod),
            "label_draining_pod",
            &[],
            &[Some(known)],
        );
        assert_writes(&write_of(&kept, &pod), "unmark_pod", &restored, removed);
        // A label with another value is not the operator's.
        let pod = selected(&[(KEY, "maybe")], record);
        assert_writes(&write_of(&kept, &pod), "unmark_pod", &[], removed);
    }
    for record in INVALID {
        let write = write_of(&kept, &recorded(&labels, record));
        assert_writes(&write, "label_draining_pod", &restored, &[None]);
    }
    // The template of an old pod, and of one whose revision no longer exists.
    let paused = drains(&[("/spec/updateStrategy/paused", json!(true))]);
    for (revision, value) in [("old", Some("yes")), ("gone", None)] {
        let mut pod = recorded(&labels, "");
        pod.labels.insert(REVISION.to_owned(), revision.to_owned());
        let write = write_of(&paused, &pod);
        assert_writes(&write, "label_draining_pod", &[(KEY, value)], &[None]);
    }
}

#[test]
fn a_pod_whose_mark_somebody_has_removed_gets_its_former_labels() {
    let labels = [(KEY, "false"), ("other", "x")];
    for (record, restored) in [
        (
            r#"{"accepts-players":"true","other":null}"#,
            vec![(KEY, Some("true")), ("other", None)],
        ),
        (r#"{"other":"y"}"#, vec![("other", Some("y"))]),
        (r#"{"accepts-players":"false"}"#, vec![]),
        ("{}", vec![]),
    ] {
        for field in [json!({ KEY: "false" }), Value::Null] {
            let write = write_of(&drains(&[(FIELD, field)]), &recorded(&labels, record));
            assert_writes(&write, "label_draining_pod", &restored, &[None]);
        }
    }
    // If it is selected again, the record counts.
    let pod = recorded(&labels, r#"{"accepts-players":"true"}"#);
    let write = write_of(&drains(&[(REPLICAS, json!(0))]), &pod);
    assert_writes(&write, "mark_pod", &[], &[]);
}

#[test]
fn pods_that_are_written_anyway_terminate_or_cannot_be_read_are_not_corrected() {
    let surplus = drains(&[(REPLICAS, json!(0))]);
    let wrong = |name: &str| {
        let mut pod = selected(&[(KEY, "true")], None);
        (pod.name, pod.uid) = (name.to_owned(), format!("uid-{name}"));
        pod
    };
    let corrected = |plan: &Plan| {
        let names = written(plan).into_iter().filter_map(Action::object);
        names.map(str::to_owned).collect::<Vec<String>>()
    };
    let (mut terminating, mut ended) = (wrong("b"), wrong("c"));
    terminating.terminating = true;
    ended.phase = PodPhase::Failed;
    let plan = plan_of(&surplus, &[wrong("a"), terminating, ended], None);
    assert_eq!(corrected(&plan), ["a"]);

    let errors = WriteErrors {
        unread_pods: ["a".to_owned()].into(),
        ..WriteErrors::default()
    };
    let plan = plan_of(&surplus, &[wrong("a"), wrong("b")], Some(&errors));
    assert_eq!(corrected(&plan), ["b"]);

    // The label of guarded pods is set first.
    let guarded = drains(&[
        (REPLICAS, json!(0)),
        ("/spec/disruption/policy", json!("Ask")),
        ("/metadata/finalizers", json!([ASK_BEFORE_REMOVAL])),
    ]);
    let plan = plan_of(&guarded, &[wrong("a")], None);
    assert!(names(&plan).contains(&"label_pod"), "{plan:#?}");
    assert_eq!(corrected(&plan), [] as [&str; 0]);
}

/// Somebody has removed the mark of a pod, and its update is written before its labels are corrected.
#[test]
fn an_update_in_place_restores_the_former_labels_and_keeps_those_of_its_template() {
    let hot = drains(&[
        (TYPE, json!("HotPatchUpdate")),
        (FIELD, json!({ KEY: "false", "other": "x" })),
    ]);
    let record = r#"{"accepts-players":"yes","other":"kept"}"#;
    let mut pod = recorded(&[(KEY, "false"), ("other", "x")], record);
    pod.labels.insert(REVISION.to_owned(), "old".to_owned());
    let plan = plan_of(&hot, std::slice::from_ref(&pod), None);
    assert_eq!(names(&plan), ["update_pod"]);
    let Some(Action::Gated(GatedWrite::WriteUpdate(_, change))) = plan.actions.first() else {
        panic!("{plan:#?}")
    };
    apply(&mut pod.labels, change.labels.clone());
    let value = |key: &str| pod.labels.get(key).map(String::as_str);
    assert_eq!((value(KEY), value("other")), (Some("true"), Some("kept")));
    assert_eq!(value(REVISION), Some("new"));
    assert_eq!(change.annotations.get(DRAINING_LABELS), Some(&None));
}

#[test]
fn an_invalid_field_changes_no_pod() {
    let invalid = drains(&[(REPLICAS, json!(0)), (FIELD, json!({ "app": "drained" }))]);
    let pods = [with(&[(KEY, "true")], &[]), selected(&[(KEY, "false")], None)];
    for pod in pods {
        assert_eq!(names(&plan_of(&invalid, &[pod], None)), [""; 0]);
    }
}
