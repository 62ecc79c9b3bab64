//! Direct read of the node that an approval rests on.

use std::time::Duration;

use jiff::Timestamp;
use runtime_core::clock::Now;

use super::effect::{Effect, FailedWrite};
use crate::request::{RequestError, Response};

/// How long the answer is valid, counted from the request because the answer may be slow.
const VALID_FOR: Duration = Duration::from_secs(5);

/// Fact about a node that an approval rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// The node does not exist.
    Gone,
    /// The node's condition Ready is True, since this time.
    Ready(Option<Timestamp>),
}

/// Check of a node, under way.
#[derive(Debug)]
pub(super) struct NodeCheck {
    /// Name of the node.
    pub(super) node: String,
    expected: Expected,
    /// Time of the request.
    asked: Duration,
}

impl NodeCheck {
    /// Checks that the node is gone.
    pub(super) fn is_gone(node: &str, now: Now) -> Self {
        Self::new(node, Expected::Gone, now)
    }

    /// Checks that the node's kubelet reports, and has done so since this time.
    pub(super) fn is_ready(node: &str, since: Option<Timestamp>, now: Now) -> Self {
        Self::new(node, Expected::Ready(since), now)
    }

    fn new(node: &str, expected: Expected, now: Now) -> Self {
        Self {
            node: node.to_owned(),
            expected,
            asked: now.elapsed,
        }
    }

    /// Returns the time until which the answer permits the write.
    pub(super) fn confirmed(
        self,
        answer: Result<Response, RequestError>,
    ) -> Result<Duration, Box<FailedWrite>> {
        let Self {
            node,
            expected,
            asked,
        } = self;
        let until = asked + VALID_FOR;
        let (error, effect) = match (expected, answer) {
            (Expected::Gone, Err(RequestError::Gone)) => return Ok(until),
            (Expected::Ready(since), Ok(Response::Node(facts))) => {
                if facts.ready_since.is_some() && facts.ready_since == since {
                    return Ok(until);
                }
                // The watch has yet to show that the node was not Ready.
                let effect = Effect::NodeNotReady(node, facts.ready_since);
                (RequestError::Conflict, Some(effect))
            }
            (Expected::Gone, Ok(_)) => (RequestError::Conflict, Some(Effect::NodeNotGone(node))),
            (Expected::Gone, Err(error)) => (error, Some(Effect::NodeNotGone(node))),
            (Expected::Ready(_), Ok(_) | Err(RequestError::Gone)) => {
                (RequestError::Conflict, Some(Effect::NodeNotReady(node, None)))
            }
            // Without permission to read nodes, the pod needs a verdict.
            (Expected::Ready(_), Err(error @ RequestError::Refused(_))) => {
                (error, Some(Effect::NodeNotReady(node, None)))
            }
            (Expected::Ready(_), Err(error)) => (error, None),
        };
        Err(Box::new(FailedWrite::new(error, effect)))
    }
}
