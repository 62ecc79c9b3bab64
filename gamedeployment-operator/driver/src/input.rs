//! Inputs of the driver.

use std::time::Duration;

use crate::request::{RequestError, RequestId, Response};
use crate::watch_event::WatchEvent;

/// Input of the driver.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "inputs are taken in one at a time, never kept"
)]
pub enum DriverInput {
    /// Event of a watch.
    Watch(WatchEvent),
    /// Time since which the watch of nodes has been healthy without a break, on the monotonic clock; `None`
    /// while it is broken or nodes are not watched.
    NodesWatched(Option<Duration>),
    /// Result of a request.
    Response(RequestId, Result<Response, RequestError>),
}
