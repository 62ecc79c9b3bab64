//! Many HookRuns, each measured several times at an interval, against one sample server.

use std::time::{Duration, Instant};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::Api;
use kube::api::{ListParams, PostParams};
use serde_json::json;
use shared_api::hook_run::{HookRunSpec, Measurement};
use shared_api::{HookRun, Phase};
use test_kit::wait::within;
use test_kit::{Answer, ControlPlane, Options, Webhook};

use super::Outcome;
use super::harness::{Operator, PATIENCE, since};
use super::report::{Report, mib, percentile, ratio};

/// Number of measurements per run.
const COUNT: usize = 6;
const INTERVAL: Duration = Duration::from_secs(30);
/// Interval if only counts are needed.
const SHORT_INTERVAL: Duration = Duration::from_secs(1);
const AT_ONCE: usize = 16;

pub(super) async fn play(report: &mut Report, runs: usize) -> Outcome<()> {
    let control_plane = control_plane().await?;
    let namespace = control_plane.namespace("bench").await;
    let game = Webhook::start()?;
    game.on("/", Answer::json(json!({ "players": 0 })));
    let hooks = Operator::start("hook-operator", &control_plane, &["--egress-allow-loopback"]).await?;
    let before = hooks.requests().await?;
    let begun = Instant::now();
    let interval = if report.counts_only() {
        SHORT_INTERVAL
    } else {
        INTERVAL
    };
    let api: Api<HookRun> = Api::namespaced(control_plane.client(), &namespace);
    create(&api, "run", runs, &spec(&game.url("/"), interval, COUNT)?).await?;
    let ended = ended(&api, runs).await?;
    let took = begun.elapsed();
    let requests = since(&before, &hooks.requests().await?);

    let successful = ended
        .iter()
        .filter(|run| phase(run) == Some(Phase::Successful))
        .count();
    report.fact(
        "all runs are Successful",
        successful == runs,
        &format!("{successful} of {runs}"),
    );
    let (asked, measurements) = (game.counts("/").received, runs * COUNT);
    report.fact(
        "every measurement was made once",
        asked == measurements,
        &format!("{asked} of {measurements}"),
    );
    let lags = lags(&ended, interval);
    report.measured("schedule lag, 99 %", percentile(&lags, 0.99), "ms", Some(250.0));
    report.measured("schedule lag, half", percentile(&lags, 0.5), "ms", None);
    report.count(
        "requests per measurement",
        ratio(requests.values().sum(), measurements),
        Some(1.1),
    );
    report.requests("hook-operator", &requests, measurements);
    let usage = hooks.usage();
    report.measured("cores", usage.cpu_seconds / took.as_secs_f64(), "", Some(1.0));
    report.measured("most memory", mib(usage.peak_rss_bytes), "MiB", Some(250.0));
    Ok(())
}

/// Starts a control plane with only the definitions.
pub(super) async fn control_plane() -> Outcome<ControlPlane> {
    let crds = shared_api::crd::all();
    Ok(ControlPlane::start(Options {
        crds,
        ..Options::default()
    })
    .await?)
}

/// Returns the spec of a run with `count` measurements at an interval.
pub(super) fn spec(url: &str, interval: Duration, count: usize) -> Outcome<HookRunSpec> {
    Ok(serde_json::from_value(json!({ "metrics": [{
        "name": "players", "interval": format!("{}ms", interval.as_millis()), "count": count,
        "successCondition": "asInt(result) == 0",
        "provider": { "web": { "url": url, "jsonPath": "{$.players}" } }
    }]}))?)
}

pub(super) async fn create(api: &Api<HookRun>, name: &str, runs: usize, spec: &HookRunSpec) -> Outcome<()> {
    stream::iter(0..runs)
        .map(|number| async move {
            let run = HookRun::new(&format!("{name}-{number}"), spec.clone());
            api.create(&PostParams::default(), &run).await.map(drop)
        })
        .buffer_unordered(AT_ONCE)
        .try_collect::<Vec<()>>()
        .await?;
    Ok(())
}

/// Returns the runs once all of them have ended.
pub(super) async fn ended(api: &Api<HookRun>, runs: usize) -> Outcome<Vec<HookRun>> {
    let all = within(PATIENCE, || async {
        // Reads rarely and from the API server's cache, so that observing does not add to the load.
        tokio::time::sleep(Duration::from_secs(2)).await;
        let list = api
            .list(&ListParams::default().match_any())
            .await
            .map_err(|error| error.to_string())?
            .items;
        let ended = list
            .iter()
            .filter(|run| phase(run).is_some_and(Phase::is_final))
            .count();
        if ended == runs {
            Ok(list)
        } else {
            Err(format!("{ended} of {runs} ended"))
        }
    });
    Ok(all.await?)
}

fn phase(run: &HookRun) -> Option<Phase> {
    run.status.as_ref().map(|status| status.phase)
}

/// Returns the delays between due time and start of all measurements but the first of each run, in
/// milliseconds, sorted.
pub(super) fn lags(runs: &[HookRun], interval: Duration) -> Vec<f64> {
    let results = runs
        .iter()
        .filter_map(|run| run.status.as_ref())
        .flat_map(|status| &status.metric_results);
    let mut lags: Vec<f64> = results
        .flat_map(|result| {
            result
                .measurements
                .windows(2)
                .filter_map(|pair| lag(pair, interval))
        })
        .collect();
    lags.sort_by(f64::total_cmp);
    lags
}

fn lag(pair: &[Measurement], interval: Duration) -> Option<f64> {
    let [before, after] = pair else { return None };
    let gap = after
        .started_at?
        .timestamp()
        .duration_since(before.finished_at?.timestamp());
    Some(1000.0 * (gap.as_secs_f64() - interval.as_secs_f64()))
}
