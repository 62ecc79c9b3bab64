//! The GameDeployment kind: a workload that deletes or updates a pod only after the pod's hook succeeds.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

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
    /// Desired number of pods. Defaults to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "replicas_schema")]
    pub replicas: Option<i32>,
    /// Label selector for the pods of this workload. It must match the template's labels.
    pub selector: LabelSelector,
    /// Template for new pods. It is stored as written, regardless of the API server's version.
    #[schemars(schema_with = "template_schema")]
    pub template: JsonText,
    /// Strategy for creating pods, and for selecting pods to delete, when `replicas` changes.
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
    #[schemars(schema_with = "strategy_without_notice_schema")]
    pub pre_inplace_update_strategy: Option<HookStrategy>,
    /// Hook that runs after a pod is updated in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "strategy_without_notice_schema")]
    pub post_inplace_update_strategy: Option<HookStrategy>,
    /// Hooks that run at certain points of a rollout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    #[x_kube(merge_strategy = kube::core::ListMerge::Map(vec!["name".into()]))]
    pub lifecycle_hooks: Option<Vec<LifecycleHook>>,
    /// Number of unused revisions to keep. Defaults to 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision_history_limit: Option<i32>,
    /// Time for which a pod must be ready before it counts as available, in seconds. Defaults to 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_ready_seconds: Option<i32>,
    /// Ignored. Accepted because manifests of the original operator set it and kubectl rejects unknown
    /// fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_name: Option<String>,
    /// Whether to omit the readiness gate `InPlaceUpdateReady` from new pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disable_readiness_gate: Option<bool>,
    /// Handling of removals that the operator has not decided on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disruption: Option<Disruption>,
}

/// Strategy for creating pods, and for selecting pods to delete, when `replicas` changes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScaleStrategy {
    /// Names of the pods to delete first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods_to_delete: Option<Vec<String>>,
    /// Maximum number of new pods that may be unready at a time; a number or a percentage of `replicas`. If unset,
    /// there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "int_or_percent_schema")]
    pub create_batch: Option<IntOrString>,
    /// Selection of pods to delete. `Ranked`: the first pods in deletion order, whether idle or not. `FirstIdle`: the
    /// pods whose `PreDelete` hook succeeds first, while it runs for several pods. The hook of a selected pod runs
    /// again before the pod is deleted. `FirstIdle` has no effect without a `PreDelete` hook. Defaults to `Ranked`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "selection_policy_schema")]
    pub selection_policy: Option<String>,
    /// Options of the selection policy `FirstIdle`. They have no effect with another policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_idle: Option<FirstIdle>,
    /// Labels that a pod has while it is selected for deletion, so that Services, matchmakers and allocators
    /// send it no new players. They are set together with the selection; if the pod is kept, its former
    /// labels are restored. The template may have other values of these labels. Keys of the selector, and
    /// keys of Kubernetes or of the operator, are not allowed. At most 8. Defaults to none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "pod_labels_schema")]
    pub draining_labels: Option<BTreeMap<String, String>>,
}

/// Options of the selection policy `FirstIdle`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FirstIdle {
    /// Maximum number of candidates, which are pods whose hook runs at the same time to find idle ones; a number, at
    /// least 1, or a percentage of the existing pods from 1% to 100%, rounded up. The limit is never below the number of
    /// pods that must still be found, or, for an update, below `maxUnavailable` plus `maxSurge`. Defaults to 100%.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "int_or_percent_schema")]
    pub candidates: Option<IntOrString>,
}

/// Handling of removals that the operator has not decided on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Disruption {
    /// Protection of pods against removal by others. `Ask`: a pod with a removal request in the annotation
    /// `tkex.tencent.com/removal-requested` is deleted and replaced once its `PreDelete` hook has succeeded, and when
    /// the GameDeployment is deleted, each pod is deleted once its hook has succeeded. `Unguarded`: requests are
    /// ignored, and a deletion runs no hooks. Defaults to `Unguarded`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "disruption_policy_schema")]
    pub policy: Option<String>,
    /// Time after which a removal request expires unless it is repeated, in seconds. The pod is then kept. Defaults to
    /// 900.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 60, max = 86_400))]
    pub request_expiration_seconds: Option<i32>,
    /// Effect of a cordon of a pod's node. `Ask`: as long as the node is cordoned, or has a taint that an
    /// autoscaler sets before it removes a node, it requests the removal of its pods; each is deleted and replaced once its
    /// `PreDelete` hook has succeeded. `Ignore`: a cordon has no effect on running pods. The field has no effect
    /// unless the policy is `Ask`. Defaults to `Ignore`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "on_cordon_schema")]
    pub on_cordon: Option<String>,
    /// Annotations that keep autoscalers from removing the nodes of the pods. `Managed`: each pod whose removal
    /// requires a `PreDelete` hook has `cluster-autoscaler.kubernetes.io/safe-to-evict: "false"` and
    /// `karpenter.sh/do-not-disrupt: "true"`, also while it is idle: without the removal guard, a player can join
    /// between the last measurement and the eviction. The operator removes only annotations that it has set.
    /// `Unmanaged`: the operator sets none of them. The field does not depend on the policy. Defaults to
    /// `Unmanaged`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "autoscaler_annotations_schema")]
    pub autoscaler_annotations: Option<String>,
}

