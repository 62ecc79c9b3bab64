//! Metrics of one run: adds outcomes, sets verdicts, stops metrics, and computes due times.

use jiff::Timestamp;
use shared_api::Phase;
use shared_api::hook_run::{HookRunStatus, Measurement, MetricResult};
use shared_api::reason::HookRunReason;
use shared_api::time::Time;

use super::adopt::Calendar;
use super::{MeasurementKey, MeasurementOutcome};
use crate::judge::KEPT_BYTES;
use crate::resolve::{Policy, ResolvedMetric, ResolvedRun};
use crate::schedule::after;
use crate::tally::{self, assess, taken};
use crate::value::cut;

/// Reason why metrics without a verdict were stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stopped {
    /// Another metric ended without success.
    ByMetric(String),
    /// `spec.terminate` is set.
    Terminated,
    /// `spec.timeoutSeconds` has passed.
    TimedOut,
}

/// Builds the status to record.
pub(super) struct StatusUpdate<'a> {
    run: &'a ResolvedRun,
    status: &'a mut HookRunStatus,
    /// Messages of the outcomes just added, by metric, for the verdicts that may follow.
    said: Vec<(String, String)>,
}

impl<'a> StatusUpdate<'a> {
    /// Starts an update. The status must have been adopted.
    pub(super) fn new(run: &'a ResolvedRun, status: &'a mut HookRunStatus) -> Self {
        Self {
            run,
            status,
            said: Vec::new(),
        }
    }

    /// Adds each outcome that is the next measurement of its metric. Returns whether any was added.
    pub(super) fn add_outcomes(&mut self, outcomes: &[MeasurementOutcome]) -> bool {
        let mut added = false;
        for outcome in outcomes {
            if !is_current(self.run, self.status, &outcome.key) {
                continue;
            }
            if let Some(message) = &outcome.verdict.message {
                self.said.push((outcome.key.metric.clone(), message.clone()));
            }
            let result = self.result(&outcome.key.metric);
            result.phase = Phase::Running;
            tally::add(result, outcome.measurement());
            added = true;
        }
        added
    }

    /// Sets the verdict of every metric whose counters have reached one. Returns whether any was set.
    pub(super) fn assess(&mut self) -> bool {
        let mut judged = false;
        for result in &mut self.status.metric_results {
            if result.phase.is_final() || result.measurements.is_empty() {
                continue;
            }
            let Some(metric) = self.run.metric(&result.name) else {
                continue;
            };
            let Some(assessment) = assess(&metric.limits, result) else {
                continue;
            };
            let said = self
                .said
                .iter()
                .rev()
                .find(|(name, _)| *name == result.name)
                .map(|(_, text)| text.as_str());
            let message = match said.or_else(|| last_message(result)) {
                Some(text) => format!("{text} ({})", assessment.because),
                None => assessment.because,
            };
            result.phase = assessment.phase;
            result.message = Some(cut(&message, KEPT_BYTES));
            judged = true;
        }
        judged
    }

    /// Returns the next measurements of the metrics without a verdict that run Jobs.
    pub(super) fn open_jobs(&self) -> Vec<MeasurementKey> {
        let jobs = self.run.metrics.iter().filter(|metric| metric.provider.is_job());
        let keys = jobs.filter_map(|metric| {
            let result = find(self.status, &metric.name);
            let open = !result.is_some_and(|result| result.phase.is_final());
            open.then(|| MeasurementKey {
                metric: metric.name.clone(),
                number: result.map_or(0, taken),
            })
        });
        keys.collect()
    }

    /// Ends the metrics without a verdict if the run must stop.
    pub(super) fn stop(&mut self, started: Timestamp, now: Timestamp) -> Option<Stopped> {
        let bad = |result: &&MetricResult| result.phase.is_final() && result.phase != Phase::Successful;
        let by_metric = self.status.metric_results.iter().find(bad);
        let timed_out = self
            .run
            .timeout
            .is_some_and(|timeout| after(started, timeout) <= now);
        let (stopped, phase, message) = if let Some(result) = by_metric {
            let message = format!("stopped because metric {} is {}", result.name, result.phase);
            (
                Stopped::ByMetric(result.name.clone()),
                Phase::Inconclusive,
                message,
            )
        } else if self.run.terminate {
            (Stopped::Terminated, Phase::Inconclusive, "terminated".to_owned())
        } else if timed_out {
            (Stopped::TimedOut, Phase::Error, "run timed out".to_owned())
        } else {
            return None;
        };
        let run = self.run;
        for metric in &run.metrics {
            let result = self.result(&metric.name);
            if !result.phase.is_final() {
                result.phase = phase;
                result.message = Some(message.clone());
            }
        }
        Some(stopped)
    }

