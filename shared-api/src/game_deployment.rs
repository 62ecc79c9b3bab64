//! The GameDeployment kind: a workload that deletes or updates a pod only after the pod's hook succeeds.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hook_run::Phase;
use crate::json_text::JsonText;
use crate::time::Time;

/// Desired state of a set of game server pods that is scaled and updated without disconnecting players.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "tkex.tencent.com",
    version = "v1alpha1",
    kind = "GameDeployment",
    doc = "A set of game server pods. A pod is deleted or updated only after its hook has succeeded.",
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
    /// Template of the pods to create. It is stored as written, regardless of the version of the API server.
    #[schemars(schema_with = "template_schema")]
    pub template: JsonText,
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
    /// Hooks that run at points of a rollout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    #[x_kube(merge_strategy = kube::core::ListMerge::Map(vec!["name".into()]))]
    pub lifecycle_hooks: Option<Vec<LifecycleHook>>,
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
    /// Type of update: `RollingUpdate` (the default), `InplaceUpdate`, `HotPatchUpdate`, `OnDelete` or
    /// `Recreate`. `Recreate` deletes all old pods, each gated by its hook, before it creates the first new one.
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
    /// Maximum duration of a rollout in seconds, until its last pod is available and its last lifecycle hook has ended.
    /// Pauses and the time that pods wait for hooks do not count. Unset: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 604_800))]
    pub timeout_seconds: Option<i32>,
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

/// A hook that runs for each pod, and its settings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookStrategy {
    /// The hook to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook: Option<HookStep>,
    /// Set to true to rerun every hook of this kind that ended without success. The operator then resets it
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

/// Hook that runs at a point of a rollout. Until the hook has ended, the rollout updates no pods beyond that
/// point.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("[(has(self.execNewPod) && dyn(self.execNewPod) != null), (has(self.jobSpec) && dyn(self.jobSpec) != null), (has(self.hook) && dyn(self.hook) != null)].filter(x, x).size() == 1", "exactly one of execNewPod, jobSpec, hook must be set"))]
#[x_kube(validation = ("!(has(self.abortAction) && dyn(self.abortAction) == 'Rollback' && has(self.failurePolicy) && dyn(self.failurePolicy) == 'Ignore')", "abortAction Rollback has no effect with failurePolicy Ignore"))]
pub struct LifecycleHook {
    /// Name of the hook, a DNS label.
    #[schemars(length(min = 1, max = 40), regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// Point of the rollout at which the hook runs.
    pub trigger: HookTrigger,
    /// Effect of a failure: `Abort`, `Ignore` or `Retry` (the default). `Abort`: no further pod is updated to this
    /// revision. `Ignore`: the rollout continues. `Retry`: the hook is retried with a growing back-off until it
    /// succeeds; after `timeoutSeconds`, the failure counts as `Abort`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "failure_policy_schema")]
    pub failure_policy: Option<String>,
    /// Effect of an abort on updated pods: `Hold` (the default) leaves them at this revision. `Rollback` updates them
    /// to the last revision whose rollout is complete, each through its own hooks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "abort_action_schema")]
    pub abort_action: Option<String>,
    /// HookRuns and Jobs to keep until their ControllerRevision is deleted: `OnFailure` (the default) keeps those
    /// of failed attempts, `Always` keeps all, `Never` none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "retain_policy_schema")]
    pub retain_policy: Option<String>,
    /// Seconds from the start of the first attempt after which a hook that has not succeeded counts as failed. Unset:
    /// no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 604_800))]
    pub timeout_seconds: Option<i32>,
    /// Command to run in a new pod made from the template of the revision that pods are updated to. Exit code 0
    /// is a success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec_new_pod: Option<ExecNewPod>,
    /// Spec of a Job (`batch/v1`) to run. A complete Job is a success, a failed Job a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "template_schema")]
    pub job_spec: Option<JsonText>,
    /// HookTemplate to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook: Option<HookStep>,
}

/// Pod with one container, made from a container of the pod template.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecNewPod {
    /// Name of a container of the pod template, not an init container. The new container gets its image,
    /// environment, resources, working directory and security context.
    #[schemars(length(min = 1, max = 63))]
    pub container_name: String,
    /// Command to run. Unset: the entrypoint of the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// Arguments of the command. Unset: those of the image if `command` is unset too, and otherwise none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<String>>,
    /// Environment variables (`EnvVar` of `core/v1`) to add. They override those of the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "env_schema")]
    pub env: Option<Vec<JsonText>>,
    /// Names of volumes of the pod template that the container mounts. Others are not mounted in the new pod.
    /// Unset: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "volume_names_schema")]
    pub volumes: Option<Vec<String>>,
}

