//! Gauges of every workload: stored when reported, and encoded when Prometheus scrapes.

use std::collections::BTreeMap;
use std::fmt::Error;
use std::sync::{Mutex, PoisonError};

use gamedeployment_core::first_idle::SearchProgress;
use gamedeployment_core::first_idle::Searches;
use gamedeployment_core::hook_kind::HookKind;
use gamedeployment_core::plan::{Gauges, PodGroup};
use jiff::Timestamp;
use operator_runtime::watch::NamespacedName;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use shared_api::GameDeploymentStatus;
use shared_api::game_deployment::{LifecycleHookPhase, LifecycleHookStatus};
use shared_api::reason::WorkloadCondition;

use super::progress::Progress;

/// Conditions that require action by a person.
const BLOCKED: [WorkloadCondition; 3] = [
    WorkloadCondition::ScaleBlocked,
    WorkloadCondition::UpdateBlocked,
    WorkloadCondition::InvalidSpec,
];

/// Newest report of every workload.
#[derive(Debug, Default)]
pub(super) struct WorkloadCollector(Mutex<BTreeMap<NamespacedName, WorkloadSample>>);

#[derive(Debug, Clone)]
struct WorkloadSample {
    counts: [(&'static str, i64); 7],
    gauges: Gauges,
    blocked: [bool; BLOCKED.len()],
    lifecycle_hooks: Option<[(&'static str, i64); 4]>,
    progress: Progress,
}

/// Receives the series of one metric: additional labels and the value.
type Series<'a> = dyn FnMut(&[(&'static str, &'static str)], i64) -> Result<(), Error> + 'a;

/// Produces the series of one metric for one workload.
type SeriesFn = fn(&WorkloadSample, &mut Series<'_>) -> Result<(), Error>;

/// Name, help text and series of every metric.
const METRICS: [(&str, &str, SeriesFn); 13] = [
    (
        "pods",
        "Pods by state, as counted in the workload's status; to_update: old pods that are due for an update; \
         updating: pods with an in-place update in progress",
        |report, series| {
            let mut counts = report.counts.into_iter();
            counts.try_for_each(|(state, count)| series(&[("state", state)], count))
        },
    ),
    (
        "hook_waiting_pods",
        "Pods waiting for a hook, by state of the hook: asking (running), refused (did not succeed), blocked (cannot \
         run or is not being measured), erroring (keeps failing with errors or can never succeed)",
        |report, series| waits(report, series, |group| number(group.pods)),
    ),
    (
        "hook_waiting_since_timestamp_seconds",
        "Unix time at which the longest-waiting pod started waiting; 0 if no pod is waiting",
        |report, series| waits(report, series, since),
    ),
    (
        "draining_pods",
        "Pods being drained: chosen (selected for deletion, waiting for their hook or their turn), terminating",
        |report, series| drains(report, series, |group| number(group.pods)),
    ),
    (
        "draining_since_timestamp_seconds",
        "Unix time at which the first draining pod was selected or started terminating; 0 if no pod is draining",
        |report, series| drains(report, series, since),
    ),
    (
        "removal_requested_pods",
        "Pods with a valid removal request; they are deleted and replaced once their hook succeeds",
        |report, series| series(&[], number(report.gauges.removals.pods)),
    ),
    (
        "removal_requested_since_timestamp_seconds",
        "Unix time of the oldest valid removal request; 0 if there is none",
        |report, series| series(&[], since(report.gauges.removals)),
    ),
    (
        "removals_guarded",
        "1 while the removal guard is in effect for the pods, otherwise 0; only with spec.disruption.policy Ask, once \
         it has been checked",
        |report, series| {
            let mut guarded = report.gauges.guarded.into_iter();
            guarded.try_for_each(|guarded| series(&[], guarded.into()))
        },
    ),
    (
        "first_idle_candidates",
        "Candidates: pods whose hook is running only to find out whether they are idle; only while idle pods are \
         searched for (selectionPolicy FirstIdle), by strategy: scale (pods to delete), update (pods to update)",
        |report, series| first_idle(report, series, |search| search.candidates),
    ),
    (
        "first_idle_needed",
        "Further idle pods that must be found, or pods that could be updated now if they were idle; only while idle pods are searched for (selectionPolicy FirstIdle), by \
         strategy: scale (pods to delete), update (pods to update; 0 while no slot of maxUnavailable is free)",
        |report, series| first_idle(report, series, |search| search.needed),
    ),
    (
        "update_progress_timestamp_seconds",
        "Unix time at which the current update last progressed, or was first seen; 0 if there is no update",
        |report, series| series(&[], report.progress.since().map_or(0, Timestamp::as_second)),
    ),
    (
        "blocked",
        "1 while the condition is True and needs attention, otherwise 0",
        |report, series| {
            let mut conditions = BLOCKED.into_iter().zip(report.blocked);
            conditions.try_for_each(|(kind, holds)| series(&[("condition", kind.as_str())], holds.into()))
        },
    ),
    (
        "lifecycle_hooks",
        "Lifecycle hooks of the current or last rollout, by state: waiting (trigger not reached), running, retrying \
         (an attempt failed), aborted (failed and aborted the rollout)",
        |report, series| {
            let mut counts = report.lifecycle_hooks.into_iter().flatten();
            counts.try_for_each(|(state, count)| series(&[("state", state)], count))
        },
    ),
];

impl WorkloadCollector {
    /// Stores a report. Returns by hook how many more pods than before are blocked.
    pub(super) fn set(
        &self,
        key: &NamespacedName,
        status: &GameDeploymentStatus,
        gauges: &Gauges,
        now: Timestamp,
    ) -> [u64; 3] {
        let mut reports = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = reports.get(key);
        let blocked = |gauges: &Gauges| {
            gauges
                .hooks
                .map(|hook| hook.map_or(0, |waits| waits.blocked.pods))
        };
        let known = before.map_or([0; 3], |before| blocked(&before.gauges));
        let mut more = [0; 3];
        for (more, (now, known)) in more.iter_mut().zip(blocked(gauges).into_iter().zip(known)) {
            *more = u64::try_from(now.saturating_sub(known)).unwrap_or_default();
        }
        let mut progress = before.map(|before| before.progress.clone()).unwrap_or_default();
        progress.observe(status, gauges.rollout, now);
        let holds = |condition: WorkloadCondition| {
            let mut conditions = status.conditions.iter();
            conditions.any(|known| known.type_ == condition.as_str() && known.status == "True")
        };
        let report = WorkloadSample {
            counts: [
                ("total", status.replicas.into()),
                ("ready", status.ready_replicas.into()),
                ("available", status.available_replicas.into()),
                ("updated", status.updated_replicas.into()),
                ("updated_ready", status.updated_ready_replicas.into()),
                ("to_update", number(gauges.rollout.to_update)),
                ("updating", number(gauges.rollout.updating)),
            ],
            gauges: *gauges,
            blocked: BLOCKED.map(holds),
            lifecycle_hooks: lifecycle_hooks(&status.lifecycle_hooks),
            progress,
        };
        reports.insert(key.clone(), report);
        more
    }

    pub(super) fn forget(&self, key: &NamespacedName) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

impl Collector for WorkloadCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        // Clone the reports so that decisions do not wait for the encoding.
        let reports = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for (name, help, tell) in METRICS {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for ((namespace, gamedeployment), report) in &reports {
                tell(report, &mut |more, value| {
                    let mut labels = vec![
                        ("namespace", namespace.as_str()),
                        ("gamedeployment", gamedeployment),
                    ];
                    labels.extend(more);
                    ConstGauge::new(value).encode(family.encode_family(&labels)?)
                })?;
            }
        }
        Ok(())
    }
}

fn waits(report: &WorkloadSample, series: &mut Series<'_>, value: fn(PodGroup) -> i64) -> Result<(), Error> {
    for (hook, waits) in HookKind::ALL.into_iter().zip(report.gauges.hooks) {
        let Some(waits) = waits else { continue };
        let states = [
            ("asking", waits.asking),
            ("refused", waits.refused),
            ("blocked", waits.blocked),
            ("erroring", waits.erroring),
        ];
        for (state, group) in states {
            series(&[("state", state), ("hook", hook.word())], value(group))?;
        }
    }
    Ok(())
}

fn drains(report: &WorkloadSample, series: &mut Series<'_>, value: fn(PodGroup) -> i64) -> Result<(), Error> {
    series(&[("state", "chosen")], value(report.gauges.chosen))?;
    series(&[("state", "terminating")], value(report.gauges.ending))
}

fn first_idle(
    report: &WorkloadSample,
    series: &mut Series<'_>,
    value: fn(SearchProgress) -> usize,
) -> Result<(), Error> {
    let Searches { scale, update } = report.gauges.first_idle;
    for (strategy, search) in [("scale", scale), ("update", update)] {
        if let Some(search) = search {
            series(&[("strategy", strategy)], number(value(search)))?;
        }
    }
    Ok(())
}

/// Counts the hooks of a rollout by state; `None` without hooks.
fn lifecycle_hooks(hooks: &[LifecycleHookStatus]) -> Option<[(&'static str, i64); 4]> {
    let count =
        |is: &dyn Fn(&LifecycleHookStatus) -> bool| number(hooks.iter().filter(|hook| is(hook)).count());
    let waits = |hook: &LifecycleHookStatus| hook.phase == LifecycleHookPhase::Waiting;
    (!hooks.is_empty()).then(|| {
        [
            ("waiting", count(&|hook| waits(hook) && hook.attempts == 0)),
            (
                "running",
                count(&|hook| hook.phase == LifecycleHookPhase::Running),
            ),
            ("retrying", count(&|hook| waits(hook) && hook.attempts > 0)),
            ("aborted", count(&|hook| hook.phase.is_aborted())),
        ]
    })
}

fn since(group: PodGroup) -> i64 {
    group.since.map_or(0, Timestamp::as_second)
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
