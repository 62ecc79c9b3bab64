//! One step of a run: computes from the recorded status and the new outcomes what to record and what to do
//! next.
//!
//! Contract with the shell:
//! 1. A plan that records ([`RunPlan::record`]) does nothing else, except that the Jobs of a run that is stopped
//!    ([`RunPlan::stop_jobs`]) are deleted before. The shell writes the status with the resourceVersion that it was
//!    computed from, and asks for a new plan only after that write has succeeded. So nothing is measured again
//!    before the last measurement is safe.
//! 2. A measurement belongs to a [`MeasurementKey`]: a metric and the number of measurements recorded before
//!    it. An outcome whose key was recorded meanwhile (by another leader, or by a write whose answer was
//!    lost) is dropped.
//! 3. `wake_at` is part of the plan: asking again before it, with nothing new, yields the same plan.
//!
//! Total: there is a plan for every status and spec. No clock: `now` is an argument.

mod adopt;
mod budget;
mod metrics;
mod owner_missing;
mod progress;

use jiff::Timestamp;
use redact::printable;
use shared_api::Phase;
use shared_api::hook_run::{HookRunStatus, Measurement, MetricResult};
use shared_api::reason::HookRunReason;
use shared_api::time::Time;

use self::adopt::{Calendar, adopt};
pub use self::budget::MAX_STATUS_BYTES;
pub use self::owner_missing::abandon;
use crate::judge::{KEPT_BYTES, MeasurementResult};
use crate::resolve::{FieldErrors, ResolvedRun, run_invalid};
use crate::schedule::after;
use crate::value::cut;

use std::time::Duration;

/// Time after which a run that is being measured is shown as Running although nothing is recorded yet.
const SHOW_RUNNING_AFTER: Duration = Duration::from_secs(1);

/// Position of one measurement in a run: its metric, and the number of measurements recorded before it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MeasurementKey {
    /// Name of the metric.
    pub metric: String,
    /// Number of measurements recorded before, of any outcome.
    pub number: i64,
}

/// Finished measurement that is not recorded yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeasurementOutcome {
    /// Key of the measurement.
    pub key: MeasurementKey,
    /// Time at which the request was sent, or the Job was created.
    pub started_at: Timestamp,
    /// Time at which the answer was judged, or the Job ended.
    pub finished_at: Timestamp,
    /// Result of the measurement.
    pub verdict: MeasurementResult,
}

/// Inputs of a decision.
#[derive(Debug, Clone, Copy)]
pub struct DecisionInput<'a> {
    /// Resolved spec, or its problems.
    pub spec: Result<&'a ResolvedRun, &'a FieldErrors>,
    /// Time to keep the run after it has ended, even if its spec is invalid; `None` keeps it for good.
    pub time_to_live: Option<Duration>,
    /// `metadata.generation` of that spec.
    pub generation: Option<i64>,
    /// Status as last recorded.
    pub status: &'a HookRunStatus,
    /// Time at which this process first saw the run; counts as its start until one is recorded. Never in the
    /// future: if the clock was set back since, it is the current time.
    pub taken_up_at: Timestamp,
    /// Keys of the measurements in flight.
    pub in_flight: &'a [MeasurementKey],
    /// Finished measurements that are not recorded yet.
    pub outcomes: &'a [MeasurementOutcome],
    /// Reason, not yet reported, why a due metric has no measurement. Does not affect the plan otherwise.
    pub held_up: Option<&'a Delay>,
}

/// Reason why a due metric has no measurement yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delay {
    cause: DelayCause,
    message: String,
}

/// Cause of a [`Delay`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DelayCause {
    /// No call was made because capacity ran out.
    NotAsked,
    /// Its Job has not ended.
    JobActive,
}

impl Delay {
    /// Creates a delay with a message for users, which is made printable and cut at [`KEPT_BYTES`]: it may quote
    /// texts of container runtimes.
    pub fn new(cause: DelayCause, message: &str) -> Self {
        Self {
            cause,
            message: cut(&printable(message), KEPT_BYTES),
        }
    }

    /// Returns the cause.
    pub fn cause(&self) -> DelayCause {
        self.cause
    }

    /// Returns the reason for the status.
    pub fn reason(&self) -> HookRunReason {
        match self.cause {
            DelayCause::NotAsked => HookRunReason::NotAskedYet,
            DelayCause::JobActive => HookRunReason::JobActive,
        }
    }

    /// Returns the message for users.
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// Measurement to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// Key of the measurement.
    pub key: MeasurementKey,
    /// Due time; its difference to now is the schedule lag.
    pub due: Timestamp,
}

/// Next actions of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunPlan {
    /// Status to record before the next decision.
    pub record: Option<HookRunStatus>,
    /// Measurements to start; empty in a plan that records.
    pub start: Vec<Start>,
    /// Measurements to cancel because their outcome is no longer needed.
    pub cancel: Vec<MeasurementKey>,
    /// Measurements by Jobs that a final status ends. Their Jobs are deleted before it is recorded, so that none
    /// is left running if the process dies in between.
    pub stop_jobs: Vec<MeasurementKey>,
    /// Time of the next decision if nothing happens before; `None` waits for an event.
    pub wake_at: Option<Timestamp>,
    /// Remaining work for a run that has ended.
    pub ended: Option<Cleanup>,
}

