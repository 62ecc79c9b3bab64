//! Order of two states of an object.

use shared_api::HookRun;

/// An object's resourceVersion. Older API servers do not guarantee an order. If a version is not a number, no
/// state counts as old, and the precondition of the next write decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version(Option<u64>);

impl Version {
    pub(crate) fn of(run: &HookRun) -> Self {
        Self::parse(run.metadata.resource_version.as_deref())
    }

    pub(crate) fn parse(resource_version: Option<&str>) -> Self {
        Self(resource_version.and_then(|text| text.parse().ok()))
    }

    pub(crate) fn is_older_than(self, other: Self) -> bool {
        matches!((self.0, other.0), (Some(this), Some(other)) if this < other)
    }
}
