//! Requests to the API server and their answers. One request is one call.

use std::sync::Arc;
use std::time::Duration;

use gamedeployment_core::gate::{PodRef, Run};
use gamedeployment_core::guard_check::GuardCheck;
use gamedeployment_core::plan::{Action, RunRef, Warning, WriteKind};
use gamedeployment_core::pod::Pod;
use jiff::Timestamp;
use shared_api::reason::WorkloadReason;
use shared_api::{GameDeployment, GameDeploymentStatus};

use crate::NamespacedName;
use crate::watch_event::{NodeFacts, OwnedRevision, Unreadable, Workload};
use runtime_core::clock::Now;

/// Identifies a request until it is answered.
pub type RequestId = u64;

/// Kinds that the operator writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectKind {
    /// The workload itself.
    Workload,
    /// Pods.
    Pod,
    /// ControllerRevisions.
    Revision,
    /// HookRuns.
    Run,
}

impl ObjectKind {
    /// The kind's name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Workload => "GameDeployment",
            Self::Pod => "Pod",
            Self::Revision => "ControllerRevision",
            Self::Run => "HookRun",
        }
    }
}

/// Workload that a write is for, as of the decision.
#[derive(Debug, Clone)]
pub struct ReconcileTarget {
    /// Namespace and name.
    pub key: NamespacedName,
    /// Object as of the decision.
    pub object: Arc<GameDeployment>,
    /// Time of the decision.
    pub decided: Now,
}

impl ReconcileTarget {
    /// Creates the target of a decision that is made now.
    pub(crate) fn new(key: &NamespacedName, object: Arc<GameDeployment>, now: Now) -> Arc<Self> {
        Arc::new(Self {
            key: key.clone(),
            object,
            decided: now,
        })
    }

    /// Returns the workload's UID.
    pub fn uid(&self) -> &str {
        self.object.metadata.uid.as_deref().unwrap_or_default()
    }
}

/// Call to make.
#[derive(Debug)]
pub struct Request {
    /// Identifies the answer.
    pub id: RequestId,
    /// Workload that the call is for; `None` for a report to an Eviction, and for a read that no decision waits for.
    pub target: Option<Arc<ReconcileTarget>>,
    /// Call.
    pub call: ApiCall,
    /// Time on the clock of elapsed time after which the call is not sent any more: [`RequestError::Lapsed`].
    pub until: Option<Duration>,
}

impl Request {
    /// Returns whether the request reads an object directly, and no decision waits for it.
    pub fn is_reread(&self) -> bool {
        self.target.is_none() && matches!(self.call, ApiCall::Read(..))
    }
}

/// Calls to the API server.
#[derive(Debug)]
pub enum ApiCall {
    /// Write of a plan, with the preconditions that the action carries. A creation, patch or deletion returns
    /// [`Response::Object`] or [`Response::Gone`], a dry run [`Response::Done`].
    Act(Action),
    /// Deletes HookRuns in one call. Returns those that the call matched as [`Response::Runs`].
    DeleteRuns(Vec<RunRef>),
    /// Writes the status, if the workload is unchanged since the decision. Returns [`Response::Object`].
    WriteStatus(Box<GameDeploymentStatus>),
    /// Reads an object, bypassing the cache. Returns [`Response::Object`] or [`RequestError::Gone`].
    Read(ObjectKind, NamespacedName),
    /// Lists the pods of the workload's namespace with this selector, bypassing the cache. Returns an active pod that
    /// the workload controls as [`Response::Object`], or [`Response::Gone`] without one.
    FindPod(String),
    /// Sends a dry run that removes the guard's label from a pod in this namespace. Returns [`Response::Guarded`].
    CheckGuard(String, PodRef),
    /// Reports to the Eviction with this namespace and name. Returns [`Response::Done`].
    ReportEviction(NamespacedName, EvictionReport),
    /// Reads a node, bypassing the cache. Returns [`Response::Node`] or [`RequestError::Gone`].
    ReadNode(String),
    /// Records on an object that does not parse as a GameDeployment why it cannot be read. Returns
    /// [`Response::Done`].
    ReportUnreadable(NamespacedName, Arc<Unreadable>),
}

/// Report of this operator, as a responder, to an Eviction (`lifecycle.k8s.io`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvictionReport {
    /// UID of the Eviction, a precondition.
    pub uid: String,
    /// Time of the last heartbeat.
    pub heartbeat: Option<Timestamp>,
    /// Reason why the pod stays, or why the operator has completed.
    pub message: String,
    /// Time of the completion: if the pod still exists, the next responder is activated.
    pub completion: Option<Timestamp>,
}

/// Object in an answer of the API server.
#[derive(Debug, Clone)]
pub enum Object {
    /// Workload.
    Workload(NamespacedName, Workload),
    /// Pod.
    Pod(NamespacedName, Box<Pod>),
    /// ControllerRevision.
    Revision(NamespacedName, Box<OwnedRevision>),
    /// HookRun.
    Run(NamespacedName, Box<Run>),
}

