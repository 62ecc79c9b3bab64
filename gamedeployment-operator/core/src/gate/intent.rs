//! What is to be done to a pod, and which hook has a say in it.

use shared_api::names::hook_kind;

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

/// The hooks of a pod's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HookKind {
    /// Before a pod is deleted; and before it is updated in place, where no `PreInplace` hook is set.
    PreDelete,
    /// Before a pod is updated in place; and before an update recreates it, where no `PreDelete` hook is set.
    PreInplace,
    /// After a pod was updated in place.
    PostInplace,
}

impl HookKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::PreDelete, Self::PreInplace, Self::PostInplace];

    /// The value of the run's label.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::PreDelete => hook_kind::PRE_DELETE,
            Self::PreInplace => hook_kind::PRE_INPLACE,
            Self::PostInplace => hook_kind::POST_INPLACE,
        }
    }

    /// The hook as people and metrics name it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::PreDelete => "pre-delete",
            Self::PreInplace => "pre-inplace",
            Self::PostInplace => "post-inplace",
        }
    }

    /// The beginning of the run's name.
    #[must_use]
    pub fn prefix(self) -> &'static str {
        match self {
            Self::PreDelete => "pre-delete-hook",
            Self::PreInplace => "pre-inplace-hook",
            Self::PostInplace => "post-inplace-hook",
        }
    }

    /// The field of the spec that holds it.
    #[must_use]
    pub fn field(self) -> &'static str {
        match self {
            Self::PreDelete => "preDeleteUpdateStrategy",
            Self::PreInplace => "preInplaceUpdateStrategy",
            Self::PostInplace => "postInplaceUpdateStrategy",
        }
    }

    /// The kind that a run's label names.
    #[must_use]
    pub fn from_label(label: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.label() == label || hook_kind::old_name(kind.label()) == label)
    }
}

impl Intent {
    /// The intent as annotations hold it.
    #[must_use]
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
    #[must_use]
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
    #[must_use]
    pub fn deletes(&self) -> bool {
        matches!(self, Self::Delete | Self::Recreate(_))
    }

    /// The act in words.
    #[must_use]
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
