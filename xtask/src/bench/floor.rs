//! What the machine can do: the operators' writes by a bare loop, with the same client, on the same control plane and
//! nodes.

use std::time::{Duration, Instant};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use shared_api::HookRun;

use super::Outcome;
use super::world::{PATIENCE, World};

/// Writes at a time: as many as an operator makes for one workload.
const AT_ONCE: usize = 32;

/// Makes pods of nobody, and returns once they are ready.
pub(super) async fn create(world: &World, pods: usize) -> Outcome<()> {
    let (api, post) = (world.pods(), PostParams::default());
    each(pods, |number| {
        let (api, post) = (&api, &post);
        async move {
            let pod: Pod = serde_json::from_value(json!({
                "metadata": { "name": format!("pod-{number}"), "labels": { "app": "floor" } },
                "spec": { "containers": [{ "name": "game", "image": "game:v1" }] }
            }))?;
            api.create(post, &pod).await?;
            Ok(())
        }
    })
    .await?;
    world.nodes.await_ready(pods, PATIENCE).await?;
    Ok(())
}

/// A gated scale-down: a pod is marked, a run is made and gets its verdict, the pod is deleted, the run is deleted.
pub(super) async fn scale_down(pods: usize) -> Outcome<Duration> {
    let world = World::new().await?;
    create(&world, pods).await?;
    let api = world.pods();
    let runs: Api<HookRun> = Api::namespaced(world.client(), &world.namespace);
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
            let spec = serde_json::from_value(json!({ "metrics": [] }))?;
            runs.create(post, &HookRun::new(&name, spec)).await?;
            let verdict = json!({ "status": { "phase": "Successful" } });
            runs.patch_status(&name, patch, &Patch::Merge(&verdict)).await?;
            api.delete(&name, delete).await?;
            runs.delete(&name, delete).await?;
            Ok(())
        }
    })
    .await?;
    world.nodes.await_pods(PATIENCE, |pods| pods.is_empty()).await?;
    Ok(begun.elapsed())
}

async fn each<F: Future<Output = Outcome<()>>>(count: usize, work: impl Fn(usize) -> F) -> Outcome<()> {
    stream::iter(0..count)
        .map(work)
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await
}