/// Strategy for updating existing pods to a new template.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateStrategy {
    /// Type of update: `RollingUpdate`, `InplaceUpdate`, `HotPatchUpdate`, `OnDelete` or `Recreate`. `Recreate` deletes
    /// all old pods, each gated by its hook, before it creates the first new one. Defaults to `RollingUpdate`.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "update_type_schema")]
    pub type_: Option<String>,
    /// Number of pods that stay at old revisions; a number or a percentage of `replicas`. Defaults to 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "int_or_percent_schema")]
    pub partition: Option<IntOrString>,
    /// Maximum number of pods that may be unavailable during an update; a number or a percentage of `replicas`.
    /// Defaults to 20%.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "int_or_percent_schema")]
    pub max_unavailable: Option<IntOrString>,
    /// Maximum number of pods above `replicas` during an update; a number or a percentage of `replicas`. Defaults to 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "int_or_percent_schema")]
    pub max_surge: Option<IntOrString>,
    /// Whether updates are paused. Pods are still created and replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// Canary rollout of a new template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<Canary>,
    /// Options for in-place updates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_place_update_strategy: Option<InPlaceUpdateStrategy>,
    /// Maximum duration of a rollout in seconds, until its last pod is available and its last lifecycle hook has ended.
    /// Time spent paused or waiting for hooks does not count. If unset, there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 604_800))]
    pub timeout_seconds: Option<i32>,
    /// Selection of pods to update. `Ranked`: the first old pods in update order, whether idle or not. `FirstIdle`: the
    /// old pods whose hook succeeds first, while it runs for several pods. The hook of a selected pod runs again before
    /// the pod is updated or deleted, so hooks with side effects must not be used with `FirstIdle`. `FirstIdle` has no
    /// effect with type `HotPatchUpdate`, `OnDelete` or `Recreate`, or without a hook that runs before the update.
    /// Defaults to `Ranked`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "selection_policy_schema")]
    pub selection_policy: Option<String>,
    /// Options of the selection policy `FirstIdle`. They have no effect with another policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_idle: Option<FirstIdle>,
    /// Labels that a pod has while it is selected for an update and its hook must succeed first, so that Services,
    /// matchmakers and allocators send it no new players. They are set before its hook runs; its former labels are
    /// restored when it is updated in place, or when the update is cancelled. A pod that an update recreates has the
    /// `drainingLabels` as well; for a key in both, `outdatedLabels` takes precedence. The restrictions of
    /// `drainingLabels` apply. Defaults to none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "pod_labels_schema")]
    pub outdated_labels: Option<BTreeMap<String, String>>,
}

/// Canary rollout of a new template.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Canary {
    /// Steps of the rollout, in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<Vec<CanaryStep>>,
}

/// One step of a canary rollout. It is complete once every field that is set is satisfied.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CanaryStep {
    /// Number of pods that stay at old revisions from this step on; a number or a percentage of `replicas`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "int_or_percent_schema")]
    pub partition: Option<IntOrString>,
    /// Pause of the rollout at this step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<CanaryPause>,
    /// Hook that must succeed before the rollout continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook: Option<HookStep>,
}

/// Pause in a canary rollout.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CanaryPause {
    /// Duration of the pause, in seconds. If unset, the rollout is paused until `paused` is set to false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<i32>,
}

/// Options for in-place updates.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InPlaceUpdateStrategy {
    /// Time between marking the pod as not ready and changing its images, in seconds. Defaults to 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_period_seconds: Option<i32>,
    /// Order in which a pod's containers are updated: `DisOrdered`, `OrderedReady` or `OrderedUpdated`. Defaults to
    /// `DisOrdered`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// What to do with a pod that cannot be updated in place. `Recreate` deletes the pod, gated by its `PreDelete`
    /// hook, and creates it again. If unset, the pod is left as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
}