/// Answer to a call that succeeded.
#[derive(Debug, Clone)]
pub enum Response {
    /// Current state of the object.
    Object(Object),
    /// The object exists but lacks the content that its kind should have.
    Foreign,
    /// Current facts about the node.
    Node(NodeFacts),
    /// The object is gone.
    Gone,
    /// Result of the check of the removal guard.
    Guarded(GuardCheck),
    /// Runs that a collection deletion matched.
    Runs(Vec<DeletedRun>),
    /// The call succeeded.
    Done,
}

/// Run that a collection deletion matched.
#[derive(Debug, Clone)]
pub struct DeletedRun {
    /// Name.
    pub name: String,
    /// UID.
    pub uid: String,
    /// Whether a finalizer still holds it.
    pub kept: bool,
}

/// Failure of a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The object does not exist (404).
    #[error("the object no longer exists")]
    Gone,
    /// Conflict: the object changed since it was read, or an object of that name exists (409).
    #[error("the object was changed in the meantime, or an object with this name already exists")]
    Conflict,
    /// The approval expired before the call could be sent.
    #[error("the deadline passed before the request could be sent")]
    Lapsed,
    /// The API server refused the call; its message.
    #[error("{0}")]
    Refused(String),
    /// The API server refused the call without a decision about it: it has no capacity for now (429); its message.
    #[error("{0}")]
    Throttled(String),
    /// The API server accepted the write but stored something else.
    #[error(
        "the API server accepted the write but stored something else: a mutating admission webhook changes it, or the \
         custom resource definitions are older than the operator"
    )]
    NotStored,
    /// The API server stored the write, which repeats an earlier one: another client had changed what that one set.
    #[error("another client, for example a controller or a policy engine, changes what the operator sets")]
    Repeated,
    /// The outcome is unknown.
    #[error("{0}")]
    Unknown(String),
}

impl RequestError {
    /// Value of the `outcome` label in metrics.
    pub fn class(&self) -> &'static str {
        match self {
            Self::Gone => "gone",
            Self::Conflict => "conflict",
            Self::Lapsed => "lapsed",
            Self::Refused(_) | Self::Throttled(_) => "refused",
            Self::NotStored => "not_stored",
            Self::Repeated => "repeated",
            Self::Unknown(_) => "unknown",
        }
    }
}

/// Outputs for the shell, to be handled in order.
#[derive(Debug)]
pub enum DriverOutput {
    /// Send a call and pass its answer to [`crate::Driver::handle`].
    Send(Request),
    /// A decision was made: pass its duration to [`crate::Driver::record_duration`].
    Decided(Decided),
    /// The job of a decision is finished.
    Concluded {
        /// Workload.
        key: NamespacedName,
        /// Time of the decision, on the clock of elapsed time.
        decided: Duration,
        /// Whether a write failed.
        failed: bool,
    },
    /// Kind and result class of a write.
    WriteFinished(WriteKind, &'static str),
    /// Emit warnings.
    EmitWarnings(Arc<ReconcileTarget>, Vec<Warning>),
    /// Emit events about completed actions and their objects.
    EmitEvents(Arc<ReconcileTarget>, Vec<(WorkloadReason, String)>),
    /// A guarded pod was deleted by others.
    PodLost(Arc<ReconcileTarget>, Warning),
    /// A hook of this kind got a verdict other than success.
    HookUnsuccessful(gamedeployment_core::hook_kind::HookKind),
    /// Number of objects that are read directly because the watch has not shown a write in time.
    Overdue(usize),
    /// A workload cannot be read.
    Unreadable(NamespacedName, Arc<Unreadable>),
    /// Direct reads of an object have failed several times: decisions no longer wait for it.
    Unread {
        /// Kind.
        kind: ObjectKind,
        /// Namespace and name.
        key: NamespacedName,
        /// Error of the last read.
        error: String,
    },
    /// A workload is gone.
    WorkloadDeleted(NamespacedName),
}

/// Decision on a workload.
#[derive(Debug)]
pub struct Decided {
    /// Workload as of the decision.
    pub target: Arc<ReconcileTarget>,
    /// Number of writes that follow.
    pub actions: usize,
    /// Whether the status changes.
    pub status: bool,
    /// Whether there is nothing to do and nothing to retry later.
    pub at_rest: bool,
    /// Data for metrics; `None` if the decision stopped early.
    pub report: Option<Box<MetricsReport>>,
}

impl Decided {
    /// Whether the decision requires no write.
    pub fn is_empty(&self) -> bool {
        self.actions == 0 && !self.status
    }
}

/// Data of a workload for metrics.
#[derive(Debug)]
pub struct MetricsReport {
    /// Desired number of pods.
    pub wanted: i32,
    /// New status, or the current one if unchanged.
    pub status: GameDeploymentStatus,
    /// Gauges that the core computes.
    pub gauges: gamedeployment_core::plan::Gauges,
}
