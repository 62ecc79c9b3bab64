//! Approvals, and what they are good for.

use jiff::Timestamp;
use shared_api::names::pod::{SKIP_HOOK, SKIP_HOOK_BY, SKIP_HOOK_REASON};

use super::Intent;
use crate::hook_kind::HookKind;
use crate::pod::Pod;

/// Why a gate is open.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Grounds {
    /// This run ended with a measured success for exactly this.
    Verdict {
        /// Its name.
        run: String,
        /// Its UID.
        uid: String,
        /// From then on it is too old; none where the pod has been out of service since before the hook was asked.
        until: Option<Timestamp>,
    },
    /// The workload has no hook for this.
    NoHook,
    /// Hot patches have no hooks.
    HotPatch,
    /// The pod is on no node.
    NotScheduled,
    /// None of its containers has started.
    NeverStarted,
    /// It has ended, or is being deleted already.
    Ended,
    /// No healthy watch has shown its node for [`super::GONE_AFTER`]. Whoever acts on it asks the API server first.
    NodeGone {
        /// The node.
        node: String,
    },
    /// It was approved and begun before; this is the next step of it.
    UnderWay,
    /// The pod's annotation `skip-hook` names it.
    Skipped {
        /// Why somebody set it, in their words.
        why: Option<String>,
        /// Who says that they set it.
        by: Option<String>,
    },
}

/// Most characters of what people say about a skipped hook: an event takes only so much.
const LONGEST_WORDS: usize = 300;

impl Grounds {
    /// What the annotations of a pod say about skipping its hook.
    pub(super) fn skipped(pod: &Pod) -> Self {
        let words = |name: &str| {
            let text = pod.annotation(name)?.trim();
            let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
            let words: String = plain.take(LONGEST_WORDS).collect();
            (!words.is_empty()).then_some(words)
        };
        Self::Skipped {
            why: words(SKIP_HOOK_REASON),
            by: words(SKIP_HOOK_BY),
        }
    }
}

impl std::fmt::Display for Grounds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Verdict { run, .. } => write!(f, "HookRun {run} is Successful"),
            Self::NoHook => f.write_str("no hook is set"),
            Self::HotPatch => f.write_str("hot patches have no hooks"),
            Self::NotScheduled => f.write_str("the pod is on no node"),
            Self::NeverStarted => f.write_str("none of its containers has started"),
            Self::Ended => f.write_str("the pod has ended"),
            Self::NodeGone { .. } => f.write_str("its node does not exist any more"),
            Self::UnderWay => f.write_str("the update was approved and begun before"),
            Self::Skipped { why, by } => {
                let said = |text: &Option<String>| text.clone().unwrap_or_else(|| "not said".to_owned());
                write!(
                    f,
                    "annotation {SKIP_HOOK} names this pod: no hook was asked; reason: {}; by: {}",
                    said(why),
                    said(by)
                )
            }
        }
    }
}

/// One pod in one version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodRef {
    /// `metadata.name`.
    pub name: String,
    /// UID: precondition of every write.
    pub uid: String,
    /// Version: precondition of every write.
    pub resource_version: String,
}

impl PodRef {
    /// A pod as it is known.
    pub fn of(pod: &Pod) -> Self {
        Self {
            name: pod.name.clone(),
            uid: pod.uid.clone(),
            resource_version: pod.resource_version.clone(),
        }
    }
}

/// One intent may be done to one pod, once. Nobody but the gate can make one, and nobody can make two of one.
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
    grounds: Grounds,
}

/// What an approval is good for.
#[derive(Debug, PartialEq, Eq, Hash)]
pub enum Act {
    /// Delete the pod.
    Delete(Delete),
    /// Begin or go on to update the pod in its place.
    Update(Update),
    /// Nothing is to be done to the pod: its update is confirmed.
    Confirmed(Confirmed),
}

