//! Condition `RemovalsGuarded`, and the expiration of removal requests.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use operator_tests::fleet::condition;
use operator_tests::{SOON, assert_has};
use serde_json::json;
use shared_api::names::pod::{REMOVAL_GUARD, REMOVAL_REQUESTED};
use shared_api::removal_request::{RemovalRequests, RemovalType};
use test_kit::eventually;

use crate::guarded::{Guarded, guarded_game};

/// Condition under test.
const GUARDED: &str = "RemovalsGuarded";
/// Time limit for a change that the operator finds with its next check: it checks every minute, and repeats a failed
/// check every 5 s, four times, before it reports the failure.
const CHECKED: Duration = Duration::from_mins(2);

/// Waits until the condition has this status and reason. Returns its message.
async fn await_condition(guarded: &Guarded, status: &str, reason: &str) -> String {
    eventually(CHECKED, || async {
        match condition(&guarded.fleet.status().await, GUARDED) {
            Some((found, why, message)) if found == status && why == reason => Ok(message),
            other => Err(other),
        }
    })
    .await
}

/// Waits for a warning with this reason, and returns it.
async fn await_warning(guarded: &Guarded, reason: &str) -> String {
    eventually(SOON, || async {
        let warnings = guarded.fleet.warnings().await;
        let found = warnings.iter().find(|warning| warning.starts_with(reason));
        found.cloned().ok_or(warnings)
    })
    .await
}

/// Waits until the gauge has exactly these values, one for each series; none if it is absent.
async fn await_gauge(guarded: &Guarded, values: &[&str]) {
    eventually(SOON, || async {
        let operator = guarded.fleet.workloads.as_ref().unwrap();
        let text = operator.get("/metrics").await;
        // Every workload has this metric.
        let is_reported = text.contains("hookgate_gamedeployment_removal_requested_pods{");
        let series = text
            .lines()
            .filter(|line| line.starts_with("hookgate_gamedeployment_removals_guarded{"));
        let found: Vec<&str> = series.map(|line| line.rsplit(' ').next().unwrap()).collect();
        if is_reported && found == values {
            Ok(())
        } else {
            Err(format!("{found:?}"))
        }
    })
    .await;
}

/// Returns the resource versions of all pods.
async fn versions(guarded: &Guarded) -> BTreeMap<String, Option<String>> {
    let pods = guarded.fleet.all_pods().await.into_iter();
    pods.map(|(name, pod)| (name, pod.metadata.resource_version))
        .collect()
}

/// Returns whether the deletion of a pod would be allowed.
fn may_be_deleted(guarded: &Guarded, pod: &str) -> bool {
    guarded.kubectl(&["delete", "pod", pod, "--dry-run=server"]).0
}

