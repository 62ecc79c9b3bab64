//! Labels, annotations and name prefixes. Both generations of the original operator's labels are written and
//! read.

/// The API group.
pub const GROUP: &str = "tkex.tencent.com";
/// The API version.
pub const VERSION: &str = "v1alpha1";

/// Field manager and event reporter of hook-operator.
pub const HOOK_OPERATOR: &str = "hook-operator";
/// Field manager and event reporter of gamedeployment-operator.
pub const GAMEDEPLOYMENT_OPERATOR: &str = "gamedeployment-operator";

/// Target of the spans that are exported to an OpenTelemetry collector.
pub const TRACE_TARGET: &str = "hookgate";

/// ServiceAccount of a namespace as which its hooks act in the cluster: it creates their Jobs, and reads and annotates
/// objects for them.
pub const HOOKS_ACCOUNT: &str = "hookgate-hooks";

/// Labels and annotations of Jobs that HookRuns create.
pub mod job {
    /// Label of the Job and its pods: UID of the HookRun.
    pub const RUN_UID: &str = "tkex.tencent.com/hook-run-uid";
    /// Annotation: name of the HookRun.
    pub const RUN: &str = "tkex.tencent.com/hook-run";
    /// Annotation: name of the metric.
    pub const METRIC: &str = "tkex.tencent.com/metric";
    /// Annotation: number of the measurement, counted from 0.
    pub const MEASUREMENT: &str = "tkex.tencent.com/measurement";
    /// Beginning of all keys of this system, which the spec of a Job must not set.
    pub const RESERVED_PREFIX: &str = "tkex.tencent.com/";
}

/// Eviction API of Kubernetes (`lifecycle.k8s.io`).
pub mod eviction {
    /// API group.
    pub const GROUP: &str = "lifecycle.k8s.io";
    /// Version of the API.
    pub const VERSION: &str = "v1alpha1";
    /// Name of gamedeployment-operator as a responder. Evictions of pods that register it have a label with this key.
    pub const RESPONDER: &str = "hookgate.tkex.tencent.com/gate";
    /// Priority of the responder: the one for a pod's managing controller.
    pub const PRIORITY: i32 = 10_000;
    /// Maximum number of responders of a pod.
    pub const MAX_RESPONDERS: usize = 10;
    /// Maximum length of a responder's message in characters.
    pub const MAX_MESSAGE: usize = 4000;
}

/// Labels of HookRuns.
pub mod hook_run_label {
    /// Kind of hook: see [`super::hook_kind`].
    pub const TYPE: &str = "hookrun-type";
    /// Revision of the pod.
    pub const REVISION: &str = "workload-revision";
    /// Instance id of the pod.
    pub const INSTANCE: &str = "instance-id";
    /// Older name of [`TYPE`].
    pub const TYPE_OLD: &str = "gamedeployment-type";
    /// Older name of [`REVISION`].
    pub const REVISION_OLD: &str = "PodControllerRevision";
    /// Older name of [`INSTANCE`].
    pub const INSTANCE_OLD: &str = "InstanceID";
    /// Canary step that the run belongs to.
    pub const CANARY_STEP: &str = "canary-step-index";
    /// UID of the pod that the hook runs for.
    pub const POD_UID: &str = "tkex.tencent.com/pod-uid";
    /// Name of the workload, if it has at most 63 characters.
    pub const GAMEDEPLOYMENT: &str = "tkex.tencent.com/gamedeployment";
    /// Lifecycle hook that the run belongs to.
    pub const LIFECYCLE_HOOK: &str = "tkex.tencent.com/lifecycle-hook";
    /// Digest of the run's name. Selects many runs in one call, which names cannot do.
    pub const NAME_DIGEST: &str = "tkex.tencent.com/name-digest";
    /// `"true"` keeps the run out of Velero's backups: it would be restored without its owner and its status.
    pub const EXCLUDE_FROM_BACKUP: &str = "velero.io/exclude-from-backup";
}

/// Annotations of HookRuns. They record exactly what the run is for, so that its verdict counts for nothing
/// else.
pub mod hook_run_annotation {
    /// Action that the run gates: `delete`, `recreate:REVISION`, `in-place:REVISION`, `confirm:REVISION`,
    /// `canary:REVISION:STEP`, `lifecycle:REVISION:HOOK:ATTEMPT`; or `scout` or `notice`, which gate nothing.
    pub const INTENT: &str = "tkex.tencent.com/intent";
    /// Value of [`INTENT`] of notices.
    pub const INTENT_OF_NOTICE: &str = "notice";
    /// Value of [`super::pod::CHOSEN_FOR`] when the run was created; only on runs before a deletion, and on notices.
    pub const CHOICE: &str = "tkex.tencent.com/choice";
    /// Value of [`super::pod::QUESTION`] when the run was created; only on runs that gate an action on a pod.
    pub const QUESTION: &str = "tkex.tencent.com/question";
    /// Digest of the run's rendered spec.
    pub const SPEC_DIGEST: &str = "tkex.tencent.com/spec-digest";
    /// `retainPolicy` of the lifecycle hook when the run was created.
    pub const RETAIN_POLICY: &str = "tkex.tencent.com/retain-policy";
    /// Containers that were running when the run was created, each with a digest of its id.
    pub const CONTAINERS: &str = "tkex.tencent.com/containers";
}

