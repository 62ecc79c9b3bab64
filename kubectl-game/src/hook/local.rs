//! In-memory backend that prints recorded statuses to the terminal.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hook_core::answer::{MeasurementFailure, MeasurementReason};
use hook_core::resolve::Reference;
use hook_core::schedule::Schedule;
use hook_driver::StoreError;
use hook_providers::MemoryReservation;
use hook_session::backend::{ClusterProviders, EventSink, ReferenceSource, RunStore};
use jiff::Timestamp;
use shared_api::hook_run::{Measurement, MetricResult};
use shared_api::{HookRun, HookRunStatus};

use super::input::how_to_supply;
use crate::draw::text::clean;
use crate::paint::Paint;

/// Backend of a local run.
pub(super) struct LocalBackend {
    references: BTreeMap<Reference, String>,
    /// Schedules by metric, to show the time of the next measurement.
    schedules: BTreeMap<String, Schedule>,
    paint: Paint,
    /// Whether measurements are printed as they arrive.
    live: bool,
    last: Mutex<HookRunStatus>,
}

impl LocalBackend {
    pub(super) fn new(
        references: BTreeMap<Reference, String>,
        schedules: BTreeMap<String, Schedule>,
        paint: Paint,
        live: bool,
    ) -> Self {
        Self {
            references,
            schedules,
            paint,
            live,
            last: Mutex::default(),
        }
    }

    /// Returns the last recorded status.
    pub(super) fn status(&self) -> HookRunStatus {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn show(&self, old: &HookRunStatus, new: &HookRunStatus) {
        let mut out = std::io::stdout().lock();
        for result in &new.metric_results {
            let before = old
                .metric_results
                .iter()
                .find(|before| before.name == result.name);
            let seen = before.map_or(0, taken);
            let fresh = usize::try_from(taken(result) - seen).unwrap_or_default();
            let skip = result.measurements.len().saturating_sub(fresh);
            for (number, measurement) in (seen + 1..).zip(result.measurements.iter().skip(skip)) {
                let next = self.next(result).filter(|_| number == taken(result));
                let line = self.line(&result.name, number, measurement, next);
                let _ = writeln!(out, "{line}");
            }
        }
        let _ = out.flush();
    }

    /// Returns the time from a metric's last measurement to its next one, if there is one.
    fn next(&self, result: &MetricResult) -> Option<Duration> {
        let schedule = self
            .schedules
            .get(&result.name)
            .filter(|_| !result.phase.is_final())?;
        let last = result.measurements.last()?;
        let ended = last.finished_at?.timestamp();
        schedule
            .due(Some((last.phase, ended)), ended)
            .duration_since(ended)
            .try_into()
            .ok()
    }

    fn line(&self, metric: &str, number: i64, measurement: &Measurement, next: Option<Duration>) -> String {
        let Measurement {
            phase,
            message,
            started_at,
            finished_at,
            value,
            ..
        } = measurement;
        let at = finished_at.map_or_else(Timestamp::now, shared_api::time::Time::timestamp);
        let took = started_at.map(|started| at.duration_since(started.timestamp()).as_millis());
        // A message already quotes the value; a success has no message.
        let value = value.as_ref().map(|value| format!("\"{value}\""));
        let said = message.clone().or(value).unwrap_or_default();
        let took = took.map(|took| format!("{took} ms"));
        let next = next.map(|wait| format!("next in {} s", wait.as_secs_f64()));
        let aside = took.into_iter().chain(next).collect::<Vec<_>>().join(", ");
        format!(
            "{} {} #{number}  {} {} {}",
            self.paint.faint(&at.strftime("%H:%M:%S").to_string()),
            clean(metric),
            self.paint.phase(*phase),
            clean(&said),
            self.paint.faint(&format!("({aside})"))
        )
    }
}

fn taken(result: &MetricResult) -> i64 {
    hook_core::tally::taken(result)
}

impl RunStore for LocalBackend {
    async fn record(&self, base: &HookRun, status: &HookRunStatus) -> Result<HookRun, StoreError> {
        if self.live {
            self.show(&base.status.clone().unwrap_or_default(), status);
        }
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = status.clone();
        Ok(HookRun {
            status: Some(status.clone()),
            ..base.clone()
        })
    }

    async fn read(&self, run: &HookRun) -> Result<HookRun, StoreError> {
        Ok(run.clone())
    }

    async fn delete(&self, _run: &HookRun) -> Result<(), StoreError> {
        Ok(())
    }
}

impl ReferenceSource for LocalBackend {
    async fn resolve(
        &self,
        _namespace: &str,
        reference: &Reference,
        _reservation: &mut MemoryReservation,
    ) -> Result<String, MeasurementFailure> {
        self.references.get(reference).cloned().ok_or_else(|| {
            MeasurementFailure::new(MeasurementReason::InvalidRequest, how_to_supply(reference))
        })
    }
}

impl ClusterProviders for LocalBackend {}

impl EventSink for LocalBackend {}

#[cfg(test)]
mod tests {
    use shared_api::Phase;

    use super::*;

    #[test]
    fn only_our_own_colours_reach_the_terminal() {
        let hostile = "\u{1b}]0;owned\u{7}bu\u{202e}sy\rx";
        let measurement = Measurement {
            phase: Phase::Failed,
            message: Some(hostile.to_owned()),
            ..Measurement::default()
        };
        for paint in [Paint::of(true, true), Paint::PLAIN] {
            let backend = LocalBackend::new(BTreeMap::new(), BTreeMap::new(), paint, true);
            let line = backend.line(hostile, 1, &measurement, None);
            let colours = ["\u{1b}[0m", "\u{1b}[2m", "\u{1b}[31m"];
            let rest = colours
                .iter()
                .fold(line.clone(), |line, colour| line.replace(colour, ""));
            assert!(
                rest.contains(" ]0;owned busy x") && rest.chars().all(redact::is_printable),
                "{line:?}"
            );
        }
    }
}
