//! Removal requests that end after the successors of their busy pods are ready. No pod may be unavailable, so these
//! successors are surplus then: the busy pods are kept, and the successors are deleted.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use operator_tests::SOON;
use operator_tests::fleet::pod_of;
use serde_json::{Value, json};
use shared_api::names::pod::REMOVAL_REQUESTED;
use shared_api::removal_request::{RemovalRequests, RemovalType};
use test_kit::eventually;

use crate::eviction_controller::GRACE;
use crate::eviction_responder::{ANN, prepare};
use crate::guarded::{Guarded, evict};
use crate::lifecycle_crds::Eviction;
use crate::scouts::is_selected;

/// Busy pods of a workload, and its other pods.
struct BusyPods {
    /// All pods at the beginning.
    before: BTreeSet<String>,
    busy: Vec<String>,
    /// UIDs of the busy pods.
    uids: Vec<Option<String>>,
    idle: BTreeSet<String>,
}

/// Returns changes to a workload: no pod may be unavailable, and this many successors come first.
fn successors_first(surge: usize) -> Value {
    json!({ "updateStrategy": { "maxUnavailable": 0, "maxSurge": surge } })
}

impl BusyPods {
    /// Runs a workload with players on its first `count` pods.
    async fn launch(guarded: &Guarded, replicas: usize, count: usize, changes: Value) -> Self {
        let before = guarded.launch_with(replicas, changes).await;
        let (busy, idle) = guarded.occupy(&before, count);
        let all = guarded.fleet.uids().await;
        let uids = busy.iter().map(|pod| all[pod].clone()).collect();
        // The pods that became ready last are deleted first. The API has whole seconds.
        let launched = Timestamp::now().as_second();
        eventually(SOON, || async {
            (Timestamp::now().as_second() > launched).then_some(())
        })
        .await;
        Self {
            before,
            busy,
            uids,
            idle,
        }
    }

    /// Runs a workload of two pods with players on the first one.
    async fn first_of_two(guarded: &Guarded) -> Self {
        Self::launch(guarded, 2, 1, successors_first(1)).await
    }

    /// Waits until exactly the busy pods are selected, their hooks run, and this many pods are available.
    async fn await_successors(&self, guarded: &Guarded, available: i32) {
        let fleet = &guarded.fleet;
        fleet.until_marked(&self.busy.iter().cloned().collect()).await;
        fleet.until(|status| status.available_replicas == available).await;
        fleet.asked(self.busy.len()).await;
    }

    /// Checks that the busy pods are no longer selected, that as many successors are deleted, each after its hook, and
    /// that the busy pods are kept after their matches. `earlier`: pods that ended before.
    async fn assert_kept(&self, guarded: &Guarded, earlier: &BTreeSet<String>) {
        let (fleet, busy, replicas) = (&guarded.fleet, &self.busy, self.before.len());
        guarded.await_requests(&[]).await;
        fleet
            .until_pods(|pods| {
                let mut found = busy.iter().map(|pod| pods.get(pod));
                found.all(|pod| pod.is_some_and(|pod| !is_selected(pod)))
            })
            .await;
        fleet
            .until_runs(|runs| !runs.iter().any(|run| busy.contains(&pod_of(run))))
            .await;
        fleet.settled(replicas).await;
        let mut ended = fleet.nodes.terminated_pods();
        let of_before: BTreeSet<String> = ended.intersection(&self.before).cloned().collect();
        assert_eq!(of_before, *earlier);
        assert_eq!(ended.len(), earlier.len() + busy.len());
        guarded.assert_ended_after_hooks(&ended);

        guarded.end_matches(busy);
        let names = fleet.names().await;
        let other = names.iter().find(|pod| !busy.contains(pod)).unwrap();
        guarded.replace(other, &mut ended, replicas).await;
        let all = fleet.uids().await;
        let uids: Vec<Option<String>> = busy.iter().filter_map(|pod| all.get(pod)).cloned().collect();
        assert_eq!(uids, self.uids);
    }
}

/// Formats a removal request that was made this many seconds ago.
fn requested_before(seconds: i64) -> String {
    let mut requests = RemovalRequests::default();
    let since = Timestamp::now() - SignedDuration::from_secs(seconds);
    requests.record("ci", RemovalType::Delete, since).unwrap();
    format!("{REMOVAL_REQUESTED}={}", requests.text())
}

