//! View of a HookRun: progress, last value or error, and time of the next measurement.

use gamedeployment_core::gate::{self, scouted_hook};
use gamedeployment_core::hook_kind::HookKind;
use hook_core::render::{RequestText, describe};
use hook_core::resolve::{Policy, ResolvedMetric, ResolvedRun, resolve_run};
use hook_core::tally;
use jiff::Timestamp;
use kube::ResourceExt;
use serde::Serialize;
use shared_api::hook_run::MetricResult;
use shared_api::names::{argument, hook_kind, hook_run_label};
use shared_api::overdue::not_taken_up_at;
use shared_api::{HookRun, HookRunStatus, Phase};

use super::created;
use crate::paint::Tone;

/// View of a HookRun.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunView {
    pub(crate) name: String,
    pub(crate) namespace: String,
    /// Hook kind, such as `PreDelete` or `CanaryStep`, or `Scout` or `ScoutInplace` for the hook of a candidate, or
    /// `Notice`; empty if unknown.
    pub(crate) kind: String,
    /// Canary step that the hook belongs to, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) step: Option<u32>,
    /// Pod that the hook runs for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pod: Option<String>,
    /// Time of its creation.
    pub(crate) created: Option<Timestamp>,
    /// Phase of the run.
    pub(crate) phase: Phase,
    /// Reason of the phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// Explanation of the phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    /// Time from which the run counts as not being measured, unless progress is recorded before.
    #[serde(skip)]
    pub(crate) not_taken_up_at: Option<Timestamp>,
    /// Time of its verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) completed: Option<Timestamp>,
    /// Metrics, in the order of the spec.
    pub(crate) metrics: Vec<MetricView>,
}

/// View of a metric of a run.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MetricView {
    pub(crate) name: String,
    /// Phase of the metric.
    pub(crate) phase: Phase,
    /// Number of completed measurements or successes.
    pub(crate) done: i64,
    /// Number of measurements or successes to complete; `None` for unlimited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) wanted: Option<i64>,
    /// Whether `done` counts successes.
    pub(crate) counts_successes: bool,
    /// Measurements by outcome.
    pub(crate) outcomes: Outcomes,
    /// Request of each measurement; `None` if the spec is invalid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) request: Option<String>,
    /// Last measured value, or else the message of the last measurement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last: Option<String>,
    /// Message of the last measurement, if it ended in an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    /// Time of the next measurement, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<Timestamp>,
}

/// Measurements by outcome.
#[derive(Debug, Clone, Copy, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Outcomes {
    /// Good measurements.
    pub(crate) successful: i64,
    /// Bad measurements.
    pub(crate) failed: i64,
    /// Measurements that are neither good nor bad.
    pub(crate) inconclusive: i64,
    /// Measurements that ended in an error.
    pub(crate) error: i64,
}

impl RunView {
    /// Builds the view of a run.
    pub(crate) fn of(run: &HookRun) -> Self {
        let status = run.status.clone().unwrap_or_default();
        let kind = run.labels().get(hook_run_label::TYPE);
        let resolved = resolve_run(&run.spec).ok();
        let metrics = run
            .spec
            .metrics
            .iter()
            .map(|metric| {
                let resolved = resolved
                    .as_ref()
                    .and_then(|run| Some((run, run.metric(&metric.name)?)));
                MetricView::of(&metric.name, &status, resolved)
            })
            .collect();
        Self {
            name: run.name_any(),
            namespace: run.namespace().unwrap_or_default(),
            kind: kind
                .map(|kind| hook_kind::old_name(kind).to_owned())
                .unwrap_or_default(),
            step: step_of(run),
            pod: pod_of(run).map(str::to_owned),
            created: created(run),
            phase: status.phase,
            reason: status.reason,
            message: status.message,
            not_taken_up_at: not_taken_up_at(run),
            completed: status.completed_at.map(shared_api::time::Time::timestamp),
            metrics,
        }
    }

    /// Returns the hook: its kind, and the number of its canary step.
    pub(crate) fn hook(&self) -> String {
        match self.step {
            Some(step) => format!("{} {step}", self.kind),
            None => self.kind.clone(),
        }
    }

