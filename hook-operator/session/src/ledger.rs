//! Where a session reads arguments and records what it measured. The operator's ledger is the API server; the
//! local runner of the kubectl plugin has one in memory. The session itself is the same for both.

use std::future::Future;

use hook_core::answer::MeasurementFailure;
use hook_core::resolve::Reference;
use hook_driver::LedgerError;
use shared_api::{HookRun, HookRunStatus};

/// Records statuses under the rule that nothing newer may be overwritten.
pub trait Ledger: Send + Sync + 'static {
    /// Records a status that was computed from `base`. Returns the run as it now stands.
    fn record(
        &self,
        base: &HookRun,
        status: &HookRunStatus,
    ) -> impl Future<Output = Result<HookRun, LedgerError>> + Send;

    /// Reads the run as it stands, not from a cache.
    fn read(&self, run: &HookRun) -> impl Future<Output = Result<HookRun, LedgerError>> + Send;

    /// Deletes a run that has outlived its use, if it is still exactly this one.
    fn delete(&self, run: &HookRun) -> impl Future<Output = Result<(), LedgerError>> + Send;

    /// Reads a key of a Secret or `ConfigMap`.
    fn resolve(
        &self,
        namespace: &str,
        reference: &Reference,
    ) -> impl Future<Output = Result<String, MeasurementFailure>> + Send;

    /// Told once when a run has reached its final phase and that is recorded.
    fn concluded(&self, run: &HookRun);

    /// Told when a metric cannot be asked for want of room, once that is recorded.
    fn held_up(&self, run: &HookRun, why: &str);

    /// Told now and then while a run's status cannot be recorded, so that it is not stuck in silence.
    fn unwritable(&self, run: &HookRun, why: &str);
}
