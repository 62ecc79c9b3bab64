//! Audited bypass of a hook: an annotation with the UID of one pod.

use std::collections::BTreeSet;

use operator_tests::fleet::{empty_now, game, hooked};
use serde_json::json;
use shared_api::names::pod::{SKIP_HOOK, SKIP_HOOK_BY, SKIP_HOOK_REASON};

use crate::fleet;

#[tokio::test]
async fn one_pod_passes_and_everybody_can_see_it() {
    let fleet = fleet("skip-hook").await;
    fleet.hook("empty", empty_now()).await;
    fleet.launch(&game(3, hooked("empty"))).await;
    fleet.nodes.every_pod().set_players(1);
    fleet.scale(1);
    fleet
        .until(|status| status.pre_delete_hook_condition.len() == 2)
        .await;
    let victims = fleet.marked().await;
    let pods = fleet.all_pods().await;
    let uid = |name: &String| pods[name].metadata.uid.clone().unwrap();
    let (one, other) = (victims.first().unwrap().clone(), victims.last().unwrap().clone());
    let way_out = format!("to skip it for one pod, annotate the pod with {SKIP_HOOK}=UID");
    fleet.until_message("ScaleBlocked", &way_out).await;
    // The UID of another pod, as in a copied annotation.
    fleet.annotate(&other, json!({ SKIP_HOOK: uid(&one) })).await;
    fleet.annotate(&other, json!({ SKIP_HOOK: "true" })).await;
    fleet.quiet().await;
    assert_eq!(fleet.nodes.terminations().len(), 0);
    let notes = json!({ SKIP_HOOK: uid(&one), SKIP_HOOK_REASON: "the event\nis over", SKIP_HOOK_BY: "ann" });
    fleet.annotate(&one, notes).await;
    fleet.until_pods(|pods| pods.len() == 2).await;
    let words = format!(
        "HookSkipped pod {one}: its hooks are skipped by annotation {SKIP_HOOK}; reason: the event is over; by: ann"
    );
    fleet.told(&words).await;
    assert!(
        fleet
            .warnings()
            .await
            .iter()
            .any(|warning| warning.contains(&words))
    );
    fleet.quiet().await;
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::from([one]));
    fleet.annotate(&other, json!({ SKIP_HOOK: uid(&other) })).await;
    fleet.settled(1).await;
    assert_eq!(fleet.nodes.terminated_pods(), victims);
}

#[tokio::test]
async fn it_also_passes_a_hook_that_cannot_be_asked() {
    let fleet = fleet("skip-hook").await;
    fleet.launch(&game(1, hooked("nowhere"))).await;
    fleet.set_image("game:v2").await;
    fleet.says("UpdateBlocked", "HookTemplateMissing").await;
    let (name, pod) = fleet.all_pods().await.into_iter().next().unwrap();
    fleet
        .annotate(&name, json!({ SKIP_HOOK: pod.metadata.uid }))
        .await;
    fleet.settled(1).await;
    fleet.all_run("game:v2", 1).await;
    assert_eq!(fleet.nodes.terminations().len(), 1);
    fleet.told("HookSkipped").await;
}
