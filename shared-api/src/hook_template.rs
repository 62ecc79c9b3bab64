//! The HookTemplate kind: metrics and arguments that HookRuns are made from.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::{Argument, Metric};

/// What to measure before a pod may go. A HookTemplate measures nothing by itself: runs are copies of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "tkex.tencent.com",
    version = "v1alpha1",
    kind = "HookTemplate",
    doc = "What to ask before a pod may be deleted or updated: metrics, conditions and arguments. It measures nothing by itself; HookRuns are made from it.",
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
    /// What to measure.
    #[schemars(length(max = 100))]
    pub metrics: Vec<Metric>,
    /// Declared arguments; one without a value must be supplied by whoever creates a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1000))]
    pub args: Option<Vec<Argument>>,
    /// Parallel (the default): all metrics at once. Ordered: each starts when the one before it is Successful.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "policy_schema")]
    pub policy: Option<String>,
    /// Seconds after which a finished run is deleted. It does not apply to the runs of a GameDeployment, which
    /// gamedeployment-operator deletes when they are no longer needed. Unset: it is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds_after_finished: Option<i64>,
    /// Seconds after which a run that has no verdict ends in Error. Unset: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<i64>,
}

/// What the operator found on reading the template.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookTemplateStatus {
    /// The generation that the conditions speak of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Valid`: every condition, path, placeholder and duration of the template compiles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

fn policy_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "string", "enum": ["Parallel", "Ordered"] })
}
