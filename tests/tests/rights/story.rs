//! Story in which the operators do everything that they can do.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use operator_tests::Fleet;
use operator_tests::fleet::{GAME, game, hooked, until_empty};
use operator_tests::{SOON, merge};
use serde_json::json;
use test_kit::ApiProxy;
use test_kit::api_proxy::{Failure, Matcher};
use test_kit::node::Loss;

/// Time limit for a lost node to count as gone.
const CERTAIN: Duration = Duration::from_mins(2);

/// Plays the story. `proxies` belong to gamedeployment-operator and hook-operator, in this order.
pub(crate) async fn tell(fleet: &Fleet<'_>, proxies: &[ApiProxy; 2]) {
    ask_with_a_secret(fleet, &proxies[1]).await;
    make_and_update(fleet, &proxies[0]).await;
    adopt(fleet).await;
    remove_a_running_hook(fleet).await;
    withdraw(fleet).await;
    fleet.retry("preDeleteUpdateStrategy");
    fleet
        .until_game(|game| retry_is_over(&serde_json::to_value(&game.spec).unwrap()))
        .await;
    say_it_twice(fleet, proxies).await;
    terminate_an_execution(fleet, &proxies[1]).await;
}

fn retry_is_over(spec: &serde_json::Value) -> bool {
    spec["preDeleteUpdateStrategy"]["retry"] != true
}

/// Loses the response of the next write of each of these kinds, after its effect: the operator then reads the
/// object.
fn lose_an_answer(proxy: &ApiProxy, method: &'static str, paths: &[&str]) {
    for path in paths {
        proxy.fail_next(Matcher::new(method, *path), Failure::after_effect(500), 1);
    }
}

/// Creates a run with values from elsewhere, which is deleted one second after it ends. The operator reads it
/// again after a conflict.
async fn ask_with_a_secret(fleet: &Fleet<'_>, proxy: &ApiProxy) {
    proxy.fail_next(Matcher::new("PATCH", "/hookruns/"), Failure::refused(409), 1);
    let from = |kind: &str| json!({ kind: { "name": "values", "key": "text" } });
    let objects = json!({ "apiVersion": "v1", "kind": "List", "items": [
        { "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "values" }, "stringData": { "text": "a" } },
        { "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "values" }, "data": { "text": "b" } },
        { "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "HookRun", "metadata": { "name": "run" }, "spec": {
            "ttlSecondsAfterFinished": 1,
            "args": [
                { "name": "secret", "valueFrom": from("secretKeyRef") },
                { "name": "map", "valueFrom": from("configMapKeyRef") }
            ],
            "metrics": [{ "name": "one", "consecutiveErrorLimit": 0, "successCondition": "true", "provider": {
                "web": { "url": "http://127.0.0.1:1/{{ args.secret }}/{{ args.map }}", "jsonPath": "{$}" }
            } }]
        } }
    ] });
    fleet.apply(&objects);
    fleet.until_runs(<[_]>::is_empty).await;
}

/// Creates and removes pods, revisions and HookRuns, with lost responses.
async fn make_and_update(fleet: &Fleet<'_>, proxy: &ApiProxy) {
    lose_an_answer(proxy, "POST", &["/pods", "/controllerrevisions", "/hookruns"]);
    fleet.hook("empty", until_empty()).await;
    let mut spec = hooked("empty");
    merge(&mut spec, json!({ "revisionHistoryLimit": 1 }));
    fleet.launch(&game(2, spec)).await;
    for image in ["game:v2", "game:v3", "game:v2", "game:v4"] {
        fleet.set_image(image).await;
        fleet.all_run(image, 2).await;
        fleet.settled(2).await;
    }
    fleet.scale(1);
    fleet.settled(1).await;
}

/// Creates a matching pod by hand, which then is a surplus pod.
async fn adopt(fleet: &Fleet<'_>) {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "by-hand", "labels": { "app": GAME } },
        "spec": { "containers": [{ "name": "game", "image": "game:v4" }] }
    });
    fleet.apply(&pod);
    let owned = |pod: &Pod| pod.metadata.owner_references.is_some();
    fleet
        .until_pods(|pods| pods.get("by-hand").is_none_or(owned))
        .await;
    fleet.settled(1).await;
}

