//! Inputs and outputs of an execution.

use std::sync::Arc;
use std::time::Duration;

use hook_core::execution::{Attempt, FoundPod, TryOutcome};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use shared_api::reason::ExecutionReason;
use shared_api::{ExecutionHook, ExecutionHookStatus, HookAction};

use crate::StoreError;

/// Identifies a try until it ends.
pub type TryId = u64;

/// Input of an execution.
#[derive(Debug)]
pub enum ExecutionInput {
    /// The watch shows the hook.
    Watch(Arc<ExecutionHook>),
    /// Result of reading the HookAction.
    ActionRead(Result<Box<HookAction>, StoreError>),
    /// Result of listing pods.
    Listed(Result<Vec<FoundPod>, String>),
    /// Result of recording the status: the hook's new state, or an error.
    Recorded(Result<Arc<ExecutionHook>, StoreError>),
    /// Result of reading the hook.
    Read(Result<Arc<ExecutionHook>, StoreError>),
    /// Result of deleting the hook.
    Deleted(Result<(), StoreError>),
    /// A command is about to be sent: its turn has come.
    Started(TryId),
    /// A try ended.
    Ended(TryId, TryOutcome),
}

/// Output of an execution.
#[derive(Debug)]
pub enum ExecutionOutput {
    /// Read this HookAction. Answered by [`ExecutionInput::ActionRead`].
    ReadAction(String),
    /// List the pods with these labels. Answered by [`ExecutionInput::Listed`].
    List(LabelSelector),
    /// Record a status that was computed from this hook. Answered by [`ExecutionInput::Recorded`].
    Record(Arc<ExecutionHook>, Box<ExecutionHookStatus>),
    /// Read the hook. Answered by [`ExecutionInput::Read`].
    Read(Arc<ExecutionHook>),
    /// Delete the hook, if it is still exactly this one. Answered by [`ExecutionInput::Deleted`].
    Delete(Arc<ExecutionHook>),
    /// Look up this pod. Answered by [`ExecutionInput::Ended`], unless it is cancelled.
    Find(TryId, String),
    /// Run a command in a container of the pod with this UID. Answered by [`ExecutionInput::Started`] and
    /// [`ExecutionInput::Ended`], unless it is cancelled.
    Run {
        /// The try.
        id: TryId,
        /// Its container and its command.
        attempt: Box<Attempt>,
    },
    /// Cancel this try. Its command may run on.
    Cancel(TryId),
    /// Outcome of a status write: `written`, `conflict`, `gone`, `failed`.
    StatusWritten(&'static str),
    /// A call for the hook failed; the next attempt follows after a pause.
    CallFailed {
        /// The hook.
        hook: Arc<ExecutionHook>,
        /// Reason of the event.
        reason: ExecutionReason,
        /// Error of the last attempt.
        why: StoreError,
        /// Pause before the next attempt.
        pause: Duration,
        /// Whether to emit an event.
        tell: bool,
    },
    /// The hook waits, and its status says so.
    Waits(Arc<ExecutionHook>, ExecutionReason, String),
    /// The end of the hook is recorded.
    Completed(Arc<ExecutionHook>),
    /// The hook is gone.
    End,
}