/// Remaining work for a run that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cleanup {
    /// Keep the run.
    Keep,
    /// Delete the run now.
    Delete,
    /// Delete the run at the plan's `wake_at`.
    DeleteLater,
}

/// Decides the next step of a run.
#[must_use]
pub fn decide(input: &DecisionInput<'_>, now: Timestamp) -> RunPlan {
    if input.status.phase.is_final() {
        return ended(input, now);
    }
    let run = match input.spec {
        Ok(run) => run,
        Err(errors) => return refuse(input, errors, now),
    };
    let calendar = Calendar::new(input, now);
    let mut known = input.status.clone();
    adopt(run, &mut known);
    let started = calendar.believe(known.started_at.map(Time::timestamp));
    let mut next = known.clone();
    // A Job may have been created before this process took the run up.
    let measured_from = input.outcomes.iter().map(|outcome| outcome.started_at).min();
    let earlier = measured_from.filter(|at| known.started_at.is_none() && *at < started);
    next.started_at = Some(earlier.unwrap_or(started).into());
    next.observed_generation = input.generation;
    next.phase = Phase::Running;
    let mut update = metrics::StatusUpdate::new(run, &mut next);
    let measured = update.add_outcomes(input.outcomes);
    let judged = update.assess();
    let open = update.open_jobs();
    let stopped = update.stop(started, now);
    let stop_jobs = stopped.as_ref().map_or_else(Vec::new, |_| open);
    conclude(run, &mut next, stopped, now);
    let held_up = report_delay(input, &mut next);
    let must_show = must_show_start(input, run, now) || must_show_room(input, now);
    if next.phase.is_final() || measured || judged || held_up || must_show {
        budget::fit(&mut next);
        return RunPlan {
            record: Some(next),
            stop_jobs,
            ..RunPlan::default()
        };
    }
    let input = &DecisionInput {
        status: &known,
        ..*input
    };
    continue_measuring(input, run, &calendar, now)
}

/// Plans the deletion of a run that has ended, once its TTL has passed.
fn ended(input: &DecisionInput<'_>, now: Timestamp) -> RunPlan {
    // The original operator records no completion time.
    let completed = Calendar::new(input, now).believe(input.status.completed_at.map(Time::timestamp));
    let delete_at = input.time_to_live.map(|ttl| after(completed, ttl));
    let (ended, wake_at) = match delete_at {
        None => (Cleanup::Keep, None),
        Some(at) if at <= now => (Cleanup::Delete, None),
        Some(at) => (Cleanup::DeleteLater, Some(at)),
    };
    RunPlan {
        ended: Some(ended),
        wake_at,
        cancel: input.in_flight.to_vec(),
        ..RunPlan::default()
    }
}

fn refuse(input: &DecisionInput<'_>, errors: &FieldErrors, now: Timestamp) -> RunPlan {
    let mut next = input.status.clone();
    next.started_at = Some(next.started_at.unwrap_or(input.taken_up_at.into()));
    next.observed_generation = input.generation;
    next.phase = Phase::Error;
    next.reason = Some(HookRunReason::InvalidSpec.to_string());
    next.message = Some(cut(&run_invalid(errors), 4 * KEPT_BYTES));
    next.completed_at = Some(now.into());
    budget::fit(&mut next);
    RunPlan {
        record: Some(next),
        cancel: input.in_flight.to_vec(),
        ..RunPlan::default()
    }
}

/// Sets the run's final phase once every metric has one, otherwise describes its progress.
fn conclude(run: &ResolvedRun, next: &mut HookRunStatus, stopped: Option<metrics::Stopped>, now: Timestamp) {
    let results = &next.metric_results;
    let all_final = run.metrics.iter().all(|metric| {
        results
            .iter()
            .any(|result| result.name == metric.name && result.phase.is_final())
    });
    if all_final {
        let decisive = decisive(results, stopped.as_ref());
        next.phase = worst(results);
        next.message = decisive.map(metrics::describe);
        next.reason = Some(metrics::reason(run, next.phase, decisive, stopped.as_ref()).to_string());
        next.completed_at = Some(completed_at(next.phase, &next.metric_results, now).into());
    } else {
        let (reason, message) = progress::describe(run, next);
        next.message = message.map(|text| cut(&text, KEPT_BYTES));
        next.reason = Some(reason.to_string());
    }
}

/// Returns the time of a run's end. A success counts from its last measurement: a gate must not take it for newer
/// because it is recorded late, for example after a Job ended while no operator ran.
fn completed_at(phase: Phase, results: &[MetricResult], now: Timestamp) -> Timestamp {
    let ends = results
        .iter()
        .filter_map(|result| result.measurements.last()?.finished_at);
    let last = ends.map(Time::timestamp).max();
    let last = last.filter(|_| phase == Phase::Successful);
    last.map_or(now, |last| last.min(now))
}

