//! Hooks of a pod's life cycle, as configured in the spec.

use shared_api::names::hook_kind;

/// Hooks of a pod's life cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HookKind {
    /// Runs before a pod is deleted; also before an in-place update if no `PreInplace` hook is configured.
    PreDelete,
    /// Runs before a pod is updated in place; also before an update recreates it if no `PreDelete` hook is
    /// configured.
    PreInplace,
    /// Runs after a pod was updated in place.
    PostInplace,
}

impl HookKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::PreDelete, Self::PreInplace, Self::PostInplace];

    /// Value of the run's label.
    pub fn label(self) -> &'static str {
        match self {
            Self::PreDelete => hook_kind::PRE_DELETE,
            Self::PreInplace => hook_kind::PRE_INPLACE,
            Self::PostInplace => hook_kind::POST_INPLACE,
        }
    }

    /// Name of the hook in commands and metrics.
    pub fn word(self) -> &'static str {
        match self {
            Self::PreDelete => "pre-delete",
            Self::PreInplace => "pre-inplace",
            Self::PostInplace => "post-inplace",
        }
    }

    /// Prefix of the run's name.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::PreDelete => "pre-delete-hook",
            Self::PreInplace => "pre-inplace-hook",
            Self::PostInplace => "post-inplace-hook",
        }
    }

    /// Field of the spec that configures it.
    pub fn field(self) -> &'static str {
        match self {
            Self::PreDelete => "preDeleteUpdateStrategy",
            Self::PreInplace => "preInplaceUpdateStrategy",
            Self::PostInplace => "postInplaceUpdateStrategy",
        }
    }

    /// Parses the value of a run's label, in the current or the old spelling.
    pub fn from_label(label: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|kind| hook_kind::is_label_of(kind.label(), label))
    }
}
