//! Turns the bytes that a provider read into a value, or into the reason why there is none. Pure: no I/O.
//!
//! [`interpret_web`] and [`interpret_prometheus`] each take the request, the response's head and the bytes. This
//! module does not know how the bytes were fetched and does not judge conditions.

mod command;
mod excerpt;
mod job;
mod json_or_text;
mod object;
mod prometheus;
mod web;

pub use command::{
    KEPT_OF_STREAM, RunningContainer, Transcript, check_end, check_same_container, interpret_command,
    interpret_stdout, running_container,
};
pub use job::{JobEnd, interpret_job, interpret_message, pod_state};
pub use object::{annotated, interpret_fields, interpret_object, pod_uid};
pub use prometheus::interpret_prometheus;
pub use web::{check_status, interpret_web};

use std::time::Duration;

use expr_conditions::{Origin, Response};
use serde_json::Value;
pub use shared_api::reason::MeasurementReason;

use crate::value::MetricValue;

/// Longest answer that is read, after decompression. A reader passes at most one byte more, which shows that
/// the answer was longer.
pub const MAX_ANSWER_BYTES: usize = 1024 * 1024;

/// Text shown instead of a hidden answer.
pub(crate) const HIDDEN: &str = "hidden because it may contain a Secret; set quoteAnswers: true to show it";

/// Head of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerHead {
    /// HTTP status code.
    pub code: u16,
    /// Time from the first byte sent to the last byte read.
    pub latency: Duration,
    /// Declared kind of the body.
    pub content_type: ContentType,
}

impl AnswerHead {
    fn origin(self) -> Origin {
        Origin::Exchange(Response {
            code: self.code,
            latency: self.latency,
        })
    }
}

/// Kind of body that the Content-Type of an answer declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentType {
    /// `application/json`, `text/json` or `…+json`.
    Json,
    /// Anything else, or nothing.
    Other,
}

impl ContentType {
    /// Parses a Content-Type header.
    pub fn parse(header: &[u8]) -> Self {
        let essence = header.split(|byte| *byte == b';').next().unwrap_or_default();
        let essence = essence.trim_ascii().to_ascii_lowercase();
        if essence.ends_with(b"/json") || essence.ends_with(b"+json") {
            Self::Json
        } else {
            Self::Other
        }
    }
}

/// Response of a provider.
#[derive(Debug, Clone, PartialEq)]
pub enum ProviderResponse {
    /// Value to judge.
    Value {
        /// Value that conditions call `result`.
        result: MetricValue,
        /// Exchange or Job that returned the value; `None` in local evaluation without one.
        origin: Option<Origin>,
    },
    /// Valid answer without data: an empty vector, or an empty list, object or text, as the whole answer or as
    /// the part that a path finds.
    NoData {
        /// Description of the missing data.
        message: String,
        /// The empty value (`[]`, `{}`, `""`), for conditions that handle emptiness themselves.
        result: MetricValue,
        /// Exchange or Job that returned the value.
        origin: Option<Origin>,
    },
    /// Verdict that no condition judges: a Job or command that failed or whose result nothing judges, fields of an
    /// object that differ from their values or that nothing else judges.
    Decided {
        /// Whether the measurement is Successful; otherwise it is Failed.
        successful: bool,
        /// Object, Job or command that was measured, and the outcome.
        message: String,
        /// Value that was compared.
        value: Option<MetricValue>,
    },
}

/// Reason why a measurement has no value. The word is for statuses, metric labels and traces; the message is for
/// users.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct MeasurementFailure {
    /// Reason, in a word.
    pub kind: MeasurementReason,
    /// Sentence that names the request and the answer, without credentials.
    pub message: String,
}

impl MeasurementFailure {
    /// Creates a failure from its reason and message.
    pub fn new(kind: MeasurementReason, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }
}

/// Returns the kind of an empty value; `None` if there is something to judge.
fn empty(value: &Value) -> Option<&'static str> {
    match value {
        Value::String(text) if text.trim().is_empty() => Some("an empty string"),
        Value::Array(items) if items.is_empty() => Some("an empty list"),
        Value::Object(members) if members.is_empty() => Some("an empty object"),
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => None,
    }
}

/// Returns a value to judge, or the message about an empty one.
fn to_judge(value: Value, origin: Option<Origin>, no_data: impl FnOnce(&str) -> String) -> ProviderResponse {
    let empty = empty(&value);
    let result = MetricValue::Json(value);
    match empty {
        Some(kind) => ProviderResponse::NoData {
            message: no_data(kind),
            result,
            origin,
        },
        None => ProviderResponse::Value { result, origin },
    }
}

/// Returns whether the status is 2xx.
fn is_success(code: u16) -> bool {
    (200..300).contains(&code)
}

fn malformed(message: impl Into<String>) -> MeasurementFailure {
    MeasurementFailure::new(MeasurementReason::MalformedAnswer, message)
}

/// Rejects a body that is longer than the limit.
fn check_size(body: &[u8]) -> Result<(), MeasurementFailure> {
    if body.len() > MAX_ANSWER_BYTES {
        return Err(malformed("the response is larger than 1 MiB"));
    }
    Ok(())
}
