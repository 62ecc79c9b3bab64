//! The GameDeployment kind: a workload that deletes or updates a pod only after the pod's hook succeeds.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::hook_run::Phase;
use crate::time::Time;

/// Desired state of a set of game server pods that is scaled and updated without disconnecting players.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "tkex.tencent.com",
    version = "v1alpha1",
    kind = "GameDeployment",
    doc = "A set of game server pods. A pod is deleted or updated only after its hook was Successful.",
    namespaced,
    status = "GameDeploymentStatus",
    shortname = "gd",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.labelSelector"
    ),
    printcolumn(name = "DESIRED", type_ = "integer", json_path = ".spec.replicas"),
    printcolumn(name = "UPDATED", type_ = "integer", json_path = ".status.updatedReplicas"),
    printcolumn(
        name = "UPDATED_READY",
        type_ = "integer",
        json_path = ".status.updatedReadyReplicas"
    ),
    printcolumn(name = "READY", type_ = "integer", json_path = ".status.readyReplicas"),
    printcolumn(name = "TOTAL", type_ = "integer", json_path = ".status.replicas"),
    printcolumn(name = "STATUS", type_ = "string", json_path = ".status.phase", priority = 1),
    printcolumn(name = "REASON", type_ = "string", json_path = ".status.reason", priority = 1),
    printcolumn(
        name = "HOOK_PENDING",
        type_ = "integer",
        json_path = ".status.hookPendingReplicas",
        priority = 1
    ),
    printcolumn(name = "AGE", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct GameDeploymentSpec {
    /// Number of desired pods. Unset: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "replicas_schema")]
    pub replicas: Option<i32>,
    /// Label selector for the pods of this workload. It must match the template's labels.
    pub selector: LabelSelector,
    /// Template of the pods to create. It is kept as written, whatever the version of the API server.
    #[schemars(schema_with = "template_schema")]
    pub template: Value,
    /// Strategy for selecting and creating pods when `replicas` changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale_strategy: Option<ScaleStrategy>,
    /// Strategy for updating existing pods to a new template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_strategy: Option<UpdateStrategy>,
    /// Hook that runs before a pod is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre_delete_update_strategy: Option<HookStrategy>,
    /// Hook that runs before a pod is updated in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre_inplace_update_strategy: Option<HookStrategy>,
    /// Hook that runs after a pod is updated in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post_inplace_update_strategy: Option<HookStrategy>,
    /// Number of unused revisions to keep. Unset: 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision_history_limit: Option<i32>,
    /// Seconds that a pod must be ready before it counts as available. Unset: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_ready_seconds: Option<i32>,
    /// Ignored. Accepted because manifests of the original operator set it and kubectl rejects unknown
    /// fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_name: Option<String>,
    /// Omits the readiness gate `InPlaceUpdateReady` from new pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disable_readiness_gate: Option<bool>,
}

/// Strategy for selecting and creating pods when `replicas` changes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScaleStrategy {
    /// Names of the pods to delete first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods_to_delete: Option<Vec<String>>,
    /// Maximum number of new pods that have not become ready yet; a number or a percentage of `replicas`.
    /// More pods are created as these become ready. Unset: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "int_or_percent_schema")]
    pub create_batch: Option<IntOrString>,
}

/// Strategy for updating existing pods to a new template.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateStrategy {
    /// Type of update: `RollingUpdate` (the default), `InplaceUpdate`, `HotPatchUpdate` or `OnDelete`.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "update_type_schema")]
    pub type_: Option<String>,
    /// Number of pods that stay at old revisions; a number or a percentage of `replicas`. Unset: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "int_or_percent_schema")]
    pub partition: Option<IntOrString>,
    /// Maximum number of pods that may be unavailable during an update; a number or a percentage of
    /// `replicas`. Unset: 20%.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "int_or_percent_schema")]
    pub max_unavailable: Option<IntOrString>,
    /// Maximum number of pods above `replicas` during an update; a number or a percentage of `replicas`.
    /// Unset: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "int_or_percent_schema")]
    pub max_surge: Option<IntOrString>,
    /// Pauses updates. Pods are still created and replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// Canary rollout of a new template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<Canary>,
    /// Options for in-place updates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_place_update_strategy: Option<InPlaceUpdateStrategy>,
}

/// Canary rollout of a new template.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Canary {
    /// Steps of the rollout, in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<Vec<CanaryStep>>,
}

/// One step of a canary rollout. The step is complete when all fields that are set are satisfied.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CanaryStep {
    /// Number of pods that stay at old revisions from this step on; a number or a percentage of `replicas`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "int_or_percent_schema")]
    pub partition: Option<IntOrString>,
    /// Pauses the rollout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<CanaryPause>,
    /// Hook that must succeed before the rollout continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook: Option<HookStep>,
}

/// Length of a pause in a canary rollout.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CanaryPause {
    /// Seconds to pause. Unset: until `paused` is set to false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<i32>,
}

