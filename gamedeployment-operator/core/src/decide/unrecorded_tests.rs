//! A template without a recorded revision stops only the update, and the status reports it.

use serde_json::{Value, json};
use shared_api::GameDeployment;

use super::*;
use crate::plan::{GatedWrite, NewPod};
use crate::pod::Pod;
use crate::revision::Revision;
use crate::samples::{FakeCluster, object, pod, revisions, template, view};
use crate::view::WriteErrors;
use crate::write_backoff::WriteBackoff;

const REFUSED: &str = "controllerrevisions is forbidden: exceeded quota";

fn plan(
    object: &GameDeployment,
    pods: &[Pod],
    revisions: &[Revision],
    write_errors: Option<&WriteErrors>,
) -> Plan {
    let (pods, revisions): (Vec<&Pod>, Vec<&Revision>) = (pods.iter().collect(), revisions.iter().collect());
    let around = FakeCluster::default();
    let view = View {
        write_errors,
        guard_check: None,
        ..view(object, &pods, &revisions, &around)
    };
    decide(&view, "2024-06-01T00:00:00Z".parse().unwrap())
}

fn refused() -> WriteErrors {
    WriteErrors {
        revision: Some(REFUSED.to_owned()),
        ..WriteErrors::default()
    }
}

/// Three replicas at revision `old`, one of them missing; the fleet was fully at that revision, and its
/// template changed.
fn fleet(over: &[(&str, Value)]) -> (GameDeployment, Vec<Pod>, Vec<Revision>) {
    let mut all = vec![
        ("/spec/replicas", json!(3)),
        ("/spec/template", template("game:v3")),
        (
            "/status",
            json!({"currentRevision": "old", "updateRevision": "old", "updatedReplicas": 3, "replicas": 3}),
        ),
    ];
    all.extend_from_slice(over);
    let pods = vec![pod("fleet-a", &[]), pod("fleet-b", &[])];
    let old = revisions().into_iter().take(1).collect();
    (object(&all), pods, old)
}

fn created(plan: &Plan) -> Vec<&NewPod> {
    let created = plan.actions.iter().filter_map(|action| match action {
        Action::CreatePod(pod) => Some(&**pod),
        _ => None,
    });
    created.collect()
}

fn revision_of(pod: &NewPod) -> &Value {
    &pod.manifest["metadata"]["labels"]["controller-revision-hash"]
}

/// Returns the reason and message of a condition that is True; `None` if there is none.
fn said(plan: &Plan, kind: &str) -> Option<(String, String)> {
    let status = plan.status.as_ref()?;
    let mut conditions = status.conditions.iter();
    let found = conditions.find(|condition| condition.type_ == kind && condition.status == "True")?;
    Some((found.reason.clone(), found.message.clone()))
}

#[track_caller]
fn assert_goes_on_at_the_recorded_revision(plan: &Plan) {
    let new = created(plan);
    assert_eq!(new.len(), 1, "the missing pod is replaced: {:?}", plan.actions);
    assert_eq!(revision_of(new[0]), "old");
    let touched = plan.actions.iter().any(|action| {
        matches!(
            action,
            Action::RecordSelection(..)
                | Action::Gated(
                    GatedWrite::DeletePod(_) | GatedWrite::SetNotReady(..) | GatedWrite::WriteUpdate(..)
                )
        )
    });
    assert!(!touched, "nothing is updated: {:?}", plan.actions);
    let status = plan.status.as_ref().unwrap();
    assert_eq!(status.observed_generation, Some(1));
    assert_eq!((status.replicas, status.updated_replicas), (2, 0));
    assert_eq!(status.current_revision.as_deref(), Some("old"));
    let progressing = status
        .conditions
        .iter()
        .find(|known| known.type_ == "Progressing");
    assert_eq!(progressing.unwrap().status, "False");
}

#[test]
fn a_revision_that_is_refused_is_said_and_pods_are_healed_at_the_recorded_one() {
    let (object, pods, revisions) = fleet(&[]);
    let first = plan(&object, &pods, &revisions, None);
    assert!(
        matches!(first.actions.as_slice(), [Action::CreateRevision(_)]) && first.status.is_none(),
        "the first attempt is awaited: {first:?}"
    );
    let write_errors = refused();
    let plan = plan(&object, &pods, &revisions, Some(&write_errors));
    assert!(matches!(plan.actions.first(), Some(Action::CreateRevision(_))));
    assert_goes_on_at_the_recorded_revision(&plan);
    let (reason, message) = said(&plan, "UpdateBlocked").unwrap();
    assert_eq!(reason, "RevisionNotRecorded");
    assert!(
        message.contains(REFUSED) && message.contains("new pods use revision old"),
        "{message}"
    );
    assert!(
        plan.warnings
            .iter()
            .any(|warning| warning.reason.as_str() == "RevisionNotRecorded")
    );
}

