//! What is to be done to a pod, and which hook has a say in it.

use crate::hook_kind::HookKind;
use crate::workload::Workload;

/// What is to be done to a pod. A verdict counts for exactly one intent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Intent {
    /// Delete it: there are too many, or it was named in `podsToDelete`.
    Delete,
    /// Delete it, so that its successor has this revision.
    Recreate(String),
    /// Change its images and metadata to this revision.
    InPlace(String),
    /// As [`Intent::InPlace`], without taking it out of service. No hook has a say.
    HotPatch(String),
    /// Nothing: see whether the pod is well after it was updated in place to this revision.
    Confirm(String),
}

impl Intent {
    /// The intent as annotations hold it.
    pub fn text(&self) -> String {
        match self {
            Self::Delete => "delete".to_owned(),
            Self::Recreate(to) => format!("recreate:{to}"),
            Self::InPlace(to) => format!("in-place:{to}"),
            Self::HotPatch(to) => format!("hot-patch:{to}"),
            Self::Confirm(at) => format!("confirm:{at}"),
        }
    }

    /// The hook that has a say in it, whether it is set or not.
    pub fn hook(&self, workload: &Workload) -> Option<HookKind> {
        match self {
            Self::InPlace(_) if workload.pre_in_place.step.is_some() => Some(HookKind::PreInplace),
            // An update is never unasked because it cannot be made in place.
            Self::Recreate(_)
                if workload.pre_delete.step.is_none() && workload.pre_in_place.step.is_some() =>
            {
                Some(HookKind::PreInplace)
            }
            Self::Delete | Self::Recreate(_) | Self::InPlace(_) => Some(HookKind::PreDelete),
            Self::Confirm(_) => Some(HookKind::PostInplace),
            Self::HotPatch(_) => None,
        }
    }

    /// Whether it ends with the pod's deletion.
    pub fn deletes(&self) -> bool {
        matches!(self, Self::Delete | Self::Recreate(_))
    }

    /// The act in words.
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Delete => "deleted",
            Self::Recreate(_) => "deleted and created again",
            Self::InPlace(_) => "updated in place",
            Self::HotPatch(_) => "hot-patched",
            Self::Confirm(_) => "confirmed",
        }
    }
}