    /// Returns the result of a metric. Inserts an empty one in the spec's order if it is missing.
    fn result(&mut self, name: &str) -> &mut MetricResult {
        let place = |name: &str| self.run.metrics.iter().position(|metric| metric.name == name);
        let results = &mut self.status.metric_results;
        let index = results
            .iter()
            .position(|result| result.name == name)
            .unwrap_or_else(|| {
                let index = results
                    .iter()
                    .take_while(|result| place(&result.name) < place(name))
                    .count();
                results.insert(
                    index,
                    MetricResult {
                        name: name.to_owned(),
                        ..MetricResult::default()
                    },
                );
                index
            });
        &mut results[index]
    }
}

/// Returns the key of the next measurement of every metric that may be measured, with its due time.
pub(super) fn due(
    run: &ResolvedRun,
    status: &HookRunStatus,
    calendar: &Calendar,
) -> Vec<(MeasurementKey, Timestamp)> {
    let mut keys = Vec::new();
    let mut may_start = calendar.believe(status.started_at.map(Time::timestamp));
    for metric in &run.metrics {
        let result = find(status, &metric.name);
        if !result.is_some_and(|result| result.phase.is_final()) {
            let number = result.map_or(0, taken);
            let key = MeasurementKey {
                metric: metric.name.clone(),
                number,
            };
            let last = result.and_then(|result| result.measurements.last());
            let last = last.map(|last| (last.phase, calendar.believe(ended_at(last))));
            keys.push((key, metric.schedule.due(last, may_start)));
        }
        if run.policy == Policy::Ordered {
            match result.filter(|result| result.phase == Phase::Successful) {
                Some(before) => may_start = calendar.believe(before.measurements.last().and_then(ended_at)),
                None => break,
            }
        }
    }
    keys
}

/// Returns whether an outcome with this key can still be recorded.
pub(super) fn is_current(run: &ResolvedRun, status: &HookRunStatus, key: &MeasurementKey) -> bool {
    let known: Option<&ResolvedMetric> = run.metric(&key.metric);
    let result = find(status, &key.metric);
    let open = result.is_none_or(|result| !result.phase.is_final());
    known.is_some() && open && result.map_or(0, taken) == key.number
}

fn find<'a>(status: &'a HookRunStatus, name: &str) -> Option<&'a MetricResult> {
    status.metric_results.iter().find(|result| result.name == name)
}

fn ended_at(measurement: &Measurement) -> Option<Timestamp> {
    measurement
        .finished_at
        .or(measurement.started_at)
        .map(Time::timestamp)
}

fn last_message(result: &MetricResult) -> Option<&str> {
    result
        .measurements
        .last()
        .and_then(|last| last.message.as_deref())
}

/// Formats `metric NAME PHASE: why`.
pub(super) fn describe(result: &MetricResult) -> String {
    let why = result.message.as_deref().unwrap_or("no reason recorded");
    cut(
        &format!("metric {} {}: {why}", result.name, result.phase),
        KEPT_BYTES,
    )
}

/// Returns the reason for the run's final phase.
pub(super) fn reason(
    run: &ResolvedRun,
    phase: Phase,
    decisive: Option<&MetricResult>,
    stopped: Option<&Stopped>,
) -> HookRunReason {
    match stopped {
        _ if phase == Phase::Successful => return HookRunReason::AllMetricsSuccessful,
        Some(Stopped::Terminated) => return HookRunReason::Terminated,
        Some(Stopped::TimedOut) => return HookRunReason::TimedOut,
        Some(Stopped::ByMetric(_)) | None => {}
    }
    let assessed = decisive.and_then(|result| assess(&run.metric(&result.name)?.limits, result));
    match (assessed, phase) {
        (Some(assessment), _) => assessment.reason,
        (None, Phase::Failed) => HookRunReason::FailureLimitExceeded,
        (None, Phase::Error) => HookRunReason::ErrorLimitExceeded,
        (None, _) => HookRunReason::InconclusiveLimitExceeded,
    }
}

/// Earliest of several points in time.
#[derive(Debug, Default)]
pub(super) struct Earliest(Option<Timestamp>);

impl Earliest {
    pub(super) fn at(&mut self, at: Timestamp) {
        self.0 = Some(self.0.map_or(at, |earliest| earliest.min(at)));
    }

    pub(super) fn get(&self) -> Option<Timestamp> {
        self.0
    }
}
