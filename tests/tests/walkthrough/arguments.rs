//! "在 `PreDeleteHook` 时配置可变参数": arguments of the workload and of each pod, rendered into the hook's url.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use operator_tests::SOON;
use serde_json::{Value, json};
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
        terminal.apply("hook-template-args.yaml", &with(TEMPLATE, &[("60s", INTERVAL)])),
        "hooktemplate.tkex.tencent.com/test created\n"
    );
    assert_eq!(terminal.apply("gamedeployment-args.yaml", WORKLOAD), CREATED);
    terminal.shows_game("4 4 4 4 4").await;
    let revision = terminal.revision();
    let scaled = terminal.run("scale --replicas=2 gamedeployment/test-gamedeployment");
    assert_eq!(scaled, SCALED);
    let asked = terminal.shows_runs(2, "Running", &revision).await;
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

/// Checks that `kubectl get hookrun … -o yaml` shows the document's output, and nothing else but the differences that
/// `docs/differences.md` lists.
async fn shows_run(terminal: &Terminal<'_>, id: &str) {
    let pod = format!("test-gamedeployment-{id}");
    let game = terminal.fleet.game().await;
    let revision = game.status.unwrap().update_revision.unwrap();
    let name = format!("pre-delete-hook-{revision}-{id}-test");
    let mut run = eventually(SOON, || async {
        let run = terminal.yaml(&format!("get hookrun {name} -o yaml"));
        let measured = run.pointer("/status/metricResults/0/count").is_some();
        if measured { Ok(run) } else { Err(run.to_string()) }
    })
    .await;
    check_times(&run);
    let pod = terminal.fleet.all_pods().await.remove(&pod).unwrap();
    let name_digest = &run["metadata"]["labels"]["tkex.tencent.com/name-digest"];
    let expected = json!({
        "apiVersion": "tkex.tencent.com/v1alpha1",
        "kind": "HookRun",
        "metadata": {
            "annotations": annotations(&run, &pod),
            "generation": 1,
            "labels": {
                "InstanceID": id,
                "PodControllerRevision": revision,
                "gamedeployment-type": "PreDelete",
                "hookrun-type": "pre-delete-step",
                "instance-id": id,
                "tkex.tencent.com/gamedeployment": "test-gamedeployment",
                "tkex.tencent.com/name-digest": digest(name_digest, 16),
                "tkex.tencent.com/pod-uid": pod.metadata.uid,
                "velero.io/exclude-from-backup": "true",
                "workload-revision": revision,
            },
            "name": name,
            "namespace": "default",
            "ownerReferences": [{
                "apiVersion": "tkex.tencent.com/v1alpha1",
                "blockOwnerDeletion": true,
                "controller": true,
                "kind": "GameDeployment",
                "name": "test-gamedeployment",
                "uid": game.metadata.uid,
            }],
        },
        "spec": spec(&pod),
        "status": status(&run),
    });
    let metadata = run["metadata"].as_object_mut().unwrap();
    for other in ["creationTimestamp", "managedFields", "resourceVersion", "uid"] {
        metadata.remove(other);
    }
    assert_eq!(run, expected);
}

/// Returns the digest that a value must be, in hexadecimal digits.
fn digest(value: &Value, length: usize) -> String {
    let text = value.as_str().unwrap_or_default();
    let is_digest = text.len() == length && text.chars().all(|digit| digit.is_ascii_hexdigit());
    assert!(is_digest, "{value}");
    text.to_owned()
}

/// Annotations that the document does not have. They say what exactly the hook runs for.
fn annotations(run: &Value, pod: &Pod) -> Value {
    let found = &run["metadata"]["annotations"];
    let containers = found["tkex.tencent.com/containers"].as_str().unwrap_or_default();
    let container = containers.strip_prefix("pre-delete-hook=").unwrap_or_default();
    json!({
        "tkex.tencent.com/choice": pod.annotations()["tkex.tencent.com/chosen-for"],
        "tkex.tencent.com/containers": format!("pre-delete-hook={}", digest(&json!(container), 16)),
        "tkex.tencent.com/intent": "delete",
        "tkex.tencent.com/question": pod.annotations()["tkex.tencent.com/hook-question"],
        "tkex.tencent.com/spec-digest": digest(&found["tkex.tencent.com/spec-digest"], 64),
    })
}

/// Spec of the document, in its order, followed by the arguments that the document does not have.
fn spec(pod: &Pod) -> Value {
    let status = pod.status.as_ref().unwrap();
    json!({
        "args": [
            { "name": "PodIP", "value": status.pod_ip },
            { "name": "PodName", "value": pod.name_any() },
            { "name": "PodNamespace", "value": "default" },
            { "name": "service-name", "value": "test-gamedeployment-svc.default.svc.cluster.local" },
            { "name": "HostIP", "value": status.host_ip },
            { "name": "PodContainer[0]", "value": "pre-delete-hook" },
        ],
        "metrics": [{
            "count": 3,
            "failureLimit": 2,
            "interval": INTERVAL,
            "name": "webtest",
            "provider": { "web": { "jsonPath": "{$.age}", "url": "http://{{ args.PodIP }}:9091" } },
            "successCondition": "asInt(result) > 30",
        }],
        "policy": "Parallel",
    })
}

/// Status of the document, with `consecutiveSuccessful`, `observedGeneration` and `reason`.
fn status(run: &Value) -> Value {
    let found = &run["status"];
    let measurement = &found["metricResults"][0]["measurements"][0];
    json!({
        "metricResults": [{
            "consecutiveSuccessful": 1,
            "count": 1,
            "measurements": [{
                "finishedAt": measurement["finishedAt"],
                "phase": "Successful",
                "startedAt": measurement["startedAt"],
                "value": "45",
            }],
            "name": "webtest",
            "phase": "Running",
            "successful": 1,
        }],
        "observedGeneration": 1,
        "phase": "Running",
        "reason": "Measuring",
        "startedAt": found["startedAt"],
    })
}

/// Checks that the run and its first measurement have times, in their order.
fn check_times(run: &Value) {
    let time = |path: &str| -> Timestamp {
        let text = run.pointer(path).and_then(Value::as_str);
        text.unwrap_or_else(|| panic!("{path}: {run}")).parse().unwrap()
    };
    let measurement = "/status/metricResults/0/measurements/0";
    let started = time(&format!("{measurement}/startedAt"));
    assert!(time("/status/startedAt") <= started, "{run}");
    assert!(started <= time(&format!("{measurement}/finishedAt")), "{run}");
}
