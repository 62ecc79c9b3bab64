//! Pods that misbehave.

use std::time::{Duration, Instant};

use test_kit::eventually;
use test_kit::node::{Behaviour, What, Which, Why};

use super::{A_WHILE, World, end};

#[tokio::test]
async fn a_pod_without_a_node_waits_and_says_why() {
    let world = World::new("unschedulable").await;
    world.nodes.behave(Which::future(), Behaviour::Unschedulable);
    world.create("p").await;
    eventually(A_WHILE, async || {
        let status = world.status("p").await;
        let conditions = status.conditions.unwrap_or_default();
        let reason = conditions.iter().find_map(|one| one.reason.clone());
        (reason.as_deref() == Some("Unschedulable"))
            .then_some(())
            .ok_or(reason)
    })
    .await;
    assert_eq!(world.status("p").await.phase.as_deref(), Some("Pending"));
    assert_eq!(world.nodes.pod("p").view().unwrap().node, None);
    world.nodes.pod("p").behave(Behaviour::Normal);
    world.that("p", |pod| pod.ready).await;
}

#[tokio::test]
async fn pods_chosen_by_a_predicate_never_become_ready_and_others_do() {
    let world = World::new("never").await;
    let unlucky = |pod: &k8s_openapi::api::core::v1::Pod| {
        pod.metadata
            .name
            .as_ref()
            .is_some_and(|name| name.starts_with("bad"))
    };
    world.nodes.behave(Which::pods(unlucky), Behaviour::NeverReady);
    world.create("bad").await;
    world.ready(["good"]).await;
    let bad = world.that("bad", |pod| pod.phase == "Running").await;
    assert!(!bad.ready && bad.containers.iter().all(|one| one.running));
    assert!(
        world
            .nodes
            .pod("bad")
            .history()
            .iter()
            .all(|event| event.what != What::Ready)
    );
    assert_eq!(world.nodes.await_ready(1, A_WHILE).await.unwrap().len(), 1);
}

#[tokio::test]
async fn readiness_is_lost_and_regained_without_a_restart() {
    let world = World::new("flap").await;
    world.ready(["p"]).await;
    let game = world.game("p").await;
    world.nodes.pod("p").behave(Behaviour::NeverReady);
    world.that("p", |pod| !pod.ready).await;
    assert_eq!(
        world.condition("p", "Ready").await.reason.as_deref(),
        Some("ContainersNotReady")
    );
    world.nodes.pod("p").behave(Behaviour::Normal);
    world.that("p", |pod| pod.ready).await;
    assert_eq!(world.game("p").await.container_id, game.container_id);
    assert_eq!(world.ends(), []);
}

#[tokio::test]
async fn a_slow_start_takes_its_time() {
    let world = World::new("slow").await;
    let slow = Duration::from_millis(400);
    world.nodes.behave(Which::all(), Behaviour::SlowStart(slow));
    let started = Instant::now();
    world.create("p").await;
    assert!(!world.that("p", |pod| pod.phase == "Running").await.ready);
    world.that("p", |pod| pod.ready).await;
    assert!(started.elapsed() >= slow);
}

#[tokio::test]
async fn a_crash_loop_counts_restarts_until_it_is_over() {
    let world = World::new("loop").await;
    world.nodes.behave(Which::image("game:1"), Behaviour::CrashLoop);
    world.create("p").await;
    let looping = world
        .that("p", |pod| {
            pod.containers.first().is_some_and(|one| one.restarts >= 2)
        })
        .await;
    assert!(!looping.ready && looping.containers[1].ready, "{looping:?}");
    let game = world.game("p").await;
    let waiting = game.state.unwrap().waiting.unwrap();
    assert_eq!(waiting.reason.as_deref(), Some("CrashLoopBackOff"));
    assert_eq!(game.last_state.unwrap().terminated.unwrap().exit_code, 1);
    assert_eq!(world.status("p").await.phase.as_deref(), Some("Running"));
    world.nodes.behave(Which::image("game:1"), Behaviour::Normal);
    world.that("p", |pod| pod.ready).await;
    let ends = world.ends();
    assert!(
        ends.len() >= 3 && ends.iter().all(|one| *one == end("p", "game", Why::Crashed)),
        "{ends:?}"
    );
}

#[tokio::test]
async fn a_crash_happens_once() {
    let world = World::new("crash").await;
    world.ready(["p"]).await;
    world.nodes.pod("p").crash();
    world
        .that("p", |pod| pod.ready && pod.containers[0].restarts == 1)
        .await;
    world.nodes.pod("p").crash_container("sidecar");
    world
        .that("p", |pod| pod.ready && pod.containers[1].restarts == 1)
        .await;
    let expected = [end("p", "game", Why::Crashed), end("p", "sidecar", Why::Crashed)];
    assert_eq!(world.ends(), expected);
}

#[tokio::test]
async fn an_evicted_pod_has_failed_for_good() {
    let world = World::new("evict").await;
    world.ready(["p"]).await;
    world.nodes.pod("p").evict();
    world.that("p", |pod| pod.phase == "Failed" && !pod.ready).await;
    let status = world.status("p").await;
    assert_eq!(status.reason.as_deref(), Some("Evicted"));
    assert!(world.game("p").await.state.unwrap().terminated.is_some());
    world.delete("p").await;
    world.gone("p").await;
    let expected = [end("p", "game", Why::Evicted), end("p", "sidecar", Why::Evicted)];
    assert_eq!(world.ends(), expected);
}

#[tokio::test]
async fn a_pod_may_succeed() {
    let world = World::new("succeed").await;
    // Said beforehand, it happens as soon as there is something that can end.
    world.nodes.pod("p").succeed();
    world.create("p").await;
    world
        .that("p", |pod| pod.phase == "Succeeded" && !pod.ready)
        .await;
    assert_eq!(
        world.game("p").await.state.unwrap().terminated.unwrap().exit_code,
        0
    );
}
