//! A gated in-place update: the hook of every pod runs, and at most a tenth of the pods is out of service at
//! a time.

use std::time::Instant;

use serde_json::json;

use super::Outcome;
use super::harness::{Harness, since};
use super::report::Report;
use super::watched::ReadyPods;

pub(super) async fn play(report: &mut Report, pods: usize) -> Outcome<()> {
    let harness = Harness::new().await?;
    let (hooks, workloads) = (harness.hooks().await?, harness.workloads().await?);
    let strategy = json!({ "type": "InplaceUpdate", "maxUnavailable": "10%", "partition": 0 });
    harness.launch(pods, strategy).await?;
    let before = (hooks.requests().await?, workloads.requests().await?);
    let ready = ReadyPods::watch(harness.pods(), pods).await?;
    let begun = Instant::now();
    let image = json!([{ "name": "game", "image": "game:v2" }]);
    harness
        .change(&json!({ "spec": { "template": { "spec": { "containers": image } } } }))
        .await?;
    let all = i32::try_from(pods)?;
    harness
        .until(|status| status.updated_ready_replicas == all && status.available_replicas == all)
        .await?;
    let took = begun.elapsed();
    harness.without_runs().await?;
    let hook_requests = since(&before.0, &hooks.requests().await?);
    let game_requests = since(&before.1, &workloads.requests().await?);

    let (budget, out) = (pods / 10, pods - ready.least());
    let seen = format!("at most {out} of {budget} out of service");
    report.fact("the budget was never exceeded", out <= budget, &seen);
    let asked = harness.nodes.pods();
    let asked = asked
        .iter()
        .map(|pod| harness.nodes.pod(&pod.name).counts("/").received);
    report.asked_once(pods, &asked.collect::<Vec<_>>());
    report.writes(
        "API writes per pod",
        &[&hook_requests, &game_requests],
        pods,
        Some(7.0),
    );
    report.requests("hook-operator", &hook_requests, pods);
    report.requests("gamedeployment-operator", &game_requests, pods);
    report.time("until the last pod was updated and available", took, None);
    report.usage("hook-operator", hooks.usage());
    report.usage("gamedeployment-operator", workloads.usage());
    Ok(())
}
