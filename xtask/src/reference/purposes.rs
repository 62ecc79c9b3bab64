//! Purpose of each permission, and the effect of its absence. Every permission in the manifests must have a
//! purpose here, and vice versa.

/// Purpose of some permissions of one service account.
pub(super) struct Purpose {
    pub(super) account: &'static str,
    /// Resources, separated by spaces.
    pub(super) resources: &'static str,
    /// Verbs, separated by spaces.
    pub(super) verbs: &'static str,
    pub(super) what_for: &'static str,
    pub(super) without: &'static str,
}

const fn purpose(
    account: &'static str,
    resources: &'static str,
    verbs: &'static str,
    what_for: &'static str,
    without: &'static str,
) -> Purpose {
    Purpose {
        account,
        resources,
        verbs,
        what_for,
        without,
    }
}

const HOOKS: &str = "hook-operator";
const NAMESPACE_HOOKS: &str = "hookgate-hooks";
const WORKLOADS: &str = "gamedeployment-operator";
const ADMISSION: &str = "hookgate-admission";
const REFUSED: &str = "`WriteFailed`";
const LEASES: &str = "no process becomes the leader, so nothing is done; `/readyz` fails and shows the reason. \
                      `--leader-election false` needs no Lease";

/// All purposes, in display order.
pub(super) const ALL: &[Purpose] = &[
    purpose(HOOKS, "hookruns", "list watch", "finding runs", "not ready"),
    purpose(
        HOOKS,
        "hookruns",
        "get",
        "rereading a run after a conflict",
        "conflicts are resolved only once the watch delivers the new version",
    ),
    purpose(
        HOOKS,
        "hookruns",
        "delete",
        "`ttlSecondsAfterFinished`",
        "finished runs are kept, and their deletion is retried every 5 s",
    ),
    purpose(
        HOOKS,
        "hookruns/status",
        "patch",
        "recording measurements and verdicts",
        "no verdicts are recorded, so no gate opens; reported in the log",
    ),
    purpose(
        HOOKS,
        "hooktemplates",
        "list watch",
        "finding templates",
        "not ready",
    ),
    purpose(
        HOOKS,
        "hooktemplates/status",
        "patch",
        "the `Valid` condition",
        "the column VALID stays empty; runs are not affected",
    ),
    purpose(
        HOOKS,
        "executionhooks",
        "list watch",
        "finding ExecutionHooks",
        "with `--execution-hooks`: not ready",
    ),
    purpose(
        HOOKS,
        "executionhooks",
        "get",
        "reading the latest state before the first attempt and after a conflict",
        "no ExecutionHook runs; reported in the log",
    ),
    purpose(
        HOOKS,
        "executionhooks/status",
        "patch",
        "recording results",
        "no ExecutionHook runs; reported in the log",
    ),
    purpose(
        HOOKS,
        "executionhooks",
        "delete",
        "`ttlSecondsAfterFinished`",
        "finished ExecutionHooks are kept",
    ),
    purpose(
        HOOKS,
        "hookactions",
        "get",
        "reading the action of an ExecutionHook",
        "ExecutionHooks wait, with `ActionNotRead`",
    ),
    purpose(
        HOOKS,
        "secrets configmaps",
        "get",
        "`valueFrom`",
        "hooks that use it end in Error; the message shows the reason",
    ),
    purpose(
        HOOKS,
        "serviceaccounts",
        "impersonate",
        "acting as `hookgate-hooks` (the only allowed name) for the providers `job`, `kubernetes` and `exec` and for \
         ExecutionHooks, if any of them is enabled",
        "hooks that use them end in Error, with `JobRefused` or `ApiRefused`; ExecutionHooks wait or retry",
    ),
    purpose(
        HOOKS,
        "events",
        "create patch",
        "Warning events",
        "events are lost, and counted in `hookgate_events_dropped_total`",
    ),
    purpose(
        HOOKS,
        "leases",
        "get update",
        "leader election; limited to the operators' Leases in one namespace",
        LEASES,
    ),
    purpose(
        HOOKS,
        "leases",
        "create",
        "creating the Lease. Permission to create cannot be limited to a name",
        LEASES,
    ),
    purpose(
        HOOKS,
        "leases",
        "list",
        "checking, before becoming the leader, that no process with a different `--shard` COUNT is running",
        LEASES,
    ),
    purpose(
        NAMESPACE_HOOKS,
        "jobs",
        "create",
        "running the Jobs of hooks",
        "hooks that use the provider `job` end in Error, with `JobRefused`",
    ),
    purpose(
        NAMESPACE_HOOKS,
        "jobs",
        "get",
        "finding a Job after a restart; reading it before it is deleted, or if the watch has not delivered it",
        "after a restart, hooks whose Jobs are running end in Error, with `JobRefused`. Jobs of stopped runs keep \
         running, reported as `JobsLeft`",
    ),
    purpose(
        NAMESPACE_HOOKS,
        "jobs",
        "list watch",
        "detecting immediately that a Job has ended",
        "the end of a Job is detected up to 5 min later",
    ),
    purpose(
        NAMESPACE_HOOKS,
        "jobs",
        "delete",
        "stopping the Jobs of stopped runs; deleting the Job of the previous measurement",
        "these Jobs are kept or keep running, reported as `JobsLeft`, until they are deleted with their HookRun",
    ),
    purpose(
        NAMESPACE_HOOKS,
        "pods",
        "list",
        "reading results, exit codes, and the reason why a Job has not ended",
        "hooks whose conditions evaluate a Job's result end in Error, with `JobLost`; messages lack the container and \
         its exit code",
    ),
    purpose(
        NAMESPACE_HOOKS,
        "pods",
        "get",
        "the function `get` of the provider `kubernetes` (kinds other than pods need a Role of their own); checking \
         the pod before and after each command of the provider `exec`, and for each attempt of an ExecutionHook",
        "hooks that use them end in Error, with `ApiRefused`",
    ),
    purpose(
        NAMESPACE_HOOKS,
        "pods",
        "patch",
        "the function `patch` of the provider `kubernetes`. This permission can open gates: see \
         [security](../security.md#objects)",
        "hooks that use it end in Error, with `ApiRefused`",
    ),
    purpose(
        NAMESPACE_HOOKS,
        "pods/exec",
        "get",
        "the provider `exec`, which runs commands over WebSocket connections. This permission includes everything that \
         the pods of the namespace are allowed to do: see [security](../security.md#commands)",
        "hooks that use it end in Error, with `ApiRefused`",
    ),
    purpose(
        NAMESPACE_HOOKS,
        "pods/exec",
        "create",
        "the same, with API servers 1.35 and newer",
        "with these API servers, hooks that use it end in Error, with `ApiRefused`",
    ),
    purpose(
        WORKLOADS,
        "gamedeployments pods controllerrevisions hookruns hooktemplates",
        "list watch",
        "watching them; for pods also: confirming that none is left before the finalizer is removed",
        "not ready; nothing is done",
    ),
    purpose(
        WORKLOADS,
        "nodes",
        "list watch",
        "deletion costs of nodes; detecting nodes that are gone or not Ready",
        "not ready; grant the permission, or set `--ignore-nodes`",
    ),
    purpose(
        WORKLOADS,
        "nodes",
        "get",
        "confirming that a node is gone, or Ready, immediately before one of its pods is deleted without a hook",
        "hooks run for these pods too, and `WriteFailed` reports the failed read",
    ),
    purpose(
        WORKLOADS,
        "evictions",
        "list watch",
        "only with `--eviction-responder`: finding the Evictions (`lifecycle.k8s.io`) of its pods",
        "the log says that the watch was interrupted, with the error. Evictions are not removal requests and get no \
         reports; 20 minutes later, the eviction request controller activates the next responder",
    ),
    purpose(
        WORKLOADS,
        "evictions/status",
        "patch",
        "only with `--eviction-responder`: reporting progress and completion. This permission can complete the entries \
         of other responders: see [security](../security.md#the-eviction-responder)",
        "pods are deleted once their hooks succeed, but Evictions do not show why a pod stays, and \
         `EvictionReportFailed` reports the error; 20 minutes later, the eviction request controller activates the next \
         responder, and the removal request ends",
    ),
    purpose(
        WORKLOADS,
        "gamedeployments pods controllerrevisions hookruns",
        "get",
        "rereading an object after a conflict, or after a write whose response was lost. For GameDeployments also: \
         checking that the workload still exists before a pod or revision is adopted, and that it still has no hook \
         before pods that may have players are deleted or changed without one. With `--eviction-responder` also: \
         confirming that an evicted pod is gone, or that its GameDeployment requires no hook, before its Eviction is \
         completed",
        "after three failed reads, `WriteFailed` and the log report the object, and it is not changed until the watch \
         delivers a new version; the rest of the workload continues. Nothing is adopted, and pods that may have \
         players are not deleted or changed without a hook; reported as `WriteFailed`",
    ),
    purpose(
        WORKLOADS,
        "gamedeployments",
        "patch",
        "resetting `retry`; setting `paused` for a canary step; adding and removing the finalizer \
         `tkex.tencent.com/ask-before-removal`",
        "`WriteFailed`; `retry` stays true, and failed hooks are rerun each time; no pods of a new GameDeployment with \
         `disruption.policy: Ask` are created, and the deletion of such a GameDeployment does not finish",
    ),
    purpose(
        WORKLOADS,
        "gamedeployments/status",
        "patch",
        "writing the status",
        "no status, and canary rollouts do not continue; `WriteFailed` in events and the log",
    ),
    purpose(
        WORKLOADS,
        "gamedeployments/finalizers",
        "update",
        "creating owned objects that block the deletion of their owner; needed only on clusters with the admission \
         plugin `OwnerReferencesPermissionEnforcement`",
        "on these clusters, no pods, revisions or HookRuns are created or adopted",
    ),
    purpose(
        WORKLOADS,
        "hookruns",
        "create",
        "running hooks",
        "`WriteFailed`; no gate opens",
    ),
    purpose(
        WORKLOADS,
        "hookruns",
        "delete",
        "deleting runs that have been used or no longer count",
        "`WriteFailed`; these runs are kept, and the hooks of their pods are not rerun",
    ),
    purpose(
        WORKLOADS,
        "hookruns",
        "deletecollection",
        "the same, for many runs with one call",
        "each run is deleted with a separate call",
    ),
    purpose(
        WORKLOADS,
        "hookruns",
        "patch",
        "terminating the lifecycle hooks of a rollout when another rollout starts",
        "`WriteFailed`; the hooks of the new rollout wait until the running ones have ended",
    ),
    purpose(WORKLOADS, "pods", "create delete", "scaling, recreation", REFUSED),
    purpose(
        WORKLOADS,
        "pods",
        "patch",
        "labels and annotations, images, adoption and release",
        "`WriteFailed`; no pods with a hook are deleted, because their selection for deletion cannot be recorded",
    ),
    purpose(
        WORKLOADS,
        "pods/status",
        "patch",
        "writing the condition `InPlaceUpdateReady`",
        "`WriteFailed`; new pods with the readiness gate never become ready",
    ),
    purpose(
        WORKLOADS,
        "controllerrevisions",
        "create",
        "recording a template before a pod is created from it",
        "`RevisionNotRecorded`; a new workload gets no pods, others continue at the recorded revision",
    ),
    purpose(
        WORKLOADS,
        "controllerrevisions",
        "patch",
        "rollback, adoption",
        REFUSED,
    ),
    purpose(
        WORKLOADS,
        "controllerrevisions",
        "delete",
        "`revisionHistoryLimit`",
        "`WriteFailed`; revisions are kept",
    ),
    purpose(
        WORKLOADS,
        "events",
        "create patch",
        "reporting actions, and problems that need attention",
        "events are lost, and counted in `hookgate_events_dropped_total`",
    ),
    purpose(
        WORKLOADS,
        "leases",
        "get update",
        "leader election; limited to the operators' Leases in one namespace",
        LEASES,
    ),
    purpose(
        WORKLOADS,
        "leases",
        "create",
        "creating the Lease. Permission to create cannot be limited to a name",
        LEASES,
    ),
    purpose(
        WORKLOADS,
        "leases",
        "list",
        "checking, before becoming the leader, that no process with a different `--shard` COUNT is running",
        LEASES,
    ),
    purpose(
        ADMISSION,
        "secrets",
        "create",
        "storing the first certificate. Permission to create cannot be limited to a name",
        "not ready; `/readyz` shows the reason",
    ),
    purpose(
        ADMISSION,
        "secrets",
        "get list watch update",
        "renewing the certificate; limited to this Secret",
        "not ready; the current certificate stays in use until it expires",
    ),
    purpose(
        ADMISSION,
        "validatingwebhookconfigurations",
        "get list watch patch",
        "updating `caBundle`; limited to this configuration",
        "not ready; the API server does not trust the certificate, so every call to the webhook fails",
    ),
    purpose(
        ADMISSION,
        "namespaces",
        "get",
        "checking whether a namespace is being deleted",
        "a namespace with guarded objects cannot be deleted until the objects are labelled; the removal guard denies \
         removals without recording them",
    ),
    purpose(
        ADMISSION,
        "executionhooks gamedeployments hookactions hookruns hooktemplates",
        "list",
        "evaluating `Cascading` on CRDs; suggesting names for a misspelt HookTemplate",
        "only `Always` allows the deletion of CRDs; no names are suggested",
    ),
    purpose(
        ADMISSION,
        "hooktemplates",
        "get",
        "warnings about the hooks of a GameDeployment",
        "no warnings",
    ),
    purpose(
        ADMISSION,
        "pods gamedeployments",
        "get",
        "only for the removal guard: checking whether the hook of a GameDeployment keeps the pod that is evicted or \
         deleted, or the pods of a namespace that is deleted",
        "evictions in namespaces with the guard, and deletions of guarded pods, are denied without being recorded; \
         deletions of namespaces with guarded pods are denied",
    ),
    purpose(
        ADMISSION,
        "pods",
        "list",
        "only for the removal guard: checking whether a namespace that is deleted has guarded pods",
        "deletions of namespaces with the guard are denied",
    ),
    purpose(
        ADMISSION,
        "pods",
        "patch",
        "only for the removal guard: recording removal requests on pods. This permission can open gates: see \
         [security](../security.md#rights)",
        "evictions and deletions of guarded pods are denied without being recorded",
    ),
    purpose(
        ADMISSION,
        "subjectaccessreviews",
        "create",
        "checking whether the author of a hook is allowed to do what the hook does: create Jobs, get objects, patch \
         pods or run commands in pods",
        "hooks with the providers `job`, `kubernetes` and `exec`, hooks with `execNewPod` or `jobSpec`, HookActions \
         and ExecutionHooks are rejected",
    ),
];
