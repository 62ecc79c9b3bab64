//! Builds metrics for tests, and reads their results.

use serde_json::{Value, json};
use shared_api::Phase;
use shared_api::hook_run::MetricResult;
use shared_api::time::Time;

/// Builds a metric that queries a URL.
pub fn web(name: &str, url: &str, more: Value) -> Value {
    let mut metric = json!({ "name": name, "provider": { "web": { "url": url, "jsonPath": "{$.age}" } } });
    merge(&mut metric, more);
    metric
}

/// Makes the first error of the metric final.
pub fn at_once(mut metric: Value) -> Value {
    merge(&mut metric, json!({ "consecutiveErrorLimit": 0 }));
    metric
}

/// Merges fields recursively.
pub fn merge(target: &mut Value, more: Value) {
    match (target, more) {
        (Value::Object(target), Value::Object(more)) => {
            for (key, value) in more {
                merge(target.entry(key).or_insert(Value::Null), value);
            }
        }
        (target, more) => *target = more,
    }
}

/// Returns the phases of a metric's measurements, oldest first.
pub fn phases(result: &MetricResult) -> Vec<Phase> {
    result
        .measurements
        .iter()
        .map(|measurement| measurement.phase)
        .collect()
}

/// Returns the values of a metric's measurements, oldest first.
pub fn values(result: &MetricResult) -> Vec<&str> {
    result
        .measurements
        .iter()
        .map(|measurement| measurement.value.as_deref().unwrap_or_default())
        .collect()
}

/// Returns the milliseconds between two recorded times; `None` if either is missing.
pub fn milliseconds(from: Option<Time>, to: Option<Time>) -> Option<i128> {
    from.zip(to)
        .map(|(from, to)| to.timestamp().duration_since(from.timestamp()).as_millis())
}