/// Values of [`hook_run_label::TYPE`].
pub mod hook_kind {
    /// Before a pod is deleted.
    pub const PRE_DELETE: &str = "pre-delete-step";
    /// Before a pod is updated in place.
    pub const PRE_INPLACE: &str = "pre-inplace-step";
    /// After a pod was updated in place.
    pub const POST_INPLACE: &str = "post-inplace-step";
    /// A step of a canary rollout.
    pub const CANARY: &str = "canary-step";
    /// An attempt of a lifecycle hook.
    pub const LIFECYCLE: &str = "lifecycle-step";
    /// A candidate's `PreDelete` hook: it only finds out whether the pod is idle.
    pub const SCOUT: &str = "scout-step";
    /// A candidate's `PreInplace` hook: it only finds out whether the pod is idle.
    pub const SCOUT_INPLACE: &str = "scout-inplace-step";
    /// A notice to a pod that is selected for deletion, before its hook runs. Its result does not count.
    pub const NOTICE: &str = "notice-step";

    /// Returns whether a label has the value of this kind, in the current or the old spelling.
    pub fn is_label_of(kind: &str, label: &str) -> bool {
        label == kind || label == old_name(kind)
    }

    /// Returns the kind's value for [`super::hook_run_label::TYPE_OLD`].
    pub fn old_name(kind: &str) -> &'static str {
        match kind {
            PRE_DELETE => "PreDelete",
            PRE_INPLACE => "PreInplace",
            POST_INPLACE => "PostInplace",
            SCOUT => "Scout",
            SCOUT_INPLACE => "ScoutInplace",
            NOTICE => "Notice",
            _ => "CanaryStep",
        }
    }
}

