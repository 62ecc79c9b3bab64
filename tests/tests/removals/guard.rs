//! The removal guard with both operators: `kubectl drain`, deletions, and the emergency exit.

use std::collections::BTreeSet;
use std::time::Duration;

use operator_tests::SOON;
use operator_tests::fleet::{GAME, finish, noticed};
use serde_json::json;
use test_kit::eventually;
use test_kit::node::GameEvent;

use crate::guarded::{Guarded, evict};
use crate::seen;

/// Checks, by the history of the nodes, that whenever a pod ended, enough other pods were ready, and this node had at
/// least as many ready successors as pods that had ended.
fn assert_successors_first(guarded: &Guarded, node: &str, replicas: usize) {
    let (mut on_node, mut ready, mut ended) = (BTreeSet::new(), BTreeSet::new(), 0);
    for event in guarded.fleet.nodes.history() {
        match &event.what {
            GameEvent::Scheduled { node: found } if found == node => {
                on_node.insert(event.uid.clone());
            }
            GameEvent::Ready => {
                ready.insert(event.uid.clone());
            }
            GameEvent::NotReady | GameEvent::Gone => {
                ready.remove(&event.uid);
            }
            GameEvent::Terminated { .. } => {
                ready.remove(&event.uid);
                ended += 1;
                let successors = ready.intersection(&on_node).count();
                assert!(
                    ready.len() >= replicas && successors >= ended,
                    "{} ready, {successors} successors at {event:?}",
                    ready.len()
                );
            }
            GameEvent::Scheduled { .. } | GameEvent::Started { .. } => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_takes_the_idle_pods_at_once_and_the_busy_ones_when_their_matches_end() {
    let guarded = Guarded::new("drain").await;
    let before = guarded
        .launch(10, json!({ "maxUnavailable": 0, "maxSurge": 3 }))
        .await;
    let (busy, mut ended) = guarded.occupy(&before, 3);
    let [node, other] = guarded.nodes();
    let pods = seen::pods(&guarded.fleet).await;
    let drain = guarded.start_kubectl(&["drain", &node, "--ignore-daemonsets", "--timeout=300s"]);
    guarded.await_replaced(&ended, 10).await;
    let successors = guarded.pods_on(&other);
    assert!(
        successors.is_disjoint(&before) && successors.len() >= 7,
        "{successors:?}"
    );
    for pod in busy {
        assert_eq!(guarded.requesters(&pod).await, ["admin"]);
        assert!(!guarded.fleet.nodes.terminated_pods().contains(&pod));
        guarded.end_match(&pod);
        ended.insert(pod);
        guarded.await_replaced(&ended, 10).await;
    }
    let (succeeded, output) = drain.await.unwrap();
    assert!(succeeded, "{output}");
    assert!(
        output.contains("is kept until its PreDelete hook succeeds"),
        "{output}"
    );
    guarded.fleet.settled(10).await;
    guarded.assert_ended_after_hooks(&before);
    assert_successors_first(&guarded, &other, 10);
    assert_eq!(seen::fewest_ready(&pods, 10).await, 10);
    let nodes: BTreeSet<Option<String>> = (guarded.fleet.nodes.pods().into_iter())
        .map(|pod| pod.node)
        .collect();
    assert_eq!(nodes, BTreeSet::from([Some(other)]));
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_all_pods_replaces_each_when_it_is_empty() {
    let guarded = Guarded::new("delete-all").await;
    let before = guarded.launch(4, json!({ "maxUnavailable": 4 })).await;
    let (busy, _) = guarded.occupy(&before, 4);
    let (succeeded, output) = guarded.kubectl(&["delete", "pod", "--all", "--wait=false"]);
    assert!(!succeeded);
    assert_eq!(
        output
            .matches("and expires within 15m unless it is repeated")
            .count(),
        4,
        "{output}"
    );
    guarded.fleet.asked(4).await;
    guarded.fleet.quiet().await;
    assert_eq!(guarded.fleet.nodes.terminated_pods(), BTreeSet::new());
    guarded.end_matches(&busy);
    guarded.await_replaced(&before, 4).await;
    guarded.fleet.settled(4).await;
    guarded.assert_ended_after_hooks(&before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_pod_gets_one_notice_however_often_its_eviction_is_repeated() {
    let guarded = Guarded::new("notice").await;
    let fleet = &guarded.fleet;
    fleet.hook("finish", finish()).await;
    let before = guarded.launch_with(2, noticed("empty", "finish")).await;
    fleet.says("HooksResolved", "HooksResolved").await;
    let (busy, _) = guarded.occupy(&before, 1);
    let pod = &busy[0];
    let eviction = json!({ "metadata": { "name": pod } });
    assert_eq!(evict(&guarded.pods_as("jane"), &eviction).await, 429);
    fleet.nodes.pod(pod).await_requests("/", 1, SOON).await.unwrap();
    for user in ["jane", "joe"] {
        assert_eq!(evict(&guarded.pods_as(user), &eviction).await, 429);
    }
    fleet.until(|status| status.removal_requests.len() == 2).await;
    fleet.quiet().await;
    assert_eq!(fleet.notices(pod), 1);
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::new());

    guarded.end_match(pod);
    let ended = BTreeSet::from([pod.clone()]);
    guarded.await_replaced(&ended, 2).await;
    fleet.settled(2).await;
    guarded.assert_ended_after_hooks(&ended);
    fleet.assert_noticed_first(pod);
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_webhook_is_down_nothing_is_removed_until_the_namespace_disables_the_guard() {
    let mut guarded = Guarded::new("webhook-down").await;
    let before = guarded.launch(2, json!({ "maxUnavailable": 2 })).await;
    guarded.replica = None;
    let pod = before.first().unwrap();
    let [node, _] = guarded.nodes();
    let drain = ["drain", &node, "--ignore-daemonsets", "--timeout=60s"];
    for command in [&drain[..], &["delete", "pod", pod, "--wait=false"]] {
        let (succeeded, output) = guarded.kubectl(command);
        assert!(
            !succeeded && output.contains("failed calling webhook"),
            "{output}"
        );
    }
    assert_eq!(guarded.fleet.nodes.terminated_pods(), BTreeSet::new());
    guarded.disable();
    eventually(Duration::from_mins(1), || async {
        let (succeeded, output) = guarded.kubectl(&drain);
        if succeeded { Ok(()) } else { Err(output) }
    })
    .await;
    guarded.await_replaced(&before, 2).await;
    let workload = guarded.kubectl(&["get", "gamedeployment", GAME, "--output=name"]);
    assert!(workload.0, "{}", workload.1);
}

/// Older API servers call the webhook for the operator's deletions too.
#[tokio::test(flavor = "multi_thread")]
async fn the_operator_needs_no_webhook_to_delete_a_requested_pod_from_kubernetes_1_28_on() {
    let mut guarded = Guarded::new("operator-alone").await;
    let before = guarded.launch(2, json!({ "maxUnavailable": 2 })).await;
    let (busy, _) = guarded.occupy(&before, 2);
    let pod = &busy[0];
    assert!(!guarded.kubectl(&["delete", "pod", pod, "--wait=false"]).0);
    guarded.fleet.asked(1).await;
    guarded.replica = None;
    guarded.end_matches(&busy);
    if guarded.fleet.control_plane.minor_version() < 28 {
        guarded.fleet.says("ScaleBlocked", "WriteFailed").await;
        assert_eq!(guarded.fleet.nodes.terminated_pods(), BTreeSet::new());
        return;
    }
    let ended = BTreeSet::from([pod.clone()]);
    guarded.await_replaced(&ended, 2).await;
    guarded.assert_ended_after_hooks(&ended);
}
