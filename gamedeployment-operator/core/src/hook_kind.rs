//! The hooks of a pod's life, as the spec sets them.

use shared_api::names::hook_kind;

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
    pub fn label(self) -> &'static str {
        match self {
            Self::PreDelete => hook_kind::PRE_DELETE,
            Self::PreInplace => hook_kind::PRE_INPLACE,
            Self::PostInplace => hook_kind::POST_INPLACE,
        }
    }

    /// The hook as people and metrics name it.
    pub fn word(self) -> &'static str {
        match self {
            Self::PreDelete => "pre-delete",
            Self::PreInplace => "pre-inplace",
            Self::PostInplace => "post-inplace",
        }
    }

    /// The beginning of the run's name.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::PreDelete => "pre-delete-hook",
            Self::PreInplace => "pre-inplace-hook",
            Self::PostInplace => "post-inplace-hook",
        }
    }

    /// The field of the spec that holds it.
    pub fn field(self) -> &'static str {
        match self {
            Self::PreDelete => "preDeleteUpdateStrategy",
            Self::PreInplace => "preInplaceUpdateStrategy",
            Self::PostInplace => "postInplaceUpdateStrategy",
        }
    }

    /// The kind that a run's label names.
    pub fn from_label(label: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.label() == label || hook_kind::old_name(kind.label()) == label)
    }
}
