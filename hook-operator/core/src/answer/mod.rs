//! From the bytes that a provider read to a value, or the reason why there is none. Pure: no I/O.
//!
//! [`interpret_web`] and [`interpret_prometheus`] each take what was asked, the status and the bytes. Nothing here
//! knows how the bytes were fetched; conditions are judged elsewhere.

mod excerpt;
mod prometheus;
mod web;

pub use prometheus::interpret_prometheus;
pub use web::interpret_web;

use expr_conditions::Response;

use crate::value::MetricValue;

/// The longest answer that is read, after decompression. A reader hands over at most one byte more, which is how
/// the functions here know that there was more.
pub const MAX_ANSWER_BYTES: usize = 1024 * 1024;

/// What is said in the place of an answer that is not shown.
pub(crate) const HIDDEN: &str = "hidden, because the request carried a Secret; quoteAnswers: true shows it";

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

impl MeasurementFailure {
    /// A failure of a class with its sentence.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }
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
    /// The answer says that it is incomplete (Prometheus, Thanos, Mimir, `VictoriaMetrics`).
    PartialAnswer,
    /// Nothing was asked, for want of room. That is no measurement: it is tried again, and counts for nothing.
    NotAsked,
}

impl FailureKind {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::InvalidRequest,
        Self::Forbidden,
        Self::Unreachable,
        Self::Timeout,
        Self::Status,
        Self::MalformedAnswer,
        Self::PathNotFound,
        Self::QueryFailed,
        Self::PartialAnswer,
        Self::NotAsked,
    ];

    /// The word for metric labels.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidRequest => "InvalidRequest",
            Self::Forbidden => "Forbidden",
            Self::Unreachable => "Unreachable",
            Self::Timeout => "Timeout",
            Self::Status => "Status",
            Self::MalformedAnswer => "MalformedAnswer",
            Self::PathNotFound => "PathNotFound",
            Self::QueryFailed => "QueryFailed",
            Self::PartialAnswer => "PartialAnswer",
            Self::NotAsked => "NotAsked",
        }
    }
}

/// Whether a status says that the answer is what was asked for.
fn is_success(code: u16) -> bool {
    (200..300).contains(&code)
}

/// Refuses a body of which there was more than is read.
fn check_size(body: &[u8]) -> Result<(), MeasurementFailure> {
    if body.len() > MAX_ANSWER_BYTES {
        return Err(MeasurementFailure::new(
            FailureKind::MalformedAnswer,
            "the answer is larger than 1 MiB",
        ));
    }
    Ok(())
}