/// A hook that runs for each pod, and its settings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookStrategy {
    /// Hook to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook: Option<HookStep>,
    /// Set to true to rerun every hook of this kind that ended without success. The operator then resets it
    /// to false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<bool>,
    /// How long a success remains valid, in seconds, from when the operator observes it. After that, the hook is rerun,
    /// because players may have joined in the meantime. The minimum is 5. Defaults to 30.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 5))]
    pub fresh_for_seconds: Option<i32>,
    /// HookTemplate that runs once each time a pod is selected for deletion, before its hook runs for the first time;
    /// for example, a request to finish the current match. Its result does not count. The hook runs once the first
    /// measurement of the notice has ended, after 30 s at the latest. Pods that no hook keeps, and candidates of
    /// `FirstIdle`, get no notice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<HookStep>,
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

/// Hook that runs at a certain point of a rollout. Until it has ended, no pods are updated beyond that point.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("[(has(self.execNewPod) && dyn(self.execNewPod) != null), (has(self.jobSpec) && dyn(self.jobSpec) != null), (has(self.hook) && dyn(self.hook) != null)].filter(x, x).size() == 1", "exactly one of execNewPod, jobSpec, hook must be set"))]
#[x_kube(validation = ("!(has(self.abortAction) && dyn(self.abortAction) == 'Rollback' && has(self.failurePolicy) && dyn(self.failurePolicy) == 'Ignore')", "abortAction Rollback has no effect with failurePolicy Ignore"))]
pub struct LifecycleHook {
    /// Name of the hook. Must be a DNS label.
    #[schemars(length(min = 1, max = 40), regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// Point of the rollout at which the hook runs.
    pub trigger: HookTrigger,
    /// What happens if the hook fails. `Abort`: no further pods are updated to this revision. `Ignore`: the rollout
    /// continues. `Retry`: the hook is retried with an increasing back-off until it succeeds; after `timeoutSeconds`,
    /// the rollout is aborted as with `Abort`. Defaults to `Retry`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "failure_policy_schema")]
    pub failure_policy: Option<String>,
    /// What happens to updated pods after an abort: `Hold` leaves them at this revision; `Rollback` rolls them back to
    /// the last completed revision, running each pod's hooks. Defaults to `Hold`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "abort_action_schema")]
    pub abort_action: Option<String>,
    /// Which HookRuns and Jobs to keep until their ControllerRevision is deleted: `OnFailure` keeps those of failed
    /// attempts, `Always` keeps all, `Never` keeps none. Defaults to `OnFailure`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "retain_policy_schema")]
    pub retain_policy: Option<String>,
    /// Time within which the hook must succeed, in seconds from the start of its first attempt; after that, it counts
    /// as failed. If unset, there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 604_800))]
    pub timeout_seconds: Option<i32>,
    /// Command to run in a new pod created from the template of the revision being rolled out. Exit code 0 means
    /// success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec_new_pod: Option<ExecNewPod>,
    /// Spec of a Job (`batch/v1`) to run. The hook succeeds if the Job completes, and fails if the Job fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "template_schema")]
    pub job_spec: Option<JsonText>,
    /// HookTemplate to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook: Option<HookStep>,
}

/// Pod with one container, created from a container of the pod template.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecNewPod {
    /// Name of a container in the pod template; must not be an init container. The new container has the same image,
    /// environment, resources, working directory and security context.
    #[schemars(length(min = 1, max = 63))]
    pub container_name: String,
    /// Command to run. Defaults to the entrypoint of the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// Arguments of the command. Defaults to those of the image if `command` is also unset, and to none otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<String>>,
    /// Environment variables (`EnvVar` of `core/v1`) to add. They override those of the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "env_schema")]
    pub env: Option<Vec<JsonText>>,
    /// Names of the container's volumes to mount in the new pod. Volumes that are not listed are not mounted. Defaults
    /// to none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "volume_names_schema")]
    pub volumes: Option<Vec<String>>,
}