/// Labels and annotations of pods.
pub mod pod {
    /// Label: name of the pod's ControllerRevision.
    pub const REVISION: &str = "controller-revision-hash";
    /// Label: the pod's instance id, the last part of its name.
    pub const INSTANCE: &str = "tkex.bkbcs.tencent.com/gamedeployment-instance-id";
    /// Annotation: the pod is selected for deletion.
    pub const DELETING: &str = "io.tencent.bcs.dev/game-pod-deleting";
    /// Annotation: action for which the pod was selected, and when: `delete@TIME` or
    /// `recreate:REVISION@TIME`.
    pub const CHOSEN_FOR: &str = "tkex.tencent.com/chosen-for";
    /// Annotation: identifies the last hook of the pod; written before its HookRun is created. The write gives the pod
    /// another resource version, so that no deletion or update that was decided on an earlier verdict succeeds.
    pub const QUESTION: &str = "tkex.tencent.com/hook-question";
    /// Annotation: in-place update that was written to the pod, and the state of its containers before it.
    pub const IN_PLACE_STATE: &str = "inplace-update-state";
    /// Annotation of the original operator: in-place update whose images are not written yet.
    pub const IN_PLACE_GRACE: &str = "inplace-update-grace";
    /// Annotation: the same as [`IN_PLACE_STATE`], for a hot patch.
    pub const HOT_PATCH_STATE: &str = "hotpatch-update-state";
    /// Annotation: makes a kubelet that supports it patch containers without a restart.
    pub const HOT_PATCH_CONTAINER: &str = "io.kubernetes.hotpatch.container";
    /// Annotation: revision for which the `PostInplace` hook was Successful.
    pub const CONFIRMED: &str = "tkex.tencent.com/confirmed-revision";
    /// Annotation: lets the pod with this UID pass its gate without a hook.
    pub const SKIP_HOOK: &str = "tkex.tencent.com/skip-hook";
    /// Annotation: reason for [`SKIP_HOOK`]. Only events and the log use it.
    pub const SKIP_HOOK_REASON: &str = "tkex.tencent.com/skip-hook-reason";
    /// Annotation: person who set [`SKIP_HOOK`], as stated by that person. Only events and the log use it.
    pub const SKIP_HOOK_BY: &str = "tkex.tencent.com/skip-hook-by";
    /// Annotation: requests to remove this pod, as JSON; see [`removal_request`](crate::removal_request).
    pub const REMOVAL_REQUESTED: &str = "tkex.tencent.com/removal-requested";
    /// Label: the removal guard denies evictions and deletions of this pod by others than the operator, and records
    /// them as removal requests. Namespaces have a label of the same key: see [`super::namespace`].
    pub const REMOVAL_GUARD: &str = "tkex.tencent.com/removal-guard";
    /// Value of [`REMOVAL_GUARD`] of guarded pods.
    pub const REMOVAL_GUARD_ASK: &str = "Ask";
    /// Reason of the cause in the status with which the removal guard denies the removal of [`REMOVAL_GUARD`].
    pub const REMOVAL_GUARDED_CAUSE: &str = "RemovalGuarded";
    /// The same, in response to a check by the operator, if the guard does not review all removals. The message of the
    /// cause says why.
    pub const REMOVAL_GUARD_INCOMPLETE_CAUSE: &str = "RemovalGuardIncomplete";
    /// Annotation: `"false"` keeps the cluster autoscaler from removing the pod's node.
    pub const SAFE_TO_EVICT: &str = "cluster-autoscaler.kubernetes.io/safe-to-evict";
    /// Annotation: `"true"` keeps Karpenter from removing the pod's node.
    pub const DO_NOT_DISRUPT: &str = "karpenter.sh/do-not-disrupt";
    /// Annotations that keep autoscalers from removing the pod's node, with their values.
    pub const KEEPS_NODE: [(&str, &str); 2] = [(SAFE_TO_EVICT, "false"), (DO_NOT_DISRUPT, "true")];
    /// Annotation: keys of [`KEEPS_NODE`] that the operator has set, separated by commas. It removes no others.
    pub const AUTOSCALER_ANNOTATIONS: &str = "tkex.tencent.com/autoscaler-annotations";
    /// Annotation: labels that the operator has set because the pod is selected for deletion, as a JSON
    /// object from their keys to the former values; null for a label that the pod did not have.
    pub const DRAINING_LABELS: &str = "tkex.tencent.com/draining-labels";
    /// Annotation: cost of deleting this pod; lower is deleted first.
    pub const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
    /// Annotation: index of the pod, if indexes are enabled.
    pub const INDEX: &str = "tkex.bkbcs.tencent.com/gamedeployment-index-id";
    /// Readiness gate: false while the pod is updated in place.
    pub const IN_PLACE_READY: &str = "InPlaceUpdateReady";
    /// Environment variable: index of the pod, if indexes are enabled.
    pub const INDEX_VARIABLE: &str = "POD_INDEX";

    /// Labels that the operator sets on each pod. A template must not set them.
    pub const RESERVED_LABELS: [&str; 3] = [REVISION, INSTANCE, REMOVAL_GUARD];
    /// Annotations that describe a single pod. A template must not set them.
    pub const RESERVED_ANNOTATIONS: [&str; 15] = [
        DELETING,
        CHOSEN_FOR,
        QUESTION,
        IN_PLACE_STATE,
        IN_PLACE_GRACE,
        HOT_PATCH_STATE,
        HOT_PATCH_CONTAINER,
        CONFIRMED,
        SKIP_HOOK,
        SKIP_HOOK_REASON,
        SKIP_HOOK_BY,
        REMOVAL_REQUESTED,
        AUTOSCALER_ANNOTATIONS,
        DRAINING_LABELS,
        INDEX,
    ];
}

/// Labels of namespaces.
pub mod namespace {
    /// Value of [`super::pod::REMOVAL_GUARD`] of namespaces in which the removal guard is on. Any other value switches
    /// it off.
    pub const REMOVAL_GUARD_ENABLED: &str = "Enabled";
}

/// Annotation of nodes: cost of deleting a pod on this node; lower is deleted first.
pub const NODE_DELETION_COST: &str = "io.tencent.bcs.dev/node-deletion-cost";