#[test]
fn a_workload_without_any_revision_says_that_none_can_be_recorded() {
    let object = object(&[]);
    assert!(plan(&object, &[], &[], None).status.is_none());
    let plan = plan(&object, &[], &[], Some(&refused()));
    assert!(created(&plan).is_empty());
    let (reason, message) = said(&plan, "ScaleBlocked").unwrap();
    assert_eq!(reason, "RevisionNotRecorded");
    assert!(message.contains(REFUSED), "{message}");
    assert!(!plan.warnings.is_empty() && plan.gauges.is_some());
}

#[test]
fn a_template_with_problems_stops_the_update_alone() {
    let label = "/spec/template/metadata/labels/build";
    let (mut invalid, pods, revisions) = fleet(&[(label, json!("feature/new maps"))]);
    let healed = plan(&invalid, &pods, &revisions, None);
    assert_goes_on_at_the_recorded_revision(&healed);
    let (reason, message) = said(&healed, "InvalidSpec").unwrap();
    assert_eq!(reason, "InvalidSpec");
    let words = "spec.template.metadata.labels[build]: \"feature/new maps\" must be ";
    assert!(
        message.starts_with(words) && message.contains("new pods use revision old"),
        "{message}"
    );
    assert_eq!(said(&healed, "UpdateBlocked"), None);

    invalid.spec.replicas = Some(6);
    assert_eq!(
        created(&plan(&invalid, &pods, &revisions, None)).len(),
        4,
        "it is scaled"
    );
    invalid.spec.replicas = Some(1);
    let fewer = plan(&invalid, &pods, &revisions, None);
    let deleted = |action: &&Action| {
        matches!(
            action,
            Action::Gated(GatedWrite::DeletePod(_)) | Action::RecordSelection(..)
        )
    };
    assert_eq!(
        fewer.actions.iter().filter(deleted).count(),
        1,
        "{:?}",
        fewer.actions
    );

    // A problem outside the template stops everything.
    invalid.spec.min_ready_seconds = Some(-1);
    let stopped = plan(&invalid, &pods, &revisions, None);
    assert!(stopped.actions.is_empty(), "{:?}", stopped.actions);
    let (_, message) = said(&stopped, "InvalidSpec").unwrap();
    assert!(
        message.contains("labels[build]") && message.contains("spec.minReadySeconds"),
        "{message}"
    );
}

#[test]
fn an_update_that_was_under_way_is_not_taken_back() {
    // `old` is fully rolled out, `new` was in progress, and the revision of its successor cannot be recorded.
    let (object, mut pods, _) = fleet(&[("/status/updateRevision", json!("new"))]);
    pods[1]
        .labels
        .insert("controller-revision-hash".to_owned(), "new".to_owned());
    let plan = plan(&object, &pods, &revisions(), Some(&refused()));
    assert_goes_on_at_the_recorded_revision(&plan);
}

#[test]
fn names_that_are_taken_are_passed_one_after_the_other_though_no_status_is_written() {
    let (object, pods, revisions) = fleet(&[]);
    let name = |write_errors: Option<&WriteErrors>| match plan(&object, &pods, &revisions, write_errors)
        .actions
        .first()
    {
        Some(Action::CreateRevision(new)) => new.name.clone(),
        other => panic!("{other:?}"),
    };
    let mut tried = vec![name(None)];
    let mut write_backoff = WriteBackoff::default();
    for _ in 0..3 {
        write_backoff.record_collision(true);
        let next = name(write_backoff.write_errors().as_ref());
        assert!(!tried.contains(&next), "{next} is tried again");
        tried.push(next);
    }
}

#[test]
fn a_template_that_cannot_be_rolled_out_costs_no_surge_pod() {
    let mut spec = vec![
        ("/spec/replicas", json!(10)),
        ("/spec/updateStrategy/maxUnavailable", json!(0)),
        ("/spec/updateStrategy/maxSurge", json!(2)),
        (
            "/status",
            json!({ "replicas": 12, "updatedReplicas": 2, "surgeReplicas": 2, "currentRevision": "old", "updateRevision": "new" }),
        ),
        ("/spec/template/metadata/labels/build", json!("feature/new maps")),
    ];
    let new = [("/metadata/labels/controller-revision-hash", json!("new"))];
    let pods = (0..12).map(|at| pod(&format!("fleet-{at}"), if at < 10 { &[] } else { &new }));
    let pods: Vec<Pod> = pods.collect();
    let plan = crate::samples::decided(&object(&spec), &pods, &[]);
    assert_eq!(plan.actions, [], "{:?}", plan.actions);
    assert_eq!(plan.status.unwrap().surge_replicas, 2, "and later neither");
    // Fewer replicas still mean fewer pods.
    spec[0].1 = json!(9);
    let plan = crate::samples::decided(&object(&spec), &pods, &[]);
    assert_eq!(plan.actions.len(), 1, "{:?}", plan.actions);
}