/// Point of a rollout at which a hook runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("(has(self.progressAvailableParams) && dyn(self.progressAvailableParams) != null) == (!has(self.type) || dyn(self.type) == null || self.type == 'ProgressAvailable')", "progressAvailableParams is required with type ProgressAvailable, and must not be set with other types"))]
pub struct HookTrigger {
    /// Point of the rollout. `Pre`: before the first pod is updated. `Mid`: after all old pods are gone and before the
    /// first new one is created; only with update type `Recreate`. `ProgressAvailable`: once the number of available
    /// updated pods reaches `progressAvailableParams`. `Post`: once every pod is updated and available. Defaults to
    /// `ProgressAvailable`.
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
    /// Number of available updated pods, or a percentage of `replicas`, rounded up. 0 is the same as `Pre`.
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
    /// Number of pods waiting for a hook to succeed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub hook_pending_replicas: i32,
    /// Number of pods with a valid removal request.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub removal_pending_replicas: i32,
    /// Number of pods above `replicas` that were created for an update. They are kept while the update is stopped.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub surge_replicas: i32,
    /// Revision of `spec.template`. Pods are updated to it unless `rollback` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_revision: Option<String>,
    /// Revision at which pods held back by the partition stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_revision: Option<String>,
    /// Revision for which an update of type `Recreate` has deleted all old pods; unset once a rollout is complete.
    /// While it is set, no pods of other revisions are created, because new pods and hooks may have changed data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recreating_revision: Option<String>,
    /// Rollback of an aborted rollout. Unset once the template changes or a retry is requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback: Option<RollbackStatus>,
    /// How much of `updateStrategy.timeoutSeconds` the rollout has used. Unset if there is no limit, and once the
    /// rollout has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout_timer: Option<RolloutTimer>,
    /// Value of the last handled abort request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_abort: Option<String>,
    /// Number of hash collisions between revisions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collision_count: Option<i32>,
    /// Conditions of the GameDeployment: `Available`, `Progressing`, `HooksResolved`, `LifecycleHooksSucceeded`,
    /// `RemovalsGuarded`, `ScaleBlocked`, `UpdateBlocked`, `InvalidSpec` and `SpecWarning`.
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
    /// State of the lifecycle hooks of the current or last rollout.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lifecycle_hooks: Vec<LifecycleHookStatus>,
    /// Pods waiting for their `PreDelete` hook; at most 100 are listed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pre_delete_hook_condition: Vec<HookCondition>,
    /// Pods waiting for their `PreInplace` hook; at most 100 are listed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pre_inplace_hook_condition: Vec<HookCondition>,
    /// Pods whose `PostInplace` hook has not succeeded yet; at most 100 are listed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub post_inplace_hook_condition: Vec<HookCondition>,
    /// Valid removal requests of pods, oldest first; at most 100 are listed. If there are more, the oldest request of
    /// each pod takes precedence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "removal_requests_schema")]
    pub removal_requests: Vec<RemovalRequestStatus>,
    /// Progress of the searches for idle pods. Unset while there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_idle: Option<FirstIdleStatus>,
}

/// Progress of the searches for idle pods.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FirstIdleStatus {
    /// Search for idle pods to delete, because there are more pods than desired. Unset while there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<IdleSearchStatus>,
    /// Search for idle pods to update. Unset while there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update: Option<IdleSearchStatus>,
}

/// Progress of a search for idle pods.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IdleSearchStatus {
    /// Number of candidates: pods whose hook is running only to find out whether they are idle.
    #[serde(default)]
    pub candidates: i32,
    /// Number of selected pods: on a scale-down, surplus pods that are selected and still exist; on an update, pods whose
    /// own hook is running or about to run, or whose update is about to be written.
    #[serde(default)]
    pub selected: i32,
    /// Number of further idle pods that must be found. On an update, number of further pods that could be updated now if
    /// they were idle; 0 while no slot of `maxUnavailable` is free. The slot of a busy selected pod counts as free.
    #[serde(default)]
    pub needed: i32,
}

/// A valid removal request of a pod.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RemovalRequestStatus {
    /// Name of the pod.
    pub pod_name: String,
    /// UID of the pod.
    #[serde(rename = "podUID")]
    pub pod_uid: String,
    /// User or component that requested the removal; `node/NAME` for the pod's node; for `EvictionRequest`, the
    /// requester that it names.
    pub requester: String,
    /// Kind of request: `Eviction`, `Delete` or `Manual`; for the pod's node `Taint` or `Cordon`, which is valid until
    /// the taint is removed or the node is uncordoned; `EvictionRequest` (`lifecycle.k8s.io`), which is valid until
    /// its requester withdraws it or the Eviction ends.
    #[serde(rename = "type")]
    pub type_: String,
    /// Time of the first request; for `Taint`, the time at which the taint was added, if known; for `EvictionRequest`,
    /// the time at which the operator became the active responder.
    pub request_time: Time,
    /// Reason why the pod has not been deleted yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Reason why a canary rollout is paused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PauseCondition {
    /// Reason for the pause: `PausedByCanaryPauseStep` or `PausedByStepBasedHook`.
    pub reason: String,
    /// Time at which the pause started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// UID of the HookRun whose failure paused the rollout. Resuming reruns the hook only if this HookRun is still the
    /// current one.
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
    /// Never set; kept for compatibility with the original operator's API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause_start_time: Option<Time>,
    /// Name of the HookRun of the current step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_step_hook_run: Option<String>,
}

