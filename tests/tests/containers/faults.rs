//! Nodes and operators that end in the middle of a command.

use operator_tests::fleet::Who;
use operator_tests::{SOON, assert_has, at_once};
use serde_json::json;
use shared_api::Phase;
use test_kit::node::{Exec, Loss};

use crate::{create, fleet, hooks_of, measured, metric, server, verdict};

#[tokio::test]
async fn a_node_that_dies_decides_nothing() {
    let Some(fleet) = fleet("exec-dies").await else {
        return;
    };
    let pod = server(&fleet).await;
    let node = pod.node.clone().unwrap();
    fleet.nodes.pod(&pod.name).on_exec(Exec::hangs().stdout("0"));
    let long = json!({ "provider": { "exec": { "timeoutSeconds": 60 } } });
    create(&fleet, "run", &pod, at_once(metric(long))).await;
    fleet
        .nodes
        .await_commands(SOON, |calls| calls.len() == 1)
        .await
        .unwrap();
    fleet.nodes.lose_node(&node, Loss::Dead).await.unwrap();
    let status = verdict(&fleet, "run").await;
    assert_eq!(status.phase, Phase::Error);
    assert_has(status.message.as_deref().unwrap(), "before the exit status");
    // Nobody listens there any more, although the API server still shows a running pod.
    let (phase, message) = measured(&fleet, "later", &pod, json!({})).await;
    assert_eq!(phase, Phase::Error, "{message}");
}

/// The next process cannot know how far the command came, and runs it again.
#[tokio::test]
async fn an_operator_that_is_killed_in_mid_call_runs_the_command_again() {
    let Some(mut fleet) = fleet("exec-killed").await else {
        return;
    };
    let pod = server(&fleet).await;
    fleet
        .nodes
        .pod(&pod.name)
        .on_exec(Exec::hangs().then(Exec::exits(0)));
    let long = json!({ "provider": { "exec": { "timeoutSeconds": 600 } } });
    create(&fleet, "run", &pod, metric(long)).await;
    fleet
        .nodes
        .await_commands(SOON, |calls| calls.len() == 1)
        .await
        .unwrap();
    fleet.hooks.as_mut().unwrap().process.kill_hard().unwrap();
    fleet
        .nodes
        .await_commands(SOON, |calls| !calls[0].running)
        .await
        .unwrap();
    let start = hooks_of(&fleet).await;
    fleet.start(Who::Hooks, &start).await;
    assert_eq!(verdict(&fleet, "run").await.phase, Phase::Successful);
    assert_eq!(fleet.nodes.commands().len(), 2);
}