/// Returns the audit log after this offset, in bytes.
pub(crate) fn audit_log(guarded: &Guarded, from: u64) -> String {
    let path = guarded.fleet.control_plane.audit_log().unwrap();
    let (mut log, mut text) = (File::open(path).unwrap(), Vec::new());
    log.seek(SeekFrom::Start(from)).unwrap();
    log.read_to_end(&mut text).unwrap();
    String::from_utf8_lossy(&text).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_condition_is_true_where_removals_are_reviewed_and_is_removed_with_the_policy() {
    let guarded = Guarded::new("guard-true").await;
    let pods = guarded.launch(2, json!({})).await;
    let _ = await_condition(&guarded, "True", "RemovalsGuarded").await;
    assert!(!may_be_deleted(&guarded, pods.first().unwrap()));
    await_gauge(&guarded, &["1"]).await;
    let unguarded = json!({ "disruption": { "policy": "Unguarded" } });
    guarded.fleet.set(unguarded).await;
    guarded.fleet.cleared(GUARDED).await;
    await_gauge(&guarded, &[]).await;
}

/// The operator checks at its start, and then every minute.
#[tokio::test(flavor = "multi_thread")]
async fn the_condition_is_false_until_the_namespace_is_labelled_and_no_check_changes_a_pod() {
    let mut guarded = Guarded::without_label("guard-false").await;
    guarded.fleet.launch(&guarded_game(2, json!({}))).await;
    let enable = format!("{REMOVAL_GUARD}=Enabled");
    let message = await_condition(&guarded, "False", "RemovalsNotGuarded").await;
    assert_has(&message, &enable);
    assert_has(&await_warning(&guarded, "RemovalsNotGuarded").await, &enable);
    await_gauge(&guarded, &["0"]).await;
    guarded.fleet.quiet().await;
    let pods = versions(&guarded).await;
    let pod = pods.keys().next().unwrap();
    assert!(may_be_deleted(&guarded, pod));

    let log = guarded.fleet.control_plane.audit_log().unwrap();
    let end = std::fs::metadata(log).unwrap().len();
    guarded.fleet.start_workloads().await;
    let path = format!("/api/v1/namespaces/{}/pods/", guarded.fleet.namespace);
    let is_check = |line: &str| {
        ["\"verb\":\"patch\"", "dryRun=All", &path]
            .iter()
            .all(|part| line.contains(part))
    };
    eventually(SOON, || async {
        audit_log(&guarded, end).lines().any(is_check).then_some(())
    })
    .await;
    guarded.fleet.quiet().await;
    assert_eq!(versions(&guarded).await, pods);

    guarded.label_namespace("Enabled");
    let _ = await_condition(&guarded, "True", "RemovalsGuarded").await;
    assert!(!may_be_deleted(&guarded, pod));
    assert_eq!(versions(&guarded).await, pods);
    assert_eq!(guarded.fleet.nodes.terminated_pods(), BTreeSet::new());
}

/// The failure is reported after five checks at intervals of 5 s.
#[tokio::test(flavor = "multi_thread")]
async fn the_condition_is_unknown_while_the_webhook_is_down() {
    let mut guarded = Guarded::new("guard-unknown").await;
    guarded.replica = None;
    guarded.fleet.apply(&guarded_game(1, json!({})));
    let message = await_condition(&guarded, "Unknown", "GuardNotChecked").await;
    assert!(
        message.starts_with("failed to check the removal guard: ")
            && message.ends_with("; the check is repeated every minute"),
        "{message}"
    );
    assert_has(&message, "failed calling webhook");
    let _ = await_warning(&guarded, "GuardNotChecked").await;
    await_gauge(&guarded, &["0"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_not_repeated_expires_with_an_event_and_the_pod_is_kept() {
    let guarded = Guarded::new("expiration").await;
    let disruption = json!({ "requestExpirationSeconds": 60 });
    let changes = json!({ "disruption": disruption, "updateStrategy": { "maxUnavailable": 2 } });
    let pods = guarded.launch_with(2, changes).await;
    let (busy, _) = guarded.occupy(&pods, 1);
    let busy = busy[0].as_str();
    // The last repetition was 40 s ago.
    let mut requests = RemovalRequests::default();
    let since = Timestamp::now() - SignedDuration::from_secs(40);
    requests.record("ci", RemovalType::Delete, since).unwrap();
    let annotation = format!("{REMOVAL_REQUESTED}={}", requests.text());
    let _ = guarded.fleet.kubectl(&["annotate", "pod", busy, &annotation], "");
    guarded.await_requests(&[(busy, "Delete", "ci")]).await;
    guarded.fleet.asked(1).await;
    guarded.fleet.told("RemovalRequestExpired ").await;
    let of_pod = format!("involvedObject.name={busy},reason=RemovalRequestExpired");
    let types = "--output=jsonpath={.items[*].type}";
    let events = guarded
        .fleet
        .kubectl(&["get", "events", "--field-selector", &of_pod, types], "");
    assert_eq!(events.trim(), "Warning");
    guarded.await_requests(&[]).await;
    guarded.assert_kept(busy, &mut BTreeSet::new(), 2).await;
}
