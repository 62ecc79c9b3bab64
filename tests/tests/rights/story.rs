//! A story in which the operators do everything that they ever do.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use operator_tests::Fleet;
use operator_tests::fleet::{GAME, game, hooked, until_empty};
use operator_tests::{SOON, merge};
use serde_json::json;
use test_kit::ApiProxy;
use test_kit::api_proxy::{Failure, Matcher};
use test_kit::node::Loss;

/// By then a node counts as gone.
const CERTAIN: Duration = Duration::from_mins(2);

/// `proxies`: of gamedeployment-operator and of hook-operator.
pub(crate) async fn tell(fleet: &Fleet<'_>, proxies: &[ApiProxy; 2]) {
    ask_with_a_secret(fleet, &proxies[1]).await;
    make_and_update(fleet, &proxies[0]).await;
    adopt(fleet).await;
    withdraw(fleet).await;
    fleet.retry("preDeleteUpdateStrategy");
    fleet
        .until_game(|game| retry_is_over(&serde_json::to_value(&game.spec).unwrap()))
        .await;
    say_it_twice(fleet, proxies).await;
}

fn retry_is_over(spec: &serde_json::Value) -> bool {
    spec["preDeleteUpdateStrategy"]["retry"] != true
}

/// The next write of these kinds takes effect, and its answer is lost: the object is read.
fn lose_an_answer(proxy: &ApiProxy, method: &'static str, paths: &[&str]) {
    for path in paths {
        proxy.fail_next(Matcher::new(method, *path), Failure::after_effect(500), 1);
    }
}

/// A run with values from elsewhere, which is deleted when it has been there for a second. After a conflict it is read.
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

/// Pods, revisions and HookRuns come and go, and answers are lost.
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

/// A pod that somebody made by hand, and which is selected: it is one too many then.
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

/// Busy pods are to go, and then they are not: their runs are removed together.
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

/// The same is wrong twice: the second event is counted on the first.
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

/// A node goes for good, with a busy pod on it that is one too many: that it is gone is asked, not believed.
pub(crate) async fn lose_a_node(fleet: &Fleet<'_>, proxies: &[ApiProxy; 2]) {
    fleet.nodes.every_pod().set_players(1);
    fleet.scale(0);
    let pod = fleet.asked(1).await.into_values().next().unwrap();
    let node = fleet.nodes.pod(&pod).view().unwrap().node.unwrap();
    fleet.nodes.lose_node(&node, Loss::Deleted).await.unwrap();
    proxies[0].await_count("get", "nodes", 1, CERTAIN).await.unwrap();
}
