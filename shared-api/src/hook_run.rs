//! The HookRun kind: one run of a hook against an endpoint, with its measurements and its verdict.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::{Argument, Metric, unknown_fields_schema};
use crate::names::hook_run_annotation::INTENT;
use crate::reason::{HookRunReason, WorkloadReason};
use crate::time::Time;
use crate::unknown_fields::UnknownFields;

/// Metrics to measure until each of them has a verdict. Only `status.phase: Successful` opens a gate.
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
    /// Metrics to measure.
    #[schemars(length(max = 100))]
    pub metrics: Vec<Metric>,
    /// Arguments whose values replace the placeholders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1000))]
    pub args: Option<Vec<Argument>>,
    /// Whether to terminate the run. Metrics without a verdict then become Inconclusive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminate: Option<bool>,
    /// Order in which metrics are measured: `Parallel` measures all metrics at once, `Ordered` starts each metric after
    /// the previous one has succeeded. Defaults to `Parallel`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Time after which the finished run is deleted, in seconds. If unset, the run is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds_after_finished: Option<i64>,
    /// Time after which a run without a verdict ends in Error, in seconds. If unset, there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<i64>,
    /// Unknown fields.
    #[serde(flatten)]
    #[schemars(schema_with = "unknown_fields_schema")]
    pub unknown: UnknownFields,
}

/// Measurements and verdict of the run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookRunStatus {
    /// Verdict of the run, or its progress.
    #[serde(default, skip_serializing_if = "Phase::is_unset")]
    pub phase: Phase,
    /// Explanation of the phase, for example with the value, the condition or the HTTP status code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// One-word, machine-readable reason for the phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Time at which the operator started the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// Time at which the run reached its final phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Time>,
    /// Generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// One result for each started metric, in the order of the spec.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metric_results: Vec<MetricResult>,
}

/// Measurements and verdict of one metric.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetricResult {
    /// Name of the metric.
    pub name: String,
    /// Verdict of the metric, or its progress. A final phase never changes.
    #[serde(default, skip_serializing_if = "Phase::is_unset")]
    pub phase: Phase,
    /// Explanation of the phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The 10 most recent measurements, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measurements: Vec<Measurement>,
    /// Number of measurements that ended Successful, Failed or Inconclusive, not counting errors.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub count: i64,
    /// Number of measurements that ended Successful.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub successful: i64,
    /// Number of measurements that ended Failed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed: i64,
    /// Number of measurements that ended Inconclusive.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub inconclusive: i64,
    /// Number of measurements that ended in Error.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub error: i64,
    /// Current number of consecutive errors.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub consecutive_error: i64,
    /// Current number of consecutive successes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub consecutive_successful: i64,
}

/// A single measurement.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Measurement {
    /// Outcome of the measurement: Successful, Failed, Inconclusive or Error.
    #[serde(default, skip_serializing_if = "Phase::is_unset")]
    pub phase: Phase,
    /// One-word, machine-readable reason why no condition decided the phase. Unset if a condition decided it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Explanation of the phase. Unset if the value alone explains it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Time at which the request was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// Time at which the response was evaluated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
    /// Never set; kept for compatibility with the original operator's API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume_at: Option<Time>,
    /// Measured value as text, truncated to 1 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// Number of consecutive errors of a metric that are reported. The default of `consecutiveErrorLimit` ends a run at the
/// same number.
pub const REPORTED_ERRORS: i64 = 5;

impl HookRunStatus {
    /// Returns the trouble of an unfinished run, as a reason of its workload.
    #[must_use]
    pub fn trouble(&self) -> Option<WorkloadReason> {
        let reason = HookRunReason::named(self.reason.as_deref()?)?;
        reason.trouble().filter(|_| !self.phase.is_final())
    }

