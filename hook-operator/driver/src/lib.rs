//! Pure loop of hook-operator: the life of every run in one process.
//!
//! Contract of a [`Session`]: [`Session::handle`] applies an input. [`Session::poll`] returns outputs until
//! it returns `None`; then nothing is due before the next input or [`Session::deadline`]. Every run has its
//! own session, so no run waits for another's endpoint. [`Sessions`] decides which runs have one. The
//! operator, the plugin and `tests/simulation` run exactly this code.
//!
//! | module | job |
//! | --- | --- |
//! | [`session`] | loop of decide, record, measure and wait |
//! | [`execution`] | loop of one ExecutionHook |
//! | [`sessions`] | a session for every run without a verdict |
//! | [`spec_budget`] | memory for the specs of runs, shared by namespaces |
//! | `write_retry` | retries of status writes |
//! | `write_throttle` | rate limit for one run's status writes |
//! | `status_matches` | check that a status was stored |
//! | `version` | order of two states of a run |
//!
//! This crate has no client, runtime, clock, randomness, environment or log.

use shared_api::HookRun;

pub mod execution;
pub mod session;
pub mod sessions;
pub mod spec_budget;
mod status_matches;
mod version;
mod write_retry;
mod write_throttle;

pub use session::{MeasurementId, Session, SessionInput, SessionOutput, SharedRun, StoreError};
pub use sessions::{Change, Event, ReadRun, SessionId, Sessions, WaitingRun};
pub use version::Version;

/// Namespace and name.
pub type NamespacedName = (String, String);

/// Reason why a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The run's final phase is recorded, with this version.
    Concluded(Version),
    /// The run is gone.
    Gone,
}

impl End {
    /// Returns whether this state of the run predates the end and arrived late.
    pub fn is_stale(&self, run: &HookRun) -> bool {
        match self {
            Self::Concluded(last) => Version::of(run).is_older_than(*last),
            // A UID is never reused.
            Self::Gone => true,
        }
    }

    /// Returns whether this state is newer than the end, so that the session never saw it.
    pub fn is_older_than(&self, run: &HookRun) -> bool {
        match self {
            Self::Concluded(last) => last.is_older_than(Version::of(run)),
            Self::Gone => false,
        }
    }
}
