//! Approvals and the actions that they permit.

use jiff::Timestamp;
use shared_api::names::pod::{SKIP_HOOK, SKIP_HOOK_BY, SKIP_HOOK_REASON};

use super::Intent;
use crate::hook_kind::HookKind;
use crate::pod::Pod;
use crate::user_text::user_text;

/// Reason why a gate is open.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum OpenReason {
    /// A run for this pod and intent ended with a measured success.
    Verdict {
        /// Name of the run.
        run: String,
        /// UID of the run.
        uid: String,
        /// Expiry time; `None` if the pod has been out of service since before the run was created.
        until: Option<Timestamp>,
    },
    /// The workload has no hook for this intent.
    NoHook,
    /// Hot patches have no hooks.
    HotPatch,
    /// The pod is not scheduled to a node.
    NotScheduled,
    /// None of the pod's containers has started, as its kubelet reports.
    NeverStarted {
        /// Reason why the report still counts.
        report: CurrentReport,
    },
    /// The pod has ended or is already being deleted.
    Ended,
    /// No healthy watch has shown the pod's node for [`super::NODE_GONE_AFTER`]. Acting on this requires a
    /// direct read first.
    NodeGone {
        /// Name of the node.
        node: String,
    },
    /// The update was approved and started before; this is its next step.
    AlreadyStarted,
    /// The pod's annotation `skip-hook` names it.
    Skipped {
        /// Reason in the user's own words, if given.
        why: Option<String>,
        /// Name that the user gave for themselves, if any.
        by: Option<String>,
    },
}

/// Reason why the last report of a kubelet still counts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CurrentReport {
    /// The pod's node has been Ready for [`super::NODE_SETTLE_TIME`]. Acting on this requires a direct read first.
    NodeReady {
        /// Name of the node.
        node: String,
        /// Time of its transition to Ready, which the direct read must show too.
        since: Option<Timestamp>,
    },
    /// Nodes are not watched, and the report was made less than [`super::REPORT_COUNTS_FOR`] ago.
    Recent {
        /// Expiry time.
        until: Timestamp,
    },
}

impl OpenReason {
    /// Reads the reason and the author of a skipped hook from the pod's annotations.
    pub fn skipped(pod: &Pod) -> Self {
        let words = |name: &str| pod.annotation(name).and_then(user_text);
        Self::Skipped {
            why: words(SKIP_HOOK_REASON),
            by: words(SKIP_HOOK_BY),
        }
    }
}

impl std::fmt::Display for OpenReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Verdict { run, .. } => write!(f, "HookRun {run} is Successful"),
            Self::NoHook => f.write_str("no hook is configured"),
            Self::HotPatch => f.write_str("no hook runs for hot patches"),
            Self::NotScheduled => f.write_str("the pod is not scheduled"),
            Self::NeverStarted { .. } => f.write_str("none of its containers has started"),
            Self::Ended => f.write_str("the pod has ended"),
            Self::NodeGone { .. } => f.write_str("its node no longer exists"),
            Self::AlreadyStarted => f.write_str("the update has already been approved and started"),
            Self::Skipped { why, by } => {
                let given = |text: &Option<String>| text.clone().unwrap_or_else(|| "not given".to_owned());
                write!(
                    f,
                    "its hooks are skipped by annotation {SKIP_HOOK}; reason: {}; by: {}",
                    given(why),
                    given(by)
                )
            }
        }
    }
}

/// One pod at one resource version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodRef {
    /// `metadata.name`.
    pub name: String,
    /// UID, a precondition of every write.
    pub uid: String,
    /// Resource version, a precondition of every write.
    pub resource_version: String,
}

impl PodRef {
    /// Refers to the cached version of a pod.
    pub fn of(pod: &Pod) -> Self {
        Self {
            name: pod.name.clone(),
            uid: pod.uid.clone(),
            resource_version: pod.resource_version.clone(),
        }
    }
}

/// Permission to carry out one intent on one pod, once. Only the gate creates approvals, and they cannot be
/// cloned.
///
/// ```compile_fail
/// fn twice(approval: &gamedeployment_core::gate::Approval) -> gamedeployment_core::gate::Approval {
///     let copy: gamedeployment_core::gate::Approval = approval.clone();
///     copy
/// }
/// ```
#[derive(Debug)]
pub struct Approval<'a> {
    pod: &'a Pod,
    intent: Intent,
    hook: Option<HookKind>,
    open_reason: OpenReason,
}

