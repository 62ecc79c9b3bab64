//! A ledger in memory that tells the terminal what is recorded.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

use hook_core::answer::{FailureKind, MeasurementFailure};
use hook_core::resolve::Reference;
use hook_operator::ledger::{Ledger, LedgerError};
use jiff::Timestamp;
use shared_api::hook_run::{Measurement, MetricResult};
use shared_api::{HookRun, HookRunStatus};

use super::input::how_to_supply;
use crate::paint::Paint;

/// Where a local run is recorded.
pub(super) struct LocalLedger {
    references: BTreeMap<Reference, String>,
    paint: Paint,
    /// Whether measurements are shown as they come in.
    live: bool,
    last: Mutex<HookRunStatus>,
}

impl LocalLedger {
    pub(super) fn new(references: BTreeMap<Reference, String>, paint: Paint, live: bool) -> Self {
        Self {
            references,
            paint,
            live,
            last: Mutex::default(),
        }
    }

    /// The status as last recorded.
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
                let line = self.line(&result.name, number, measurement);
                let _ = writeln!(out, "{line}");
            }
        }
        let _ = out.flush();
    }

    fn line(&self, metric: &str, number: i64, measurement: &Measurement) -> String {
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
        let value = value
            .as_ref()
            .map(|value| format!("value \"{value}\"  "))
            .unwrap_or_default();
        let message = message.as_deref().unwrap_or_default();
        let took = took.map(|took| format!("({took} ms)")).unwrap_or_default();
        format!(
            "{} {metric} #{number}  {} {value}{message} {}",
            self.paint.faint(&at.strftime("%H:%M:%S").to_string()),
            self.paint.phase(*phase),
            self.paint.faint(&took)
        )
    }
}

fn taken(result: &MetricResult) -> i64 {
    hook_core::tally::taken(result)
}

impl Ledger for LocalLedger {
    async fn record(&self, base: &HookRun, status: &HookRunStatus) -> Result<HookRun, LedgerError> {
        if self.live {
            self.show(&base.status.clone().unwrap_or_default(), status);
        }
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = status.clone();
        Ok(HookRun {
            status: Some(status.clone()),
            ..base.clone()
        })
    }

    async fn read(&self, run: &HookRun) -> Result<HookRun, LedgerError> {
        Ok(run.clone())
    }

    async fn delete(&self, _run: &HookRun) -> Result<(), LedgerError> {
        Ok(())
    }

    async fn resolve(&self, _namespace: &str, reference: &Reference) -> Result<String, MeasurementFailure> {
        self.references
            .get(reference)
            .cloned()
            .ok_or_else(|| MeasurementFailure::new(FailureKind::InvalidRequest, how_to_supply(reference)))
    }

    fn concluded(&self, _run: &HookRun) {}
}
