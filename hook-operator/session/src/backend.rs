//! What a session works on: where it records what it measured, reads arguments, and tells people. The operator's backend
//! is the API server; the local runner of the kubectl plugin has one in memory. The session itself is the same for both.

use std::future::Future;

use hook_core::answer::MeasurementFailure;
use hook_core::resolve::Reference;
use hook_driver::StoreError;
use shared_api::{HookRun, HookRunStatus};

/// All that a session needs.
pub trait Backend: RunStore + ReferenceSource + EventSink + Send + Sync + 'static {}

impl<B: RunStore + ReferenceSource + EventSink + Send + Sync + 'static> Backend for B {}

/// Where HookRuns are kept. Nothing newer is overwritten.
pub trait RunStore {
    /// Records a status that was computed from `base`. Returns the run as it now stands.
    fn record(
        &self,
        base: &HookRun,
        status: &HookRunStatus,
    ) -> impl Future<Output = Result<HookRun, StoreError>> + Send;

    /// Reads the run as it stands, not from a cache.
    fn read(&self, run: &HookRun) -> impl Future<Output = Result<HookRun, StoreError>> + Send;

    /// Deletes a run that has outlived its use, if it is still exactly this one.
    fn delete(&self, run: &HookRun) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// Where arguments are read whose values stand in a Secret or a `ConfigMap`.
pub trait ReferenceSource {
    /// Reads a key of a Secret or `ConfigMap`.
    fn resolve(
        &self,
        namespace: &str,
        reference: &Reference,
    ) -> impl Future<Output = Result<String, MeasurementFailure>> + Send;
}

/// Who is told of what people should know.
pub trait EventSink {
    /// A run has reached its final phase, and that is recorded. Told once.
    fn concluded(&self, _run: &HookRun) {}

    /// A metric cannot be asked for want of room, and that is recorded.
    fn held_up(&self, _run: &HookRun, _why: &str) {}

    /// A run's status cannot be recorded. Told now and then, so that it is not stuck in silence.
    fn unwritable(&self, _run: &HookRun, _why: &str) {}
}
