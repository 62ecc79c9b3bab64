//! An update in place: pods wait until their players have left.

use std::collections::BTreeSet;

use operator_tests::Fleet;
use operator_tests::fleet::{Who, game};
use serde_json::json;

use crate::builds::Build;
use crate::held::{Answer, Held, drains, hook, image};
use crate::installation::installed;

/// Pods of the workload.
const REPLICAS: usize = 4;

/// Waits until the hooks of this many pods more have begun.
async fn ask(fleet: &Fleet<'_>, held: &mut Vec<Held>, count: usize) {
    for _ in 0..count {
        let known: BTreeSet<String> = held.iter().map(|held| held.pod.clone()).collect();
        let asked = Held::next(fleet, &known, Answer::Yes).await;
        assert!(asked.run.starts_with("pre-inplace-hook-"), "{asked:?}");
        assert_eq!(asked.drains, 1, "{asked:?}");
        held.push(asked);
    }
}

async fn assert_kept(fleet: &Fleet<'_>, held: &[Held]) {
    for held in held {
        held.assert_kept(fleet).await;
    }
}

/// Lets the players of a pod leave, and waits until the pod is updated. It was not asked again for that.
async fn leave(fleet: &Fleet<'_>, held: &mut Vec<Held>, leaver: usize) {
    let leaver = held.remove(leaver);
    fleet.nodes.pod(&leaver.pod).set_players(0);
    fleet
        .until_pods(|pods| pods.get(&leaver.pod).and_then(image) == Some("game:v2"))
        .await;
    assert_eq!(drains(fleet, &leaver.pod), leaver.drains, "{leaver:?}");
    assert_kept(fleet, held).await;
}

#[tokio::test]
async fn both_builds_finish_the_updates_of_each_other() {
    let Some((fleet, mut installation)) = installed("versions-in-place").await else {
        return;
    };
    let workload = json!({
        "preInplaceUpdateStrategy": { "hook": { "templateName": "drain" } },
        "updateStrategy": { "type": "InplaceUpdate", "maxUnavailable": REPLICAS, "partition": 2 }
    });
    Answer::Yes.set(&fleet);
    fleet.nodes.every_pod().set_players(3);
    fleet.hook("drain", hook()).await;
    fleet.launch(&game(REPLICAS, workload)).await;
    let uids = fleet.uids().await;
    let mut held = Vec::new();
    fleet.set_image("game:v2").await;
    ask(&fleet, &mut held, 2).await;
    assert!(held.iter().all(|held| held.question.is_none()), "{held:?}");

    let workloads_first = [Who::Workloads, Who::Hooks];
    installation.roll(&fleet, Build::This, workloads_first).await;
    assert_kept(&fleet, &held).await;
    leave(&fleet, &mut held, 0).await;
    fleet.set(json!({ "updateStrategy": { "partition": 0 } })).await;
    let before = held.len();
    ask_others(&fleet, &mut held, &uids.keys().cloned().collect()).await;
    assert!(
        held[before..].iter().all(|held| held.question.is_some()),
        "{held:?}"
    );

    let hooks_first = [Who::Hooks, Who::Workloads];
    installation.roll(&fleet, Build::Older, hooks_first).await;
    assert_kept(&fleet, &held).await;
    leave(&fleet, &mut held, before).await;

    installation.roll(&fleet, Build::This, hooks_first).await;
    assert_kept(&fleet, &held).await;
    while !held.is_empty() {
        leave(&fleet, &mut held, 0).await;
    }
    fleet.settled(REPLICAS).await;
    fleet.all_run("game:v2", REPLICAS).await;
    assert_asked_and_updated(&fleet, 1).await;
    // The pod that the older build has updated still shows a question of this build.
    fleet.set_image("game:v3").await;
    fleet.all_run("game:v3", REPLICAS).await;
    fleet.settled(REPLICAS).await;
    assert_asked_and_updated(&fleet, 2).await;
    assert_eq!(fleet.uids().await, uids, "a pod was lost");
    // The witness judges when the fleet ends; all operators must have ended by then.
    drop(installation);
}

/// Waits until the hooks of all pods have begun that are not updated yet.
async fn ask_others(fleet: &Fleet<'_>, held: &mut Vec<Held>, all: &BTreeSet<String>) {
    let pods = fleet.all_pods().await;
    let is_old = |name: &&String| pods.get(*name).and_then(image) == Some("game:v1");
    let old = all.iter().filter(is_old).count();
    ask(fleet, held, old - held.len()).await;
}

/// Checks that each pod was asked and updated this many times.
async fn assert_asked_and_updated(fleet: &Fleet<'_>, times: usize) {
    for name in fleet.names().await {
        assert_eq!(drains(fleet, &name), times, "{name}");
        assert_eq!(fleet.nodes.pod(&name).terminations().len(), times, "{name}");
    }
}
