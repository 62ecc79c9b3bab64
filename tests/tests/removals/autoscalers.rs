//! Calls by which autoscalers drain a node, in the order of their source code, but at shorter intervals.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod, Taint};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use operator_tests::SOON;
use serde_json::{Value, json};
use shared_api::removal_request::node_requester;
use test_kit::eventually;

use crate::guarded::{Guarded, evict};

/// Interval between two evictions of a pod: 10 s in the cluster autoscaler, and up to 10 s in Karpenter.
const INTERVAL: Duration = Duration::from_millis(200);
/// Number of evictions of a pod until the cluster autoscaler gives up: it tries for 2 minutes.
const ATTEMPTS: usize = 12;
// Taints.
const TO_BE_DELETED: &str = "ToBeDeletedByClusterAutoscaler";
const DISRUPTED: &str = "karpenter.sh/disrupted";
// Users.
const CLUSTER_AUTOSCALER: &str = "system:serviceaccount:kube-system:cluster-autoscaler";
const KARPENTER: &str = "system:serviceaccount:karpenter:karpenter";

/// Codes of the responses to the evictions of each pod.
type Codes<'p> = BTreeMap<&'p str, Vec<u16>>;

struct Autoscaler {
    nodes: Api<Node>,
    pods: Api<Pod>,
}

impl Autoscaler {
    fn new(guarded: &Guarded, user: &str) -> Self {
        Self {
            nodes: Api::all(guarded.client_as(user)),
            pods: guarded.pods_as(user),
        }
    }

    /// Updates the taints of a node. The update is repeated after a conflict, for example with a heartbeat.
    async fn update_taints(&self, name: &str, change: impl Fn(&mut Vec<Taint>)) {
        eventually(SOON, || async {
            let mut node = self.nodes.get(name).await?;
            change(node.spec.get_or_insert_default().taints.get_or_insert_default());
            self.nodes.replace(name, &PostParams::default(), &node).await
        })
        .await;
    }

    /// Taints a node as the cluster autoscaler does: see `MarkToBeDeleted` in utils/taints/taints.go. The value is the
    /// time.
    async fn mark_to_be_deleted(&self, node: &str) {
        let taint = Taint {
            value: Some(Timestamp::now().as_second().to_string()),
            ..no_schedule(TO_BE_DELETED)
        };
        self.update_taints(node, |taints| taints.push(taint.clone()))
            .await;
    }

    /// Gives up the removal of a node as the cluster autoscaler does: see `CleanUpAndRecordFailedScaleDownEvent` in
    /// `core/scaledown/actuation/delete_in_batch.go`.
    async fn give_up(&self, node: &str) {
        self.update_taints(node, |taints| taints.retain(|taint| taint.key != TO_BE_DELETED))
            .await;
    }

    /// Changes the taints of a node by a merge patch of the version that was read, as Karpenter does. Also sets these
    /// labels.
    async fn patch_taints(&self, name: &str, labels: Value, change: impl Fn(&mut Vec<Taint>)) {
        eventually(SOON, || async {
            let found = self.nodes.get(name).await?;
            let mut taints = found.spec.unwrap_or_default().taints.unwrap_or_default();
            change(&mut taints);
            let patch = Patch::Merge(json!({
                "metadata": { "resourceVersion": found.metadata.resource_version, "labels": labels },
                "spec": { "taints": taints },
            }));
            self.nodes.patch(name, &PatchParams::default(), &patch).await
        })
        .await;
    }

    /// Taints a node before Karpenter starts its replacement: see `RequireNoScheduleTaint` in
    /// pkg/controllers/state/statenode.go.
    async fn mark_disrupted(&self, node: &str) {
        self.patch_taints(node, json!({}), |taints| taints.push(no_schedule(DISRUPTED)))
            .await;
    }

    /// Keeps a node because its replacement has failed: see `Reconcile` in pkg/controllers/disruption/queue.go.
    async fn unmark_disrupted(&self, node: &str) {
        self.patch_taints(node, json!({}), |taints| {
            taints.retain(|taint| taint.key != DISRUPTED);
        })
        .await;
    }