/// Options for in-place updates.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InPlaceUpdateStrategy {
    /// Seconds between marking the pod as not ready and changing its images. Unset: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_period_seconds: Option<i32>,
    /// Order in which a pod's containers are updated: `DisOrdered` (the default), `OrderedReady` or
    /// `OrderedUpdated`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Action for a pod that cannot be updated in place. `Recreate`: the pod is deleted, gated by its
    /// `PreDelete` hook, and created again. Unset: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
}

/// A hook in the life of a pod, and the switch to retry it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookStrategy {
    /// The hook to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook: Option<HookStep>,
    /// Set to true to retry every hook of this kind that ended without success. The operator then resets it
    /// to false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<bool>,
    /// Seconds for which a success remains valid, counted from when the operator receives it. After that the
    /// hook runs again, because players may have joined the pod. At least 5. Unset: 30.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 5))]
    pub fresh_for_seconds: Option<i32>,
}

/// Reference to a HookTemplate, and the arguments for its runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookStep {
    /// Name of a HookTemplate in the same namespace.
    pub template_name: String,
    /// Arguments for the run. They override those of the template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<HookArgument>>,
}

/// An argument that a workload passes to its hooks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookArgument {
    /// Name of the argument.
    pub name: String,
    /// Value of the argument.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// Observed state of the workload and progress of its rollout.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GameDeploymentStatus {
    /// Most recent generation that the operator has observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Summary of the state: `Complete`, `Progressing`, `Paused`, `Degraded` or `Blocked`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Reason of the condition that determines `phase`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Number of pods that are neither finished nor terminating.
    #[serde(default)]
    pub replicas: i32,
    /// Number of pods that are running and ready.
    #[serde(default)]
    pub ready_replicas: i32,
    /// Number of pods that have been ready for at least `minReadySeconds`.
    #[serde(default)]
    pub available_replicas: i32,
    /// Number of pods at the update revision.
    #[serde(default)]
    pub updated_replicas: i32,
    /// Number of ready pods at the update revision.
    #[serde(default)]
    pub updated_ready_replicas: i32,
    /// Number of pods that wait for a hook to succeed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub hook_pending_replicas: i32,
    /// Number of pods above `replicas` that an update created. They are kept while the update is stopped.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub surge_replicas: i32,
    /// Revision that pods are updated to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_revision: Option<String>,
    /// Revision that pods below the partition keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_revision: Option<String>,
    /// Number of hash collisions between revisions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collision_count: Option<i32>,
    /// Conditions: `Available`, `Progressing`, `HooksResolved`, `ScaleBlocked`, `UpdateBlocked` and
    /// `InvalidSpec`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Reasons why the canary rollout is paused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pause_conditions: Vec<PauseCondition>,
    /// Selector in string form, for the `scale` subresource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<String>,
    /// Index of the current canary step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_step_index: Option<i32>,
    /// Hash of the canary steps that `currentStepIndex` refers to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_step_hash: Option<String>,
    /// Progress of the canary rollout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<CanaryStatus>,
    /// Pods that wait for their `PreDelete` hook; at most 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pre_delete_hook_condition: Vec<HookCondition>,
    /// Pods that wait for their `PreInplace` hook; at most 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pre_inplace_hook_condition: Vec<HookCondition>,
    /// Pods whose `PostInplace` hook has not succeeded; at most 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub post_inplace_hook_condition: Vec<HookCondition>,
}

/// Reason why a canary rollout is paused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PauseCondition {
    /// `PausedByCanaryPauseStep` or `PausedByStepBasedHook`.
    pub reason: String,
    /// Time at which the pause began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// UID of the HookRun whose failure pauses the rollout. Ending the pause runs the hook again only for this one.
    #[serde(rename = "hookRunUID", default, skip_serializing_if = "Option::is_none")]
    pub hook_run_uid: Option<String>,
}

/// Progress of a canary rollout.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CanaryStatus {
    /// Last revision that was rolled out completely.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Never set. Part of the original operator's API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause_start_time: Option<Time>,
    /// Name of the HookRun of the current step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_step_hook_run: Option<String>,
}

/// A pod that waits for a hook.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookCondition {
    /// Name of the pod.
    pub pod_name: String,
    /// Phase of the HookRun.
    #[serde(default, skip_serializing_if = "Phase::is_unset")]
    pub phase: Phase,
    /// Time at which the pod began to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// Name of the HookRun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook_run: Option<String>,
    /// Reason for the wait, and the action that would end it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

fn replicas_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "integer", "format": "int32", "minimum": 0 })
}

fn template_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

fn update_type_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "string",
        "enum": ["RollingUpdate", "InplaceUpdate", "HotPatchUpdate", "OnDelete"]
    })
}

fn int_or_percent_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "x-kubernetes-int-or-string": true })
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(number: &i32) -> bool {
    *number == 0
}
