//! "在 `PreDeleteHook` 时配置可变参数": arguments of the workload and of each pod, rendered into the hook's url.

use jiff::Timestamp;
use operator_tests::SOON;
use serde_json::json;
use test_kit::eventually;

use crate::successful_hook::with;
use crate::terminal::{CREATED, SCALED, Terminal};

/// `hook-template-args.yaml`.
const TEMPLATE: &str = include_str!("../../manifests/hook-template-args.yaml");

/// Long enough to read a HookRun between its first two measurements, short enough to wait for.
const INTERVAL: &str = "10s";

/// `gamedeployment-args.yaml`.
const WORKLOAD: &str = include_str!("../../manifests/game-deployment-args.yaml");

pub(crate) async fn play(terminal: &Terminal<'_>) {
    assert_eq!(
        terminal.apply(&with(TEMPLATE, &[("60s", INTERVAL)])),
        "hooktemplate.tkex.tencent.com/test created\n"
    );
    assert_eq!(terminal.apply(WORKLOAD), CREATED);
    terminal.shows_game("4 4 4 4 4").await;
    let scaled = terminal.run("scale --replicas=2 gamedeployment/test-gamedeployment");
    assert_eq!(scaled, SCALED);
    let asked = terminal.shows_runs(2, "Running").await;
    for id in &asked {
        shows_run(terminal, id).await;
    }
    terminal.shows_game("2 2 2 2 2").await;
    terminal.shows_pods(&["1/1 Running 0"; 2]).await;
    terminal.shows_no_runs().await;
    terminal.fleet.settled(2).await;
    for id in &asked {
        let counts = terminal
            .fleet
            .nodes
            .pod(&format!("test-gamedeployment-{id}"))
            .counts("/");
        assert_eq!(counts.received, 3, "the pod itself was asked three times");
    }
}

/// Checks that `kubectl get hookrun … -o yaml` shows the document's output.
async fn shows_run(terminal: &Terminal<'_>, id: &str) {
    let pod = format!("test-gamedeployment-{id}");
    let ip = terminal.fleet.nodes.pod(&pod).ip().unwrap().to_string();
    let game = terminal.fleet.game().await;
    let revision = game.status.unwrap().update_revision.unwrap();
    let name = format!("pre-delete-hook-{revision}-{id}-test");
    let run = eventually(SOON, || async {
        let run = terminal.yaml(&format!("get hookrun {name} -o yaml"));
        let measured = run.pointer("/status/metricResults/0/count").is_some();
        if measured { Ok(run) } else { Err(run.to_string()) }
    })
    .await;
    let labels = &run["metadata"]["labels"];
    assert_eq!(labels["InstanceID"], json!(id));
    assert_eq!(labels["PodControllerRevision"], json!(revision));
    assert_eq!(labels["gamedeployment-type"], json!("PreDelete"));
    let owner = json!([{
        "apiVersion": "tkex.tencent.com/v1alpha1", "blockOwnerDeletion": true, "controller": true,
        "kind": "GameDeployment", "name": "test-gamedeployment", "uid": game.metadata.uid,
    }]);
    assert_eq!(run["metadata"]["ownerReferences"], owner);
    // The document lists them by name, its HookTemplate does not.
    let mut arguments = run["spec"]["args"].as_array().unwrap()[..4].to_vec();
    arguments.sort_by_key(|argument| argument["name"].as_str().map(str::to_owned));
    let document = json!([
        { "name": "PodIP", "value": ip },
        { "name": "PodName", "value": pod },
        { "name": "PodNamespace", "value": "default" },
        { "name": "service-name", "value": "test-gamedeployment-svc.default.svc.cluster.local" },
    ]);
    assert_eq!(json!(arguments), document);
    let metric = json!({
        "count": 3, "failureLimit": 2, "interval": INTERVAL, "name": "webtest",
        "provider": { "web": { "jsonPath": "{$.age}", "url": "http://{{ args.PodIP }}:9091" } },
        "successCondition": "asInt(result) > 30",
    });
    assert_eq!(run["spec"]["metrics"], json!([metric]));
    assert_eq!(run["status"]["phase"], json!("Running"));
    let result = &run["status"]["metricResults"][0];
    assert_eq!(result["name"], "webtest");
    assert_eq!(result["phase"], "Running");
    assert_eq!((&result["count"], &result["successful"]), (&json!(1), &json!(1)));
    assert_eq!(result["measurements"].as_array().unwrap().len(), 1);
    let measurement = &result["measurements"][0];
    assert_eq!(measurement["phase"], "Successful");
    assert_eq!(measurement["value"], "45");
    let time = |value: &serde_json::Value| value.as_str().unwrap().parse::<Timestamp>().unwrap();
    let (started, finished) = (&measurement["startedAt"], &measurement["finishedAt"]);
    assert!(time(&run["status"]["startedAt"]) <= time(started), "{run}");
    assert!(time(started) <= time(finished), "{run}");
}
