//! Scale-downs of 1,000 game servers to 500 while matches are played, with the policies `Ranked` and `FirstIdle`
//! and without a hook: a model, in which the operators' cores decide. See the subcommand `matches` of `cores-bench`.

use std::process::{Command, Stdio};

use serde::Deserialize;
use test_kit::assets;

use super::Outcome;
use super::report::Report;
use crate::first_idle::{Point, Policy, Results, Row, Spread, recorded};

const PROGRAM: &str = "cores-bench";
/// Number of pods whose results are recorded.
pub(super) const PODS: u16 = 1_000;
const SEEDS: u64 = 10;
/// Seconds for which the pods left are recorded more often: most pods go at the beginning.
const BEGINNING: u32 = 60;
const MINUTE: f64 = 60.0;

/// Result of one scale-down: a line of the program's output.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ScaleDown {
    policy: Policy,
    seed: u64,
    busy: u32,
    /// Seconds until the deletion of each pod, in ascending order.
    deleted_after: Vec<u32>,
    matches_cut: u32,
    player_minutes_lost: f64,
    matches_queued: u32,
    runs: u32,
    writes: u32,
    measurements: u32,
}

impl ScaleDown {
    /// Minutes until this share of the surplus pods was gone.
    fn gone(&self, share: f64) -> f64 {
        let seconds: Vec<f64> = self.deleted_after.iter().copied().map(f64::from).collect();
        super::report::percentile(&seconds, share) / MINUTE
    }

    #[expect(clippy::cast_precision_loss, reason = "few pods")]
    fn per_pod(&self, count: u32) -> f64 {
        f64::from(count) / self.deleted_after.len() as f64
    }

    #[expect(clippy::cast_precision_loss, reason = "few pods")]
    fn left(&self, pods: usize, second: u32) -> f64 {
        let gone = self.deleted_after.partition_point(|at| *at <= second);
        pods.saturating_sub(gone) as f64
    }
}

/// Plays the scale-downs, prints the table, and compares the results with the recorded ones or records them.
pub(super) fn play(report: &mut Report, pods: usize) -> Outcome<()> {
    let played = simulate(pods)?;
    let results = summarize(&played, pods);
    println!("\n{}", results.table());
    for row in &results.rows {
        figures(report, row);
    }
    let (is_safe, text) = nothing_lost(&played);
    report.fact("with a hook, no deletion ends a match", is_safe, &text);
    let (is_faster, text) = never_slower(&played);
    report.fact(
        "FirstIdle is not slower than Ranked at any seed",
        is_faster,
        &text,
    );
    if pods != usize::from(PODS) {
        return Ok(());
    }
    if report.records() && is_safe && is_faster {
        return results.record();
    }
    let is_current = recorded()?.as_ref() == Some(&results);
    let text = if is_current {
        "equal"
    } else {
        "different; record them with --record, then run cargo xtask gen"
    };
    report.fact("the results are the recorded ones", is_current, text);
    Ok(())
}

/// Plays the scale-downs and records their results, for `cargo xtask pictures`.
pub(crate) fn record() -> Outcome<()> {
    let pods = usize::from(PODS);
    let played = simulate(pods)?;
    let (is_safe, text) = nothing_lost(&played);
    if !is_safe {
        return Err(format!("a deletion ended a match although there is a hook: {text}").into());
    }
    summarize(&played, pods).record()
}

/// Runs the program, which is built if necessary.
fn simulate(pods: usize) -> Outcome<Vec<ScaleDown>> {
    let output = Command::new(assets::tool(PROGRAM)?)
        .args(["matches", "--seeds", &format!("1..{SEEDS}")])
        .args(["--pods", &pods.to_string()])
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err(format!("{PROGRAM} matches: {}", output.status).into());
    }
    let mut played = Vec::new();
    for line in String::from_utf8(output.stdout)?.lines() {
        played.push(serde_json::from_str(line)?);
    }
    Ok(played)
}

