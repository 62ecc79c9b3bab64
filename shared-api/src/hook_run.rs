//! The HookRun kind: one question put to an endpoint, with its measurements and its verdict.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::{Argument, Metric};
use crate::time::Time;

/// Measures its metrics until they have a verdict. Only `status.phase: Successful` opens a gate.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "tkex.tencent.com",
    version = "v1alpha1",
    kind = "HookRun",
    doc = "One run of a hook: measures its metrics until they have a verdict. Only the phase Successful opens a gate.",
    namespaced,
    status = "HookRunStatus",
    shortname = "hr",
    derive = "PartialEq",
    printcolumn(name = "PHASE", type_ = "string", json_path = ".status.phase"),
    printcolumn(
        name = "POD",
        type_ = "string",
        json_path = ".spec.args[?(@.name==\"PodName\")].value",
        priority = 1
    ),
    printcolumn(name = "REASON", type_ = "string", json_path = ".status.reason", priority = 1),
    printcolumn(
        name = "MESSAGE",
        type_ = "string",
        json_path = ".status.message",
        priority = 1
    ),
    printcolumn(name = "AGE", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct HookRunSpec {
    /// What to measure.
    #[schemars(length(max = 100))]
    pub metrics: Vec<Metric>,
    /// Values for placeholders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1000))]
    pub args: Option<Vec<Argument>>,
    /// Ends the run: metrics without a verdict become Inconclusive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminate: Option<bool>,
    /// Parallel (the default): all metrics at once. Ordered: each starts when the one before it is Successful.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Seconds after which the finished run is deleted. Unset: it is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds_after_finished: Option<i64>,
    /// Seconds after which a run that has no verdict ends in Error. Unset: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<i64>,
}

/// Measurements and verdict.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookRunStatus {
    /// The verdict, or where the run stands.
    #[serde(default, skip_serializing_if = "Phase::is_unset")]
    pub phase: Phase,
    /// Why the phase is what it is: value, condition, HTTP code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The class of `message`, one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When the operator took the run up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// When the run reached its final phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Time>,
    /// The generation of the spec that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// One entry for each metric that has started, in the spec's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metric_results: Vec<MetricResult>,
}

/// What was measured for one metric.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetricResult {
    /// The metric's name.
    pub name: String,
    /// The metric's verdict, or where it stands. A final phase never changes.
    #[serde(default, skip_serializing_if = "Phase::is_unset")]
    pub phase: Phase,
    /// Why the phase is what it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The newest 10 measurements, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measurements: Vec<Measurement>,
    /// Measurements that ended Successful, Failed or Inconclusive; errors do not count.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub count: i64,
    /// Measurements that ended Successful.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub successful: i64,
    /// Measurements that ended Failed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed: i64,
    /// Measurements that ended Inconclusive.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub inconclusive: i64,
    /// Measurements that ended in Error.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub error: i64,
    /// Errors since the last measurement that was none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub consecutive_error: i64,
    /// Successes since the last measurement that was none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub consecutive_successful: i64,
}

/// One measurement.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Measurement {
    /// Successful, Failed, Inconclusive or Error.
    #[serde(default, skip_serializing_if = "Phase::is_unset")]
    pub phase: Phase,
    /// Why the phase is what it is; none where the value says it all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When the request was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// When the answer was judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
    /// Written by no operator of today; kept from the original's API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume_at: Option<Time>,
    /// The value as text, cut at 1 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// Where a run, a metric or a measurement stands. Text that is none of the known phases reads as [`Phase::Unset`]:
/// nothing that is not understood can count as a success.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(from = "String", into = "&'static str")]
pub enum Phase {
    /// Not taken up yet, or not understood.
    #[default]
    Unset,
    /// Known, not started.
    Pending,
    /// Started, no verdict.
    Running,
    /// Measured, and good.
    Successful,
    /// Measured, and bad.
    Failed,
    /// Could not be measured.
    Error,
    /// Measured, neither good nor bad; or ended before a verdict.
    Inconclusive,
}

impl Phase {
    /// The final phases, best first: the order in which a run takes the worst of its metrics.
    pub const FINAL: [Self; 4] = [Self::Successful, Self::Inconclusive, Self::Error, Self::Failed];

    /// The greater, the worse; a phase that is not final is worse than any that is.
    pub fn badness(self) -> usize {
        let place = Self::FINAL.iter().position(|known| *known == self);
        place.unwrap_or(Self::FINAL.len())
    }

    /// Whether this phase never changes again.
    pub fn is_final(self) -> bool {
        Self::FINAL.contains(&self)
    }

    /// For serde: an unset phase is not written.
    pub fn is_unset(&self) -> bool {
        *self == Self::Unset
    }

    /// The word that the API uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unset => "",
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Successful => "Successful",
            Self::Failed => "Failed",
            Self::Error => "Error",
            Self::Inconclusive => "Inconclusive",
        }
    }
}

impl std::fmt::Display for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<Phase> for &'static str {
    fn from(phase: Phase) -> Self {
        phase.as_str()
    }
}

impl From<String> for Phase {
    fn from(text: String) -> Self {
        [
            Self::Pending,
            Self::Running,
            Self::Successful,
            Self::Failed,
            Self::Error,
            Self::Inconclusive,
        ]
        .into_iter()
        .find(|phase| phase.as_str() == text)
        .unwrap_or(Self::Unset)
    }
}

impl JsonSchema for Phase {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Phase".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string" })
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_that_is_not_understood_is_not_a_success() {
        for text in ["\"\"", "\"successful\"", "\"Success\"", "\"Succeeded\""] {
            assert_eq!(
                serde_json::from_str::<Phase>(text).unwrap(),
                Phase::Unset,
                "{text}"
            );
        }
        assert_eq!(
            serde_json::from_str::<Phase>("\"Successful\"").unwrap(),
            Phase::Successful
        );
    }

    #[test]
    fn a_status_of_the_original_reads_and_writes_back_unchanged() {
        let original = serde_json::json!({
            "metricResults": [{
                "count": 1,
                "measurements": [{
                    "finishedAt": "2020-11-20T01:46:55Z", "phase": "Successful",
                    "startedAt": "2020-11-20T01:46:55Z", "value": "32"
                }],
                "name": "webtest", "phase": "Running", "successful": 1
            }],
            "phase": "Running",
            "startedAt": "2020-11-20T01:46:55Z"
        });
        let status: HookRunStatus = serde_json::from_value(original.clone()).unwrap();
        assert_eq!(serde_json::to_value(status).unwrap(), original);
    }
}
