use serde_json::{Value, json};
use shared_api::GameDeployment;
use shared_api::names::workload::ASK_BEFORE_REMOVAL;
use shared_api::removal_request::{RemovalRequests, RemovalType};

use super::*;
use crate::decide::decide;
use crate::plan::Plan;
use crate::pod::Pod;
use crate::revision::Revision;
use crate::samples::{FakeCluster, now, object, pod, revisions, view};
use crate::view::{View, WriteErrors};

const LABEL: &str = "/metadata/labels/tkex.tencent.com~1removal-guard";
const HOOK: &str = "/spec/preDeleteUpdateStrategy";
const REPLICAS: &str = "/spec/replicas";
const POLICY: &str = "/spec/disruption/policy";

/// A workload with two guarded pods and a hook that runs before a deletion.
fn guarded(over: &[(&str, Value)]) -> GameDeployment {
    let mut all = vec![
        ("/spec/replicas", json!(2)),
        (POLICY, json!("Ask")),
        ("/metadata/finalizers", json!([ASK_BEFORE_REMOVAL])),
        (HOOK, json!({ "hook": { "templateName": "ask" } })),
    ];
    all.extend_from_slice(over);
    object(&all)
}

fn guarded_pod(name: &str) -> Pod {
    let revision = "/metadata/labels/controller-revision-hash";
    pod(name, &[(revision, json!("new")), (LABEL, json!("Ask"))])
}

fn plan(object: &GameDeployment, pods: &[Pod], check: Option<&GuardCheck>) -> Plan {
    let (cluster, revisions) = (FakeCluster::with_hook(), revisions());
    let pods: Vec<&Pod> = pods.iter().collect();
    let revisions: Vec<&Revision> = revisions.iter().collect();
    let view = View {
        guard_check: check,
        accepted: Some("new"),
        ..view(object, &pods, &revisions, &cluster)
    };
    decide(&view, now())
}

/// Returns the status and reason, and the message, of the condition in the new status.
fn condition(plan: &Plan) -> Option<(String, String)> {
    let mut conditions = plan.status.as_deref()?.conditions.iter();
    let found = conditions.find(|known| known.type_ == "RemovalsGuarded")?;
    Some((
        format!("{} {}", found.status, found.reason),
        found.message.clone(),
    ))
}

fn words(plan: &Plan) -> String {
    condition(plan).map_or_else(|| "absent".to_owned(), |(words, _)| words)
}

fn pods() -> [Pod; 2] {
    [guarded_pod("b"), guarded_pod("a")]
}

#[test]
fn the_condition_reports_the_last_check() {
    let failed = GuardCheck::Failed("connection refused".to_owned());
    let incomplete = GuardCheck::Incomplete("webhook evictions is missing".to_owned());
    for (check, expected, guarded_gauge) in [
        (None, "absent", None),
        (Some(GuardCheck::Guarded), "True RemovalsGuarded", Some(true)),
        (
            Some(GuardCheck::NotGuarded),
            "False RemovalsNotGuarded",
            Some(false),
        ),
        (Some(incomplete.clone()), "False RemovalsNotGuarded", Some(false)),
        (Some(failed), "Unknown GuardNotChecked", Some(false)),
    ] {
        let plan = plan(&guarded(&[]), &pods(), check.as_ref());
        assert_eq!(words(&plan), expected);
        assert_eq!(plan.gauges.unwrap().guarded, guarded_gauge);
        let warned = plan.warnings.iter().map(|warning| warning.reason.as_str());
        let warned: Vec<&str> = warned.collect();
        let (status, reason) = expected.split_once(' ').unwrap_or(("True", ""));
        assert_eq!(warned, [reason][usize::from(status == "True")..]);
    }
    let (_, message) = condition(&plan(&guarded(&[]), &pods(), Some(&GuardCheck::NotGuarded))).unwrap();
    assert!(
        message.contains("kubectl label namespace games tkex.tencent.com/removal-guard=Enabled"),
        "{message}"
    );
    let (_, message) = condition(&plan(&guarded(&[]), &pods(), Some(&incomplete))).unwrap();
    assert!(message.contains(": webhook evictions is missing; "), "{message}");
}

#[test]
fn without_a_hook_nothing_is_guarded_and_nothing_checked() {
    let plan = plan(
        &guarded(&[(HOOK, Value::Null)]),
        &pods(),
        Some(&GuardCheck::Guarded),
    );
    assert_eq!(words(&plan), "False RemovalsNotGuarded");
    assert_eq!(plan.guard_check, PlannedCheck::Unneeded);
}

