//! "在 `PreDeleteHook` 时配置可变参数": arguments of the workload and of each pod, rendered into the hook's url.

use serde_json::json;

use crate::terminal::Terminal;

/// `hook-template-args.yaml`, with an interval that a test can wait for.
const TEMPLATE: &str = r#"
apiVersion: tkex.tencent.com/v1alpha1
kind: HookTemplate
metadata:
  name: test
spec:
  args:
  - name: PodIP
  - name: PodName
  - name: PodNamespace
  - name: service-name
  metrics:
  - name: webtest
    count: 3
    interval: 1s
    failureLimit: 2
    successCondition: "asInt(result) > 30"
    provider:
      web:
        url: http://{{ args.PodIP }}:9091
        jsonPath: "{$.age}"
"#;

/// `gamedeployment-args.yaml`.
const WORKLOAD: &str = include_str!("../../manifests/game-deployment-args.yaml");

pub(crate) async fn play(terminal: &Terminal<'_>) {
    assert_eq!(
        terminal.apply(TEMPLATE),
        "hooktemplate.tkex.tencent.com/test created\n"
    );
    assert_eq!(
        terminal.apply(WORKLOAD),
        "gamedeployment.tkex.tencent.com/test-gamedeployment created\n"
    );
    terminal.shows_game("4 4 4 4 4").await;
    let scaled = terminal.run("scale --replicas=2 gamedeployment/test-gamedeployment");
    assert_eq!(
        scaled,
        "gamedeployment.tkex.tencent.com/test-gamedeployment scaled\n"
    );
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

/// `kubectl get hookrun … -o yaml` shows what the document shows.
async fn shows_run(terminal: &Terminal<'_>, id: &str) {
    let pod = format!("test-gamedeployment-{id}");
    let ip = terminal.fleet.nodes.pod(&pod).ip().unwrap().to_string();
    let game = terminal.fleet.game().await;
    let revision = game.status.unwrap().update_revision.unwrap();
    let name = format!("pre-delete-hook-{revision}-{id}-test");
    let run = terminal.yaml(&format!("get hookrun {name} -o yaml"));
    let labels = &run["metadata"]["labels"];
    assert_eq!(labels["InstanceID"], json!(id));
    assert_eq!(labels["PodControllerRevision"], json!(revision));
    assert_eq!(labels["gamedeployment-type"], json!("PreDelete"));
    let owner = json!([{
        "apiVersion": "tkex.tencent.com/v1alpha1", "blockOwnerDeletion": true, "controller": true,
        "kind": "GameDeployment", "name": "test-gamedeployment", "uid": game.metadata.uid,
    }]);
    assert_eq!(run["metadata"]["ownerReferences"], owner);
    let arguments = run["spec"]["args"].as_array().unwrap();
    let document = json!([
        { "name": "PodIP", "value": ip },
        { "name": "PodName", "value": pod },
        { "name": "PodNamespace", "value": "default" },
        { "name": "service-name", "value": "test-gamedeployment-svc.default.svc.cluster.local" },
    ]);
    assert_eq!(json!(arguments[..4]), document);
    let metric = json!({
        "count": 3, "failureLimit": 2, "interval": "1s", "name": "webtest",
        "provider": { "web": { "jsonPath": "{$.age}", "url": "http://{{ args.PodIP }}:9091" } },
        "successCondition": "asInt(result) > 30",
    });
    assert_eq!(run["spec"]["metrics"], json!([metric]));
    assert_eq!(run["status"]["phase"], json!("Running"));
    let result = &run["status"]["metricResults"][0];
    assert_eq!(
        (&result["name"], &result["phase"]),
        (&json!("webtest"), &json!("Running"))
    );
    let measurement = &result["measurements"][0];
    assert_eq!(
        (&measurement["phase"], &measurement["value"]),
        (&json!("Successful"), &json!("45"))
    );
    assert_eq!(result["successful"], result["count"]);
}
