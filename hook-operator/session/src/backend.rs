//! Backend of a session: records measurements, reads arguments, acts in the cluster and emits events. The operator's
//! backend is the API server; the local runner of the kubectl plugin keeps everything in memory. The session is the same
//! for both.

use std::future::Future;

use hook_core::answer::{MeasurementFailure, MeasurementReason, ProviderResponse, Transcript};
use hook_core::decide::{Delay, MeasurementKey};
use hook_core::request::{AnnotateRequest, ExecRequest, JobRequest, ReadRequest};
use hook_core::resolve::{OptionalProviders, Reference};
use hook_driver::StoreError;
use hook_providers::MemoryReservation;
use jiff::Timestamp;
use shared_api::{HookRun, HookRunStatus};

/// Everything that a session needs.
pub trait Backend: RunStore + ReferenceSource + ClusterProviders + EventSink + Send + Sync + 'static {}

impl<B: RunStore + ReferenceSource + ClusterProviders + EventSink + Send + Sync + 'static> Backend for B {}

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

/// Bytes reserved for a referenced text before it is read.
pub const REFERENCE_RESERVATION: usize = 64 * 1024;

/// Source of arguments whose values are in a Secret or a `ConfigMap`.
pub trait ReferenceSource {
    /// Reads a key of a Secret or `ConfigMap`. [`REFERENCE_RESERVATION`] bytes are reserved for it; the
    /// reservation grows while more are needed.
    fn resolve(
        &self,
        namespace: &str,
        reference: &Reference,
        reservation: &mut MemoryReservation,
    ) -> impl Future<Output = Result<String, MeasurementFailure>> + Send;
}

/// Job that has ended.
#[derive(Debug)]
pub struct EndedJob {
    /// Its verdict, or its result.
    pub response: ProviderResponse,
    /// Time at which it was created.
    pub started_at: Timestamp,
    /// Time at which it ended, at the latest now.
    pub ended_at: Timestamp,
}

/// Optional providers, which act in the cluster. By default all are off.
pub trait ClusterProviders {
    /// Returns the optional providers that are on.
    fn providers(&self) -> OptionalProviders {
        OptionalProviders::default()
    }

    /// Creates the Job of a measurement, or finds it if it was created before, and waits until it has ended. Calls
    /// `active` with the reason while it has not. Dropping the future leaves the Job as it is.
    fn run_job(
        &self,
        _run: &HookRun,
        _key: &MeasurementKey,
        _request: JobRequest,
        _active: &(dyn Fn(String) + Send + Sync),
    ) -> impl Future<Output = Result<EndedJob, MeasurementFailure>> + Send {
        let failure = MeasurementFailure::new(MeasurementReason::JobRefused, "provider.job is disabled");
        std::future::ready(Err(failure))
    }

    /// Reads an object of the run's namespace as JSON text, within the reservation.
    fn read_object(
        &self,
        _run: &HookRun,
        _request: &ReadRequest,
        _reservation: &mut MemoryReservation,
    ) -> impl Future<Output = Result<Vec<u8>, MeasurementFailure>> + Send {
        std::future::ready(Err(kubernetes_is_off()))
    }

    /// Sets annotations of a pod of the run's namespace.
    fn annotate_pod(
        &self,
        _run: &HookRun,
        _request: &AnnotateRequest,
    ) -> impl Future<Output = Result<(), MeasurementFailure>> + Send {
        std::future::ready(Err(kubernetes_is_off()))
    }

    /// Runs a command in a container of the run's pod. The reservation grows when its turn has come. Dropping the future
    /// ends the connection, not the command.
    fn run_command(
        &self,
        _run: &HookRun,
        _request: &ExecRequest,
        _reservation: &mut MemoryReservation,
    ) -> impl Future<Output = Result<Transcript, MeasurementFailure>> + Send {
        std::future::ready(Err(exec_is_off()))
    }

    /// Deletes the Jobs of these names that the run owns, with their pods.
    fn delete_jobs(
        &self,
        _run: &HookRun,
        _names: &[String],
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        std::future::ready(Ok(()))
    }
}

/// Returns the failure of a call without its provider. Such a run is refused before its first measurement.
pub fn kubernetes_is_off() -> MeasurementFailure {
    MeasurementFailure::new(MeasurementReason::ApiRefused, "provider.kubernetes is disabled")
}

/// Returns the failure of a command without its provider. Such a run is refused before its first measurement.
pub fn exec_is_off() -> MeasurementFailure {
    MeasurementFailure::new(MeasurementReason::ApiRefused, "provider.exec is disabled")
}

/// Receiver of events for users.
pub trait EventSink {
    /// A run's final phase is recorded. Called once.
    fn concluded(&self, _run: &HookRun) {}

    /// A metric has no measurement yet, and the status records the reason.
    fn held_up(&self, _run: &HookRun, _delay: &Delay) {}

    /// Jobs of a run could not be deleted.
    fn jobs_left(&self, _run: &HookRun, _jobs: &[String], _why: &StoreError) {}

    /// A run's status cannot be recorded. Called now and then, so that the failure does not go unnoticed.
    fn unwritable(&self, _run: &HookRun, _why: &str) {}
}