    /// Returns the metric with the most consecutive errors, among those without a verdict whose newest measurement is
    /// an error. From [`REPORTED_ERRORS`] on, their number does not count: of several such metrics, always the same one
    /// is returned.
    #[must_use]
    pub fn erroring_metric(&self) -> Option<&MetricResult> {
        let erroring = self
            .metric_results
            .iter()
            .filter(|result| result.last_error().is_some());
        // Of equals, the first in the order of the spec.
        erroring
            .rev()
            .max_by_key(|result| result.consecutive_error.min(REPORTED_ERRORS))
    }
}

impl MetricResult {
    /// Returns the newest measurement if it is an error and the metric has no verdict.
    #[must_use]
    pub fn last_error(&self) -> Option<&Measurement> {
        let last = self.measurements.last().filter(|_| !self.phase.is_final())?;
        (last.phase == Phase::Error).then_some(last)
    }
}

/// State of a run, a metric or a measurement. Unknown text parses as [`Phase::Unset`], so that it can never
/// count as a success.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(from = "String", into = "&'static str")]
pub enum Phase {
    /// Not started, or unknown.
    #[default]
    Unset,
    /// Accepted, not started.
    Pending,
    /// Started, no verdict yet.
    Running,
    /// Measured, with a good result.
    Successful,
    /// Measured, with a bad result.
    Failed,
    /// Could not be measured.
    Error,
    /// Measured, with a result that is neither good nor bad; or ended before a verdict.
    Inconclusive,
}

impl Phase {
    /// Final phases, best first. The phase of a run is the worst among its metrics.
    pub const FINAL: [Self; 4] = [Self::Successful, Self::Inconclusive, Self::Error, Self::Failed];

    /// Returns a rank that grows with the badness of the phase. Phases that are not final rank worst.
    pub fn badness(self) -> usize {
        let place = Self::FINAL.iter().position(|known| *known == self);
        place.unwrap_or(Self::FINAL.len())
    }

    /// Returns whether this phase never changes again.
    pub fn is_final(self) -> bool {
        Self::FINAL.contains(&self)
    }

    /// Returns whether the phase is unset. serde omits an unset phase.
    pub fn is_unset(&self) -> bool {
        *self == Self::Unset
    }

    /// Returns the word that the API uses.
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

/// Returns whether a run of a workload has lost its owner: a backup was restored without owners, or the workload was
/// deleted with `--cascade=orphan`. gamedeployment-operator alone sets [`INTENT`], in the request that also sets the
/// controller, and gives no existing run an owner. So no workload waits for the verdict of such a run.
#[must_use]
pub fn lacks_owner(metadata: &ObjectMeta) -> bool {
    let notes = metadata.annotations.as_ref();
    let is_of_workload = notes.is_some_and(|notes| notes.contains_key(INTENT));
    let mut owners = metadata.owner_references.iter().flatten();
    is_of_workload && !owners.any(|owner| owner.controller == Some(true))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_run_of_a_workload_can_lack_its_owner() {
        let owner = |controller: bool| json!([{ "apiVersion": "v1", "kind": "Game", "name": "arena", "uid": "1", "controller": controller }]);
        let intent = json!({ (INTENT): "delete" });
        let table = [
            (json!({}), false),
            (json!({ "annotations": { "note": "by hand" } }), false),
            (json!({ "labels": { "hookrun-type": "pre-delete-step" } }), false),
            (json!({ "annotations": intent }), true),
            (json!({ "annotations": { (INTENT): "" } }), true),
            (json!({ "annotations": intent, "ownerReferences": [] }), true),
            (
                json!({ "annotations": intent, "ownerReferences": owner(false) }),
                true,
            ),
            (
                json!({ "annotations": intent, "ownerReferences": owner(true) }),
                false,
            ),
            (json!({ "ownerReferences": owner(true) }), false),
        ];
        for (metadata, wanted) in table {
            let read: ObjectMeta = serde_json::from_value(metadata.clone()).unwrap();
            assert_eq!(lacks_owner(&read), wanted, "{metadata}");
        }
    }

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