fn of(played: &[ScaleDown], policy: Policy) -> impl Iterator<Item = &ScaleDown> {
    played.iter().filter(move |one| one.policy == policy)
}

fn summarize(played: &[ScaleDown], pods: usize) -> Results {
    let with_hook = played.iter().filter(|one| one.policy != Policy::NoHook);
    let end = with_hook
        .filter_map(|one| one.deleted_after.last().copied())
        .max()
        .unwrap_or(0);
    let minutes = (BEGINNING..end + BEGINNING).step_by(60);
    let seconds: Vec<u32> = (0..BEGINNING).step_by(5).chain(minutes).collect();
    let policies = [Policy::Ranked, Policy::FirstIdle, Policy::NoHook];
    Results {
        pods,
        seeds: of(played, Policy::Ranked).count(),
        rows: policies
            .map(|policy| summarize_policy(played, policy, pods, &seconds))
            .to_vec(),
    }
}

fn summarize_policy(played: &[ScaleDown], policy: Policy, pods: usize, seconds: &[u32]) -> Row {
    let spread = |value: &dyn Fn(&ScaleDown) -> f64| {
        let values: Vec<f64> = of(played, policy).map(value).collect();
        Spread::of(&values)
    };
    // Without a hook, all pods are gone at once.
    let seconds: &[u32] = if policy == Policy::NoHook { &[] } else { seconds };
    let curve = seconds.iter().map(|second| Point {
        second: *second,
        left: spread(&|one| one.left(pods, *second)),
    });
    Row {
        policy,
        busy: spread(&|one| f64::from(one.busy)),
        half_gone: spread(&|one| one.gone(0.5)),
        nine_tenths_gone: spread(&|one| one.gone(0.9)),
        all_gone: spread(&|one| one.gone(1.0)),
        player_minutes_lost: spread(&|one| one.player_minutes_lost),
        matches_queued: spread(&|one| f64::from(one.matches_queued)),
        runs: spread(&|one| one.per_pod(one.runs)),
        writes: spread(&|one| one.per_pod(one.writes)),
        measurements: spread(&|one| one.per_pod(one.measurements)),
        curve: curve.collect(),
    }
}

/// Adds the means of one policy to the report.
fn figures(report: &mut Report, row: &Row) {
    let policy = row.policy;
    for (figure, spread, unit) in [
        ("servers with a match at the beginning", row.busy, ""),
        ("until the last pod was gone", row.all_gone, "min"),
        ("player-minutes lost", row.player_minutes_lost, ""),
        ("HookRuns per deleted pod", row.runs, ""),
        (
            "writes of gamedeployment-operator per deleted pod",
            row.writes,
            "",
        ),
        ("measurements per deleted pod", row.measurements, ""),
    ] {
        report.measured(&format!("{policy:?}: {figure}"), spread.mean, unit, None);
    }
}

/// Returns whether no deletion ended a match where there is a hook.
fn nothing_lost(played: &[ScaleDown]) -> (bool, String) {
    let with_hook = played.iter().filter(|one| one.policy != Policy::NoHook);
    let (number, cut) = with_hook.fold((0, 0), |(number, cut), one| (number + 1, cut + one.matches_cut));
    (
        number > 0 && cut == 0,
        format!("{number} scale-downs, {cut} matches"),
    )
}

/// Returns whether the last pod is gone with `FirstIdle` as early as with `Ranked`, at each seed.
fn never_slower(played: &[ScaleDown]) -> (bool, String) {
    let mut slower = Vec::new();
    let mut compared = 0;
    for ranked in of(played, Policy::Ranked) {
        let same = of(played, Policy::FirstIdle).find(|one| one.seed == ranked.seed);
        compared += u32::from(same.is_some());
        if same.is_some_and(|one| one.deleted_after.last() > ranked.deleted_after.last()) {
            slower.push(ranked.seed);
        }
    }
    let text = format!("{compared} seeds, slower at {slower:?}");
    (compared > 0 && slower.is_empty(), text)
}
