//! Intents: operations on a pod and the hooks responsible for them.

use crate::hook_kind::HookKind;
use crate::workload::Workload;

/// An operation on a pod. A verdict counts for exactly one intent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Intent {
    /// Delete the pod because of a surplus, because `podsToDelete` names it, or because its removal is requested.
    Delete,
    /// Delete the pod so that its successor gets this revision.
    Recreate(String),
    /// Update the pod's images and metadata to this revision.
    InPlace(String),
    /// Same as [`Intent::InPlace`], but without taking the pod out of service. No hook runs.
    HotPatch(String),
    /// No change: check the pod's health after an in-place update to this revision.
    Confirm(String),
}

impl Intent {
    /// Prefix of the text form of [`Intent::Recreate`].
    pub const RECREATE: &str = "recreate:";

    /// Prefix of the text form of [`Intent::InPlace`].
    pub const IN_PLACE: &str = "in-place:";

    /// Text form, as stored in annotations.
    pub fn text(&self) -> String {
        match self {
            Self::Delete => "delete".to_owned(),
            Self::Recreate(to) => format!("{}{to}", Self::RECREATE),
            Self::InPlace(to) => format!("{}{to}", Self::IN_PLACE),
            Self::HotPatch(to) => format!("hot-patch:{to}"),
            Self::Confirm(at) => format!("confirm:{at}"),
        }
    }

    /// The hook responsible for the intent, configured or not.
    pub fn hook(&self, workload: &Workload) -> Option<HookKind> {
        match self {
            Self::InPlace(_) if workload.pre_in_place.step.is_some() => Some(HookKind::PreInplace),
            // Recreating instead of updating in place must not bypass the hook.
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

    /// Returns whether the intent deletes the pod.
    pub fn deletes(&self) -> bool {
        matches!(self, Self::Delete | Self::Recreate(_))
    }

    /// Past participle for messages.
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Delete => "deleted",
            Self::Recreate(_) => "deleted and recreated",
            Self::InPlace(_) => "updated in place",
            Self::HotPatch(_) => "hot-patched",
            Self::Confirm(_) => "confirmed",
        }
    }
}
