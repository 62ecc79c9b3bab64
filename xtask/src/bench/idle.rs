//! A large game without changes: its running cost, and the duration of a restart.

use std::time::{Duration, Instant};

use serde_json::json;

use super::Outcome;
use super::harness::{Harness, since};
use super::report::{Report, mib};

/// Duration of the idle phase.
const QUIET: Duration = Duration::from_mins(1);
/// Duration if only counts are needed.
const SHORT_QUIET: Duration = Duration::from_secs(10);
/// Time without requests after which a starting process counts as steady.
const STEADY: Duration = Duration::from_secs(2);

pub(super) async fn play(report: &mut Report, pods: usize) -> Outcome<()> {
    let harness = Harness::new().await?;
    let (hooks, workloads) = (harness.hooks().await?, harness.workloads().await?);
    harness.launch(pods, json!({ "type": "InplaceUpdate" })).await?;
    drop(workloads);

    let begun = Instant::now();
    let workloads = harness.workloads().await?;
    report.time("a new process is ready", begun.elapsed(), None);
    let mut newest = workloads.requests().await?;
    let mut steady = Instant::now();
    while steady.elapsed() < STEADY {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let now = workloads.requests().await?;
        if now != newest {
            (newest, steady) = (now, Instant::now());
        }
    }
    let took = (steady - begun).as_secs_f64();
    report.measured("a new process is steady after", took, "s", Some(10.0));

    let before = (hooks.requests().await?, workloads.requests().await?);
    let (hooks_before, workloads_before) = (hooks.usage(), workloads.usage());
    let quiet = if report.counts_only() { SHORT_QUIET } else { QUIET };
    tokio::time::sleep(quiet).await;
    for (who, operator, before, usage) in [
        ("hook-operator", &hooks, &before.0, hooks_before),
        ("gamedeployment-operator", &workloads, &before.1, workloads_before),
    ] {
        let mut requests = since(before, &operator.requests().await?);
        requests.retain(|name, _| !name.starts_with("watch ") && !name.ends_with(" leases"));
        let count = requests.values().sum::<u64>();
        report.fact(
            &format!("{who} makes no request"),
            count == 0,
            &format!("{count} in {} s {requests:?}", quiet.as_secs()),
        );
        let now = operator.usage();
        let share = 100.0 * (now.cpu_seconds - usage.cpu_seconds) / quiet.as_secs_f64();
        report.measured(&format!("CPU of {who}"), share, "%", Some(1.0));
        report.measured(
            &format!("memory of {who}"),
            mib(now.rss_bytes),
            "MiB",
            Some(200.0),
        );
        report.measured(
            &format!("most memory of {who}"),
            mib(now.peak_rss_bytes),
            "MiB",
            None,
        );
    }
    Ok(())
}
