//! Creation of many pods at once.

use std::time::{Duration, Instant};

use serde_json::json;

use super::Outcome;
use super::floor;
use super::harness::{Harness, since};
use super::report::Report;

pub(super) async fn play(report: &mut Report, pods: usize) -> Outcome<()> {
    let floor = if report.counts_only() {
        None
    } else {
        Some((floor_of(pods).await?, None))
    };
    let harness = Harness::new().await?;
    let (hooks, workloads) = (harness.hooks().await?, harness.workloads().await?);
    let before = (hooks.requests().await?, workloads.requests().await?);
    let begun = Instant::now();
    harness.launch(pods, json!({ "type": "InplaceUpdate" })).await?;
    let took = begun.elapsed();
    let hook_requests = since(&before.0, &hooks.requests().await?);
    let game_requests = since(&before.1, &workloads.requests().await?);
    report.writes(
        "API writes per pod",
        &[&hook_requests, &game_requests],
        pods,
        None,
    );
    report.requests("gamedeployment-operator", &game_requests, pods);
    report.time("until all pods were available", took, floor);
    report.usage("gamedeployment-operator", workloads.usage());
    Ok(())
}

/// Returns the time that a bare loop needs for the same pods on the same nodes, until all are ready. Each pod
/// needs one write for its readiness gate.
async fn floor_of(pods: usize) -> Outcome<Duration> {
    let harness = Harness::new().await?;
    let begun = Instant::now();
    floor::create(&harness, pods, true).await?;
    Ok(begun.elapsed())
}
