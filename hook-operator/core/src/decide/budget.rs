//! Size limit of a status. A status that etcd rejects would block its run for good, so texts and old
//! measurements give way to counters.

use shared_api::hook_run::{HookRunStatus, Measurement, MetricResult};

use crate::judge::KEPT_BYTES;
use crate::tally::KEPT_MEASUREMENTS;
use crate::value::cut;

/// Longest status, in bytes of JSON. etcd accepts 1.5 MiB by default; see [`crate::resolve`] for the spec's
/// part.
pub const MAX_STATUS_BYTES: usize = 512 * 1024;

/// Measurements kept for each metric, and bytes kept of each text. The first pair under which the status fits
/// applies. Every run fits under the last pair, even with JSON escapes.
const STEPS: [(usize, usize); 5] = [
    (KEPT_MEASUREMENTS, KEPT_BYTES),
    (KEPT_MEASUREMENTS, 256),
    (3, 256),
    (1, 256),
    (1, 64),
];

/// Shortens texts and drops old measurements until the status fits. Counters and phases stay.
pub(super) fn fit(status: &mut HookRunStatus) {
    for (measurements, bytes) in STEPS {
        if size(status) <= MAX_STATUS_BYTES {
            return;
        }
        for result in &mut status.metric_results {
            shorten(result, measurements, bytes);
        }
    }
}

fn size(status: &HookRunStatus) -> usize {
    serde_json::to_vec(status).map_or(0, |text| text.len())
}

fn shorten(result: &mut MetricResult, measurements: usize, bytes: usize) {
    let shorten = |text: &mut Option<String>| {
        if let Some(text) = text {
            *text = cut(text, bytes);
        }
    };
    let surplus = result.measurements.len().saturating_sub(measurements);
    result.measurements.drain(..surplus);
    shorten(&mut result.message);
    for Measurement { message, value, .. } in &mut result.measurements {
        shorten(message);
        shorten(value);
    }
}
