//! Many games that are scaled at once: all must finish, and none may take much longer than the others.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use kube::runtime::watcher::{self, Event, watcher};
use serde_json::json;

use super::Outcome;
use super::harness::{Harness, PATIENCE, since};
use super::report::Report;

/// Pods per game, before and after.
const PODS: (usize, usize) = (10, 5);
const AT_ONCE: usize = 32;

pub(super) async fn play(report: &mut Report, games: usize) -> Outcome<()> {
    let harness = Harness::new().await?;
    let (hooks, workloads) = (harness.hooks().await?, harness.workloads().await?);
    harness.template().await?;
    let names: Vec<String> = (0..games).map(|number| format!("game-{number}")).collect();
    stream::iter(&names)
        .map(|name| harness.game(name, PODS.0, json!({ "type": "InplaceUpdate" })))
        .buffer_unordered(AT_ONCE)
        .try_collect::<Vec<()>>()
        .await?;
    settled(&harness, games, PODS.0).await?;
    let before = (hooks.requests().await?, workloads.requests().await?);
    let begun = Instant::now();
    let api = harness.games();
    let patch = Patch::Merge(json!({ "spec": { "replicas": PODS.1 } }));
    let scale = async {
        stream::iter(&names)
            .map(|name| async { api.patch(name, &PatchParams::default(), &patch).await.map(drop) })
            .buffer_unordered(AT_ONCE)
            .try_collect::<Vec<()>>()
            .await?;
        Ok::<_, Box<dyn std::error::Error>>(begun.elapsed())
    };
    let (scaled, mut took) = tokio::try_join!(scale, settled(&harness, games, PODS.1))?;
    took.sort();
    let requests = (
        since(&before.0, &hooks.requests().await?),
        since(&before.1, &workloads.requests().await?),
    );
    let gone = games * (PODS.0 - PODS.1);
    report.fact(
        "all games converged",
        took.len() == games,
        &format!("{} games", took.len()),
    );
    report.writes(
        "API writes per gated deletion",
        &[&requests.0, &requests.1],
        gone,
        None,
    );
    report.time("the people's own writes took", scaled, None);
    let middle = took.get(took.len() / 2).copied().unwrap_or_default();
    let last = took.last().copied().unwrap_or_default();
    report.time("half of the games were done after", middle, None);
    let times = last.as_secs_f64() / middle.as_secs_f64();
    report.measured(
        "the last game took so many times the median",
        times,
        "x",
        Some(3.0),
    );
    report.usage("hook-operator", hooks.usage());
    report.usage("gamedeployment-operator", workloads.usage());
    Ok(())
}

/// Returns when each game reached this number of pods, measured from now on.
async fn settled(harness: &Harness, games: usize, pods: usize) -> Outcome<Vec<Duration>> {
    let begun = Instant::now();
    let wanted = i32::try_from(pods)?;
    let mut done: HashMap<String, Duration> = HashMap::new();
    let mut events = std::pin::pin!(watcher(harness.games(), watcher::Config::default()));
    let all = async {
        while done.len() < games {
            let Some(event) = events.next().await else { break };
            let Ok(Event::Apply(game) | Event::InitApply(game)) = event else {
                continue;
            };
            let status = game.status.clone().unwrap_or_default();
            let current = status.observed_generation == game.metadata.generation;
            let there = game.spec.replicas == Some(wanted) && status.replicas == wanted;
            if current && there && status.available_replicas == wanted {
                done.entry(game.name_any()).or_insert_with(|| begun.elapsed());
            }
        }
    };
    let in_time = tokio::time::timeout(PATIENCE, all).await;
    if in_time.is_err() {
        return Err(format!("{} of {games} games have {pods} pods", done.len()).into());
    }
    Ok(done.into_values().collect())
}