    /// Taints a node that Karpenter terminates: see `Taint` in
    /// pkg/controllers/node/termination/terminator/terminator.go.
    async fn terminate(&self, node: &str) {
        let labels = json!({ "node.kubernetes.io/exclude-from-external-load-balancers": "karpenter" });
        self.patch_taints(node, labels, |taints| {
            taints.retain(|taint| taint.key != DISRUPTED);
            taints.push(no_schedule(DISRUPTED));
        })
        .await;
    }

    /// Deletes a pod before the `terminationGracePeriod` of its node ends: see `DeleteExpiringPods` in
    /// pkg/controllers/node/termination/terminator/terminator.go. `seconds`: time that is left. Returns the code of the
    /// response.
    async fn delete_expiring(&self, pod: &str, seconds: u32) -> u16 {
        let params = DeleteParams::default().grace_period(seconds);
        match self.pods.delete(pod, &params).await {
            Ok(_) => 200,
            Err(kube::Error::Api(status)) => status.code,
            Err(other) => panic!("{pod}: {other}"),
        }
    }

    /// Evicts each pod again while the response is 429, until only the busy pods are left, and each of them was evicted
    /// [`ATTEMPTS`] times. `options`: delete options of the Eviction, by pod.
    async fn drain(
        &self,
        version: &str,
        pods: &BTreeSet<String>,
        busy: &[String],
        options: impl Fn(&str) -> Value,
    ) {
        let mut codes: Codes<'_> = pods.iter().map(|pod| (pod.as_str(), Vec::new())).collect();
        let is_over = |(pod, codes): (&&str, &Vec<u16>)| {
            let is_busy = busy.iter().any(|busy| busy == pod);
            is_busy && codes.len() >= ATTEMPTS || codes.last().is_some_and(|code| *code != 429)
        };
        let calls = async {
            let mut pace = tokio::time::interval(INTERVAL);
            while !codes.iter().all(is_over) {
                pace.tick().await;
                for (pod, codes) in &mut codes {
                    if codes.last().is_none_or(|code| *code == 429) {
                        let eviction = json!({
                            "apiVersion": version, "kind": "Eviction", "metadata": { "name": pod },
                            "deleteOptions": options(pod),
                        });
                        codes.push(evict(&self.pods, &eviction).await);
                    }
                }
            }
        };
        let in_time = tokio::time::timeout(SOON, calls).await.is_ok();
        assert!(in_time, "{codes:?}");
        for (pod, found) in &codes {
            let last = found.last().unwrap();
            if busy.iter().any(|busy| busy == pod) {
                assert_eq!(*last, 429, "{codes:?}");
            } else {
                // Both autoscalers consider a pod that no longer exists evicted.
                assert!([201, 404].contains(last), "{codes:?}");
            }
        }
    }

    /// Evicts pods as the cluster autoscaler does: see `evictPod` in core/scaledown/actuation/drain.go. These are the
    /// pods that were on the node at the beginning, with their grace period.
    async fn evict_all(&self, pods: &BTreeSet<String>, busy: &[String]) {
        let options = |_: &str| json!({ "gracePeriodSeconds": 30 });
        self.drain("policy/v1beta1", pods, busy, options).await;
    }
}

fn no_schedule(key: &str) -> Taint {
    Taint {
        effect: "NoSchedule".to_owned(),
        key: key.to_owned(),
        ..Taint::default()
    }
}

/// Returns the version of the evictions by Karpenter: see `evict` in
/// pkg/controllers/node/termination/terminator/eviction.go.
fn version_of_karpenter(guarded: &Guarded) -> &'static str {
    match guarded.fleet.control_plane.minor_version() {
        0..22 => "policy/v1beta1",
        _ => "policy/v1",
    }
}

/// Returns changes to a workload of four pods: the taints of autoscalers are removal requests.
fn ask_on_cordon() -> Value {
    json!({ "disruption": { "onCordon": "Ask" }, "updateStrategy": { "maxUnavailable": 4 } })
}

