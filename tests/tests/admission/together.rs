//! Operators together with the component: everything works as without it, and an operator reports what the
//! component refuses it.

use operator_tests::Fleet;
use operator_tests::fleet::{GAME, game, hooked, until_empty};
use serde_json::{Value, json};
use shared_api::names::workload::DELETION_ALLOW;
use test_kit::{Answer, Webhook};

use crate::installation::{Installation, Replica};
use crate::{OPERATORS, shared};

async fn fleet_with_component() -> (Fleet<'static>, Installation<'static>, Replica) {
    let control_plane = shared().await;
    let fleet = Fleet::on(control_plane, OPERATORS, "admission").await;
    let installation = Installation::within(control_plane, fleet.namespace.clone()).await;
    let replica = installation.replica(&[]);
    installation
        .configure(replica.tls, &json!({ "failurePolicy": "Fail" }))
        .await;
    replica.ready().await;
    installation.asked().await;
    (fleet, installation, replica)
}

#[tokio::test]
async fn a_game_lives_and_ends_as_without_it() {
    let (fleet, installation, replica) = fleet_with_component().await;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(2, hooked("empty"))).await;
    fleet.nodes.every_pod().set_players(1);
    fleet.scale(1);
    fleet.asked(1).await;
    // The operator resets this field.
    fleet.retry("preDeleteUpdateStrategy");
    fleet.nodes.every_pod().set_players(0);
    fleet.settled(1).await;
    let runs = ["kind=\"HookRun\"", "operation=\"create\"", "outcome=\"allowed\""];
    assert!(replica.metric("hookgate_admission_requests_total", &runs).await >= 1);
    installation.refused(&["delete", "gamedeployment", GAME], "");
    let cascading = format!("{DELETION_ALLOW}=Cascading");
    installation.must(&["label", "gamedeployment", GAME, &cascading], "");
    installation.refused(&["delete", "gamedeployment", GAME], "");
    fleet.scale(0);
    fleet.settled(0).await;
    installation.must(&["delete", "gamedeployment", GAME, "--wait=false"], "");
}

#[tokio::test]
async fn a_run_that_is_refused_keeps_the_gate_closed_and_is_told() {
    let (fleet, _installation, _replica) = fleet_with_component().await;
    let server = Webhook::start().unwrap();
    server.on("/", Answer::json(json!({ "players": 0 })));
    let metric = json!({
        "name": "players", "successCondition": "asInt(result) == {{ args.players }}",
        "provider": { "web": { "url": server.url("/"), "jsonPath": "{$.players}" } }
    });
    let template = json!({ "args": [{ "name": "players" }], "metrics": [metric] });
    fleet.hook("players", template).await;
    let hook = |players: &str| -> Value {
        let args = json!([{ "name": "players", "value": players }]);
        json!({ "preDeleteUpdateStrategy": { "hook": { "templateName": "players", "args": args } } })
    };
    fleet.launch(&game(1, hook("0 +"))).await;
    fleet.scale(0);
    let message = fleet.says("ScaleBlocked", "WriteFailed").await;
    assert!(
        message.contains("denied the request: hook spec invalid: metrics[0].successCondition: "),
        "{message}"
    );
    assert_eq!(fleet.all_pods().await.len(), 1);
    assert_eq!(fleet.nodes.terminations().len(), 0);
    fleet.set(hook("0")).await;
    fleet.settled(0).await;
    assert_eq!(server.counts("/").received, 1);
}