/// Rollback of an aborted rollout: pods are updated to an earlier revision than that of `spec.template`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RollbackStatus {
    /// Revision whose rollout was aborted.
    pub from_revision: String,
    /// Revision that pods are rolled back to: the last one that was fully rolled out.
    pub to_revision: String,
    /// Reason for the abort: `LifecycleHookAborted`, `ProgressDeadlineExceeded` or `RolloutAborted`.
    pub reason: String,
    /// Time at which the rollout was aborted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// Whether a canary step had paused the rollout when it was aborted. That pause does not apply to the rollback.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ignores_pause: bool,
    /// Value of the last retry request at the time of the abort. A new request restarts the rollout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_retry: Option<String>,
}

/// Time that a rollout has used of its time limit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutTimer {
    /// Revision being rolled out.
    pub revision: String,
    /// Milliseconds accumulated before `runningSince`.
    #[serde(default)]
    pub elapsed_milliseconds: i64,
    /// Time at which the timer was last started. Unset while it is stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running_since: Option<Time>,
    /// Number of updated pods when only pods held back by a partition remained. While it stays at this number, pod
    /// start-up time does not count toward the timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resting_replicas: Option<i32>,
    /// Time at which all pods had been updated. Pods created later are not part of the rollout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_time: Option<Time>,
    /// Value of the last retry request when the timer was started. A new request restarts the timer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_retry: Option<String>,
    /// Reason and message of the condition `UpdateBlocked` when the time limit was exceeded, or of `ScaleBlocked` if a
    /// write had failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub obstacle: Option<String>,
}

/// State of a lifecycle hook.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LifecycleHookStatus {
    /// Name of the hook.
    pub name: String,
    /// Revision being rolled out.
    pub revision: String,
    /// State of the hook: `Waiting`, `Running`, `Successful` or `Ignored`. If the hook aborted the rollout, it is the
    /// phase of the last HookRun: `Failed`, `Error` or `Inconclusive`.
    pub phase: LifecycleHookPhase,
    /// Reason for the phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Number of attempts that have started.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempts: i32,
    /// Name of the HookRun of the last attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook_run: Option<String>,
    /// Digest of the spec of the last attempt's HookRun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec_digest: Option<String>,
    /// Time at which the first attempt started, or the first one after a requested retry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// Time at which the last attempt ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// Value of the last handled retry request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_retry: Option<String>,
    /// Explanation of the phase.
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

/// A pod waiting for a hook.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookCondition {
    /// Name of the pod.
    pub pod_name: String,
    /// Phase of the HookRun.
    #[serde(default, skip_serializing_if = "Phase::is_unset")]
    pub phase: Phase,
    /// Time at which the pod started waiting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// Name of the HookRun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook_run: Option<String>,
    /// UID of the HookRun; set once it has ended without success, or while it is not being measured. When the hook is
    /// rerun, the new HookRun has the same name but a different UID.
    #[serde(rename = "hookRunUID", default, skip_serializing_if = "Option::is_none")]
    pub hook_run_uid: Option<Box<str>>,
    /// One-word, machine-readable reason for the wait. Unset while the hook is running normally.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Name of an existing HookRun that prevents the creation of the pod's HookRun, because both have the same name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conflicting_hook_run: Option<String>,
    /// Explanation of the wait. For remedies, see the message of the condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

fn replicas_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "integer", "format": "int32", "minimum": 0 })
}

/// Returns the schema of a strategy for updates in place, which have no notice.
fn strategy_without_notice_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let mut schema = HookStrategy::json_schema(generator);
    if let Some(fields) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        fields.remove("notice");
    }
    schema
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

fn disruption_policy_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "string", "enum": ["Unguarded", "Ask"] })
}

fn selection_policy_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "string", "enum": ["Ranked", "FirstIdle"] })
}

fn pod_labels_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object", "additionalProperties": { "type": "string", "maxLength": 63 }, "maxProperties": 8,
    })
}

fn on_cordon_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "string", "enum": ["Ignore", "Ask"] })
}

fn autoscaler_annotations_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "string", "enum": ["Unmanaged", "Managed"] })
}

fn removal_requests_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let items = generator.subschema_for::<RemovalRequestStatus>();
    schemars::json_schema!({
        "type": "array", "items": items, "maxItems": 100,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["podName", "requester"],
    })
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
