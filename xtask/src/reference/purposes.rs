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
const LEASES: &str =
    "nobody leads and nothing is done; not ready, with the reason. `--leader-election false` does without";

/// All purposes, in display order.
pub(super) const ALL: &[Purpose] = &[
    purpose(HOOKS, "hookruns", "list watch", "finding runs", "not ready"),
    purpose(
        HOOKS,
        "hookruns",
        "get",
        "reading a run again after a conflict",
        "conflicts are settled only when the watch brings the news",
    ),
    purpose(
        HOOKS,
        "hookruns",
        "delete",
        "`ttlSecondsAfterFinished`",
        "finished runs are kept, and each is tried again every 5 s",
    ),
    purpose(
        HOOKS,
        "hookruns/status",
        "patch",
        "recording",
        "no verdict, no gate opens; the log says so",
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
        "VALID stays empty; runs do not mind",
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
        "the newest state before the first try, and after a conflict",
        "no ExecutionHook is carried out; the log says so",
    ),
    purpose(
        HOOKS,
        "executionhooks/status",
        "patch",
        "recording",
        "no ExecutionHook is carried out; the log says so",
    ),
    purpose(
        HOOKS,
        "executionhooks",
        "delete",
        "`ttlSecondsAfterFinished`",
        "finished ExecutionHooks stay",
    ),
    purpose(
        HOOKS,
        "hookactions",
        "get",
        "the action of an ExecutionHook",
        "ExecutionHooks wait, with `ActionNotRead`",
    ),
    purpose(
        HOOKS,
        "secrets configmaps",
        "get",
        "`valueFrom`",
        "hooks that use it end in Error, with the reason",
    ),
    purpose(
        HOOKS,
        "serviceaccounts",
        "impersonate",
        "the providers `job`, `kubernetes` and `exec` and ExecutionHooks, if one of them is on; of the one name \
         `hookgate-hooks`",
        "hooks that use them end in Error, with `JobRefused` or `ApiRefused`; ExecutionHooks wait or try again",
    ),
    purpose(
        HOOKS,
        "events",
        "create patch",
        "Warning events",
        "counted in `hookgate_events_dropped_total`",
    ),
    purpose(
        HOOKS,
        "leases",
        "get update",
        "leader election, in one namespace; of the names of the operators' Leases",
        LEASES,
    ),
    purpose(
        HOOKS,
        "leases",
        "create",
        "the first Lease. A right to create cannot be bound to a name",
        LEASES,
    ),
    purpose(
        HOOKS,
        "leases",
        "list",
        "seeing, before it leads, that no process of another `--shard` COUNT is at work",
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
        "finding a Job again after a restart; reading it before it is deleted, and when the watch has shown nothing",
        "after a restart, hooks whose Jobs run end in Error, with `JobRefused`. Jobs of stopped runs go on: `JobsLeft`",
    ),
    purpose(
        NAMESPACE_HOOKS,
        "jobs",
        "list watch",
        "noticing at once that a Job has ended",
        "it is noticed up to 5 min later",
    ),
    purpose(
        NAMESPACE_HOOKS,
        "jobs",
        "delete",
        "ending the Jobs of stopped runs; removing the Job of the measurement before",
        "they stay or go on: `JobsLeft`. They are deleted with their HookRun",
    ),
    purpose(
        NAMESPACE_HOOKS,
        "pods",
        "list",
        "results, exit codes, and why a Job has not ended",
        "hooks whose condition judges a Job end in Error, with `JobLost`; messages lack the container and its exit code",
    ),
    purpose(
        NAMESPACE_HOOKS,
        "pods",
        "get",
        "the function `get` of the provider `kubernetes`, for which other kinds need a grant of their own; the check of the \
         pod before and after each command of the provider `exec`, and each try of an ExecutionHook",
        "hooks that use them end in Error, with `ApiRefused`",
    ),
    purpose(
        NAMESPACE_HOOKS,
        "pods",
        "patch",
        "the function `patch` of the provider `kubernetes`. A right to open gates: see [security](../security.md#objects)",
        "hooks that use it end in Error, with `ApiRefused`",
    ),
    purpose(
        NAMESPACE_HOOKS,
        "pods/exec",
        "get",
        "the provider `exec`, whose commands are WebSocket connections. A right to everything that the pods of the \
         namespace may do: see [security](../security.md#commands)",
        "hooks that use it end in Error, with `ApiRefused`",
    ),
    purpose(
        NAMESPACE_HOOKS,
        "pods/exec",
        "create",
        "the same, on API servers of version 1.35 and newer",
        "there, hooks that use it end in Error, with `ApiRefused`",
    ),
    purpose(
        WORKLOADS,
        "gamedeployments pods controllerrevisions hookruns hooktemplates",
        "list watch",
        "finding them",
        "not ready; nothing is decided",
    ),
    purpose(
        WORKLOADS,
        "nodes",
        "list watch",
        "deletion costs of nodes; nodes that are gone or not Ready",
        "not ready; give the right, or set `--ignore-nodes`",
    ),
    purpose(
        WORKLOADS,
        "nodes",
        "get",
        "confirms that a node is gone, or Ready, right before a pod of it is deleted without a hook",
        "the hook runs for such pods too, and `WriteFailed` reports the refusal",
    ),
    purpose(
        WORKLOADS,
        "gamedeployments pods controllerrevisions hookruns",
        "get",
        "reading an object again after a conflict, or after a write whose answer was lost; of gamedeployments also: whether \
         a workload is still there before a pod or revision is adopted, and whether it still has no hook before pods that \
         may have players are deleted or changed without one",
        "after three failed reads `WriteFailed` and the log name the object, and it is left alone until the watch shows it \
         anew; the rest of the workload goes on. Nothing is adopted, and no such pod is deleted or changed without a hook: \
         `WriteFailed`",
    ),
    purpose(
        WORKLOADS,
        "gamedeployments",
        "patch",
        "setting `retry` back, `paused` for a canary step",
        "`WriteFailed`; `retry` goes on asking",
    ),
    purpose(
        WORKLOADS,
        "gamedeployments/status",
        "patch",
        "the status",
        "no status, and canaries do not go on; `WriteFailed` in events and the log",
    ),
    purpose(
        WORKLOADS,
        "gamedeployments/finalizers",
        "update",
        "only where the admission plugin `OwnerReferencesPermissionEnforcement` is on: owned objects block their owner's \
         deletion",
        "there: no pod, revision or HookRun is created or adopted",
    ),
    purpose(
        WORKLOADS,
        "hookruns",
        "create",
        "asking",
        "`WriteFailed`; no gate opens",
    ),
    purpose(
        WORKLOADS,
        "hookruns",
        "delete",
        "removing runs that were used, or are void",
        "`WriteFailed`; void runs stay, and their pods are not asked again",
    ),
    purpose(
        WORKLOADS,
        "hookruns",
        "deletecollection",
        "the same for many runs by one call",
        "each run is deleted by a call of its own",
    ),
    purpose(
        WORKLOADS,
        "hookruns",
        "patch",
        "terminating the hooks of a rollout when another one begins",
        "`WriteFailed`; the hooks of the other rollout wait until the running ones have ended",
    ),
    purpose(WORKLOADS, "pods", "create delete", "scaling, recreation", REFUSED),
    purpose(
        WORKLOADS,
        "pods",
        "patch",
        "marks, images, adoption and release",
        "`WriteFailed`; no pod with a hook is deleted, as the choice cannot be written",
    ),
    purpose(
        WORKLOADS,
        "pods/status",
        "patch",
        "the condition `InPlaceUpdateReady`",
        "`WriteFailed`; new pods with the readiness gate never become ready",
    ),
    purpose(
        WORKLOADS,
        "controllerrevisions",
        "create",
        "recording a template before a pod is made of it",
        "`RevisionNotRecorded`; a new workload gets no pods, others go on at the recorded revision",
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
        "what was done, and what needs a person",
        "counted in `hookgate_events_dropped_total`",
    ),
    purpose(
        WORKLOADS,
        "leases",
        "get update",
        "leader election, in one namespace; of the names of the operators' Leases",
        LEASES,
    ),
    purpose(
        WORKLOADS,
        "leases",
        "create",
        "the first Lease. A right to create cannot be bound to a name",
        LEASES,
    ),
    purpose(
        WORKLOADS,
        "leases",
        "list",
        "seeing, before it leads, that no process of another `--shard` COUNT is at work",
        LEASES,
    ),
    purpose(
        ADMISSION,
        "secrets",
        "create",
        "the first certificate. A right to create cannot be bound to a name",
        "not ready, with the reason",
    ),
    purpose(
        ADMISSION,
        "secrets",
        "get list watch update",
        "renewal; of the one name",
        "not ready; what is presented goes on until it expires",
    ),
    purpose(
        ADMISSION,
        "validatingwebhookconfigurations",
        "get list watch patch",
        "`caBundle`; of the one name",
        "not ready; nobody asks, as nobody trusts it",
    ),
    purpose(
        ADMISSION,
        "namespaces",
        "get",
        "whether a namespace is being deleted",
        "a namespace with guarded objects stays until they are labelled",
    ),
    purpose(
        ADMISSION,
        "executionhooks gamedeployments hookactions hookruns hooktemplates",
        "list",
        "`Cascading` of definitions; names of HookTemplates, for a misspelt one",
        "only `Always` allows their deletion; no name is suggested",
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
        "subjectaccessreviews",
        "create",
        "whether the author of a hook may create Jobs, get objects, patch pods or run commands in pods as the hook does",
        "hooks with the providers `job`, `kubernetes` and `exec` are rejected, those with `execNewPod` or `jobSpec`, \
         HookActions and ExecutionHooks",
    ),
];
