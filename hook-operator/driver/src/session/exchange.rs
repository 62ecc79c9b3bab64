//! What goes into a session and what comes out of it.

use std::sync::Arc;
use std::time::Duration;

use hook_core::decide::{Outcome, Slot};
use hook_core::resolve::{Problems, ResolvedRun};
use jiff::Timestamp;
use shared_api::{HookRun, HookRunStatus};

use crate::End;

/// A spec that is shared by its session and all that computes for it.
pub type SharedRun = Arc<Result<ResolvedRun, Problems>>;

/// Names a measurement until it has ended.
pub type MeasurementId = u64;

/// What has happened to a session.
#[derive(Debug)]
pub enum Input {
    /// The watch shows the run.
    News(Arc<HookRun>),
    /// The spec was compiled.
    Resolved(SharedRun),
    /// The status was recorded, and the run is so now; or not.
    Recorded(Result<Arc<HookRun>, StoreError>),
    /// The run was read, not from a cache; or not.
    Read(Result<Arc<HookRun>, StoreError>),
    /// The run was deleted, or not.
    Deleted(Result<(), StoreError>),
    /// A measurement has ended.
    Measured(MeasurementId, Outcome),
    /// Nothing was asked for want of room: why, for people. That is no measurement.
    NotAsked(MeasurementId, String),
    /// A measurement has ended in a defect of ours.
    Broken(MeasurementId),
}

/// What a session wants done.
#[derive(Debug)]
pub enum Output {
    /// Compile the spec. [`Input::Resolved`] answers.
    Resolve(Arc<HookRun>),
    /// Record a status that was computed from this run. [`Input::Recorded`] answers.
    Record(Arc<HookRun>, Box<HookRunStatus>),
    /// Read the run. [`Input::Read`] answers.
    Read(Arc<HookRun>),
    /// Delete the run, if it is still exactly this one. [`Input::Deleted`] answers.
    Delete(Arc<HookRun>),
    /// Take a measurement that was due then. [`Input::Measured`], [`Input::NotAsked`] or [`Input::Broken`] answers,
    /// unless it is cancelled.
    Measure(MeasurementId, Slot, Timestamp, SharedRun),
    /// Nobody waits for this measurement any more.
    Cancel(MeasurementId),
    /// What came of a write of the status: `written`, `conflict`, `gone`, `failed`.
    Wrote(&'static str),
    /// The status is not recorded yet, after so many tries; the next one is after a pause.
    NotRecorded {
        /// Why.
        why: StoreError,
        /// How many tries there were.
        tries: u32,
        /// Until the next one.
        pause: Duration,
        /// Whether people are to be told.
        tell: bool,
    },
    /// The verdict is recorded. The last measurement took so long.
    Verdict(Arc<HookRun>, Duration),
    /// A metric cannot be asked for want of room, and that is recorded: why.
    HeldUp(Arc<HookRun>, String),
    /// There is nothing left to do.
    End(End),
}

/// Why the backend did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Something newer is recorded.
    #[error("something newer is recorded")]
    Conflict,
    /// The run is gone, or another one has its name.
    #[error("the run is gone")]
    Gone,
    /// It was refused, or nobody knows whether it was done: worth another try.
    #[error("failed to {step}: {message}")]
    Failed {
        /// What was tried.
        step: &'static str,
        /// What went wrong.
        message: String,
    },
}