/// Waits until exactly these pods are ready on the first node, and the rest of the four pods on the second one. The
/// scheduler of the test kit ignores taints, so it may place successors on the first node. These are replaced as well,
/// some of them before they start.
async fn await_on_first(guarded: &Guarded, pods: &[String]) {
    let [first, second] = guarded.nodes();
    let wanted: BTreeSet<String> = pods.iter().cloned().collect();
    eventually(SOON, || async {
        let (left, moved) = (guarded.pods_on(&first), guarded.pods_on(&second));
        if left == wanted && left.len() + moved.len() == 4 {
            Ok(())
        } else {
            Err((left, moved))
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_the_cluster_autoscaler_has_given_up_the_busy_pod_is_kept() {
    let guarded = Guarded::new("cluster-autoscaler").await;
    let before = guarded.launch(4, json!({ "maxUnavailable": 4 })).await;
    let (busy, mut ended) = guarded.occupy(&before, 1);
    let [node, _] = guarded.nodes();
    let autoscaler = Autoscaler::new(&guarded, CLUSTER_AUTOSCALER);
    autoscaler.mark_to_be_deleted(&node).await;
    autoscaler.evict_all(&before, &busy).await;
    guarded.await_replaced(&ended, 4).await;
    guarded
        .await_requests(&[(&busy[0], "Eviction", CLUSTER_AUTOSCALER)])
        .await;
    guarded.assert_ended_after_hooks(&ended);
    autoscaler.give_up(&node).await;
    guarded.await_requests(&[]).await;
    guarded.await_withdrawn(&busy[0]).await;
    guarded.assert_kept(&busy[0], &mut ended, 4).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_on_cordon_ask_the_taint_of_the_cluster_autoscaler_requests_removals_until_it_gives_up() {
    let guarded = Guarded::new("autoscaler-ask").await;
    let before = guarded.launch_with(4, ask_on_cordon()).await;
    let (busy, _) = guarded.occupy(&before, 1);
    let [node, other] = guarded.nodes();
    let by_node = node_requester(&node);
    let by_taint = (busy[0].as_str(), "Cordon", by_node.as_str());
    let autoscaler = Autoscaler::new(&guarded, CLUSTER_AUTOSCALER);
    autoscaler.mark_to_be_deleted(&node).await;
    await_on_first(&guarded, &busy).await;
    guarded.await_requests(&[by_taint]).await;
    assert!(guarded.requesters(&busy[0]).await.is_empty());
    autoscaler.evict_all(&before, &busy).await;
    let by_eviction = (busy[0].as_str(), "Eviction", CLUSTER_AUTOSCALER);
    guarded.await_requests(&[by_taint, by_eviction]).await;
    autoscaler.give_up(&node).await;
    guarded.await_requests(&[]).await;
    guarded.await_withdrawn(&busy[0]).await;
    guarded.fleet.settled(4).await;
    let mut ended = guarded.fleet.nodes.terminated_pods();
    guarded.assert_after_hooks(&before);

    // Until another pod has been replaced, the operator has decided many times.
    guarded.end_matches(&busy);
    let moved = guarded.pods_on(&other).pop_first().unwrap();
    assert!(!guarded.kubectl(&["delete", "pod", &moved, "--wait=false"]).0);
    ended.insert(moved);
    guarded.await_replaced(&ended, 4).await;
    assert!(guarded.fleet.names().await.contains(&busy[0]));
}

/// Once Karpenter terminates a node, it does not give up: the node keeps its taint.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_karpenter_terminates_is_drained_when_its_last_match_ends() {
    let guarded = Guarded::new("karpenter").await;
    let before = guarded.launch(4, json!({ "maxUnavailable": 4 })).await;
    let (busy, idle) = guarded.occupy(&before, 1);
    let [node, other] = guarded.nodes();
    let karpenter = Autoscaler::new(&guarded, KARPENTER);
    // The scheduler of the test kit ignores taints.
    let _ = guarded.fleet.kubectl(&["cordon", &node], "");
    karpenter.terminate(&node).await;
    let uids = guarded.fleet.uids().await;
    let options = |pod: &str| json!({ "preconditions": { "uid": uids[pod] } });
    let version = version_of_karpenter(&guarded);
    karpenter.drain(version, &before, &busy, options).await;
    guarded.await_replaced(&idle, 4).await;
    guarded.await_requests(&[(&busy[0], "Eviction", KARPENTER)]).await;
    guarded.assert_ended_after_hooks(&idle);
    guarded.end_matches(&busy);
    let left = busy.into_iter().collect();
    karpenter.drain(version, &left, &[], options).await;
    guarded.await_replaced(&before, 4).await;
    guarded.fleet.settled(4).await;
    guarded.assert_ended_after_hooks(&before);
    assert_eq!(guarded.pods_on(&other).len(), 4);
}

/// The first replacement of the node fails, and the second one starts.
#[tokio::test(flavor = "multi_thread")]
async fn with_on_cordon_ask_the_taint_of_karpenter_requests_removals_until_a_replacement_fails() {
    let guarded = Guarded::new("karpenter-ask").await;
    let before = guarded.launch_with(4, ask_on_cordon()).await;
    let (busy, _) = guarded.occupy(&before, 1);
    let [node, _] = guarded.nodes();
    let by_node = node_requester(&node);
    let by_taint = [(busy[0].as_str(), "Cordon", by_node.as_str())];
    let karpenter = Autoscaler::new(&guarded, KARPENTER);
    karpenter.mark_disrupted(&node).await;
    await_on_first(&guarded, &busy).await;
    guarded.await_requests(&by_taint).await;
    karpenter.unmark_disrupted(&node).await;
    guarded.await_requests(&[]).await;
    guarded.fleet.settled(4).await;
    let ended = guarded.fleet.nodes.terminated_pods();
    guarded.assert_after_hooks(&before);

    karpenter.mark_disrupted(&node).await;
    guarded.await_requests(&by_taint).await;
    karpenter.terminate(&node).await;
    let uids = guarded.fleet.uids().await;
    let options = |pod: &str| json!({ "preconditions": { "uid": uids[pod] } });
    let version = version_of_karpenter(&guarded);
    let left = busy.iter().cloned().collect();
    karpenter.drain(version, &left, &busy, options).await;
    assert_eq!(guarded.fleet.nodes.terminated_pods(), ended);
    guarded.end_matches(&busy);
    karpenter.drain(version, &left, &[], options).await;
    await_on_first(&guarded, &[]).await;
    guarded.fleet.settled(4).await;
    assert!(guarded.fleet.nodes.terminated_pods().is_superset(&before));
    guarded.assert_after_hooks(&before);
}

#[tokio::test(flavor = "multi_thread")]
async fn deletions_before_the_termination_grace_period_of_a_karpenter_node_ends_are_denied_and_recorded() {
    let guarded = Guarded::new("karpenter-expiring").await;
    let before = guarded.launch(4, json!({ "maxUnavailable": 4 })).await;
    let (busy, idle) = guarded.occupy(&before, 2);
    let [node, other] = guarded.nodes();
    let karpenter = Autoscaler::new(&guarded, KARPENTER);
    // The scheduler of the test kit ignores taints.
    let _ = guarded.fleet.kubectl(&["cordon", &node], "");
    karpenter.terminate(&node).await;
    for pod in &before {
        assert_eq!(karpenter.delete_expiring(pod, 25).await, 403);
    }
    guarded.await_replaced(&idle, 4).await;
    for pod in &busy {
        assert_eq!(karpenter.delete_expiring(pod, 0).await, 403);
    }
    let requests = busy.iter().map(|pod| (pod.as_str(), "Delete", KARPENTER));
    guarded.await_requests(&requests.collect::<Vec<_>>()).await;
    guarded.fleet.asked(2).await;
    guarded.assert_ended_after_hooks(&idle);
    guarded.end_matches(&busy);
    guarded.await_replaced(&before, 4).await;
    guarded.fleet.settled(4).await;
    guarded.assert_ended_after_hooks(&before);
    assert_eq!(guarded.pods_on(&other).len(), 4);
}