/// Point of a rollout at which a hook runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("(has(self.progressAvailableParams) && dyn(self.progressAvailableParams) != null) == (!has(self.type) || dyn(self.type) == null || self.type == 'ProgressAvailable')", "progressAvailableParams must be set with type ProgressAvailable, and with no other type"))]
pub struct HookTrigger {
    /// `Pre`: before the first pod is updated. `Mid`: when every old pod is gone and before the first new one is
    /// created, with update type `Recreate` only. `ProgressAvailable` (the default): when as many updated pods are
    /// available as `progressAvailableParams` specifies. `Post`: when every pod is updated and available.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "trigger_type_schema")]
    pub type_: Option<String>,
    /// Parameters of `ProgressAvailable`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress_available_params: Option<ProgressAvailableParams>,
}

/// Progress at which a hook runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProgressAvailableParams {
    /// Number of available updated pods, or a percentage of `replicas`, rounded up. 0 means `Pre`.
    #[schemars(schema_with = "progress_point_schema")]
    pub progress_point: IntOrString,
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
    /// Revision of the spec's template, which pods are updated to unless `rollback` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_revision: Option<String>,
    /// Revision that pods below the partition keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_revision: Option<String>,
    /// Revision for which an update of type `Recreate` has deleted all old pods. Unset once a rollout is complete.
    /// Until then no pod of another revision is created, because new pods and hooks may have changed data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recreating_revision: Option<String>,
    /// Rollback of an aborted rollout. Unset after a change of the template, and after a requested retry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback: Option<RollbackStatus>,
    /// Time of the rollout that counts against `updateStrategy.timeoutSeconds`. Unset without a limit, and once the
    /// rollout has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout_timer: Option<RolloutTimer>,
    /// Text of the last handled request to abort a rollout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_abort: Option<String>,
    /// Number of hash collisions between revisions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collision_count: Option<i32>,
    /// Conditions: `Available`, `Progressing`, `HooksResolved`, `LifecycleHooksSucceeded`, `ScaleBlocked`,
    /// `UpdateBlocked` and `InvalidSpec`.
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
    /// Hooks of the current or last rollout.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lifecycle_hooks: Vec<LifecycleHookStatus>,
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
    /// UID of the HookRun whose failure pauses the rollout. Ending the pause reruns the hook only if this HookRun is
    /// still the current one.
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

/// Rollback of an aborted rollout: pods are updated to an earlier revision than that of the spec's template.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RollbackStatus {
    /// Revision whose rollout is aborted.
    pub from_revision: String,
    /// Revision that pods are updated to: the last one whose rollout is complete.
    pub to_revision: String,
    /// `LifecycleHookAborted`, `ProgressDeadlineExceeded` or `RolloutAborted`.
    pub reason: String,
    /// Time at which the rollout was aborted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// Whether a canary step had paused the rollout at that time. That pause does not apply to the rollback.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ignores_pause: bool,
    /// Text of the last retry request at that time. A new request restarts the rollout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_retry: Option<String>,
}

/// Time of a rollout that counts against its limit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutTimer {
    /// Revision that the rollout updates pods to.
    pub revision: String,
    /// Milliseconds that have counted before `runningSince`.
    #[serde(default)]
    pub elapsed_milliseconds: i64,
    /// Time since which the timer runs. Unset while it is stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running_since: Option<Time>,
    /// Number of updated pods when only pods kept by a partition were left to update. Until more pods are updated, the
    /// start-up time of pods does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resting_replicas: Option<i32>,
    /// Time at which every pod had the revision. Pods created later do not belong to the rollout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_time: Option<Time>,
    /// Last retry request at the start of the timer. A new request restarts the timer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_retry: Option<String>,
    /// Reason and message of the condition `UpdateBlocked` when the time limit was reached, or of `ScaleBlocked` if a
    /// write had failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub obstacle: Option<String>,
}

