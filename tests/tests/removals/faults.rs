//! Drains during which the webhook, an operator or the drain itself is killed, and a drain with two leaders.

use std::collections::BTreeSet;
use std::process::Stdio;

use futures::future::join_all;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use operator_tests::fleet::{GAME, Who, pod_of};
use operator_tests::{Operator, SOON, allow_election, assert_has};
use serde_json::json;
use shared_api::{HookRun, Phase};
use test_kit::api_proxy::{Matcher, Moment};
use test_kit::{ApiProxy, eventually};
use tokio::task::JoinHandle;

use crate::guarded::{Guarded, evict};

/// Labels of the metric for evictions.
const EVICTIONS: [&str; 1] = ["kind=\"Eviction\""];
const LOST_UNGATED: &str = "hookgate_gamedeployment_pods_lost_ungated_total";

impl Guarded {
    /// Drains a node in the background.
    pub(crate) fn start_drain(&self, node: &str) -> JoinHandle<(bool, String)> {
        self.start_kubectl(&["drain", node, "--ignore-daemonsets", "--timeout=120s"])
    }

    /// Waits until the webhook has reviewed this many more evictions.
    pub(crate) async fn await_evictions(&self, count: u64) {
        let wanted = self.count_reviews(&EVICTIONS).await + count;
        eventually(SOON, || async {
            let found = self.count_reviews(&EVICTIONS).await;
            if found < wanted { Err(found) } else { Ok(()) }
        })
        .await;
    }

    /// Checks that evictions and deletions of these pods fail because the webhook does not respond.
    pub(crate) async fn assert_no_response(&self, pods: &BTreeSet<String>) {
        let api = self.pods_as("jane");
        let removals = pods.iter().map(async |pod| {
            let eviction = json!({ "metadata": { "name": pod } });
            tokio::join!(evict(&api, &eviction), delete(&api, pod))
        });
        let codes = join_all(removals).await;
        assert!(codes.iter().all(|codes| *codes == (500, 500)), "{codes:?}");
    }

    /// Checks that the drain of the first node succeeds, and that exactly these pods have ended, each once
    /// and after its hook, and are replaced on the second node.
    pub(crate) async fn assert_drained(
        &self,
        drain: JoinHandle<(bool, String)>,
        ended: &BTreeSet<String>,
        replicas: usize,
    ) {
        let (succeeded, output) = drain.await.unwrap();
        assert!(succeeded, "{output}");
        self.await_replaced(ended, replicas).await;
        self.fleet.settled(replicas).await;
        self.assert_ended_after_hooks(ended);
        let [_, other] = self.nodes();
        assert_eq!(self.pods_on(&other).len(), replicas);
    }
}

/// Deletes a pod. Returns the code of the response.
pub(crate) async fn delete(pods: &Api<Pod>, pod: &str) -> u16 {
    match pods.delete(pod, &DeleteParams::default()).await {
        Ok(_) => 200,
        Err(kube::Error::Api(status)) => status.code,
        Err(other) => panic!("{pod}: {other}"),
    }
}

