//! What one measurement yields: the value that conditions call `result`, and the facts of the exchange.

use std::time::Duration;

use serde_json::Value;

/// The value bound to `result` in a condition.
#[derive(Debug, Clone, PartialEq)]
pub enum MetricValue {
    /// A JSON value found by `jsonPath` in the answer of a web endpoint; integers are exact.
    Json(Value),
    /// A Prometheus scalar; may be NaN or infinite.
    Scalar(f64),
    /// The samples of a Prometheus instant vector, in server order; may hold NaN or infinities.
    Vector(Vec<f64>),
}

/// Facts of the exchange, readable in conditions as `response.code` and `response.latencyMs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Response {
    /// The HTTP status code.
    pub code: u16,
    /// From the first byte sent to the last byte read.
    pub latency: Duration,
}
