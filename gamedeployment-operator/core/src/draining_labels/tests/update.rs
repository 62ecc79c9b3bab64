//! Labels of pods that are selected for an update.

use shared_api::Phase;

use super::*;
use crate::samples::finish;

const OUTDATED: &str = "/spec/updateStrategy/outdatedLabels";
const IN_PLACE_HOOK: &str = "/spec/preInplaceUpdateStrategy";
const RECORD: &str = r#"{"accepts-players":"yes"}"#;

/// A workload that updates its pod in place once a hook has succeeded.
fn updates(more: &[(&str, Value)]) -> GameDeployment {
    let mut over = vec![
        (TYPE, json!("InplaceUpdate")),
        (OUTDATED, json!({ KEY: "outdated" })),
        (FIELD, Value::Null),
        (HOOK, Value::Null),
        (IN_PLACE_HOOK, json!({ "hook": { "templateName": "ask" } })),
    ];
    over.extend_from_slice(more);
    drains(&over)
}

/// A pod at the old revision with these labels and annotations in addition.
fn old(labels: &[(&str, &str)], annotations: &[(&str, &str)]) -> Pod {
    let mut pod = with(labels, annotations);
    pod.labels.insert(REVISION.to_owned(), "old".to_owned());
    pod
}

/// The same pod, on which the question before its update in place is noted.
fn asked(labels: &[(&str, &str)], record: Option<&str>) -> Pod {
    let mut pod = old(labels, &[(QUESTION, "in-place:new@2024-05-31T00:00:00Z")]);
    let record = record.map(|record| (DRAINING_LABELS.to_owned(), record.to_owned()));
    pod.annotations.extend(record);
    pod
}

/// Returns the only HookRun that a plan creates, in this phase.
fn run_of(plan: &Plan, phase: Phase) -> Run {
    let mut created = plan.actions.iter().filter_map(|action| match action {
        Action::CreateRun(new) => Some(new),
        _ => None,
    });
    let mut run = created.next().unwrap().render();
    assert!(created.next().is_none(), "{plan:#?}");
    if phase.is_final() {
        finish(&mut run, "healthy", phase, i64::from(phase == Phase::Successful));
    } else {
        run.metadata.uid = Some("run-1".to_owned());
    }
    let completed = phase.is_final().then(now);
    Run {
        completed,
        ..Run::read(&run)
    }
}

/// Asserts that a write notes a question, and sets the labels and their record.
#[track_caller]
fn assert_sets_labels(write: &Action) {
    let labels = [(KEY, Some("outdated"))];
    assert_writes(write, "note_question", &labels, &[Some(RECORD)]);
}

#[test]
fn the_question_before_an_update_in_place_sets_the_labels_before_the_hook_runs() {
    let object = updates(&[]);
    for hooks in [
        vec![],
        vec![
            (HOOK, json!({ "hook": { "templateName": "ask" } })),
            (IN_PLACE_HOOK, Value::Null),
        ],
    ] {
        let object = updates(&hooks);
        let pod = old(&[(KEY, "yes")], &[]);
        let plan = plan_of(&object, std::slice::from_ref(&pod), None);
        assert_eq!(names(&plan), ["note_question"], "{hooks:?}");
        let write = write_of(&object, &pod);
        assert_sets_labels(&write);
        assert!(!patch_of(&write).reverts);
        let next = plan_of(&object, &[after(&pod, &write)], None);
        assert_eq!(names(&next), ["create_hook_run"]);
    }
    // An older operator has noted the question, or users have removed the labels: it is noted again, with the labels.
    let pod = asked(&[(KEY, "yes")], None);
    let write = write_of(&object, &pod);
    assert_sets_labels(&write);
}

#[test]
fn without_the_field_the_first_question_needs_no_write() {
    let object = updates(&[(OUTDATED, Value::Null), (FIELD, json!({ KEY: "false" }))]);
    let plan = plan_of(&object, &[old(&[(KEY, "yes")], &[])], None);
    assert_eq!(names(&plan), ["create_hook_run"]);
}

