//! Tests of restart.

use operator_tests::assert_has;
use operator_tests::fleet::{GAME, game, hooked, until_empty};
use serde_json::json;

use crate::fleet;
use crate::plugin::Plugin;

#[tokio::test]
async fn a_restart_replaces_every_pod_after_its_hook_and_in_place_none() {
    let fleet = fleet("plugin").await;
    let plugin = Plugin { fleet: &fleet };
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(3, hooked("empty"))).await;
    let before = fleet.names().await;
    let refused = plugin.refused(&format!("restart {GAME}")).await;
    assert_has(&refused, "fallback to Recreate");
    fleet
        .set(json!({ "updateStrategy": { "inPlaceUpdateStrategy": { "fallback": "Recreate" } } }))
        .await;
    fleet.nodes.every_pod().set_players(1);
    let answer = plugin.ok(&format!("restart {GAME}")).await;
    assert_has(
        &answer,
        "restart requested; pods will be replaced with new ones from the same template.",
    );
    let busy = fleet.asked(2).await;
    fleet.quiet().await;
    assert_eq!(fleet.names().await, before, "players stay");
    for pod in busy.values() {
        fleet.nodes.pod(pod).set_players(0);
    }
    fleet
        .until_pods(|pods| !busy.values().any(|pod| pods.contains_key(pod)))
        .await;
    let last = fleet.asked(1).await;
    let last = last.values().next().unwrap();
    assert!(before.contains(last) && !busy.values().any(|pod| pod == last));
    fleet.nodes.pod(last).set_players(0);
    plugin.ok(&format!("status {GAME} --timeout 60s")).await;
    let after = fleet.names().await;
    assert!(
        after.len() == 3 && after.is_disjoint(&before),
        "{before:?} {after:?}"
    );
    fleet.all_run("game:v1", 3).await;
}