#[test]
fn with_another_policy_there_is_no_condition_and_no_check() {
    for policy in [json!("Unguarded"), Value::Null] {
        let object = guarded(&[(POLICY, policy)]);
        let plan = plan(&object, &pods(), Some(&GuardCheck::Guarded));
        assert_eq!(words(&plan), "absent");
        assert_eq!(plan.guard_check, PlannedCheck::Unneeded);
        assert_eq!(plan.gauges.unwrap().guarded, None);
    }
}

#[test]
fn the_check_needs_a_labelled_pod_to_which_nothing_is_written() {
    let checked = |pods: &[Pod]| match plan(&guarded(&[(REPLICAS, json!(9))]), pods, None).guard_check {
        PlannedCheck::Postponed => Vec::new(),
        PlannedCheck::Unneeded => panic!("it is needed"),
        PlannedCheck::With(pods) => pods.into_iter().map(|pod| pod.name).collect(),
    };
    assert_eq!(checked(&pods()), ["a", "b"]);
    assert_eq!(checked(&[]), [""; 0]);
    let unlabelled = pod("a", &[]);
    assert_eq!(checked(&[unlabelled, guarded_pod("b")]), ["b"]);
    let mut requested = guarded_pod("a");
    let mut requests = RemovalRequests::default();
    requests.record("drain", RemovalType::Eviction, now()).unwrap();
    let annotation = shared_api::names::pod::REMOVAL_REQUESTED.to_owned();
    requested.annotations.insert(annotation, requests.text());
    // It is marked for deletion.
    assert_eq!(checked(&[requested, guarded_pod("b")]), ["b"]);
    let mut terminating = guarded_pod("a");
    terminating.terminating = true;
    assert_eq!(checked(&[terminating, guarded_pod("b")]), ["b"]);
    let many: Vec<Pod> = (0..9).map(|number| guarded_pod(&number.to_string())).collect();
    assert_eq!(checked(&many).len(), MAX_PODS);
}

#[test]
fn pods_whose_label_is_rejected_are_reported() {
    let pods = [guarded_pod("b"), pod("a", &[])];
    let (cluster, revisions) = (FakeCluster::with_hook(), revisions());
    let shown: Vec<&Pod> = pods.iter().collect();
    let revisions: Vec<&Revision> = revisions.iter().collect();
    let object = guarded(&[]);
    for (errors, expected) in [
        (None, "True RemovalsGuarded"),
        (Some(WriteErrors::default()), "False RemovalsNotGuarded"),
    ] {
        let view = View {
            guard_check: Some(&GuardCheck::Guarded),
            write_errors: errors.as_ref(),
            ..view(&object, &shown, &revisions, &cluster)
        };
        assert_eq!(words(&decide(&view, now())), expected);
    }
}

/// After a restart, the operator has not checked the guard yet.
#[test]
fn an_earlier_result_stays_until_the_next_check() {
    let first = plan(&guarded(&[]), &pods(), Some(&GuardCheck::NotGuarded));
    let status = |plan: &Plan| json!(plan.status.as_deref().unwrap());
    let later = |generation: i64, over: &[(&str, Value)], status: Value| {
        let mut all = vec![
            ("/status", status),
            ("/metadata/generation", json!(generation)),
            // Changes the status.
            ("/spec/replicas", json!(3)),
        ];
        all.extend_from_slice(over);
        words(&plan(&guarded(&all), &pods(), None))
    };
    assert_eq!(later(1, &[], status(&first)), "False RemovalsNotGuarded");
    let guarded_before = plan(&guarded(&[]), &pods(), Some(&GuardCheck::Guarded));
    assert_eq!(later(2, &[], status(&guarded_before)), "True RemovalsGuarded");
    let invalid = [("/spec/replicas", json!(-1))];
    assert_eq!(
        later(2, &invalid, status(&guarded_before)),
        "True RemovalsGuarded"
    );
    let deleted = [("/metadata/deletionTimestamp", json!("2024-05-31T00:00:00Z"))];
    assert_eq!(
        later(2, &deleted, status(&guarded_before)),
        "True RemovalsGuarded"
    );
    // The reason may have been a missing hook that has been added since.
    assert_eq!(later(2, &[], status(&first)), "absent");
}
