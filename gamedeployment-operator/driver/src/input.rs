//! Inputs of the driver.

use std::time::Duration;

use crate::news::News;
use crate::request::{Answer, CallError, RequestId};

/// Input of the driver.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "inputs are taken in one at a time, never kept"
)]
pub enum Input {
    /// Event of a watch.
    News(News),
    /// Time since which the watch of nodes has been healthy without a break, on the monotonic clock; `None`
    /// while it is broken or nodes are not watched.
    NodesWatched(Option<Duration>),
    /// Result of a request.
    Answered(RequestId, Result<Answer, CallError>),
}