/// Puts the reason why a metric cannot be measured into the status. Trouble that the status reports keeps its reason.
/// Returns whether the recorded status lacks it.
fn report_delay(input: &DecisionInput<'_>, next: &mut HookRunStatus) -> bool {
    let Some(delay) = input.held_up.filter(|_| !next.phase.is_final()) else {
        return false;
    };
    if next.trouble().is_some() {
        let trouble = next.message.as_deref().unwrap_or_default();
        let both = format!("{}; {trouble}", delay.message());
        next.message = Some(cut(&both, KEPT_BYTES));
    } else {
        next.message = Some(delay.message().to_owned());
        next.reason = Some(delay.reason().to_string());
    }
    (&next.message, &next.reason) != (&input.status.message, &input.status.reason)
}

fn worst(results: &[MetricResult]) -> Phase {
    let phases = results.iter().map(|result| result.phase);
    phases
        .max_by_key(|phase| phase.badness())
        .unwrap_or(Phase::Inconclusive)
}

/// Returns the metric that decided, whose message the run carries.
fn decisive<'a>(results: &'a [MetricResult], stopped: Option<&metrics::Stopped>) -> Option<&'a MetricResult> {
    let phase = worst(results);
    let by_name = match stopped {
        Some(metrics::Stopped::ByMetric(name)) => results.iter().find(|result| result.name == *name),
        Some(metrics::Stopped::Terminated | metrics::Stopped::TimedOut) | None => None,
    };
    by_name
        .filter(|result| result.phase == phase)
        .or_else(|| results.iter().find(|result| result.phase == phase))
}

/// Returns whether to record the run's start before its first measurement: for a run with a timeout or an
/// initial delay, or one whose first measurement takes long.
fn must_show_start(input: &DecisionInput<'_>, run: &ResolvedRun, now: Timestamp) -> bool {
    let clock = run.timeout.is_some()
        || run
            .metrics
            .iter()
            .any(|metric| metric.schedule.initial_delay.is_some());
    let unseen = input.status.started_at.is_none() || input.status.phase != Phase::Running;
    unseen && (clock || now >= after(input.taken_up_at, SHOW_RUNNING_AFTER))
}

/// Returns whether to record that the run waits for memory no more. A measurement in flight records it soon.
fn must_show_room(input: &DecisionInput<'_>, now: Timestamp) -> bool {
    says_no_room(input) && input.in_flight.is_empty() && now >= after(input.taken_up_at, SHOW_RUNNING_AFTER)
}

fn says_no_room(input: &DecisionInput<'_>) -> bool {
    input.status.reason.as_deref() == Some(HookRunReason::NoRoomForSpec.as_str())
}

fn continue_measuring(
    input: &DecisionInput<'_>,
    run: &ResolvedRun,
    calendar: &Calendar,
    now: Timestamp,
) -> RunPlan {
    let started = calendar.believe(input.status.started_at.map(Time::timestamp));
    let mut plan = RunPlan::default();
    let mut wake = metrics::Earliest::default();
    for (key, due) in metrics::due(run, input.status, calendar) {
        let in_flight = input.in_flight.contains(&key);
        if !in_flight && due <= now {
            plan.start.push(Start { key, due });
        } else if !in_flight {
            wake.at(due);
        }
    }
    let current = |key: &MeasurementKey| metrics::is_current(run, input.status, key);
    plan.cancel = input
        .in_flight
        .iter()
        .filter(|key| !current(key))
        .cloned()
        .collect();
    let waits_only = plan.start.is_empty() && input.in_flight.is_empty();
    let is_unseen = input.status.started_at.is_none() || input.status.phase != Phase::Running;
    if is_unseen || (waits_only && says_no_room(input)) {
        wake.at(after(input.taken_up_at, SHOW_RUNNING_AFTER));
    }
    if let Some(timeout) = run.timeout {
        wake.at(after(started, timeout));
    }
    plan.wake_at = wake.get();
    plan
}

/// Returns whether an outcome with this key can still be recorded: its metric has no verdict, and this is its
/// next measurement.
pub fn is_open(run: &ResolvedRun, status: &HookRunStatus, key: &MeasurementKey) -> bool {
    let of_metric = |result: &&MetricResult| result.name == key.metric;
    let mut known = HookRunStatus {
        metric_results: status.metric_results.iter().filter(of_metric).cloned().collect(),
        ..HookRunStatus::default()
    };
    adopt(run, &mut known);
    metrics::is_current(run, &known, key)
}

impl MeasurementOutcome {
    /// Converts the outcome for the status. A success needs no message besides its value.
    fn measurement(&self) -> Measurement {
        let MeasurementResult {
            phase,
            reason,
            value,
            message,
        } = self.verdict.clone();
        Measurement {
            phase,
            reason: reason.map(|reason| reason.to_string()),
            message: message.filter(|_| phase != Phase::Successful),
            started_at: Some(self.started_at.into()),
            finished_at: Some(self.finished_at.into()),
            resume_at: None,
            value,
        }
    }
}

#[cfg(test)]
mod tests;
