//! The HookTemplate kind: metrics and arguments from which HookRuns are created.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::{Argument, Metric, unknown_fields_schema};
use crate::unknown_fields::UnknownFields;

/// Metrics that decide whether a pod may be deleted or updated. A HookTemplate takes no measurements itself; HookRuns
/// are created from it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "tkex.tencent.com",
    version = "v1alpha1",
    kind = "HookTemplate",
    doc = "Metrics, conditions and arguments that decide whether a pod may be deleted or updated. A HookTemplate takes no measurements itself; HookRuns are created from it.",
    namespaced,
    status = "HookTemplateStatus",
    shortname = "ht",
    printcolumn(
        name = "VALID",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Valid\")].status"
    ),
    printcolumn(name = "AGE", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct HookTemplateSpec {
    /// Metrics to measure.
    #[schemars(length(max = 100))]
    pub metrics: Vec<Metric>,
    /// Arguments for placeholders. The creator of a HookRun must supply a value for each argument that has none here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1000))]
    pub args: Option<Vec<Argument>>,
    /// Order in which metrics are measured: `Parallel` measures all metrics at once, `Ordered` starts each metric after
    /// the previous one has succeeded. Defaults to `Parallel`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "policy_schema")]
    pub policy: Option<String>,
    /// Time after which a finished HookRun is deleted, in seconds. Ignored for HookRuns of a GameDeployment, which
    /// gamedeployment-operator deletes when it no longer needs them. If unset, the HookRun is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds_after_finished: Option<i64>,
    /// Time after which a HookRun without a verdict ends in Error, in seconds. If unset, there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<i64>,
    /// Unknown fields.
    #[serde(flatten)]
    #[schemars(schema_with = "unknown_fields_schema")]
    pub unknown: UnknownFields,
}

impl HookTemplateSpec {
    /// Returns the unknown fields that runs of this template have too, so that a misplaced condition makes them
    /// invalid. `terminate` is unknown in a template only: it must not terminate the runs.
    pub fn unknown_of_runs(&self) -> UnknownFields {
        self.unknown.without("terminate")
    }
}

/// Result of validating the template.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookTemplateStatus {
    /// Generation of the spec that the conditions describe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Conditions of the HookTemplate: `Valid` reports whether every condition, path, placeholder and duration in the
    /// template is valid.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

fn policy_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "string", "enum": ["Parallel", "Ordered"] })
}
