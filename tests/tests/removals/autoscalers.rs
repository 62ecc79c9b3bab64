//! Calls by which autoscalers drain a node, in the order of their source code, but at shorter intervals.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod, Taint};
use kube::api::{Api, Patch, PatchParams, PostParams};
use operator_tests::SOON;
use serde_json::{Value, json};
use test_kit::eventually;

use crate::guarded::{Guarded, evict};

/// Interval between two evictions of a pod: 10 s in the cluster autoscaler, and up to 10 s in Karpenter.
const INTERVAL: Duration = Duration::from_millis(200);
/// Number of evictions of a pod until the cluster autoscaler gives up: it tries for 2 minutes.
const ATTEMPTS: usize = 12;
const TO_BE_DELETED: &str = "ToBeDeletedByClusterAutoscaler";

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
}

#[tokio::test(flavor = "multi_thread")]
async fn after_the_cluster_autoscaler_has_given_up_the_busy_pod_is_kept_and_its_node_takes_new_pods() {
    let guarded = Guarded::new("cluster-autoscaler").await;
    let before = guarded.launch(4, json!({ "maxUnavailable": 4 })).await;
    let (busy, mut ended) = guarded.occupy(&before, 1);
    let [node, other] = guarded.nodes();
    let user = "system:serviceaccount:kube-system:cluster-autoscaler";
    let autoscaler = Autoscaler::new(&guarded, user);
    // MarkToBeDeleted in utils/taints/taints.go: an update of the node. The value is the time.
    let taint = Taint {
        effect: "NoSchedule".to_owned(),
        key: TO_BE_DELETED.to_owned(),
        value: Some(Timestamp::now().as_second().to_string()),
        ..Taint::default()
    };
    autoscaler
        .update_taints(&node, |taints| taints.push(taint.clone()))
        .await;
    // evictPod in core/scaledown/actuation/drain.go: evictions of the pods that were on the node at the beginning, with
    // their grace period.
    let options = |_: &str| json!({ "gracePeriodSeconds": 30 });
    autoscaler.drain("policy/v1beta1", &before, &busy, options).await;
    guarded.await_replaced(&ended, 4).await;
    guarded.await_requests(&[(&busy[0], "Eviction", user)]).await;
    // CleanUpAndRecordFailedScaleDownEvent in core/scaledown/actuation/delete_in_batch.go.
    autoscaler
        .update_taints(&node, |taints| taints.retain(|taint| taint.key != TO_BE_DELETED))
        .await;
    guarded.await_requests(&[]).await;
    eventually(SOON, || async {
        match guarded.requesters(&busy[0]).await {
            requesters if requesters.is_empty() => Ok(()),
            requesters => Err(requesters),
        }
    })
    .await;
    let earlier = guarded.pods_on(&node);
    let _ = guarded.fleet.kubectl(&["cordon", &other], "");
    guarded.fleet.scale(5);
    guarded.await_replaced(&ended, 5).await;
    let later = guarded.pods_on(&node);
    assert!(earlier.contains(&busy[0]) && later.is_superset(&earlier));
    assert_eq!(later.len(), earlier.len() + 1);
    guarded.assert_kept(&busy[0], &mut ended, 5).await;
}

/// Karpenter does not give up: the node keeps its taint, and without a `terminationGracePeriod` no pod is deleted by
/// force.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_karpenter_removes_is_drained_when_its_last_match_ends() {
    let guarded = Guarded::new("karpenter").await;
    let before = guarded.launch(4, json!({ "maxUnavailable": 4 })).await;
    let (busy, idle) = guarded.occupy(&before, 1);
    let [node, other] = guarded.nodes();
    let user = "system:serviceaccount:karpenter:karpenter";
    let karpenter = Autoscaler::new(&guarded, user);
    // The scheduler of the test kit ignores taints.
    let _ = guarded.fleet.kubectl(&["cordon", &node], "");
    // Taint in pkg/controllers/node/termination/terminator/terminator.go: a merge patch of the version that was read.
    eventually(SOON, || async {
        let found = karpenter.nodes.get(&node).await?;
        let mut taints = found.spec.unwrap_or_default().taints.unwrap_or_default();
        taints.push(Taint {
            effect: "NoSchedule".to_owned(),
            key: "karpenter.sh/disrupted".to_owned(),
            ..Taint::default()
        });
        let labels = json!({ "node.kubernetes.io/exclude-from-external-load-balancers": "karpenter" });
        let patch = Patch::Merge(json!({
            "metadata": { "resourceVersion": found.metadata.resource_version, "labels": labels },
            "spec": { "taints": taints },
        }));
        karpenter
            .nodes
            .patch(&node, &PatchParams::default(), &patch)
            .await
    })
    .await;
    // evict in pkg/controllers/node/termination/terminator/eviction.go: with the UID as a precondition.
    let uids = guarded.fleet.uids().await;
    let options = |pod: &str| json!({ "preconditions": { "uid": uids[pod] } });
    let version = match guarded.fleet.control_plane.minor_version() {
        0..22 => "policy/v1beta1",
        _ => "policy/v1",
    };
    karpenter.drain(version, &before, &busy, options).await;
    guarded.await_replaced(&idle, 4).await;
    guarded.await_requests(&[(&busy[0], "Eviction", user)]).await;
    guarded.assert_ended_once(&idle);
    guarded.fleet.nodes.pod(&busy[0]).set_players(0);
    let left = busy.into_iter().collect();
    karpenter.drain(version, &left, &[], options).await;
    guarded.await_replaced(&before, 4).await;
    guarded.fleet.settled(4).await;
    guarded.assert_ended_once(&before);
    assert_eq!(guarded.pods_on(&other).len(), 4);
}
