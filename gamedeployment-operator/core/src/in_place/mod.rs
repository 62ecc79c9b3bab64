//! Updates without a new pod: whether they are possible, what to write, and when they are done.
//!
//! Possible are new images of the app's containers, and new labels and annotations of the template. Nothing else of a
//! running pod can be changed, and nothing else is tried. Decides from two templates and from what a pod's status
//! says; writes nothing.

mod change;
mod progress;

#[cfg(test)]
mod change_tests;
#[cfg(test)]
mod progress_tests;

pub use change::{Change, MetadataChange, NotInPlace, change};
pub use progress::{ContainerMark, ContainerNow, NEVER_SO_LATE, Progress, SETTLE, finished};
