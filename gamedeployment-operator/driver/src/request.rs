//! What the driver asks of the API server, and what it is answered. One request is one call.

use std::sync::Arc;
use std::time::Duration;

use gamedeployment_core::gate::Run;
use gamedeployment_core::plan::{Action, RunRef, Warning};
use gamedeployment_core::pod::Pod;
use shared_api::reason::WorkloadReason;
use shared_api::{GameDeployment, GameDeploymentStatus};

use crate::Key;
use crate::news::{OwnedRevision, Unreadable, Workload};
use runtime_core::clock::Now;

/// Names a request until it is answered.
pub type RequestId = u64;

/// Kinds that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// The workload itself.
    Workload,
    /// Pods.
    Pod,
    /// ControllerRevisions.
    Revision,
    /// HookRuns.
    Run,
}

/// The workload that is written for, as it was decided on.
#[derive(Debug, Clone)]
pub struct Subject {
    /// Namespace and name.
    pub key: Key,
    /// The object as it was decided on.
    pub object: Arc<GameDeployment>,
    /// When it was decided on.
    pub decided: Now,
}

impl Subject {
    /// The workload's UID.
    pub fn uid(&self) -> &str {
        self.object.metadata.uid.as_deref().unwrap_or_default()
    }
}

/// A call to be made.
#[derive(Debug)]
pub struct Request {
    /// What its answer is given with.
    pub id: RequestId,
    /// The workload that it is made for; none of a read that no decision waits for.
    pub subject: Option<Arc<Subject>>,
    /// The call.
    pub call: Call,
    /// A call whose turn has not come by then is not sent: [`CallError::Lapsed`]. By the clock that nobody sets.
    pub until: Option<Duration>,
}

impl Request {
    /// Whether it reads an object directly, because a write's answer was lost or the watch did not show it in time.
    pub fn is_reread(&self) -> bool {
        self.subject.is_none() && matches!(self.call, Call::Read(..))
    }
}

/// Calls of the API server.
#[derive(Debug)]
pub enum Call {
    /// One write of a plan, with the preconditions that the action carries. A creation, patch or deletion answers
    /// with [`Answer::Object`] or [`Answer::Gone`], a dry run with [`Answer::Done`].
    Act(Action),
    /// Deletes HookRuns by one call. [`Answer::Runs`]: those that it has met.
    DeleteRuns(Vec<RunRef>),
    /// Writes the status, if the workload is as it was decided on. [`Answer::Object`].
    WriteStatus(Box<GameDeploymentStatus>),
    /// Reads an object, not from a cache. [`Answer::Object`], or [`CallError::Gone`].
    Read(Kind, Key),
    /// Reads whether a node exists, not from a cache. [`Answer::Done`], or [`CallError::Gone`].
    ReadNode(String),
    /// Records on an object that is no GameDeployment what is wrong with it. [`Answer::Done`].
    Refuse(Key, Arc<Unreadable>),
}

/// An object as the API server has answered with it.
#[derive(Debug, Clone)]
pub enum Object {
    /// A workload.
    Workload(Key, Workload),
    /// A pod.
    Pod(Key, Box<Pod>),
    /// A ControllerRevision.
    Revision(Key, Box<OwnedRevision>),
    /// A HookRun.
    Run(Key, Box<Run>),
}

/// What a call that succeeded has answered.
#[derive(Debug, Clone)]
pub enum Answer {
    /// The object is so now.
    Object(Object),
    /// There is such an object, and it does not hold what its kind should.
    Foreign,
    /// The object is gone.
    Gone,
    /// Runs that were deleted.
    Runs(Vec<DeletedRun>),
    /// It was done, or it exists.
    Done,
}

/// A run that a call for many has met.
#[derive(Debug, Clone)]
pub struct DeletedRun {
    /// Name.
    pub name: String,
    /// UID.
    pub uid: String,
    /// Whether a finalizer keeps it.
    pub kept: bool,
}

/// What came of a call that did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The object does not exist (404).
    #[error("the object does not exist any more")]
    Gone,
    /// It changed since it was read, or an object of that name exists (409).
    #[error("somebody else has changed it, or made one of that name")]
    Conflict,
    /// It was not sent: what allowed it had lapsed while it waited for its turn.
    #[error("what allowed it had lapsed before it could be sent")]
    Lapsed,
    /// The API server has understood the call, and does not do it; its words.
    #[error("{0}")]
    Refused(String),
    /// Nobody knows whether it was done.
    #[error("{0}")]
    Unknown(String),
}

impl CallError {
    /// The class, as metrics have it.
    pub fn class(&self) -> &'static str {
        match self {
            Self::Gone => "gone",
            Self::Conflict => "conflict",
            Self::Lapsed => "lapsed",
            Self::Refused(_) => "refused",
            Self::Unknown(_) => "unknown",
        }
    }
}

/// What the shell is to do, in this order.
#[derive(Debug)]
pub enum Output {
    /// Make a call, and give its answer to [`crate::Driver::handle`].
    Send(Request),
    /// A decision was taken: how long that took is to be told to [`crate::Driver::took`].
    Decided(Decided),
    /// Everything that a decision led to has been done.
    Concluded {
        /// The workload.
        key: Key,
        /// When it was decided on, by the clock that nobody sets.
        decided: Duration,
        /// Whether a write failed.
        failed: bool,
    },
    /// A write was made, or not: its name, and what came of it.
    Wrote(&'static str, &'static str),
    /// Tell people what needs them.
    Warn(Arc<Subject>, Vec<Warning>),
    /// Tell people what was done to which objects.
    Tell(Arc<Subject>, Vec<(WorkloadReason, String)>),
    /// A verdict has come that is no success, of a hook of this kind.
    Refused(gamedeployment_core::hook_kind::HookKind),
    /// So many objects are read directly, because the watch has not shown a write in time.
    Overdue(usize),
    /// A workload cannot be read.
    Unreadable(Key, Arc<Unreadable>),
    /// A workload is gone.
    Forgotten(Key),
}

/// A decision.
#[derive(Debug)]
pub struct Decided {
    /// The workload, as it was decided on.
    pub subject: Arc<Subject>,
    /// How many writes follow.
    pub actions: usize,
    /// Whether the status is to change.
    pub status: bool,
    /// Whether there is nothing to do and nothing to be tried again later.
    pub at_rest: bool,
    /// What metrics show of the workload; none where the decision did not come to that.
    pub report: Option<Box<Report>>,
}

impl Decided {
    /// Whether nothing follows from it.
    pub fn is_empty(&self) -> bool {
        self.actions == 0 && !self.status
    }
}

/// What metrics show of a workload.
#[derive(Debug)]
pub struct Report {
    /// Pods that there are to be.
    pub wanted: i32,
    /// The status, as it is or is to be.
    pub status: GameDeploymentStatus,
    /// The core's own numbers.
    pub gauges: gamedeployment_core::plan::Gauges,
}