/// The update of one pod is confirmed.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Confirmed {
    pod: PodRef,
    revision: String,
    hook: Option<HookKind>,
    grounds: Grounds,
}

/// Leave to delete one pod. It holds what the deletion must be conditioned on.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Delete {
    pod: PodRef,
    recreates: bool,
    hook: Option<HookKind>,
    grounds: Grounds,
}

/// Leave to take one pod out of service and change it to one revision.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Update {
    pod: PodRef,
    to: String,
    hot: bool,
    hook: Option<HookKind>,
    grounds: Grounds,
}

impl<'a> Approval<'a> {
    /// `hook`: the one that has a say in the intent, whether it is set or not.
    pub(super) fn new(pod: &'a Pod, intent: &Intent, hook: Option<HookKind>, grounds: Grounds) -> Self {
        Self {
            pod,
            intent: intent.clone(),
            hook,
            grounds,
        }
    }

    /// Why the gate is open.
    pub fn grounds(&self) -> &Grounds {
        &self.grounds
    }

    /// The UID of the run whose verdict it rests on.
    pub fn run(&self) -> Option<&str> {
        match &self.grounds {
            Grounds::Verdict { uid, .. } => Some(uid),
            Grounds::NoHook
            | Grounds::HotPatch
            | Grounds::NotScheduled
            | Grounds::NeverStarted
            | Grounds::Ended
            | Grounds::NodeGone { .. }
            | Grounds::UnderWay
            | Grounds::Skipped { .. } => None,
        }
    }

    /// Uses it up.
    #[must_use]
    pub fn into_act(self) -> Act {
        let Self {
            pod,
            intent,
            hook,
            grounds,
        } = self;
        let pod = PodRef::of(pod);
        match intent {
            Intent::Delete | Intent::Recreate(_) => Act::Delete(Delete {
                pod,
                recreates: intent != Intent::Delete,
                hook,
                grounds,
            }),
            Intent::InPlace(to) => Act::Update(Update {
                pod,
                to,
                hot: false,
                hook,
                grounds,
            }),
            Intent::HotPatch(to) => Act::Update(Update {
                pod,
                to,
                hot: true,
                hook,
                grounds,
            }),
            Intent::Confirm(revision) => Act::Confirmed(Confirmed {
                pod,
                revision,
                hook,
                grounds,
            }),
        }
    }
}

impl Delete {
    /// The pod that is deleted, in the version that was decided on.
    pub fn pod(&self) -> &PodRef {
        &self.pod
    }

    /// Whether it goes for its successor's sake: an update.
    pub fn recreates(&self) -> bool {
        self.recreates
    }

    /// The hook that has a say in it, whether it is set or not.
    pub fn hook(&self) -> Option<HookKind> {
        self.hook
    }

    /// Why it may go.
    pub fn grounds(&self) -> &Grounds {
        &self.grounds
    }
}

impl Confirmed {
    /// The pod whose update is confirmed, in the version that was decided on.
    pub fn pod(&self) -> &PodRef {
        &self.pod
    }

    /// The revision that it has.
    pub fn revision(&self) -> &str {
        &self.revision
    }

    /// The hook that has a say in it, whether it is set or not.
    pub fn hook(&self) -> Option<HookKind> {
        self.hook
    }

    /// Why it counts as confirmed.
    pub fn grounds(&self) -> &Grounds {
        &self.grounds
    }
}

impl Update {
    /// The pod that is updated, in the version that was decided on.
    pub fn pod(&self) -> &PodRef {
        &self.pod
    }

    /// The revision that it gets.
    pub fn to(&self) -> &str {
        &self.to
    }

    /// Whether it stays in service.
    pub fn hot(&self) -> bool {
        self.hot
    }

    /// The hook that has a say in it, whether it is set or not.
    pub fn hook(&self) -> Option<HookKind> {
        self.hook
    }

    /// Why it may be changed.
    pub fn grounds(&self) -> &Grounds {
        &self.grounds
    }
}
