//! From the bytes that a provider read to a value, or the reason why there is none. Pure: no I/O.

use crate::value::{MetricValue, Response};

/// What a provider brought back.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// A value to judge.
    Value {
        /// What conditions call `result`.
        result: MetricValue,
        /// The facts of the exchange; none where no exchange took place (local evaluation).
        response: Option<Response>,
    },
    /// A proper answer that holds nothing: an empty vector, or a path that matched nothing in an empty list.
    NoData {
        /// What was empty, in words.
        message: String,
        /// `[]`, for conditions that handle emptiness themselves.
        result: MetricValue,
        /// The facts of the exchange.
        response: Option<Response>,
    },
}

/// Why a measurement has no value. The class is a metric label and an event's word; the message is for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct MeasurementFailure {
    /// The class of the failure.
    pub kind: FailureKind,
    /// One sentence that names what was asked and what came back; holds no credentials.
    pub message: String,
}

/// The classes of [`MeasurementFailure`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// A placeholder, secret or config map could not be resolved, or a rendered value is not usable.
    InvalidRequest,
    /// The egress policy forbids the address.
    Forbidden,
    /// Name resolution, connection or TLS failed.
    Unreachable,
    /// The answer took longer than the timeout.
    Timeout,
    /// The answer's status is not 2xx (or a redirect that is not followed).
    Status,
    /// The answer is too large, not JSON, or not of the expected shape.
    MalformedAnswer,
    /// `jsonPath` found nothing.
    PathNotFound,
    /// The answer says that the query failed (Prometheus).
    QueryFailed,
}
