//! What a driver takes in.

use std::time::Duration;

use crate::news::News;
use crate::request::{Answer, CallError, RequestId};

/// What has happened.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "inputs are taken in one at a time, never kept"
)]
pub enum Input {
    /// A watch shows something.
    News(News),
    /// Since when the watch of nodes has been healthy without a break, by the clock that nobody sets; none while it is
    /// broken, or nodes are not watched.
    NodesWatched(Option<Duration>),
    /// A request was answered, or was not.
    Answered(RequestId, Result<Answer, CallError>),
}