    /// Returns a rank: the smaller, the more urgent. A run whose last measurement is an error is like one that ended so.
    pub(crate) fn urgency(&self) -> u8 {
        let has_error = !self.phase.is_final() && self.metrics.iter().any(|metric| metric.error.is_some());
        let phase = if has_error { Phase::Error } else { self.phase };
        Tone::from(phase).urgency()
    }

    /// Returns the phase as a word.
    pub(crate) fn word(&self) -> &'static str {
        match self.phase {
            Phase::Unset => "Pending",
            phase => phase.as_str(),
        }
    }
}

/// Returns the number of the canary step that a run belongs to. Its label counts from 0.
fn step_of(run: &HookRun) -> Option<u32> {
    let index: u32 = run.labels().get(hook_run_label::CANARY_STEP)?.parse().ok()?;
    index.checked_add(1)
}

/// Returns the hook that a scout runs; `None` for other runs.
pub(crate) fn scout_hook(run: &HookRun) -> Option<HookKind> {
    scouted_hook(run.labels().get(hook_run_label::TYPE)?)
}

/// Returns whether a run is a notice. Its result does not count.
pub(crate) fn is_notice(run: &HookRun) -> bool {
    let label = run.labels().get(hook_run_label::TYPE);
    label.is_some_and(|label| gate::is_notice(label))
}

/// Returns the phase of a run.
pub(crate) fn phase_of(run: &HookRun) -> Phase {
    run.status.as_ref().map(|status| status.phase).unwrap_or_default()
}

/// Returns the name of the pod that a run is about.
pub(crate) fn pod_of(run: &HookRun) -> Option<&str> {
    let mut args = run.spec.args.iter().flatten();
    args.find(|arg| arg.name == argument::POD_NAME)?.value.as_deref()
}

/// Describes the request of a metric; `None` if there is no such metric, or the spec is invalid.
pub(crate) fn request_of(run: &HookRun, metric: &str) -> Option<RequestText> {
    let resolved = resolve_run(&run.spec).ok()?;
    Some(describe(resolved.metric(metric)?, &resolved.arguments))
}

impl MetricView {
    fn of(name: &str, status: &HookRunStatus, resolved: Option<(&ResolvedRun, &ResolvedMetric)>) -> Self {
        let known = status.metric_results.iter().find(|result| result.name == name);
        let result = known.cloned().unwrap_or_default();
        let limits = resolved.map(|(_, metric)| metric.limits);
        let (done, wanted, counts_successes) = match limits {
            Some(limits) => match (limits.consecutive_successful, limits.successful) {
                (Some(wanted), _) => (result.consecutive_successful, Some(wanted), true),
                (None, Some(wanted)) => (result.successful, Some(wanted), true),
                (None, None) => (result.count, limits.count, false),
            },
            None => (result.count, None, false),
        };
        let newest = result.measurements.last();
        let message = newest.and_then(|newest| newest.message.clone());
        let is_error = newest.is_some_and(|newest| newest.phase == Phase::Error);
        let value = newest.and_then(|newest| newest.value.clone());
        Self {
            name: name.to_owned(),
            phase: result.phase,
            done,
            wanted,
            counts_successes,
            outcomes: Outcomes {
                successful: result.successful,
                failed: result.failed,
                inconclusive: result.inconclusive,
                error: result.error,
            },
            request: resolved.map(|(run, metric)| describe(metric, &run.arguments).text),
            last: value.or_else(|| message.clone().filter(|_| !is_error)),
            error: message.filter(|_| is_error),
            next: resolved.and_then(|(run, metric)| next(run, metric, status, &result)),
        }
    }
}

/// Returns the time of the next measurement. Under `Ordered`, the start of the first measurement is unknown,
/// because it waits for another metric.
fn next(
    run: &ResolvedRun,
    metric: &ResolvedMetric,
    status: &HookRunStatus,
    result: &MetricResult,
) -> Option<Timestamp> {
    let over = status.phase.is_final() || result.phase.is_final();
    let started = status.started_at?.timestamp();
    let last = result.measurements.last();
    let last = last.and_then(|last| Some((last.phase, last.finished_at?.timestamp())));
    let begins = last.is_some() || tally::taken(result) > 0 || run.policy == Policy::Parallel;
    (!over && begins).then(|| metric.schedule.due(last, started))
}