#[test]
fn a_pod_that_needs_no_hook_gets_no_labels() {
    for (more, expected) in [
        (vec![(IN_PLACE_HOOK, Value::Null)], "take_out_pod"),
        (vec![(TYPE, json!("HotPatchUpdate"))], "update_pod"),
    ] {
        let plan = plan_of(&updates(&more), &[old(&[(KEY, "yes")], &[])], None);
        let kinds = names(&plan);
        assert!(kinds == [expected] || kinds == ["update_pod"], "{kinds:?}");
        assert_eq!(written(&plan), [] as [&Action; 0]);
    }
    // Users have set the value of the spec, and no hook has run for the pod.
    let object = updates(&[(TYPE, json!("HotPatchUpdate"))]);
    let plan = plan_of(&object, &[old(&[(KEY, "outdated"), ("other", "x")], &[])], None);
    let [Action::Gated(GatedWrite::WriteUpdate(_, change))] = plan.actions.as_slice() else {
        panic!("{plan:#?}")
    };
    assert!(!change.annotations.contains_key(DRAINING_LABELS));
}

#[test]
fn a_pod_to_recreate_gets_the_labels_of_both_fields_and_outdated_labels_take_precedence() {
    let both = [
        (FIELD, json!({ KEY: "false", "other": "x" })),
        (HOOK, json!({ "hook": { "templateName": "ask" } })),
    ];
    let recreates = updates(&[&both[..], &[(TYPE, json!("RollingUpdate"))]].concat());
    let pod = old(&[(KEY, "yes")], &[]);
    let write = write_of(&recreates, &pod);
    let record = r#"{"accepts-players":"yes","other":null}"#;
    let set = [(KEY, Some("outdated")), ("other", Some("x"))];
    assert_writes(&write, "mark_pod", &set, &[Some(record)]);
    let marked = after(&pod, &write);
    assert_eq!(
        written(&plan_of(&recreates, std::slice::from_ref(&marked), None)),
        [] as [&Action; 0]
    );

    // A surplus pod gets no outdated labels, even if it is old.
    let scaled = updates(&[&both[..], &[(REPLICAS, json!(0))]].concat());
    let write = write_of(&scaled, &pod);
    let set = [(KEY, Some("false")), ("other", Some("x"))];
    assert_writes(&write, "mark_pod", &set, &[Some(record)]);
    // The new mark of a pod that was selected for the update replaces its labels by those of the deletion.
    let write = write_of(&scaled, &marked);
    assert_writes(&write, "mark_pod", &[(KEY, Some("false"))], &[]);
    // The update is cancelled.
    let paused = updates(
        &[
            &both[..],
            &[
                (TYPE, json!("RollingUpdate")),
                ("/spec/updateStrategy/paused", json!(true)),
            ],
        ]
        .concat(),
    );
    let write = write_of(&paused, &marked);
    assert_writes(
        &write,
        "unmark_pod",
        &[(KEY, Some("yes")), ("other", None)],
        &[None],
    );
}

#[test]
fn an_update_that_is_cancelled_restores_the_former_labels_with_one_write() {
    let pod = asked(&[(KEY, "outdated")], Some(RECORD));
    for more in [
        vec![("/spec/updateStrategy/paused", json!(true))],
        vec![("/spec/updateStrategy/partition", json!(1))],
        vec![("/spec/template", open("game:v1", "yes"))],
    ] {
        let object = updates(&more);
        let write = write_of(&object, &pod);
        assert_writes(&write, "label_draining_pod", &[(KEY, Some("yes"))], &[None]);
        assert!(!patch_of(&write).reverts);
        let rest = plan_of(&object, &[after(&pod, &write)], None);
        assert_eq!(written(&rest), [] as [&Action; 0], "{more:?}");
    }
}

#[test]
fn the_labels_last_until_the_update_is_written() {
    let object = updates(&[]);
    let pod = asked(&[(KEY, "outdated")], Some(RECORD));
    let created = plan_of(&object, std::slice::from_ref(&pod), None);
    for phase in [Phase::Running, Phase::Failed] {
        let plan = plan_with(
            &FakeCluster::with_hook(),
            &object,
            std::slice::from_ref(&pod),
            &[run_of(&created, phase)],
            None,
        );
        assert_eq!(written(&plan), [] as [&Action; 0], "{phase:?}");
    }
    let success = run_of(&created, Phase::Successful);
    let plan = plan_with(
        &FakeCluster::with_hook(),
        &object,
        std::slice::from_ref(&pod),
        &[success],
        None,
    );
    let update = plan.actions.iter().find_map(|action| match action {
        Action::Gated(GatedWrite::WriteUpdate(_, change)) => Some(change),
        _ => None,
    });
    let update = update.unwrap_or_else(|| panic!("{plan:#?}"));
    assert_eq!(
        update.labels.get(KEY),
        Some(&Some("true".to_owned())),
        "as in the new template"
    );
    assert_eq!(update.annotations.get(DRAINING_LABELS), Some(&None));
}