/// The action that an approval permits.
#[derive(Debug, PartialEq, Eq, Hash)]
pub enum ApprovedAction {
    /// Delete the pod.
    Delete(Delete),
    /// Start or continue an in-place update of the pod.
    Update(Update),
    /// Record that the pod's update is confirmed, and change nothing else.
    Confirmed(Confirmed),
}

/// Confirmation of one pod's update.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Confirmed {
    pod: PodRef,
    revision: String,
    hook: Option<HookKind>,
    open_reason: OpenReason,
}

/// Permission to delete one pod. Holds the preconditions of the deletion.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Delete {
    pod: PodRef,
    recreates: bool,
    hook: Option<HookKind>,
    open_reason: OpenReason,
}

/// Permission to update one pod in place to one revision, and to take it out of service for that unless the
/// update is hot.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Update {
    pod: PodRef,
    to: String,
    hot: bool,
    hook: Option<HookKind>,
    open_reason: OpenReason,
}

impl<'a> Approval<'a> {
    /// `hook` is the hook responsible for the intent, configured or not.
    pub(super) fn new(
        pod: &'a Pod,
        intent: &Intent,
        hook: Option<HookKind>,
        open_reason: OpenReason,
    ) -> Self {
        Self {
            pod,
            intent: intent.clone(),
            hook,
            open_reason,
        }
    }

    /// Reason why the gate is open.
    pub fn open_reason(&self) -> &OpenReason {
        &self.open_reason
    }

    /// UID of the run whose verdict it depends on, if it depends on one.
    pub fn run(&self) -> Option<&str> {
        match &self.open_reason {
            OpenReason::Verdict { uid, .. } => Some(uid),
            OpenReason::NoHook
            | OpenReason::HotPatch
            | OpenReason::NotScheduled
            | OpenReason::NeverStarted { .. }
            | OpenReason::Ended
            | OpenReason::NodeGone { .. }
            | OpenReason::AlreadyStarted
            | OpenReason::Skipped { .. } => None,
        }
    }

    /// Uses up the approval.
    #[must_use]
    pub fn into_action(self) -> ApprovedAction {
        let Self {
            pod,
            intent,
            hook,
            open_reason,
        } = self;
        let pod = PodRef::of(pod);
        match intent {
            Intent::Delete | Intent::Recreate(_) => ApprovedAction::Delete(Delete {
                pod,
                recreates: intent != Intent::Delete,
                hook,
                open_reason,
            }),
            Intent::InPlace(to) => ApprovedAction::Update(Update {
                pod,
                to,
                hot: false,
                hook,
                open_reason,
            }),
            Intent::HotPatch(to) => ApprovedAction::Update(Update {
                pod,
                to,
                hot: true,
                hook,
                open_reason,
            }),
            Intent::Confirm(revision) => ApprovedAction::Confirmed(Confirmed {
                pod,
                revision,
                hook,
                open_reason,
            }),
        }
    }
}

impl Delete {
    /// The pod to delete, at the version that the decision is based on.
    pub fn pod(&self) -> &PodRef {
        &self.pod
    }

    /// Whether the deletion is part of an update: a successor replaces the pod.
    pub fn recreates(&self) -> bool {
        self.recreates
    }

    /// The hook responsible for the deletion, configured or not.
    pub fn hook(&self) -> Option<HookKind> {
        self.hook
    }

    /// Reason why the pod may be deleted.
    pub fn open_reason(&self) -> &OpenReason {
        &self.open_reason
    }
}

impl Confirmed {
    /// The pod whose update is confirmed, at the version that the decision is based on.
    pub fn pod(&self) -> &PodRef {
        &self.pod
    }

    /// Revision of the pod.
    pub fn revision(&self) -> &str {
        &self.revision
    }

    /// The hook responsible for the confirmation, configured or not.
    pub fn hook(&self) -> Option<HookKind> {
        self.hook
    }

    /// Reason why the update counts as confirmed.
    pub fn open_reason(&self) -> &OpenReason {
        &self.open_reason
    }
}

impl Update {
    /// The pod to update, at the version that the decision is based on.
    pub fn pod(&self) -> &PodRef {
        &self.pod
    }

    /// Target revision.
    pub fn to(&self) -> &str {
        &self.to
    }

    /// Whether the pod stays in service.
    pub fn hot(&self) -> bool {
        self.hot
    }

    /// The hook responsible for the update, configured or not.
    pub fn hook(&self) -> Option<HookKind> {
        self.hook
    }

    /// Reason why the pod may be updated.
    pub fn open_reason(&self) -> &OpenReason {
        &self.open_reason
    }
}
