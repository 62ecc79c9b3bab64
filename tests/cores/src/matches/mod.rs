//! Scale-downs of a fleet of game servers on which matches are played: 1,000 servers become 500.
//!
//! | module | job |
//! | --- | --- |
//! | [`traffic`] | the matches: when they start, on which server, and how long they last |
//! | [`world`] | the API server's objects, both operators' cores, and the hook |
//!
//! The model is that of a matchmaker that knows nothing of the scale-down: a match starts on a random idle server,
//! whether it is selected for deletion or not. The hook measures whether a match is being played. Time advances in
//! seconds. Each second has one decision of gamedeployment-operator if anything has changed, and as many writes as
//! the operator sends between two decisions.
//!
//! Deletions are carried out in the second of the measurement that permits them. In a cluster, some time passes
//! between the two, in which a match may start; the model leaves it out with every policy.

mod traffic;
mod world;

use std::io::Write as _;
use std::ops::RangeInclusive;

use clap::ValueEnum as _;
use serde::Serialize;
use serde_json::{Value, json};

use crate::Outcome;
use traffic::Traffic;
use world::World;

/// Time that the matches are played before the scale-down, in seconds: many times the length of a match.
const WARM_UP: u32 = 8 * 3600;
/// Maximum duration of a scale-down, in seconds.
const MOST: u32 = 24 * 3600;
/// Players of a match.
const PLAYERS: u32 = 10;

/// Flags of `matches`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Seeds of the matches, such as 1..10; the last one is included
    #[arg(long, default_value = "1..10", value_parser = seeds)]
    seeds: RangeInclusive<u64>,
    /// Game servers before the scale-down; half of them stay
    #[arg(long, default_value_t = 1_000)]
    pods: usize,
}

/// How the pods to delete are selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize)]
enum Policy {
    /// `Ranked`, with a hook.
    Ranked,
    /// `FirstIdle`, with a hook.
    FirstIdle,
    /// `Ranked`, without a hook.
    NoHook,
}

/// Result of one scale-down.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ScaleDown {
    policy: Policy,
    seed: u64,
    /// Servers with a match at the beginning.
    busy: usize,
    /// Seconds until the deletion of each pod, in ascending order.
    deleted_after: Vec<u32>,
    /// Matches that a deletion ended.
    matches_cut: u32,
    /// Time that was played in these matches, for all of their players.
    player_minutes_lost: f64,
    /// Matches that had to wait for an idle server until the last pod was deleted.
    matches_queued: u32,
    runs: u64,
    /// Writes of gamedeployment-operator, except events.
    writes: u64,
    /// Measurements, each of which is a write of hook-operator.
    measurements: u64,
}

fn seeds(text: &str) -> Result<RangeInclusive<u64>, String> {
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    let number = |text: &str| text.parse::<u64>().map_err(|error| format!("{text}: {error}"));
    Ok(number(first)?..=number(last)?)
}

/// Plays a scale-down for each policy and seed.
pub(crate) fn play(args: &Args) -> Outcome<()> {
    let mut out = std::io::stdout().lock();
    for seed in args.seeds.clone() {
        for policy in Policy::value_variants() {
            let result = scale_down(*policy, seed, args.pods)?;
            serde_json::to_writer(&mut out, &result)?;
            writeln!(out)?;
        }
    }
    Ok(())
}

/// Returns the part of the workload's spec that distinguishes the policy.
fn spec(policy: Policy) -> Value {
    let hook = json!({ "hook": { "templateName": "players" } });
    match policy {
        Policy::Ranked => json!({ "preDeleteUpdateStrategy": hook }),
        Policy::FirstIdle => json!({
            "preDeleteUpdateStrategy": hook,
            "scaleStrategy": { "selectionPolicy": "FirstIdle" },
        }),
        Policy::NoHook => json!({}),
    }
}

/// Plays one scale-down until the last surplus pod and the last HookRun are gone.
fn scale_down(policy: Policy, seed: u64, pods: usize) -> Outcome<ScaleDown> {
    let mut traffic = Traffic::new(seed, pods);
    traffic.advance(WARM_UP);
    let mut world = World::launch(pods, spec(policy))?;
    let mut result = ScaleDown {
        policy,
        seed,
        busy: traffic.busy(),
        deleted_after: Vec::new(),
        matches_cut: 0,
        player_minutes_lost: 0.0,
        matches_queued: 0,
        runs: 0,
        writes: 0,
        measurements: 0,
    };
    let queued_before = traffic.queued();
    let surplus = pods / 2;
    world.set_replicas(pods - surplus)?;
    for second in 0..MOST {
        traffic.advance(WARM_UP + second);
        for server in world.advance(second, &traffic)? {
            result.deleted_after.push(second);
            result.matches_queued = traffic.queued() - queued_before;
            if let Some(played) = traffic.close(server) {
                result.matches_cut += 1;
                result.player_minutes_lost += f64::from(played * PLAYERS) / 60.0;
            }
        }
        if result.deleted_after.len() > surplus {
            return Err(format!("{policy:?}, seed {seed}: more pods are deleted than are surplus").into());
        }
        if result.deleted_after.len() == surplus && world.is_settled() {
            let counts = world.counts();
            result.runs = counts.runs;
            result.writes = counts.writes;
            result.measurements = counts.measurements;
            return Ok(result);
        }
    }
    let deleted = result.deleted_after.len();
    Err(format!("{policy:?}, seed {seed}: {deleted} of {surplus} pods are deleted after {MOST} s").into())
}