/// Removes the requests from a pod, as `kubectl game keep` does.
fn keep(guarded: &Guarded, pod: &str) {
    let annotation = format!("{REMOVAL_REQUESTED}-");
    let _ = guarded.fleet.kubectl(&["annotate", "pod", pod, &annotation], "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_pod_whose_request_is_removed_is_kept_and_its_successor_is_deleted() {
    let guarded = Guarded::new("withdrawn-keep").await;
    let pods = BusyPods::first_of_two(&guarded).await;
    let busy = pods.busy[0].as_str();
    assert!(!guarded.kubectl(&["delete", "pod", busy, "--wait=false"]).0);
    guarded.await_requests(&[(busy, "Delete", "admin")]).await;
    pods.await_successors(&guarded, 3).await;
    keep(&guarded, busy);
    pods.assert_kept(&guarded, &BTreeSet::new()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_pod_whose_request_is_removed_while_the_operator_is_down_is_kept_after_its_restart() {
    let mut guarded = Guarded::new("withdrawn-restart").await;
    let pods = BusyPods::first_of_two(&guarded).await;
    let busy = pods.busy[0].as_str();
    let eviction = json!({ "metadata": { "name": busy } });
    assert_eq!(evict(&guarded.pods_as("jane"), &eviction).await, 429);
    pods.await_successors(&guarded, 3).await;
    guarded.fleet.kill_workloads();
    keep(&guarded, busy);
    guarded.fleet.start_workloads().await;
    pods.assert_kept(&guarded, &BTreeSet::new()).await;
}

/// The requests are those of a drain that has ended: a cordon, and an eviction of each pod.
#[tokio::test(flavor = "multi_thread")]
async fn busy_pods_are_kept_after_their_node_is_uncordoned_and_their_successors_are_deleted() {
    let guarded = Guarded::new("withdrawn-uncordon").await;
    let pods = BusyPods::launch(&guarded, 10, 3, successors_first(3)).await;
    let [node, _] = guarded.nodes();
    let _ = guarded.fleet.kubectl(&["cordon", &node], "");
    let jane = guarded.pods_as("jane");
    for pod in &pods.before {
        assert_eq!(evict(&jane, &json!({ "metadata": { "name": pod } })).await, 429);
    }
    guarded.await_replaced(&pods.idle, 10).await;
    pods.await_successors(&guarded, 13).await;
    guarded.assert_ended_after_hooks(&pods.idle);
    let _ = guarded.fleet.kubectl(&["uncordon", &node], "");
    for pod in &pods.busy {
        guarded.await_withdrawn(pod).await;
    }
    pods.assert_kept(&guarded, &pods.idle).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_pod_is_kept_after_its_eviction_is_canceled_and_its_successor_is_deleted() {
    let mut guarded = Guarded::new("withdrawn-eviction").await;
    let evictions = prepare(&mut guarded, GRACE).await;
    let pods = BusyPods::first_of_two(&guarded).await;
    let busy = pods.busy[0].as_str();
    evictions.request(busy, ANN).await;
    evictions.until(busy, Eviction::is_answered).await;
    pods.await_successors(&guarded, 3).await;
    evictions.withdraw(busy, ANN).await;
    evictions.until(busy, Eviction::is_failed).await;
    pods.assert_kept(&guarded, &BTreeSet::new()).await;
    evictions.assert_valid(&[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_pod_is_kept_after_its_request_has_expired_and_its_successor_is_deleted() {
    let guarded = Guarded::new("withdrawn-expired").await;
    let mut changes = successors_first(1);
    changes["disruption"] = json!({ "requestExpirationSeconds": 60 });
    let pods = BusyPods::launch(&guarded, 2, 1, changes).await;
    let busy = pods.busy[0].as_str();
    let request = |annotation: String| {
        let annotate = ["annotate", "pod", busy, &annotation, "--overwrite"];
        let _ = guarded.fleet.kubectl(&annotate, "");
    };
    request(requested_before(0));
    guarded.await_requests(&[(busy, "Delete", "ci")]).await;
    pods.await_successors(&guarded, 3).await;
    // It expires in 3 s.
    request(requested_before(57));
    guarded.fleet.told("RemovalRequestExpired ").await;
    pods.assert_kept(&guarded, &BTreeSet::new()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_pod_that_is_removed_from_pods_to_delete_is_kept_and_its_successor_is_deleted() {
    let guarded = Guarded::new("withdrawn-list").await;
    let pods = BusyPods::first_of_two(&guarded).await;
    let list = |names: &[String]| json!({ "scaleStrategy": { "podsToDelete": names } });
    guarded.fleet.set(list(&pods.busy)).await;
    pods.await_successors(&guarded, 3).await;
    guarded.fleet.set(list(&[])).await;
    pods.assert_kept(&guarded, &BTreeSet::new()).await;
}
