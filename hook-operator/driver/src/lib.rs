//! The pure loop of hook-operator: the life of every run in one process.
//!
//! The contract of a [`Session`]: [`Session::handle`] takes in what has happened, [`Session::poll`] gives out what is to
//! be done until it gives nothing, and then nothing is to be done before the next input or [`Session::deadline`]. Every
//! run has a session of its own, so no run waits for another's endpoint. [`Sessions`] says which runs have one. What runs
//! in the operator and in the plugin is what `tests/simulation` runs.
//!
//! | module | job |
//! | --- | --- |
//! | [`session`] | decide, record, measure, wait, and again |
//! | [`sessions`] | a session for every run without a verdict |
//! | `pace` | how often one run's status is written |
//! | `kept` | whether what was written is there |
//! | `version` | which of two states of a run is the older one |
//!
//! Nothing here has a client, a runtime, a clock, randomness, an environment or a log.

use shared_api::HookRun;

mod kept;
mod pace;
pub mod session;
pub mod sessions;
mod version;

pub use session::{Input, MeasurementId, Output, Session, SharedRun, StoreError};
pub use sessions::{Change, Event, SessionId, Sessions};
pub use version::Version;

/// Namespace and name.
pub type Key = (String, String);

/// Why a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The run has its final phase, recorded with this version.
    Concluded(Version),
    /// The run is gone.
    Gone,
}

impl End {
    /// Whether this state of the run is from before the end, and arrives late.
    pub fn is_news_of_before(&self, run: &HookRun) -> bool {
        match self {
            Self::Concluded(last) => Version::of(run).is_before(*last),
            // Its UID never comes back to life.
            Self::Gone => true,
        }
    }

    /// Whether this state came too late for the session to hear of it.
    pub fn is_before(&self, run: &HookRun) -> bool {
        match self {
            Self::Concluded(last) => last.is_before(Version::of(run)),
            Self::Gone => false,
        }
    }
}
