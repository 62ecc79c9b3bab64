//! A gated scale-down: the hook of every pod runs and succeeds at once, then the pod is deleted.

use std::time::Instant;

use serde_json::json;

use super::harness::{Harness, PATIENCE, since};
use super::report::{Report, ratio};
use super::{Outcome, floor};

pub(super) async fn play(report: &mut Report, pods: usize) -> Outcome<()> {
    let floor = if report.counts_only() {
        None
    } else {
        Some((floor::scale_down(pods).await?, Some(1.5)))
    };
    let harness = Harness::new().await?;
    let (hooks, workloads) = (harness.hooks().await?, harness.workloads().await?);
    harness.launch(pods, json!({ "type": "InplaceUpdate" })).await?;
    let before = (hooks.requests().await?, workloads.requests().await?);
    let begun = Instant::now();
    harness.change(&json!({ "spec": { "replicas": 0 } })).await?;
    harness.nodes.await_pods(PATIENCE, |pods| pods.is_empty()).await?;
    let gone = begun.elapsed();
    harness.without_runs().await?;
    harness
        .until(|status| status.replicas == 0 && status.hook_pending_replicas == 0)
        .await?;
    let hook_requests = since(&before.0, &hooks.requests().await?);
    let game_requests = since(&before.1, &workloads.requests().await?);

    let asked = harness.nodes.terminated_pods();
    let asked = asked
        .iter()
        .map(|pod| harness.nodes.pod(pod).counts("/").received);
    report.asked_once(pods, &asked.collect::<Vec<_>>());
    let mut besides = game_requests.clone();
    let status = besides.remove("patch gamedeployments/status").unwrap_or(0);
    report.writes(
        "API writes per gated deletion",
        &[&hook_requests, &besides],
        pods,
        Some(5.0),
    );
    let status = ratio(status, pods);
    report.measured(
        "status writes of the GameDeployment per deletion",
        status,
        "",
        Some(0.05),
    );
    report.requests("hook-operator", &hook_requests, pods);
    report.requests("gamedeployment-operator", &game_requests, pods);
    report.time("until the last pod was gone", gone, floor);
    report.usage("hook-operator", hooks.usage());
    report.usage("gamedeployment-operator", workloads.usage());
    Ok(())
}
