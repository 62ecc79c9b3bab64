//! Backend of a session: records measurements, reads arguments and emits events. The operator's backend is
//! the API server; the local runner of the kubectl plugin keeps everything in memory. The session is the same
//! for both.

use std::future::Future;

use hook_core::answer::MeasurementFailure;
use hook_core::resolve::Reference;
use hook_driver::StoreError;
use shared_api::{HookRun, HookRunStatus};

/// Everything that a session needs.
pub trait Backend: RunStore + ReferenceSource + EventSink + Send + Sync + 'static {}

impl<B: RunStore + ReferenceSource + EventSink + Send + Sync + 'static> Backend for B {}

/// Store of HookRuns. It never overwrites a newer state.
pub trait RunStore {
    /// Records a status that was computed from `base`. Returns the run's new state.
    fn record(
        &self,
        base: &HookRun,
        status: &HookRunStatus,
    ) -> impl Future<Output = Result<HookRun, StoreError>> + Send;

    /// Reads the run, bypassing the cache.
    fn read(&self, run: &HookRun) -> impl Future<Output = Result<HookRun, StoreError>> + Send;

    /// Deletes an expired run, if it is still exactly this one.
    fn delete(&self, run: &HookRun) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// Source of arguments whose values are in a Secret or a `ConfigMap`.
pub trait ReferenceSource {
    /// Reads a key of a Secret or `ConfigMap`.
    fn resolve(
        &self,
        namespace: &str,
        reference: &Reference,
    ) -> impl Future<Output = Result<String, MeasurementFailure>> + Send;
}

/// Receiver of events for users.
pub trait EventSink {
    /// A run's final phase is recorded. Called once.
    fn concluded(&self, _run: &HookRun) {}

    /// A metric cannot be measured because capacity ran out, and the status records that.
    fn held_up(&self, _run: &HookRun, _why: &str) {}

    /// A run's status cannot be recorded. Called now and then, so that the failure does not go unnoticed.
    fn unwritable(&self, _run: &HookRun, _why: &str) {}
}