fn has_succeeded(run: &HookRun) -> bool {
    let status = run.status.as_ref();
    status.is_some_and(|status| status.phase == Phase::Successful)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_fails_when_the_webhook_goes_down_and_completes_when_repeated_after_the_webhook_restarts() {
    let guarded = Guarded::new("webhook-killed").await;
    let before = guarded.launch(4, json!({ "maxUnavailable": 4 })).await;
    let (busy, idle) = guarded.occupy(&before, 2);
    let [node, _] = guarded.nodes();
    let drain = guarded.start_drain(&node);
    guarded.await_replaced(&idle, 4).await;
    let replica = guarded.replica.as_ref().unwrap();
    replica.process.kill_hard().unwrap();
    let (succeeded, output) = drain.await.unwrap();
    assert!(!succeeded, "{output}");
    assert_has(&output, "failed calling webhook");
    // Two busy pods, and two idle ones that replaced others.
    guarded.assert_no_response(&guarded.fleet.names().await).await;
    guarded.fleet.quiet().await;
    guarded.assert_ended_after_hooks(&idle);

    replica.process.restart().unwrap();
    replica.ready().await;
    let drain = guarded.start_drain(&node);
    guarded.await_evictions(2).await;
    guarded.assert_ended_after_hooks(&idle);
    guarded.end_matches(&busy);
    guarded.assert_drained(drain, &before, 4).await;
    assert_eq!(guarded.fleet.metric(LOST_UNGATED, "").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_recorded_while_the_operator_is_down_and_the_drain_completes_after_its_restart() {
    let mut guarded = Guarded::new("operator-killed").await;
    let before = guarded.launch(4, json!({ "maxUnavailable": 4 })).await;
    let (busy, _) = guarded.occupy(&before, 4);
    let [node, _] = guarded.nodes();
    let drain = guarded.start_drain(&node);
    guarded.fleet.asked(4).await;
    guarded.fleet.kill_workloads();
    guarded.end_match(&busy[0]);
    guarded
        .fleet
        .until_runs(|runs| runs.iter().any(has_succeeded))
        .await;
    let eviction = json!({ "metadata": { "name": busy[1] } });
    assert_eq!(evict(&guarded.pods_as("jane"), &eviction).await, 429);
    let mut requesters = guarded.requesters(&busy[1]).await;
    requesters.sort_unstable();
    assert_eq!(requesters, ["admin", "jane"]);
    // The drain repeats each of its evictions.
    guarded.await_evictions(8).await;
    assert_eq!(guarded.fleet.nodes.terminated_pods(), BTreeSet::new());

    guarded.fleet.start_workloads().await;
    let first = BTreeSet::from([busy[0].clone()]);
    guarded.await_replaced(&first, 4).await;
    guarded.assert_ended_after_hooks(&first);
    guarded.end_matches(&busy);
    guarded.assert_drained(drain, &before, 4).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_pod_ends_while_hook_operator_is_down_and_the_drain_completes_after_its_restart() {
    let mut guarded = Guarded::new("hooks-killed").await;
    let before = guarded.launch(4, json!({ "maxUnavailable": 4 })).await;
    let (busy, idle) = guarded.occupy(&before, 2);
    let [node, other] = guarded.nodes();
    let drain = guarded.start_drain(&node);
    guarded.await_replaced(&idle, 4).await;
    guarded.fleet.hooks = None;
    guarded.end_matches(&busy);
    let successor = eventually(SOON, || async {
        guarded
            .pods_on(&other)
            .into_iter()
            .next()
            .ok_or("no successor is ready")
    })
    .await;
    let eviction = json!({ "metadata": { "name": successor } });
    assert_eq!(evict(&guarded.pods_as("jane"), &eviction).await, 429);
    guarded
        .fleet
        .until_runs(|runs| runs.iter().any(|run| pod_of(run) == successor))
        .await;
    // The drain repeats each of its evictions.
    guarded.await_evictions(4).await;
    guarded.assert_ended_after_hooks(&idle);

    guarded.fleet.start_hooks().await;
    let mut ended = before;
    ended.insert(successor);
    guarded.assert_drained(drain, &ended, 4).await;
    assert_eq!(guarded.fleet.metric(LOST_UNGATED, "").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_drain_is_killed_and_its_node_uncordoned_the_workload_settles_and_can_be_deleted() {
    let guarded = Guarded::new("drain-killed").await;
    let before = guarded.launch(4, json!({ "maxUnavailable": 4 })).await;
    let (busy, idle) = guarded.occupy(&before, 2);
    let [node, _] = guarded.nodes();
    let mut command = guarded.fleet.control_plane.kubectl();
    command.args(["drain", &node, "--ignore-daemonsets", "--timeout=120s"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut drain = command.spawn().unwrap();
    guarded.await_replaced(&idle, 4).await;
    guarded.fleet.asked(2).await;
    guarded.await_evictions(2).await;
    drain.kill().unwrap();
    drain.wait().unwrap();
    let _ = guarded.fleet.kubectl(&["uncordon", &node], "");
    guarded.await_requests(&[]).await;
    guarded.fleet.settled(4).await;
    for pod in &busy {
        assert!(guarded.requesters(pod).await.is_empty());
    }
    guarded.end_matches(&busy);
    guarded.fleet.quiet().await;
    guarded.assert_ended_after_hooks(&idle);

    let mut ended = idle;
    ended.extend(guarded.fleet.names().await);
    let (succeeded, output) = guarded.start_deletion(&[]).await.unwrap();
    assert!(succeeded, "{output}");
    assert!(guarded.fleet.games().get_opt(GAME).await.unwrap().is_none());
    guarded.await_ended(&ended).await;
    guarded.assert_ended_after_hooks(&ended);
}

/// Waits until a candidate leads.
async fn await_lead(operator: &Operator) {
    eventually(SOON, || async {
        if leads(operator).await == 1 {
            Ok(())
        } else {
            Err(operator.process.tail(5))
        }
    })
    .await;
}

async fn leads(operator: &Operator) -> u64 {
    operator.metric("hookgate_leader{", "").await
}

/// The first leader cannot access its Lease, and still leads after the second one has acquired it.
#[tokio::test(flavor = "multi_thread")]
async fn two_leaders_at_once_delete_each_pod_of_a_drained_node_once_and_after_its_hook() {
    let mut guarded = Guarded::new("two-leaders").await;
    let control_plane = guarded.fleet.control_plane;
    allow_election(control_plane, &guarded.fleet.namespace);
    let proxy = ApiProxy::start(control_plane).unwrap();
    let [first, second] = [Some(&proxy), None].map(|proxy| {
        let start = guarded.fleet.start_of(Who::Workloads, proxy);
        start.flags(&["--lease-duration", "30s"]).elects()
    });
    guarded.fleet.start(Who::Workloads, &first).await;
    await_lead(guarded.fleet.workloads.as_ref().unwrap()).await;
    let second = Operator::start(&second);
    second.ready().await;
    let before = guarded.launch(4, json!({ "maxUnavailable": 4 })).await;
    let (busy, _) = guarded.occupy(&before, 4);
    let [node, _] = guarded.nodes();
    let drain = guarded.start_drain(&node);
    guarded.fleet.asked(4).await;

    let stalled = proxy.stall_after(Matcher::any("/leases"), 0, Moment::BeforeForwarding);
    stalled.await_hits(1, SOON).await.unwrap();
    let leases: Api<Lease> = Api::namespaced(guarded.fleet.client(), &guarded.fleet.namespace);
    let nobody = Patch::Merge(json!({ "spec": { "holderIdentity": "" } }));
    let params = PatchParams::default();
    leases
        .patch(Who::Workloads.name(), &params, &nobody)
        .await
        .unwrap();
    await_lead(&second).await;
    assert_eq!(leads(guarded.fleet.workloads.as_ref().unwrap()).await, 1);
    for pod in &busy[..2] {
        guarded.end_match(pod);
    }
    let mut ended: BTreeSet<String> = busy[..2].iter().cloned().collect();
    guarded.await_ended(&ended).await;
    let first = guarded.fleet.workloads.replace(second).unwrap();
    let status = first.process.wait(SOON).await.unwrap();
    assert_eq!(status.code(), Some(1), "{}", first.process.tail(5));
    stalled.release();

    guarded.await_replaced(&ended, 4).await;
    guarded.assert_ended_after_hooks(&ended);
    for pod in &busy[2..] {
        guarded.end_match(pod);
        ended.insert(pod.clone());
    }
    guarded.assert_drained(drain, &ended, 4).await;
}
