//! Pods that end right after their start: replacement with back-off, deletion and reporting.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use shared_api::{GameDeployment, GameDeploymentStatus};

use super::*;
use crate::plan::GatedWrite;
use crate::pod::Pod;
use crate::revision::Revision;
use crate::samples::{FakeCluster, object, pod, revisions, view};

const BEGIN: &str = "2024-06-01T00:00:00Z";

/// A pod that its kubelet rejected at this time.
fn refused(name: &str, at: Timestamp) -> Pod {
    let at = at.to_string();
    pod(
        name,
        &[
            ("/metadata/creationTimestamp", json!(at)),
            ("/metadata/labels/controller-revision-hash", json!("new")),
            (
                "/status",
                json!({"phase": "Failed", "reason": "OutOfcpu", "message": "not enough cpu", "startTime": at}),
            ),
        ],
    )
}

fn decided(object: &GameDeployment, pods: &[Pod], now: Timestamp) -> Plan {
    let revisions = revisions();
    let (pods, revisions): (Vec<&Pod>, Vec<&Revision>) = (pods.iter().collect(), revisions.iter().collect());
    decide(&view(object, &pods, &revisions, &FakeCluster::default()), now)
}

fn counted(plan: &Plan) -> (usize, usize) {
    let count = |wanted: fn(&Action) -> bool| plan.actions.iter().filter(|action| wanted(action)).count();
    (
        count(|action| matches!(action, Action::Gated(GatedWrite::DeletePod(_)))),
        count(|action| matches!(action, Action::CreatePod(_))),
    )
}

fn said<'s>(status: &'s GameDeploymentStatus, kind: &str) -> Option<(&'s str, &'s str)> {
    let found = status.conditions.iter().find(|known| known.type_ == kind)?;
    Some((&found.reason, &found.message))
}

#[test]
fn pods_that_end_at_once_are_replaced_ever_later_and_told_of() {
    let mut now: Timestamp = BEGIN.parse().unwrap();
    let mut object = object(&[]);
    let mut waits = Vec::new();
    for round in 0..8 {
        let pods = [refused(&format!("fleet-{round}"), now)];
        let waiting = decided(&object, &pods, now);
        assert_eq!(counted(&waiting), (0, 0), "{:?}", waiting.actions);
        let status = waiting
            .status
            .clone()
            .map_or_else(|| object.status.clone().unwrap(), |status| *status);
        let (reason, message) = said(&status, "ScaleBlocked").unwrap();
        assert_eq!(reason, "PodsEndAtOnce");
        assert!(
            message.contains(&format!("pod fleet-{round}: OutOfcpu: not enough cpu")),
            "{message}"
        );
        assert_eq!(said(&status, "Progressing").unwrap().0, "PodsEndAtOnce");
        assert_eq!(
            waiting.warnings.iter().any(|warning| warning.pod.is_none()),
            round == 0
        );
        object.status = Some(status);
        let due = waiting.wake.unwrap();
        waits.push(due.duration_since(now).as_secs());
        now = due;
        assert_eq!(
            counted(&decided(&object, &pods, now)),
            (1, 1),
            "it is removed and replaced"
        );
        now += SignedDuration::from_secs(1);
    }
    assert_eq!(waits, [10, 11, 23, 47, 95, 191, 300, 300]);
}

#[test]
fn a_pod_that_lived_is_replaced_and_removed_at_once() {
    let now: Timestamp = BEGIN.parse().unwrap();
    let ended = json!({
        "phase": "Failed", "reason": "Evicted", "startTime": "2024-05-31T23:00:00Z",
        "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": BEGIN}],
    });
    let plan = decided(&object(&[]), &[pod("fleet-a", &[("/status", ended)])], now);
    assert_eq!(counted(&plan), (1, 1), "{:?}", plan.actions);
}

#[test]
fn another_template_is_tried_at_once_and_surplus_is_not_kept() {
    let now: Timestamp = BEGIN.parse().unwrap();
    let mut old = refused("fleet-a", now);
    old.labels
        .insert("controller-revision-hash".to_owned(), "old".to_owned());
    assert_eq!(counted(&decided(&object(&[]), &[old], now)), (1, 1));
    let none = object(&[("/spec/replicas", json!(0))]);
    assert_eq!(counted(&decided(&none, &[refused("fleet-a", now)], now)), (1, 0));
}

#[test]
fn it_is_over_when_those_in_their_places_have_lived_for_a_minute() {
    let now: Timestamp = BEGIN.parse().unwrap();
    let mut object = object(&[]);
    object.status = decided(&object, &[refused("fleet-a", now)], now)
        .status
        .map(|status| *status);
    let later = now + SignedDuration::from_secs(10);
    let new = [pod(
        "fleet-b",
        &[
            ("/metadata/creationTimestamp", json!(later.to_string())),
            ("/metadata/labels/controller-revision-hash", json!("new")),
        ],
    )];
    let watched = decided(&object, &new, later + SignedDuration::from_secs(1));
    let status = watched.status.unwrap();
    assert_eq!(said(&status, "ScaleBlocked").unwrap().0, "PodsEndAtOnce");
    assert_eq!(watched.wake, Some(later + SignedDuration::from_secs(60)));
    object.status = Some(*status);
    let over = decided(&object, &new, later + SignedDuration::from_secs(60));
    assert_eq!(said(&over.status.unwrap(), "ScaleBlocked"), None);
}

#[test]
fn a_changed_selector_is_refused_and_lets_go_of_nobody() {
    let changed = object(&[
        ("/spec/selector", json!({"matchLabels": {"app": "other"}})),
        ("/spec/template/metadata/labels", json!({"app": "other"})),
        ("/status", json!({"labelSelector": "app=game"})),
    ]);
    let plan = decided(&changed, &[pod("fleet-a", &[])], BEGIN.parse().unwrap());
    assert!(plan.actions.is_empty(), "{:?}", plan.actions);
    let status = plan.status.unwrap();
    let (_, message) = said(&status, "InvalidSpec").unwrap();
    assert!(
        message.starts_with(
            "spec.selector: \"app=other\" is not allowed, because the field is immutable; restore app=game, or"
        ),
        "{message}"
    );
    assert_eq!(status.label_selector.as_deref(), Some("app=game"));
}

#[test]
fn a_selector_that_is_written_otherwise_is_the_same() {
    let rules = json!({
        "matchLabels": {"app": "game"},
        "matchExpressions": [{"key": "tier", "operator": "In", "values": ["b", "a"]}],
    });
    let same = object(&[
        ("/spec/selector", rules),
        (
            "/spec/template/metadata/labels",
            json!({"app": "game", "tier": "a"}),
        ),
        ("/status", json!({"labelSelector": "tier in (a,b),app=game"})),
    ]);
    assert!(Workload::read(&same).is_ok());
}