/// Removes a hook of a rollout while it runs: the operator terminates its HookRun.
async fn remove_a_running_hook(fleet: &Fleet<'_>) {
    let patient = json!({ "metrics": [{
        "name": "patient", "initialDelay": "1h", "successCondition": "true",
        "provider": { "web": { "url": "http://127.0.0.1:1", "jsonPath": "{$}" } }
    }] });
    fleet.hook("patient", patient).await;
    let hook = json!({ "name": "before", "trigger": { "type": "Pre" }, "retainPolicy": "Never",
        "hook": { "templateName": "patient" } });
    fleet.set(json!({ "lifecycleHooks": [hook] })).await;
    fleet.set_image("game:v5").await;
    fleet.until_runs(|runs| runs.len() == 1).await;
    fleet.set(json!({ "lifecycleHooks": null })).await;
    fleet.all_run("game:v5", 1).await;
    fleet.settled(1).await;
}

/// Scales busy pods down and up again: the operator removes their runs together.
async fn withdraw(fleet: &Fleet<'_>) {
    fleet.scale(6);
    fleet.settled(6).await;
    fleet.nodes.every_pod().set_players(1);
    fleet.scale(1);
    fleet.asked(5).await;
    fleet.scale(6);
    fleet.until_runs(<[_]>::is_empty).await;
    fleet.nodes.every_pod().set_players(0);
    fleet.scale(1);
    fleet.settled(1).await;
}

/// Causes the same error twice: the second event increments the first.
async fn say_it_twice(fleet: &Fleet<'_>, proxies: &[ApiProxy; 2]) {
    for _ in 0..2 {
        fleet.set(json!({ "minReadySeconds": -3 })).await;
        fleet.says("InvalidSpec", "InvalidSpec").await;
        fleet.set(json!({ "minReadySeconds": 0 })).await;
        fleet.cleared("InvalidSpec").await;
    }
    proxies[0].await_count("patch", "events", 1, SOON).await.unwrap();
    let broken = |name: &str| {
        json!({
            "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "HookTemplate", "metadata": { "name": "broken" },
            "spec": { "metrics": [{ "name": name, "successCondition": "asInt(", "provider": {
                "web": { "url": "http://127.0.0.1:1", "jsonPath": "{$}" } } }] }
        })
    };
    for name in ["one", "two", "one"] {
        let before = proxies[1].count("patch", "hooktemplates/status");
        fleet.apply(&broken(name));
        let wanted = before + 1;
        proxies[1]
            .await_count("patch", "hooktemplates/status", wanted, SOON)
            .await
            .unwrap();
    }
    proxies[1].await_count("patch", "events", 1, SOON).await.unwrap();
}

/// Ends an ExecutionHook that waits for its HookAction. It is deleted at once.
async fn terminate_an_execution(fleet: &Fleet<'_>, proxy: &ApiProxy) {
    let hook = |terminate: bool| {
        json!({ "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "ExecutionHook", "metadata": { "name": "freeze" },
            "spec": { "actionName": "freeze", "ttlSecondsAfterFinished": 0, "terminate": terminate,
                "podSelection": { "podContainerNamesList": [{ "podName": "game-0" }] } } })
    };
    fleet.apply(&hook(false));
    proxy.await_count("get", "hookactions", 1, SOON).await.unwrap();
    fleet.apply(&hook(true));
    proxy
        .await_count("delete", "executionhooks", 1, SOON)
        .await
        .unwrap();
}

/// Removes a node for good, with a busy surplus pod on it: the operator verifies that the node is gone.
pub(crate) async fn lose_a_node(fleet: &Fleet<'_>, proxies: &[ApiProxy; 2]) {
    fleet.nodes.every_pod().set_players(1);
    fleet.scale(0);
    let pod = fleet.asked(1).await.into_values().next().unwrap();
    let node = fleet.nodes.pod(&pod).view().unwrap().node.unwrap();
    fleet.nodes.lose_node(&node, Loss::Deleted).await.unwrap();
    proxies[0].await_count("get", "nodes", 1, CERTAIN).await.unwrap();
}
