//! Tests of in-place image changes.

use std::collections::BTreeSet;

use test_kit::node::{Behaviour, EndReason, PodSelector};

use super::{NodeHarness, end};

#[tokio::test]
async fn a_changed_image_restarts_its_container_alone() {
    let harness = NodeHarness::new("inplace").await;
    let [before, _] = harness.ready(["p", "untouched"]).await;
    let old = harness.game("p").await;
    harness.set_image("p", "game:2").await;
    let after = harness
        .that("p", |pod| {
            pod.ready && pod.containers[0].image.as_deref() == Some("game:2")
        })
        .await;
    let new = harness.game("p").await;
    assert_eq!(new.image.as_str(), "game:2");
    assert_eq!(new.restart_count, 1);
    assert!(new.ready);
    assert_ne!(new.container_id, old.container_id);
    assert_ne!(new.image_id, old.image_id);
    let last = new.last_state.unwrap().terminated.unwrap();
    assert_eq!(last.container_id, old.container_id);
    assert_eq!((&after.uid, after.ip), (&before.uid, before.ip));
    assert_eq!(after.containers[1], before.containers[1], "the sidecar");
    assert_eq!(harness.ends(), [end("p", "game", EndReason::ImageChanged)]);
    assert_eq!(harness.nodes.terminated_pods(), BTreeSet::from(["p".to_owned()]));
    let what: Vec<_> = harness
        .nodes
        .pod("p")
        .history()
        .into_iter()
        .map(|event| event.what)
        .collect();
    assert!(what.contains(&test_kit::node::GameEvent::NotReady), "{what:?}");
}

#[tokio::test]
async fn a_tag_may_stand_for_the_same_digest_and_a_registry_for_another_name() {
    let harness = NodeHarness::new("digests").await;
    harness.nodes.set_image_id("game:1", "game@sha256:same");
    harness.nodes.set_image_id("game:stable", "game@sha256:same");
    harness
        .nodes
        .set_image_alias("game:stable", "mirror.example.org/game:stable");
    harness.ready(["p"]).await;
    let old = harness.game("p").await;
    harness.set_image("p", "game:stable").await;
    harness
        .that("p", |pod| pod.ready && pod.containers[0].restarts == 1)
        .await;
    let new = harness.game("p").await;
    assert_eq!(old.image_id.as_str(), "game@sha256:same");
    assert_eq!(new.image_id.as_str(), "game@sha256:same");
    assert_eq!(new.image, "mirror.example.org/game:stable");
    assert_ne!(new.container_id, old.container_id);
}

#[tokio::test]
async fn an_image_that_cannot_be_pulled_costs_the_running_container() {
    let harness = NodeHarness::new("pull").await;
    harness
        .nodes
        .behave(PodSelector::image("game:broken"), Behaviour::CannotPull);
    harness.ready(["p"]).await;
    harness.set_image("p", "game:broken").await;
    harness
        .that("p", |pod| !pod.ready && !pod.containers[0].running)
        .await;
    let game = test_kit::eventually(super::A_WHILE, async || {
        let game = harness.game("p").await;
        let waiting = game.state.clone().and_then(|state| state.waiting);
        waiting.map(|waiting| (game, waiting))
    })
    .await;
    assert_eq!(game.1.reason.as_deref(), Some("ImagePullBackOff"));
    assert_eq!(
        game.1.message.as_deref(),
        Some("Back-off pulling image \"game:broken\"")
    );
    assert_eq!(game.0.restart_count, 0);
    let status = harness.status("p").await;
    assert_eq!(status.phase.as_deref(), Some("Running"));
    assert!(status.container_statuses.unwrap()[1].ready);
    harness.set_image("p", "game:3").await;
    let healed = harness.that("p", |pod| pod.ready).await;
    assert_eq!(healed.containers[0].restarts, 1);
    assert_eq!(harness.ends(), [end("p", "game", EndReason::ImageChanged)]);
}

#[tokio::test]
async fn a_pod_whose_first_image_cannot_be_pulled_is_pending_until_it_can() {
    let harness = NodeHarness::new("firstpull").await;
    harness.nodes.behave(PodSelector::pod("p"), Behaviour::CannotPull);
    harness.create("p").await;
    let pod = harness.that("p", |pod| pod.ip.is_some()).await;
    assert_eq!(pod.phase, "Pending");
    assert!(pod.containers.iter().all(|one| one.container_id.is_none()));
    harness.nodes.pod("p").behave(Behaviour::Normal);
    harness.that("p", |pod| pod.ready && pod.phase == "Running").await;
    assert_eq!(harness.ends(), []);
}
