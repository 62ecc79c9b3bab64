//! Tests of misbehaving pods.

use std::time::{Duration, Instant};

use test_kit::eventually;
use test_kit::node::{Behaviour, EndReason, GameEvent, PodSelector};

use super::{A_WHILE, NodeHarness, end};

#[tokio::test]
async fn a_pod_without_a_node_waits_and_says_why() {
    let harness = NodeHarness::new("unschedulable").await;
    harness
        .nodes
        .behave(PodSelector::future(), Behaviour::Unschedulable);
    harness.create("p").await;
    eventually(A_WHILE, async || {
        let status = harness.status("p").await;
        let conditions = status.conditions.unwrap_or_default();
        let reason = conditions.iter().find_map(|one| one.reason.clone());
        (reason.as_deref() == Some("Unschedulable"))
            .then_some(())
            .ok_or(reason)
    })
    .await;
    assert_eq!(harness.status("p").await.phase.as_deref(), Some("Pending"));
    assert_eq!(harness.nodes.pod("p").view().unwrap().node, None);
    harness.nodes.pod("p").behave(Behaviour::Normal);
    harness.that("p", |pod| pod.ready).await;
}

#[tokio::test]
async fn pods_chosen_by_a_predicate_never_become_ready_and_others_do() {
    let harness = NodeHarness::new("never").await;
    let unlucky = |pod: &k8s_openapi::api::core::v1::Pod| {
        pod.metadata
            .name
            .as_ref()
            .is_some_and(|name| name.starts_with("bad"))
    };
    harness
        .nodes
        .behave(PodSelector::pods(unlucky), Behaviour::NeverReady);
    harness.create("bad").await;
    harness.ready(["good"]).await;
    let bad = harness.that("bad", |pod| pod.phase == "Running").await;
    assert!(!bad.ready && bad.containers.iter().all(|one| one.running));
    assert!(
        harness
            .nodes
            .pod("bad")
            .history()
            .iter()
            .all(|event| event.what != GameEvent::Ready)
    );
    assert_eq!(harness.nodes.await_ready(1, A_WHILE).await.unwrap().len(), 1);
}

#[tokio::test]
async fn readiness_is_lost_and_regained_without_a_restart() {
    let harness = NodeHarness::new("flap").await;
    harness.ready(["p"]).await;
    let game = harness.game("p").await;
    harness.nodes.pod("p").behave(Behaviour::NeverReady);
    harness.that("p", |pod| !pod.ready).await;
    assert_eq!(
        harness.condition("p", "Ready").await.reason.as_deref(),
        Some("ContainersNotReady")
    );
    harness.nodes.pod("p").behave(Behaviour::Normal);
    harness.that("p", |pod| pod.ready).await;
    assert_eq!(harness.game("p").await.container_id, game.container_id);
    assert_eq!(harness.ends(), []);
}

#[tokio::test]
async fn a_slow_start_takes_its_time() {
    let harness = NodeHarness::new("slow").await;
    let slow = Duration::from_millis(400);
    harness
        .nodes
        .behave(PodSelector::all(), Behaviour::SlowStart(slow));
    let started = Instant::now();
    harness.create("p").await;
    assert!(!harness.that("p", |pod| pod.phase == "Running").await.ready);
    harness.that("p", |pod| pod.ready).await;
    assert!(started.elapsed() >= slow);
}

#[tokio::test]
async fn a_crash_loop_counts_restarts_until_it_is_over() {
    let harness = NodeHarness::new("loop").await;
    harness
        .nodes
        .behave(PodSelector::image("game:1"), Behaviour::CrashLoop);
    harness.create("p").await;
    let looping = harness
        .that("p", |pod| {
            pod.containers.first().is_some_and(|one| one.restarts >= 2)
        })
        .await;
    assert!(!looping.ready && looping.containers[1].ready, "{looping:?}");
    let game = harness.game("p").await;
    let waiting = game.state.unwrap().waiting.unwrap();
    assert_eq!(waiting.reason.as_deref(), Some("CrashLoopBackOff"));
    assert_eq!(game.last_state.unwrap().terminated.unwrap().exit_code, 1);
    assert_eq!(harness.status("p").await.phase.as_deref(), Some("Running"));
    harness
        .nodes
        .behave(PodSelector::image("game:1"), Behaviour::Normal);
    harness.that("p", |pod| pod.ready).await;
    let ends = harness.ends();
    assert!(
        ends.len() >= 3
            && ends
                .iter()
                .all(|one| *one == end("p", "game", EndReason::Crashed)),
        "{ends:?}"
    );
}

#[tokio::test]
async fn a_crash_happens_once() {
    let harness = NodeHarness::new("crash").await;
    harness.ready(["p"]).await;
    harness.nodes.pod("p").crash();
    harness
        .that("p", |pod| pod.ready && pod.containers[0].restarts == 1)
        .await;
    harness.nodes.pod("p").crash_container("sidecar");
    harness
        .that("p", |pod| pod.ready && pod.containers[1].restarts == 1)
        .await;
    let expected = [
        end("p", "game", EndReason::Crashed),
        end("p", "sidecar", EndReason::Crashed),
    ];
    assert_eq!(harness.ends(), expected);
}

#[tokio::test]
async fn an_evicted_pod_has_failed_for_good() {
    let harness = NodeHarness::new("evict").await;
    harness.ready(["p"]).await;
    harness.nodes.pod("p").evict();
    harness.that("p", |pod| pod.phase == "Failed" && !pod.ready).await;
    let status = harness.status("p").await;
    assert_eq!(status.reason.as_deref(), Some("Evicted"));
    assert!(harness.game("p").await.state.unwrap().terminated.is_some());
    harness.delete("p").await;
    harness.gone("p").await;
    let expected = [
        end("p", "game", EndReason::Evicted),
        end("p", "sidecar", EndReason::Evicted),
    ];
    assert_eq!(harness.ends(), expected);
}

#[tokio::test]
async fn a_pod_may_succeed() {
    let harness = NodeHarness::new("succeed").await;
    // Ordered in advance, it happens as soon as a container runs.
    harness.nodes.pod("p").succeed();
    harness.create("p").await;
    harness
        .that("p", |pod| pod.phase == "Succeeded" && !pod.ready)
        .await;
    assert_eq!(
        harness
            .game("p")
            .await
            .state
            .unwrap()
            .terminated
            .unwrap()
            .exit_code,
        0
    );
}
