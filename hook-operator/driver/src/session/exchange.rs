//! Inputs and outputs of a session.

use std::sync::Arc;
use std::time::Duration;

use hook_core::decide::{Delay, MeasurementKey, MeasurementOutcome};
use hook_core::resolve::{FieldErrors, ResolvedRun};
use jiff::Timestamp;
use shared_api::{HookRun, HookRunStatus};

use crate::End;

/// Compiled spec, shared by its session and the tasks that use it.
pub type SharedRun = Arc<Result<ResolvedRun, FieldErrors>>;

/// Identifies a measurement until it ends.
pub type MeasurementId = u64;

/// Input of a session.
#[derive(Debug)]
pub enum SessionInput {
    /// The watch shows the run.
    Watch(Arc<HookRun>),
    /// Result of compiling the spec.
    Resolved(SharedRun),
    /// Result of recording the status: the run's new state, or an error.
    Recorded(Result<Arc<HookRun>, StoreError>),
    /// Result of reading the run directly.
    Read(Result<Arc<HookRun>, StoreError>),
    /// Result of deleting the run.
    Deleted(Result<(), StoreError>),
    /// A measurement ended.
    Measured(MeasurementId, MeasurementOutcome),
    /// A call was not made because capacity ran out, with the reason for users. This does not count as a
    /// measurement.
    NotAsked(MeasurementId, String),
    /// The Job of a measurement has not ended, with the reason for users.
    JobActive(MeasurementId, String),
    /// Result of deleting Jobs.
    JobsDeleted(Result<(), StoreError>),
    /// A measurement's task panicked.
    Broken(MeasurementId),
}

/// Output of a session.
#[derive(Debug)]
pub enum SessionOutput {
    /// Compile the spec. Answered by [`SessionInput::Resolved`].
    Resolve(Arc<HookRun>),
    /// Record a status that was computed from this run. Answered by [`SessionInput::Recorded`].
    Record(Arc<HookRun>, Box<HookRunStatus>),
    /// Read the run. Answered by [`SessionInput::Read`].
    Read(Arc<HookRun>),
    /// Delete the run, if it is still exactly this one. Answered by [`SessionInput::Deleted`].
    Delete(Arc<HookRun>),
    /// Take a measurement that was due at this time. Answered by [`SessionInput::Measured`],
    /// [`SessionInput::NotAsked`] or [`SessionInput::Broken`], unless it is cancelled.
    Measure(MeasurementId, MeasurementKey, Timestamp, SharedRun),
    /// Cancel this measurement.
    Cancel(MeasurementId),
    /// Delete the Jobs of these names, if the run owns them. Answered by [`SessionInput::JobsDeleted`].
    DeleteJobs(Arc<HookRun>, Vec<String>),
    /// These Jobs could not be deleted, and no further attempt is made; they go when the run is deleted.
    JobsLeft {
        /// The run.
        run: Arc<HookRun>,
        /// Names of the Jobs.
        jobs: Vec<String>,
        /// Error of the last attempt.
        why: StoreError,
    },
    /// Outcome of a status write: `written`, `conflict`, `gone`, `failed`.
    StatusWritten(&'static str),
    /// The status is still not recorded; the next attempt follows after a pause.
    NotRecorded {
        /// Error of the last attempt.
        why: StoreError,
        /// Number of failed attempts in a row.
        tries: u32,
        /// Pause before the next attempt.
        pause: Duration,
        /// Whether to emit an event.
        tell: bool,
    },
    /// The verdict is recorded. Carries the duration of the last measurement.
    Verdict(Arc<HookRun>, Duration),
    /// A metric has no measurement yet, and the status records the reason.
    HeldUp(Arc<HookRun>, Delay),
    /// The session is over.
    End(End),
}

/// Error of the backend.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Conflict: something newer is recorded.
    #[error("a newer status has already been recorded")]
    Conflict,
    /// The object is gone, or another one has its name.
    #[error("the object no longer exists")]
    Gone,
    /// The call was refused or its outcome is unknown; a retry may succeed.
    #[error("failed to {step}: {message}")]
    Failed {
        /// Step that failed.
        step: &'static str,
        /// Error message.
        message: String,
    },
}
