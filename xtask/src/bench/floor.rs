//! Lower bound of the machine: the operators' writes in a bare loop, with the same client, control plane and
//! nodes.

use std::time::{Duration, Instant};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use shared_api::HookRun;

use super::Outcome;
use super::harness::{Harness, PATIENCE};

const GATE: &str = shared_api::names::pod::IN_PLACE_READY;
/// Number of concurrent writes, as an operator uses for one workload.
const AT_ONCE: usize = 32;
/// Number of runs deleted per call, as by the operator.
const RUNS_AT_ONCE: usize = 200;

/// Creates pods without an owner, and returns once they are ready. With `gate`, the pods have a readiness
/// gate, and a second write sets its condition to True.
pub(super) async fn create(harness: &Harness, pods: usize, gate: bool) -> Outcome<()> {
    let (api, post, patch) = (harness.pods(), PostParams::default(), PatchParams::default());
    each(pods, |number| {
        let (api, post, patch) = (&api, &post, &patch);
        async move {
            let name = format!("pod-{number}");
            let gates: &[Value] = if gate {
                &[json!({ "conditionType": GATE })]
            } else {
                &[]
            };
            let pod: Pod = serde_json::from_value(json!({
                "metadata": { "name": name, "labels": { "app": "floor" } },
                "spec": { "containers": [{ "name": "game", "image": "game:v1" }], "readinessGates": gates }
            }))?;
            api.create(post, &pod).await?;
            if gate {
                let condition =
                    json!({ "type": GATE, "status": "True", "lastTransitionTime": Timestamp::now() });
                let status = json!({ "status": { "conditions": [condition] } });
                api.patch_status(&name, patch, &Patch::Strategic(&status)).await?;
            }
            Ok(())
        }
    })
    .await?;
    harness.nodes.await_ready(pods, PATIENCE).await?;
    Ok(())
}

/// Runs a gated scale-down: selects a pod, creates a run and sets its verdict, deletes the pod, and deletes
/// runs in batches. The objects are as large as those of the operators.
pub(super) async fn scale_down(pods: usize) -> Outcome<Duration> {
    let harness = Harness::new().await?;
    create(&harness, pods, false).await?;
    let api = harness.pods();
    let runs: Api<HookRun> = Api::namespaced(harness.client(), &harness.namespace);
    let (post, patch, delete) = (
        PostParams::default(),
        PatchParams::default(),
        DeleteParams::default(),
    );
    let begun = Instant::now();
    each(pods, |number| {
        let (api, runs, post, patch, delete) = (&api, &runs, &post, &patch, &delete);
        async move {
            let name = format!("pod-{number}");
            let mark = json!({ "metadata": { "annotations": { "marked": "true" } } });
            api.patch(&name, patch, &Patch::Merge(&mark)).await?;
            runs.create(post, &run(&name, number)?).await?;
            runs.patch_status(&name, patch, &Patch::Merge(&verdict())).await?;
            api.delete(&name, delete).await?;
            Ok(())
        }
    })
    .await?;
    let groups = pods.div_ceil(RUNS_AT_ONCE);
    for group in 0..groups {
        let selected = ListParams::default().labels(&format!("group={group}"));
        runs.delete_collection(&delete, &selected).await?;
    }
    harness.nodes.await_pods(PATIENCE, |pods| pods.is_empty()).await?;
    Ok(begun.elapsed())
}

fn run(pod: &str, number: usize) -> Outcome<HookRun> {
    let uid = "6f0c5b52-6a0b-4f0e-9d0c-3a1f6c1d2e3f";
    let group = (number / RUNS_AT_ONCE).to_string();
    let label = |name: &str| (name.to_owned(), json!("arena-6b7f9c5d8"));
    let mut labels: serde_json::Map<String, Value> =
        (1..8).map(|number| label(&format!("label-{number}"))).collect();
    labels.insert("group".to_owned(), json!(group));
    let args: Vec<Value> = (1..8)
        .map(|number| json!({ "name": format!("PodContainer[{number}]"), "value": "10.0.0.1" }))
        .collect();
    Ok(serde_json::from_value(json!({
        "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "HookRun",
        "metadata": {
            "name": pod, "labels": labels,
            "annotations": { "intent": "delete", "choice": uid, "containers": "game=0123456789abcdef",
                "spec-digest": "0123456789abcdef" },
        },
        "spec": { "args": args, "metrics": [{
            "name": "players", "successCondition": "asInt(result) == 0",
            "provider": { "web": { "url": "http://{{ args.PodIP }}:9091", "jsonPath": "{$.players}" } }
        }] }
    }))?)
}

fn verdict() -> Value {
    let now = "2026-01-02T03:04:05Z";
    json!({ "status": {
        "phase": "Successful", "reason": "Succeeded", "message": "all metrics are Successful", "startedAt": now,
        "observedGeneration": 1,
        "metricResults": [{
            "name": "players", "phase": "Successful", "count": 1, "successful": 1,
            "measurements": [{ "phase": "Successful", "value": "0", "startedAt": now, "finishedAt": now }]
        }]
    } })
}

async fn each<F: Future<Output = Outcome<()>>>(count: usize, work: impl Fn(usize) -> F) -> Outcome<()> {
    stream::iter(0..count)
        .map(work)
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await
}