#[test]
fn labels_follow_the_spec_while_the_hook_runs() {
    let created = plan_of(&updates(&[]), &[asked(&[(KEY, "outdated")], Some(RECORD))], None);
    let run = run_of(&created, Phase::Running);
    // The field, the labels and the record of the pod, and the labels and the record that are written.
    for (field, labels, record, expected, expected_record) in [
        (
            json!({ KEY: "no" }),
            vec![(KEY, "outdated")],
            Some(RECORD),
            vec![(KEY, Some("no"))],
            vec![],
        ),
        (
            Value::Null,
            vec![(KEY, "outdated")],
            Some(RECORD),
            vec![(KEY, Some("yes"))],
            vec![None],
        ),
        (
            json!({ KEY: "outdated" }),
            vec![(KEY, "yes")],
            Some(RECORD),
            vec![(KEY, Some("outdated"))],
            vec![],
        ),
        // The field is set while the hook runs.
        (
            json!({ KEY: "outdated" }),
            vec![(KEY, "yes")],
            None,
            vec![(KEY, Some("outdated"))],
            vec![Some(RECORD)],
        ),
        // Somebody has removed the record.
        (
            json!({ KEY: "outdated" }),
            vec![(KEY, "outdated")],
            None,
            vec![],
            vec![Some(RECORD)],
        ),
    ] {
        let object = updates(&[(OUTDATED, field.clone())]);
        let pod = asked(&labels, record);
        let plan = plan_with(
            &FakeCluster::with_hook(),
            &object,
            std::slice::from_ref(&pod),
            std::slice::from_ref(&run),
            None,
        );
        let [write] = written(&plan)[..] else {
            panic!("{plan:#?}")
        };
        assert_writes(write, "label_draining_pod", &expected, &expected_record);
        let rest = plan_with(
            &FakeCluster::with_hook(),
            &object,
            &[after(&pod, write)],
            std::slice::from_ref(&run),
            None,
        );
        assert_eq!(written(&rest), [] as [&Action; 0], "{field} {labels:?}");
    }
}

/// A user takes a pod out of the matchmaker, with the same label, after its update was cancelled.
#[test]
fn a_label_that_a_user_has_set_since_an_earlier_question_is_its_former_value() {
    let object = updates(&[]);
    let cluster = FakeCluster {
        has_asked: true,
        ..FakeCluster::with_hook()
    };
    let pod = asked(&[(KEY, "outdated")], None);
    let plan = plan_with(&cluster, &object, std::slice::from_ref(&pod), &[], None);
    let [write] = written(&plan)[..] else {
        panic!("{plan:#?}")
    };
    assert_writes(
        write,
        "note_question",
        &[],
        &[Some(r#"{"accepts-players":"outdated"}"#)],
    );
    assert!(!patch_of(write).reverts);
    // Without a hook, nothing is restored.
    let object = updates(&[(TYPE, json!("HotPatchUpdate"))]);
    let plan = plan_with(&cluster, &object, std::slice::from_ref(&pod), &[], None);
    let update = plan.actions.iter().find_map(|action| match action {
        Action::Gated(GatedWrite::WriteUpdate(_, change)) => Some(change),
        _ => None,
    });
    assert_eq!(
        update.map(|change| change.annotations.contains_key(DRAINING_LABELS)),
        Some(false)
    );
}

#[test]
fn a_pod_keeps_its_labels_while_its_hook_cannot_run() {
    let object = updates(&[]);
    let mut cluster = FakeCluster::with_hook();
    cluster.template = None;
    let pod = asked(&[(KEY, "outdated")], Some(RECORD));
    let plan = plan_with(&cluster, &object, &[pod], &[], None);
    assert_eq!(written(&plan), [] as [&Action; 0]);
    // No hook has run for this one.
    let plan = plan_with(&cluster, &object, &[old(&[(KEY, "yes")], &[])], &[], None);
    assert_eq!(written(&plan), [] as [&Action; 0]);
}

#[test]
fn a_webhook_that_denies_the_autoscaler_annotations_keeps_no_label_from_its_restoration() {
    let hook = (HOOK, json!({ "hook": { "templateName": "ask" } }));
    let object = updates(&[
        hook,
        ("/spec/disruption/autoscalerAnnotations", json!("Managed")),
        ("/spec/updateStrategy/paused", json!(true)),
    ]);
    let pod = asked(&[(KEY, "outdated")], Some(RECORD));
    let plan = plan_of(&object, &[pod], None);
    assert_eq!(names(&plan), ["label_draining_pod"]);
}
