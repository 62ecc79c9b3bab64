//! Who is told how measuring goes: the operator's metrics, or nobody.

use std::time::Duration;

use hook_core::answer::FailureKind;
use hook_core::decide::Outcome;
use shared_api::{HookRun, Phase};

/// Is told what happens in sessions. Nothing depends on what it does.
pub trait Observer: Send + Sync + 'static {
    /// A measurement begins. [`Observer::left`] follows, however it ends.
    fn entered(&self);

    /// A measurement came to its end, or was cancelled.
    fn left(&self);

    /// A measurement was started this long after it was due.
    fn started(&self, lag: Duration);

    /// Nothing was asked for want of room.
    fn not_asked(&self, provider: &'static str);

    /// A measurement was judged.
    fn measured(&self, provider: &'static str, phase: Phase, failure: Option<FailureKind>, took: Duration);

    /// A measurement of a run came to its end.
    fn came(&self, run: &HookRun, outcome: &Outcome);

    /// A status was written, or not: `written`, `conflict`, `gone`, `failed`.
    fn wrote(&self, outcome: &'static str);

    /// What was measured of a run was recorded, or not.
    fn recorded(&self, run: &HookRun, good: bool, took: Duration);

    /// A run ended. Its last measurement took this long.
    fn ended(&self, run: &HookRun, phase: Phase, reason: &str, last: Duration);
}

/// Nobody.
impl Observer for () {
    fn entered(&self) {}

    fn left(&self) {}

    fn started(&self, _lag: Duration) {}

    fn not_asked(&self, _provider: &'static str) {}

    fn measured(
        &self,
        _provider: &'static str,
        _phase: Phase,
        _failure: Option<FailureKind>,
        _took: Duration,
    ) {
    }

    fn came(&self, _run: &HookRun, _outcome: &Outcome) {}

    fn wrote(&self, _outcome: &'static str) {}

    fn recorded(&self, _run: &HookRun, _good: bool, _took: Duration) {}

    fn ended(&self, _run: &HookRun, _phase: Phase, _reason: &str, _last: Duration) {}
}

/// The time that a measurement took.
pub fn time_of(outcome: &Outcome) -> Duration {
    let took = outcome.finished_at.duration_since(outcome.started_at);
    Duration::try_from(took).unwrap_or_default()
}
