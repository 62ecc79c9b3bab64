//! In-place updates: whether they are possible, what to write, and when they are done.
//!
//! An in-place update can change images of app containers, and labels and annotations of the template.
//! Any other difference rules out an in-place update. This module decides from two templates and a pod's
//! status, and writes nothing.

#[allow(clippy::wildcard_enum_match_arm, reason = "JSON has no other kinds of values")]
mod change;
mod progress;

#[cfg(test)]
mod change_tests;
#[cfg(test)]
mod progress_tests;

pub use change::{Change, MetadataChange, NotInPlace, change};
pub use progress::{ContainerMark, ContainerNow, KUBELET_DEADLINE, Progress, STATUS_SETTLE_TIME, finished};