/// Hook of a rollout.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LifecycleHookStatus {
    /// Name of the hook.
    pub name: String,
    /// Revision that the rollout updates pods to.
    pub revision: String,
    /// `Waiting`, `Running`, `Successful`, `Ignored`, or, if the rollout is aborted, the phase of the last
    /// HookRun: `Failed`, `Error` or `Inconclusive`.
    pub phase: LifecycleHookPhase,
    /// Reason for the phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Number of started attempts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempts: i32,
    /// Name of the HookRun of the last attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook_run: Option<String>,
    /// Digest of the spec of that HookRun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec_digest: Option<String>,
    /// Time of the first attempt, or of the first one after a requested retry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// End of the last attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// Text of the last handled retry request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_retry: Option<String>,
    /// Explanation of the wait, or of the outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// State of a rollout's hook. Unknown text parses as [`LifecycleHookPhase::Waiting`], so that it can never count as
/// a success.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(from = "String")]
pub enum LifecycleHookPhase {
    /// Not started, or waiting for its next attempt.
    #[default]
    Waiting,
    /// An attempt is running.
    Running,
    /// An attempt succeeded.
    Successful,
    /// Failed, and the rollout continues.
    Ignored,
    /// The last attempt failed, and the rollout is aborted.
    Failed,
    /// The last attempt could not be measured, and the rollout is aborted.
    Error,
    /// The last attempt ended without a verdict, and the rollout is aborted.
    Inconclusive,
}

impl LifecycleHookPhase {
    /// All phases.
    pub const ALL: [Self; 7] = [
        Self::Waiting,
        Self::Running,
        Self::Successful,
        Self::Ignored,
        Self::Failed,
        Self::Error,
        Self::Inconclusive,
    ];

    /// Returns the word that the API uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "Waiting",
            Self::Running => "Running",
            Self::Successful => "Successful",
            Self::Ignored => "Ignored",
            Self::Failed => "Failed",
            Self::Error => "Error",
            Self::Inconclusive => "Inconclusive",
        }
    }

    /// Returns whether the rollout may continue past the hook's point.
    pub fn is_passed(self) -> bool {
        match self {
            Self::Successful | Self::Ignored => true,
            Self::Waiting | Self::Running | Self::Failed | Self::Error | Self::Inconclusive => false,
        }
    }

    /// Returns whether the hook aborted its rollout.
    pub fn is_aborted(self) -> bool {
        match self {
            Self::Failed | Self::Error | Self::Inconclusive => true,
            Self::Waiting | Self::Running | Self::Successful | Self::Ignored => false,
        }
    }
}

impl From<String> for LifecycleHookPhase {
    fn from(text: String) -> Self {
        let known = Self::ALL.into_iter().find(|phase| phase.as_str() == text);
        known.unwrap_or_default()
    }
}

impl std::fmt::Display for LifecycleHookPhase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
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
    /// UID of the HookRun, once it ended without success or is not being measured. A hook that runs again has a
    /// HookRun of the same name with another UID.
    #[serde(rename = "hookRunUID", default, skip_serializing_if = "Option::is_none")]
    pub hook_run_uid: Option<Box<str>>,
    /// Machine-readable reason for the wait, one word. Unset while the hook runs without trouble.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Name of an existing HookRun that blocks the creation of the pod's HookRun, because both have the same name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conflicting_hook_run: Option<String>,
    /// Explanation of the wait. Remedies are in the message of the condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

fn replicas_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "integer", "format": "int32", "minimum": 0 })
}

fn template_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

fn env_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "array",
        "items": {
            "type": "object",
            "properties": { "name": { "type": "string", "minLength": 1 } },
            "required": ["name"],
            "x-kubernetes-preserve-unknown-fields": true,
        },
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    })
}

fn volume_names_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "array", "items": { "type": "string" }, "x-kubernetes-list-type": "set",
    })
}

fn update_type_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "string",
        "enum": ["RollingUpdate", "InplaceUpdate", "HotPatchUpdate", "OnDelete", "Recreate"]
    })
}

fn trigger_type_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "string", "enum": ["Pre", "Mid", "ProgressAvailable", "Post"] })
}

fn failure_policy_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "string", "enum": ["Abort", "Ignore", "Retry"] })
}

fn abort_action_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "string", "enum": ["Hold", "Rollback"] })
}

fn retain_policy_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "string", "enum": ["Always", "OnFailure", "Never"] })
}

fn progress_point_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "x-kubernetes-int-or-string": true, "pattern": "^[0-9]{1,9}%?$" })
}

fn int_or_percent_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "x-kubernetes-int-or-string": true })
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(number: &i32) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_false(value: &bool) -> bool {
    !value
}