/// Labels and annotations of workloads.
pub mod workload {
    /// Annotation: order of deletion costs: `ascend` (the default), `descend` or `kubernetes`.
    pub const COST_ORDER: &str = "io.tencent.bcs.dev/pod-deletion-cost-sort-method";
    /// Annotation: `"true"` gives each pod an index.
    pub const INDEX_ON: &str = "tkex.bkbcs.tencent.com/gamedeployment-index-on";
    /// Annotation: `{"podStartIndex":S,"podEndIndex":E}`, the indexes from S up to but excluding E.
    pub const INDEX_RANGE: &str = "tkex.bkbcs.tencent.com/gamedeployment-index-range";
    /// Annotation: UID of a failed HookRun. The canary step of this HookRun passes.
    pub const PROMOTE_DESPITE_FAILURE: &str = "tkex.tencent.com/promote-despite-failure";
    /// Annotation: reason for [`PROMOTE_DESPITE_FAILURE`]. Only events and the log use it.
    pub const PROMOTE_DESPITE_FAILURE_REASON: &str = "tkex.tencent.com/promote-despite-failure-reason";
    /// Annotation: person who set [`PROMOTE_DESPITE_FAILURE`], as stated by that person. Only events and the
    /// log use it.
    pub const PROMOTE_DESPITE_FAILURE_BY: &str = "tkex.tencent.com/promote-despite-failure-by";
    /// Annotation: `lifecycle/NAME=TEXT` runs a lifecycle hook that aborted its rollout, or waits for its next
    /// attempt, once for each text. `rollout=TEXT` restarts a rollout that was rolled back.
    pub const RETRY_REQUESTED: &str = "tkex.tencent.com/retry-requested";
    /// Annotation: `REVISION=TEXT` aborts the rollout to this ControllerRevision, once for each value. Its pods are
    /// updated to the last revision whose rollout is complete.
    pub const ABORT_REQUESTED: &str = "tkex.tencent.com/abort-requested";
    /// Label: `Always` or `Cascading` allows deletion where the guard is installed.
    pub const DELETION_ALLOW: &str = "io.tencent.bcs.dev/deletion-allow";
    /// Finalizer of a workload with guarded pods. It is removed once all its pods are deleted, each after its hook has
    /// succeeded.
    pub const ASK_BEFORE_REMOVAL: &str = "tkex.tencent.com/ask-before-removal";
}

/// Annotations of pod templates.
pub mod template {
    /// Annotation: a new value requests new pods, also where the update changes pods in place. The key that
    /// `kubectl rollout restart` uses for other kinds.
    pub const RESTARTED_AT: &str = "kubectl.kubernetes.io/restartedAt";
}

/// Kind of ControllerRevisions.
pub const CONTROLLER_REVISION: &str = "ControllerRevision";

/// Annotations of ControllerRevisions.
pub mod revision {
    /// Annotation: number of the revision since a rollback to its template.
    pub const REUSED_AS: &str = "tkex.tencent.com/reused-as";
}

/// Environment variables of the Jobs of lifecycle hooks.
pub mod rollout_variable {
    /// `namespace/name` of the ControllerRevision that pods are updated from; empty for the first rollout.
    pub const FROM: &str = "K8S_ROLLOUT_FROM_OBJECT";
    /// `namespace/name` of the ControllerRevision that pods are updated to.
    pub const TO: &str = "K8S_ROLLOUT_TO_OBJECT";
    /// `ROLLBACK` if an earlier template became the newest again, otherwise `ROLLOUT`.
    pub const TYPE: &str = "K8S_ROLLOUT_TYPE";
}

/// Names of the arguments that gamedeployment-operator adds to each run.
pub mod argument {
    /// The pod's name.
    pub const POD_NAME: &str = "PodName";
    /// Arguments that name the kind of the object of a provider `kubernetes` without a target.
    pub const OF_KINDS: [&str; 3] = ["Group", "Version", "Kind"];
    /// The pod's namespace.
    pub const POD_NAMESPACE: &str = "PodNamespace";
    /// The pod's IP address.
    pub const POD_IP: &str = "PodIP";
    /// The IP address of the pod's node.
    pub const HOST_IP: &str = "HostIP";
    /// `PodContainer[0]`, `PodContainer[1]`, …: names of the pod's containers.
    pub const POD_CONTAINER: &str = "PodContainer";
    /// `ModifiedContainer[0]`, …: names of the containers that the update changes.
    pub const MODIFIED_CONTAINER: &str = "ModifiedContainer";
    /// Arguments that every run for a pod has, beside the numbered ones of its containers.
    pub const OF_PODS: [&str; 4] = [POD_NAME, POD_NAMESPACE, POD_IP, HOST_IP];
    /// Lifecycle hooks: name of the ControllerRevision that pods are updated from; empty in the first rollout.
    pub const ROLLOUT_FROM: &str = "RolloutFrom";
    /// Lifecycle hooks: name of the ControllerRevision that pods are updated to.
    pub const ROLLOUT_TO: &str = "RolloutTo";
    /// Lifecycle hooks: `ROLLOUT` or `ROLLBACK`.
    pub const ROLLOUT_TYPE: &str = "RolloutType";
    /// Arguments that every run of a lifecycle hook has.
    pub const OF_ROLLOUTS: [&str; 3] = [ROLLOUT_FROM, ROLLOUT_TO, ROLLOUT_TYPE];
}
