//! A PreDelete hook that asks the server by a command.

use operator_tests::SOON;
use operator_tests::fleet::{game, hooked};
use serde_json::json;
use test_kit::node::Exec;

use crate::{fleet, metric};

#[tokio::test]
async fn a_pod_goes_when_its_own_server_says_that_it_is_empty() {
    let Some(fleet) = fleet("exec-gate").await else {
        return;
    };
    fleet.nodes.every_pod().on_exec(Exec::exits(0).stdout("7"));
    let poll = json!({ "interval": "200ms", "successfulLimit": 1, "failureLimit": -1, "successCondition": "result == 0" });
    fleet
        .hook(
            "empty",
            json!({ "args": [{ "name": "PodName" }], "metrics": [metric(poll)] }),
        )
        .await;
    fleet.launch(&game(3, hooked("empty"))).await;
    let before = fleet.names().await;
    fleet.scale(2);
    let status = fleet
        .until(|status| status.pre_delete_hook_condition.len() == 1)
        .await;
    let victim = status.pre_delete_hook_condition[0].pod_name.clone();
    // Every other server is empty, and the one that is to go is not.
    for pod in before.iter().filter(|pod| **pod != victim) {
        fleet.nodes.pod(pod).on_exec(Exec::exits(0).stdout("0"));
    }
    let asked = fleet.nodes.commands().len();
    let calls = fleet
        .nodes
        .await_commands(SOON, |calls| calls.len() >= asked + 3)
        .await
        .unwrap();
    assert!(calls.iter().all(|call| call.pod == victim), "{calls:?}");
    assert_eq!(fleet.names().await, before);
    // A connection that is cut after the right answer is none.
    fleet
        .nodes
        .pod(&victim)
        .on_exec(Exec::closes_without_status().stdout("0"));
    let asked = fleet.nodes.commands().len();
    fleet
        .nodes
        .await_commands(SOON, |calls| calls.len() >= asked + 3)
        .await
        .unwrap();
    assert_eq!(fleet.names().await, before);
    fleet.nodes.pod(&victim).on_exec(Exec::exits(0).stdout("0"));
    fleet.settled(2).await;
    let left = before.into_iter().filter(|name| *name != victim);
    assert_eq!(fleet.names().await, left.collect());
}
