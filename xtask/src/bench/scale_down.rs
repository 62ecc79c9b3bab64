//! A gated scale-down: every pod's hook is asked, answers at once, and the pod goes.

use std::time::{Duration, Instant};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use shared_api::HookRun;

use super::Outcome;
use super::report::{Report, ratio};
use super::world::{AT_ONCE, PATIENCE, World, since, writes};

pub(super) async fn play(report: &mut Report, pods: usize) -> Outcome<()> {
    let floor = floor(pods).await?;
    let world = World::new().await?;
    let (hooks, workloads) = (world.hooks().await?, world.workloads().await?);
    world.launch(pods, json!({ "type": "InplaceUpdate" })).await?;
    let before = (hooks.requests().await?, workloads.requests().await?);
    let begun = Instant::now();
    world.change(&json!({ "spec": { "replicas": 0 } })).await?;
    world.nodes.await_pods(PATIENCE, |pods| pods.is_empty()).await?;
    let gone = begun.elapsed();
    world.without_runs().await?;
    world.until(|status| status.replicas == 0 && status.hook_pending_replicas == 0).await?;
    let hook_requests = since(&before.0, &hooks.requests().await?);
    let game_requests = since(&before.1, &workloads.requests().await?);

    let asked: Vec<usize> = world.nodes.terminated_pods().iter().map(|pod| world.nodes.pod(pod).counts("/").received).collect();
    let once = asked.len() == pods && asked.iter().all(|times| *times == 1);
    report.fact("every pod's hook was asked exactly once", once, &format!("{} pods, asked {} times", asked.len(), asked.iter().sum::<usize>()));
    let status = game_requests.get("patch gamedeployments/status").copied().unwrap_or(0);
    let others = writes(&hook_requests) + writes(&game_requests) - status;
    report.count("API writes per gated deletion", ratio(others, pods), Some(5.0));
    report.count("status writes of the GameDeployment per deletion", ratio(status, pods), Some(0.05));
    for (who, requests) in [("hook-operator", &hook_requests), ("gamedeployment-operator", &game_requests)] {
        for (name, count) in requests {
            report.count(&format!("  {who}: {name}"), ratio(*count, pods), None);
        }
    }
    report.time("until the last pod was gone", gone, Some((floor, 1.5)));
    report.usage("hook-operator", hooks.usage());
    report.usage("gamedeployment-operator", workloads.usage());
    Ok(())
}

/// The same writes by a bare loop, with the same client, on the same nodes: a pod is marked, a run is made and gets its
/// verdict, the pod is deleted, the run is deleted.
async fn floor(pods: usize) -> Outcome<Duration> {
    let world = World::new().await?;
    let (api, post) = (world.pods(), PostParams::default());
    let runs: Api<HookRun> = Api::namespaced(world.client(), &world.namespace);
    let pod = |number: usize| {
        serde_json::from_value(json!({
            "metadata": { "name": format!("pod-{number}"), "labels": { "app": "floor" } },
            "spec": { "containers": [{ "name": "game", "image": "game:v1" }] }
        }))
    };
    stream::iter(0..pods)
        .map(|number| {
            let (api, post) = (&api, &post);
            async move { api.create(post, &pod(number)?).await.map(drop).map_err(Box::<dyn std::error::Error>::from) }
        })
        .buffer_unordered(AT_ONCE)
        .try_collect::<Vec<()>>()
        .await?;
    world.nodes.await_ready(pods, PATIENCE).await?;
    let (patch, delete) = (PatchParams::default(), DeleteParams::default());
    let begun = Instant::now();
    stream::iter(0..pods)
        .map(|number| {
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
                Ok::<_, Box<dyn std::error::Error>>(())
            }
        })
        .buffer_unordered(AT_ONCE)
        .try_collect::<Vec<()>>()
        .await?;
    world.nodes.await_pods(PATIENCE, |pods| pods.is_empty()).await?;
    Ok(begun.elapsed())
}
