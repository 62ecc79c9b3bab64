//! Which of two states of a run is the older one.

use shared_api::HookRun;

/// A run's resourceVersion. Older API servers promise clients no order of these; where one is not a number nothing
/// counts as old, and the precondition of the next write settles it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version(Option<u64>);

impl Version {
    pub(crate) fn of(run: &HookRun) -> Self {
        Self(
            run.metadata
                .resource_version
                .as_deref()
                .and_then(|text| text.parse().ok()),
        )
    }

    pub(crate) fn is_before(self, other: Self) -> bool {
        matches!((self.0, other.0), (Some(this), Some(other)) if this < other)
    }
}
