//! The ExecutionHook kind: runs a HookAction in containers, and records the result for each container.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::unknown_fields_schema;
use crate::time::Time;
use crate::unknown_fields::UnknownFields;

/// Most containers of one ExecutionHook: its status names each of them.
pub const MAX_CONTAINERS: usize = 1000;
/// Stands in a status for all containers of a pod that has not been found yet.
pub const ALL_CONTAINERS: &str = "*";

/// Runs a HookAction once in each selected container. Immutable, except for `terminate`.
// No rule of the CRD says so: Kubernetes 1.20 to 1.22 refuse to apply definitions with rules on the spec itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "tkex.tencent.com",
    version = "v1alpha1",
    kind = "ExecutionHook",
    doc = "Runs a HookAction in running containers, and records the result for each container. Disabled unless hook-operator runs with --execution-hooks.",
    namespaced,
    status = "ExecutionHookStatus",
    shortname = "eh",
    derive = "PartialEq",
    printcolumn(name = "ACTION", type_ = "string", json_path = ".spec.actionName"),
    printcolumn(name = "SUCCEEDED", type_ = "integer", json_path = ".status.succeeded"),
    printcolumn(name = "FAILED", type_ = "integer", json_path = ".status.failed"),
    printcolumn(name = "TOTAL", type_ = "integer", json_path = ".status.total"),
    printcolumn(
        name = "REASON",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Complete\")].reason"
    ),
    printcolumn(
        name = "MESSAGE",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Complete\")].message",
        priority = 1
    ),
    printcolumn(name = "AGE", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionHookSpec {
    /// Name of a HookAction in the same namespace. If the HookAction does not exist yet, the hook waits for it.
    #[schemars(length(min = 1, max = 253))]
    pub action_name: String,
    /// Pods and containers in which to run the action. Selected once, before the first attempt.
    pub pod_selection: PodSelection,
    /// Maximum number of containers in which the action runs at the same time. Defaults to 64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1024))]
    pub parallelism: Option<i32>,
    /// Time after which a finished hook is deleted, in seconds. Defaults to 3600.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 604_800))]
    pub ttl_seconds_after_finished: Option<i32>,
    /// Whether to terminate the hook. Failed actions are then not retried, and containers in which the action has not
    /// succeeded count as failed. Commands that are already running are not stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminate: Option<bool>,
    /// Unknown fields.
    #[serde(flatten)]
    #[schemars(schema_with = "unknown_fields_schema")]
    pub unknown: UnknownFields,
}

/// Pods and containers, by name or by label.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodSelection {
    /// Selects containers by pod name. If this is set, `podContainerSelector` is ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1000))]
    #[x_kube(merge_strategy = kube::core::ListMerge::Map(vec!["podName".into()]))]
    pub pod_container_names_list: Option<Vec<PodContainerNames>>,
    /// Selects containers by pod label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_container_selector: Option<PodContainerSelector>,
    /// Unknown fields.
    #[serde(flatten)]
    #[schemars(schema_with = "unknown_fields_schema")]
    pub unknown: UnknownFields,
}

/// Containers of one pod.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodContainerNames {
    /// Name of the pod.
    #[schemars(length(min = 1, max = 253))]
    pub pod_name: String,
    /// Names of the containers. Defaults to all containers of the pod, except for init containers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "container_names_schema")]
    pub container_names: Option<Vec<String>>,
    /// Unknown fields.
    #[serde(flatten)]
    #[schemars(schema_with = "unknown_fields_schema")]
    pub unknown: UnknownFields,
}

/// Containers of all pods that match a label selector.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodContainerSelector {
    /// Label selector for pods. Must not be empty, because an empty selector matches all pods in the namespace.
    pub pod_selector: LabelSelector,
    /// Names of the containers. Defaults to all containers of the selected pods, except for init containers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "container_names_schema")]
    pub container_list: Option<Vec<String>>,
    /// Unknown fields.
    #[serde(flatten)]
    #[schemars(schema_with = "unknown_fields_schema")]
    pub unknown: UnknownFields,
}

/// Observed state of the ExecutionHook.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionHookStatus {
    /// Generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Time at which the containers were selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// Time at which the last container succeeded or failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// Digest of the spec, excluding `terminate`, at the time the containers were selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec_digest: Option<String>,
    /// HookAction that the hook runs. If its action changes before the hook has finished, the hook fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<PinnedAction>,
    /// Number of selected containers.
    #[serde(default)]
    pub total: i32,
    /// Number of containers in which an attempt is running. Attempts waiting for a free slot do not count.
    #[serde(default)]
    pub active: i32,
    /// Number of containers in which the action succeeded.
    #[serde(default)]
    pub succeeded: i32,
    /// Number of containers in which the action failed permanently.
    #[serde(default)]
    pub failed: i32,
    /// Conditions of the ExecutionHook: `Complete` is True when every container has succeeded or failed; `Succeeded` is
    /// True when every container has succeeded, and Unknown until the hook is complete.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// State of each selected container.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hook_statuses: Vec<ContainerHookStatus>,
}

/// Identity of a HookAction.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PinnedAction {
    /// UID of the HookAction.
    pub uid: String,
    /// Generation of the HookAction when the hook started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// Digest of the `action` of the HookAction.
    pub digest: String,
}

/// State of the action in one container.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerHookStatus {
    /// Name of the pod.
    pub pod_name: String,
    /// UID of the pod. If unset, the pod has not been found yet. A replacement pod with the same name is not used.
    #[serde(default, rename = "podUID", skip_serializing_if = "Option::is_none")]
    pub pod_uid: Option<String>,
    /// Name of the container, or `*` for all containers of a pod that has not been found yet.
    pub container_name: String,
    /// Time at which the last attempt started. If unset, no attempt has started yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Time>,
    /// Whether the action succeeded; false if it failed permanently. If unset, it has not finished, or will be retried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub succeed: Option<bool>,
    /// Number of finished attempts.
    #[serde(default)]
    pub attempts: i32,
    /// Error of the last failed attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<HookError>,
}

/// Error of an attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookError {
    /// Type of the error.
    pub error_type: ErrorType,
    /// Description of the error, at most 250 bytes long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// One-word, machine-readable reason for the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Time at which the error occurred.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Time>,
}

/// Type of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ErrorType {
    /// An attempt, or all attempts together, took too long.
    Timeout,
    /// The API server or the egress policy rejected the call.
    Forbidden,
    /// The pod or the container does not exist.
    NotFound,
    /// Any other error.
    #[serde(other)]
    Error,
}

impl ExecutionHook {
    /// Returns whether the hook has finished.
    pub fn is_complete(&self) -> bool {
        let status = self.status.as_ref();
        status.is_some_and(|status| status.completion_time.is_some())
    }
}

fn container_names_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "array", "maxItems": 100, "x-kubernetes-list-type": "set",
        "items": { "type": "string", "minLength": 1, "maxLength": 63 } })
}
