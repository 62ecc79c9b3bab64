//! Observer of sessions: the operator's metrics, or one that ignores everything.

use std::time::Duration;

use hook_core::answer::MeasurementReason;
use hook_core::decide::MeasurementOutcome;
use shared_api::{HookRun, Phase};

/// Receives what happens in sessions. Sessions do not depend on what it does.
pub trait Observer: Send + Sync + 'static {
    /// A measurement begins. [`Observer::left`] always follows.
    fn entered(&self);

    /// A measurement ended or was cancelled.
    fn left(&self);

    /// A measurement started this long after it was due.
    fn started(&self, lag: Duration);

    /// A call was not made because capacity ran out.
    fn not_asked(&self, provider: &'static str);

    /// A measurement by this provider was judged, or has no verdict for this reason.
    fn measured(
        &self,
        provider: &'static str,
        phase: Phase,
        failure: Option<MeasurementReason>,
        took: Duration,
    );

    /// A measurement of a run ended with this outcome.
    fn measurement_finished(&self, run: &HookRun, outcome: &MeasurementOutcome);

    /// A status write ended: `written`, `conflict`, `gone`, `failed`.
    fn wrote(&self, outcome: &'static str);

    /// Recording a run's measurements ended, successfully if `good`.
    fn recorded(&self, run: &HookRun, good: bool, took: Duration);

    /// A run ended. Its last measurement took `last`.
    fn ended(&self, run: &HookRun, phase: Phase, reason: &str, last: Duration);
}

/// Ignores everything.
impl Observer for () {
    fn entered(&self) {}

    fn left(&self) {}

    fn started(&self, _lag: Duration) {}

    fn not_asked(&self, _provider: &'static str) {}

    fn measured(
        &self,
        _provider: &'static str,
        _phase: Phase,
        _failure: Option<MeasurementReason>,
        _took: Duration,
    ) {
    }

    fn measurement_finished(&self, _run: &HookRun, _outcome: &MeasurementOutcome) {}

    fn wrote(&self, _outcome: &'static str) {}

    fn recorded(&self, _run: &HookRun, _good: bool, _took: Duration) {}

    fn ended(&self, _run: &HookRun, _phase: Phase, _reason: &str, _last: Duration) {}
}

/// Returns the duration of a measurement.
pub fn time_of(outcome: &MeasurementOutcome) -> Duration {
    let took = outcome.finished_at.duration_since(outcome.started_at);
    Duration::try_from(took).unwrap_or_default()
}
