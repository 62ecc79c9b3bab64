//! Removals of guarded pods: removal requests that are withdrawn or executed, and the deletion of the workload. The
//! operator dies only after the launch, so that its first writes are those of the removal.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::FutureExt;
use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams};
use operator_tests::fleet::{GAME, game, hooked, pod_of, until_empty};
use operator_tests::{Fleet, SOON};
use serde_json::json;
use shared_api::names::pod::REMOVAL_REQUESTED;
use shared_api::names::workload::ASK_BEFORE_REMOVAL;
use shared_api::removal_request::{RemovalRequests, RemovalType};
use shared_api::{HookRun, Phase};
use test_kit::eventually;

use crate::stories::{Story, ends, quiet};

pub(crate) const REMOVALS: &[Story] = &[
    Story {
        name: "withdrawn-requests",
        prepare: |fleet| launch(fleet, 2, "Ask").boxed_local(),
        play: |fleet| withdrawn_requests(fleet).boxed_local(),
        end: |fleet| ends(fleet, 2, "game:v1", Some(1)).boxed_local(),
    },
    Story {
        name: "drain",
        prepare: |fleet| launch(fleet, 3, "Ask").boxed_local(),
        play: |fleet| drain(fleet).boxed_local(),
        end: |fleet| ends(fleet, 3, "game:v1", Some(3)).boxed_local(),
    },
    Story {
        name: "guarded-deletion",
        prepare: |fleet| launch(fleet, 3, "Unguarded").boxed_local(),
        play: |fleet| deletion(fleet).boxed_local(),
        end: |fleet| is_deleted(fleet, 3).boxed_local(),
    },
];

/// Checks that nothing is left of the workload, and that this many containers have ended.
async fn is_deleted(fleet: &Fleet<'_>, terminations: usize) {
    fleet.workloads.as_ref().unwrap().ready().await;
    fleet.hooks.as_ref().unwrap().ready().await;
    fleet.quiet().await;
    assert!(fleet.games().get_opt(GAME).await.unwrap().is_none());
    assert!(fleet.all_pods().await.is_empty());
    fleet.until_runs(<[HookRun]>::is_empty).await;
    assert_eq!(fleet.nodes.terminations().len(), terminations);
}

/// Launches a workload with a match on each pod, also on later ones.
async fn launch(fleet: &Fleet<'_>, replicas: usize, policy: &str) {
    let mut spec = hooked("empty");
    spec["disruption"] = json!({ "policy": policy, "onCordon": "Ask" });
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(replicas, spec)).await;
    fleet.nodes.every_pod().set_players(1);
    fleet.settled(replicas).await;
}

/// Ends the matches on all of these pods but one. Returns the busy pod, and the idle ones.
fn end_all_but_one(fleet: &Fleet<'_>, pods: &BTreeSet<String>) -> (String, BTreeSet<String>) {
    let mut idle = pods.clone();
    let busy = idle.pop_first().unwrap();
    for pod in &idle {
        fleet.nodes.pod(pod).set_players(0);
    }
    (busy, idle)
}

/// Writes the removal requests of a pod.
async fn write_requests(fleet: &Fleet<'_>, pod: &str, requests: &RemovalRequests) {
    let annotations = json!({ REMOVAL_REQUESTED: requests.annotation() });
    let patch = Patch::Merge(json!({ "metadata": { "annotations": annotations } }));
    let params = PatchParams::default();
    fleet.pods().patch(pod, &params, &patch).await.unwrap();
}

/// Requests the removal of a pod, like `kubectl game drain`.
async fn request(fleet: &Fleet<'_>, pod: &str) {
    let mut requests = RemovalRequests::default();
    let recorded = requests.record("ann", RemovalType::Manual, Timestamp::now());
    recorded.unwrap();
    write_requests(fleet, pod, &requests).await;
}

/// Waits until the containers of exactly these pods have ended, each once.
async fn await_ended(fleet: &Fleet<'_>, pods: &BTreeSet<String>) {
    eventually(SOON, || async {
        let ends = fleet.nodes.terminations().into_iter();
        let mut ended: Vec<String> = ends.map(|end| end.pod).collect();
        ended.sort_unstable();
        if ended.iter().eq(pods) { Ok(()) } else { Err(ended) }
    })
    .await;
}

/// Waits until the idle pods have ended and only the hook of the busy one runs, ends its match, and waits until it has
/// ended as well.
async fn end_last_match(fleet: &Fleet<'_>, busy: &str, idle: &BTreeSet<String>) {
    await_ended(fleet, idle).await;
    let is_of_busy = |run: &HookRun| {
        let phase = run.status.as_ref().map(|status| status.phase);
        pod_of(run) == busy && phase == Some(Phase::Running)
    };
    fleet
        .until_runs(|runs| runs.len() == 1 && runs.iter().all(is_of_busy))
        .await;
    assert_eq!(fleet.nodes.terminated_pods(), *idle);
    fleet.nodes.pod(busy).set_players(0);
    let mut all = idle.clone();
    all.insert(busy.to_owned());
    await_ended(fleet, &all).await;
}

/// Requests of a user and of the node are withdrawn during the matches. Afterwards, the removal of one pod is
/// requested again, and the pod is replaced; the other pod is kept.
async fn withdrawn_requests(fleet: &Fleet<'_>) {
    let mut pods = fleet.names().await;
    let kept = pods.pop_first().unwrap();
    let node = fleet.nodes.node_names().remove(0);
    request(fleet, &kept).await;
    fleet.asked(1).await;
    let _ = fleet.kubectl(&["cordon", &node], "");
    fleet.asked(2).await;
    write_requests(fleet, &kept, &RemovalRequests::default()).await;
    let _ = fleet.kubectl(&["uncordon", &node], "");
    fleet.until_runs(<[HookRun]>::is_empty).await;
    fleet.until_marked(&BTreeSet::new()).await;
    fleet
        .until(|status| status.removal_requests.is_empty() && status.hook_pending_replicas == 0)
        .await;
    fleet.nodes.every_pod().set_players(0);
    for pod in &pods {
        request(fleet, pod).await;
    }
    await_ended(fleet, &pods).await;
    quiet(fleet, 2).await;
    assert!(fleet.names().await.contains(&kept));
}

/// The removal of all pods is requested: of the idle ones, and of one whose match ends late.
async fn drain(fleet: &Fleet<'_>) {
    let pods = fleet.names().await;
    let (busy, idle) = end_all_but_one(fleet, &pods);
    for pod in &pods {
        request(fleet, pod).await;
    }
    end_last_match(fleet, &busy, &idle).await;
    quiet(fleet, 3).await;
}

/// The workload gets its finalizer, and is deleted during a match.
async fn deletion(fleet: &Fleet<'_>) {
    let pods = fleet.names().await;
    let (busy, idle) = end_all_but_one(fleet, &pods);
    fleet.set(json!({ "disruption": { "policy": "Ask" } })).await;
    let is_finalizer = |finalizer: &String| finalizer == ASK_BEFORE_REMOVAL;
    fleet
        .until_game(|workload| workload.finalizers().iter().any(is_finalizer))
        .await;
    let _ = fleet
        .games()
        .delete(GAME, &DeleteParams::default())
        .await
        .unwrap();
    end_last_match(fleet, &busy, &idle).await;
    eventually(SOON, || async {
        match fleet.games().get_opt(GAME).await {
            Ok(None) => Ok(()),
            other => Err(other),
        }
    })
    .await;
    fleet.until_pods(BTreeMap::is_empty).await;
    fleet.until_runs(<[HookRun]>::is_empty).await;
}
