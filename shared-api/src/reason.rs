//! Reasons of statuses, conditions and events: one word each, in `CamelCase`.

macro_rules! reasons {
    ($(#[$doc:meta])* $name:ident { $($(#[doc = $item_doc:literal])+ $item:ident),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[doc = $item_doc])+ $item),+ }

        impl $name {
            /// All variants, in the order of their declaration.
            pub const ALL: &'static [Self] = &[$(Self::$item),+];

            /// Returns the word that the API shows.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$item => stringify!($item)),+ }
            }

            /// Returns the variant that the API shows as this word.
            pub fn named(word: &str) -> Option<Self> {
                match word { $(stringify!($item) => Some(Self::$item),)+ _ => None }
            }

            /// Returns the meaning, in one sentence.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$item => concat!($($item_doc),+).trim_ascii()),+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

reasons! {
    /// Reasons of a HookRun's phase (`status.reason`).
    HookRunReason {
        /// Measurements are being taken.
        Measuring,
        /// The last 5 or more measurements of a metric are errors; the run recovers with the first one that is not an
        /// error.
        HookErrors,
        /// The run can never become Successful, because a metric has neither `count` nor a success limit, or because
        /// the egress policy forbade its address 5 times in a row; the run continues until it fails.
        HookCannotSucceed,
        /// No request can be sent at the moment, because the namespace uses its full share of the capacity; the run is
        /// retried automatically.
        NotAskedYet,
        /// The specs of other unfinished HookRuns use up the memory for specs; the run starts once some of them have
        /// ended.
        NoRoomForSpec,
        /// The Job of a measurement has not ended yet; the message describes the state of its pods.
        JobActive,
        /// Events only: Jobs of a stopped run could not be deleted; they will be deleted with the run at the latest.
        JobsLeft,
        /// Every metric is Successful.
        AllMetricsSuccessful,
        /// More measurements failed than `failureLimit` allows.
        FailureLimitExceeded,
        /// A metric has taken `count` measurements without reaching its success limit.
        SuccessLimitNotReached,
        /// More measurements were inconclusive than `inconclusiveLimit` allows.
        InconclusiveLimitExceeded,
        /// More consecutive errors occurred than `consecutiveErrorLimit` allows.
        ErrorLimitExceeded,
        /// The spec cannot be measured; the message lists every problem.
        InvalidSpec,
        /// The run was created for a workload but has no owner, for example after a restore from a backup; it is not
        /// measured.
        OwnerMissing,
        /// `timeoutSeconds` elapsed without a verdict.
        TimedOut,
        /// `spec.terminate` was set to true.
        Terminated,
        /// Events only: the status could not be written; the message explains why.
        StatusNotRecorded,
    }
}

reasons! {
    /// Reasons of measurements that no condition decided (`status.metricResults[].measurements[].reason` of a HookRun),
    /// and of failed calls in metrics and traces.
    MeasurementReason {
        /// A placeholder, Secret or ConfigMap could not be resolved, or a rendered value is invalid.
        InvalidRequest,
        /// The egress policy forbids the address.
        Forbidden,
        /// Name resolution, connection or TLS failed.
        Unreachable,
        /// No complete response arrived within the timeout.
        Timeout,
        /// The HTTP status of the response is not 2xx (or is a redirect that is not followed).
        Status,
        /// The response is too large, is not JSON, or has an unexpected structure.
        MalformedAnswer,
        /// `jsonPath` found nothing.
        PathNotFound,
        /// The Prometheus server reported that the query failed.
        QueryFailed,
        /// The server (Prometheus, Thanos, Mimir, `VictoriaMetrics`) reported that the response is incomplete.
        PartialAnswer,
        /// The response contains no data, and no condition handles that case: `onNoData` decided.
        NoData,
        /// A condition could not be evaluated with the response.
        ConditionFailed,
        /// The request was sent, but its response was not read because capacity ran out; because the request may have
        /// had side effects, it is not retried immediately.
        AnswerDropped,
        /// The API server rejected the Job, or a Job with the same name has another owner.
        JobRefused,
        /// The Job was deleted before it ended, or its outcome is not recorded.
        JobLost,
        /// The API server rejected reading or annotating the object or running the command, or has no such kind.
        ApiRefused,
        /// The object does not exist, or another pod has the same name.
        ObjectGone,
        /// The command did not start, or its container is not running.
        CommandNotRun,
        /// The connection, the container or the pod ended before the command did.
        CommandLost,
        /// Metrics only: no call was made because capacity ran out; this does not count as a measurement and is retried.
        NotAsked,
    }
}

reasons! {
    /// Condition types of an ExecutionHook.
    ExecutionCondition {
        /// Every selected container has succeeded or failed.
        Complete,
        /// Every selected container has succeeded; Unknown until the hook is complete.
        Succeeded,
    }
}

reasons! {
    /// Reasons of an ExecutionHook's conditions and events.
    ExecutionReason {
        /// The HookAction does not exist; the hook starts once it is created.
        ActionNotFound,
        /// The HookAction is invalid; the message lists every problem, and the hook starts once they are fixed.
        InvalidAction,
        /// The pods could not be listed; the message explains why, and hook-operator retries.
        PodsNotListed,
        /// The HookAction could not be read; the message explains why, and hook-operator retries.
        ActionNotRead,
        /// The action is running in the selected containers.
        Executing,
        /// The action succeeded in every selected container.
        ActionSucceeded,
        /// The action failed in at least one container; see `status.hookStatuses`.
        ActionFailed,
        /// No container is selected, so the action was not run.
        NothingSelected,
        /// More containers are selected than one ExecutionHook may have, so the action was not run.
        TooManyContainers,
        /// The spec is invalid; the message lists every problem.
        InvalidHook,
        /// The spec was changed after the containers were selected.
        SpecChanged,
        /// The HookAction was deleted or replaced, or its action was changed, before the hook had finished.
        ActionChanged,
        /// `spec.terminate` was set to true.
        HookTerminated,
        /// hook-operator runs without `--execution-hooks`.
        ExecutionHooksDisabled,
        /// Events only: the status of an ExecutionHook could not be written; the message explains why.
        HookStatusNotRecorded,
        /// Events only: a finished ExecutionHook could not be deleted; the message explains why, and hook-operator
        /// retries.
        HookNotDeleted,
    }
}

reasons! {
    /// Reasons of errors of containers in `status.hookStatuses` of an ExecutionHook.
    ContainerReason {
        /// The command exited with a code other than 0.
        ExitCode,
        /// The program was not found or could not be run, or the container is not running.
        CommandNotRun,
        /// The connection was closed or the container exited before the command had finished.
        CommandLost,
        /// The API server, the kubelet, or the server of an `httpGet` or `tcpSocket` action did not respond.
        Unreachable,
        /// The server of an `httpGet` action returned a status other than 200 to 299.
        HttpStatus,
        /// The egress policy of hook-operator forbids requests to the pod's IP.
        EgressForbidden,
        /// The ServiceAccount `hookgate-hooks` lacks the required permission.
        ApiRefused,
        /// The attempt did not finish within `callTimeoutSeconds`; a command may still be running.
        CallTimedOut,
        /// The action did not succeed within `actionTimeoutSeconds`.
        ActionTimedOut,
        /// The pod does not exist, or has no such container.
        NoSuchContainer,
        /// The pod was deleted or replaced, or has terminated.
        PodGone,
        /// Any other error of an attempt; the message describes it.
        TryFailed,
        /// The hook ended before the action succeeded; its condition explains why.
        HookEnded,
    }
}

reasons! {
    /// Reasons of a HookTemplate's `Valid` condition.
    TemplateReason {
        /// Everything in the template is valid.
        SpecValid,
        /// The template is invalid; the message lists every problem.
        SpecInvalid,
    }
}

reasons! {
    /// Condition types of a GameDeployment. The last four are present only while they are True,
    /// `HooksResolved` only if the spec has a hook, `LifecycleHooksSucceeded` only after the start of a rollout with
    /// lifecycle hooks, and `RemovalsGuarded` only while `spec.disruption.policy` is `Ask`.
    WorkloadCondition {
        /// At least `replicas - maxUnavailable` pods are available.
        Available,
        /// Progress of the update.
        Progressing,
        /// Every hook in the spec can run; reported even if no pod is waiting for a hook.
        HooksResolved,
        /// Every lifecycle hook of the current or last rollout succeeded or was ignored; Unknown until all of them have
        /// ended.
        LifecycleHooksSucceeded,
        /// The removal guard denies removals of the pods by others until their hooks have succeeded; Unknown if the
        /// check failed.
        RemovalsGuarded,
        /// Scaling is blocked and needs attention.
        ScaleBlocked,
        /// The update is blocked and needs attention.
        UpdateBlocked,
        /// The spec is invalid; the message lists every problem.
        InvalidSpec,
        /// The spec is valid, but has an effect that is probably unintended; the message explains it.
        SpecWarning,
    }
}

reasons! {
    /// Summary of a GameDeployment's state, in one word (`status.phase`).
    WorkloadPhase {
        /// The workload matches its spec.
        Complete,
        /// Pods are being created, deleted or updated, or are waiting for their hooks.
        Progressing,
        /// The update is paused.
        Paused,
        /// Nothing is left to do, but pods are missing or a hook could not run.
        Degraded,
        /// The workload is blocked and needs attention.
        Blocked,
    }
}

reasons! {
    /// Reasons of a GameDeployment's conditions and events.
    WorkloadReason {
        /// Enough pods are available.
        MinimumPodsAvailable,
        /// Too few pods are available.
        MinimumPodsUnavailable,
        /// Every pod covered by the update has been updated.
        RolloutComplete,
        /// Pods are being updated.
        RollingOut,
        /// The update is paused: `spec.updateStrategy.paused` is true.
        Paused,
        /// A canary step has paused the rollout.
        PausedByCanaryPauseStep,
        /// The hook of a canary step did not succeed, so the rollout is paused.
        PausedByStepBasedHook,
        /// Every hook in the spec can run.
        HooksResolved,
        /// Pods are being created or deleted.
        Scaling,
        /// The GameDeployment is being deleted: its pods are deleted first, each after its `PreDelete` hook has
        /// succeeded.
        Deleting,
        /// The update type is `OnDelete`: a pod is updated once it is deleted.
        WaitingForDeletion,
        /// Every lifecycle hook of the rollout succeeded.
        LifecycleHooksSucceeded,
        /// A lifecycle hook failed, and the rollout continues because its `failurePolicy` is `Ignore`.
        LifecycleHookIgnored,
        /// A lifecycle hook is running; no pods are updated beyond its trigger.
        LifecycleHookRunning,
        /// A lifecycle hook is waiting for its trigger, or for its next attempt.
        LifecycleHookWaiting,
        /// A lifecycle hook failed and aborted the rollout; no further pods are updated to this revision.
        LifecycleHookAborted,
        /// The rollout exceeded `updateStrategy.timeoutSeconds`; no further pods are updated to this revision.
        ProgressDeadlineExceeded,
        /// The rollout was aborted by a user; its pods are rolled back to the last completed revision.
        RolloutAborted,
        /// Events only: a request to abort the rollout was rejected; the message explains why.
        AbortRejected,
        /// Events only: an attempt of a lifecycle hook failed.
        LifecycleHookFailed,
        /// Events only: some volumes listed in `execNewPod.volumes` of a lifecycle hook were ignored, because the
        /// container does not mount them.
        HookVolumesIgnored,
        /// A lifecycle hook cannot run: the pod template has no container named `execNewPod.containerName`.
        HookContainerMissing,
        /// A hook did not succeed; set `retry: true` to rerun it.
        HookUnsuccessful,
        /// A hook cannot run: its HookTemplate does not exist or cannot be parsed.
        HookTemplateMissing,
        /// A hook cannot run: its HookTemplate is invalid.
        HookTemplateInvalid,
        /// A hook cannot run: some of its arguments have no value.
        HookArgumentsUnresolved,
        /// A hook cannot run: the name of its HookRun is invalid or already in use.
        HookRunNameInvalid,
        /// A hook cannot run: the pod has no IP address yet.
        PodAddressMissing,
        /// A hook keeps failing with errors: the last 5 or more measurements of a metric. It recovers with the first
        /// measurement that is not an error, for example after its HookTemplate is fixed.
        HookErrors,
        /// A hook can never succeed: it has no success limit, or its address is forbidden.
        HookCannotSucceed,
        /// A HookRun is not being measured: hook-operator has recorded no progress for 30 s after it was due.
        HookNotTakenUp,
        /// A hook's success is older than `freshForSeconds`, or has no valid time; the hook is rerun.
        HookVerdictExpired,
        /// A HookRun of the workload was edited; it is deleted, and the hook is rerun.
        HookRunEdited,
        /// The change cannot be made in place.
        NotInPlaceUpdatable,
        /// An in-place update is not making progress.
        InPlaceStalled,
        /// A pod needs an index, but all of them are in use.
        IndexesExhausted,
        /// The API server rejected a pod of the new template in a dry run, so no pods are deleted for the update.
        PodRefused,
        /// The API server rejected a write; the message explains why.
        WriteFailed,
        /// The ControllerRevision of the new template could not be created; pods are replaced and scaled at the
        /// recorded revision.
        RevisionNotRecorded,
        /// Pods exit within 60 s of starting; they are replaced with a back-off of 10 s to 5 minutes.
        PodsEndAtOnce,
        /// A hook cannot run: its HookRun is stuck terminating because of a finalizer.
        HookRunTerminating,
        /// The spec is invalid.
        InvalidSpec,
        /// The manifest sets `paused` together with canary steps, so applying it again ends a pause.
        PausedInManifest,
        /// A setting of the spec has no effect, because another one is missing; the message names both.
        SettingIneffective,
        /// Workload events only: pods were created.
        PodsCreated,
        /// Workload events only: HookRuns were created for pods or for a canary step.
        HooksAsked,
        /// Workload events only: pods were deleted after their gates opened.
        PodsDeleted,
        /// Workload events only: pods that match the selector and have no controller were adopted.
        PodsAdopted,
        /// Workload events only: pods that no longer match the selector were released; no gate protects them.
        PodsReleased,
        /// Events of pods and ControllerRevisions only: the object cannot be parsed and is left alone.
        UnreadableObject,
        /// Events only: only some pods have a deletion cost; the others are deleted last.
        DeletionCostPartial,
        /// Events only: a pod was deleted after its gate opened.
        PodDeleted,
        /// Events only: an in-place update of a pod started after its gate opened.
        PodUpdateStarted,
        /// Events only: an in-place update of a pod finished.
        PodUpdated,
        /// Events only: the hooks of a pod were skipped because its annotation `skip-hook` is set to the pod's UID.
        HookSkipped,
        /// Events only: the notice of a pod that is selected for deletion could not run, or ended without a success;
        /// the hook of the pod runs nevertheless.
        NoticeFailed,
        /// The removal guard is in effect for the pods.
        RemovalsGuarded,
        /// Although `spec.disruption.policy` is `Ask`, evictions and deletions by others run no hooks: the removal
        /// guard is not in effect, or there is no `PreDelete` hook.
        RemovalsNotGuarded,
        /// The check of the removal guard failed; the message contains the error, and the check is repeated every
        /// minute.
        GuardNotChecked,
        /// Events only: a removal request of a pod was not repeated in time, and has expired; the pod is kept.
        RemovalRequestExpired,
        /// Events only: another client deleted a pod, or the kubelet or the control plane ended it, although `spec.disruption.policy` is `Ask`;
        /// its `PreDelete` hook may not have succeeded.
        PodLostUngated,
        /// Events only: three reports in a row to the Eviction (`lifecycle.k8s.io`) of a pod failed; after 20 minutes
        /// without a heartbeat, the eviction request controller activates the next responder.
        EvictionReportFailed,
        /// Events only: a canary step was promoted despite its failed hook, because the annotation
        /// `promote-despite-failure` is set to the UID of the HookRun.
        PromotedDespiteFailure,
    }
}

impl HookRunReason {
    /// Returns the reason of the workload's conditions and events, if it reports trouble of an unfinished HookRun: its
    /// measurements yield no verdict, and may never do so.
    #[must_use]
    pub fn trouble(self) -> Option<WorkloadReason> {
        match self {
            Self::HookErrors => Some(WorkloadReason::HookErrors),
            Self::HookCannotSucceed => Some(WorkloadReason::HookCannotSucceed),
            Self::Measuring
            | Self::NotAskedYet
            | Self::NoRoomForSpec
            | Self::JobActive
            | Self::JobsLeft
            | Self::AllMetricsSuccessful
            | Self::FailureLimitExceeded
            | Self::SuccessLimitNotReached
            | Self::InconclusiveLimitExceeded
            | Self::ErrorLimitExceeded
            | Self::InvalidSpec
            | Self::OwnerMissing
            | Self::TimedOut
            | Self::Terminated
            | Self::StatusNotRecorded => None,
        }
    }
}

/// Type of the HookTemplate condition that reports whether the template can be measured.
pub const CONDITION_VALID: &str = "Valid";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_one_word_as_kubernetes_wants_it() {
        for reason in HookRunReason::ALL {
            assert!(
                reason.as_str().chars().all(|c| c.is_ascii_alphanumeric()),
                "{reason}"
            );
        }
        assert_eq!(TemplateReason::SpecInvalid.to_string(), "SpecInvalid");
        assert_eq!(
            TemplateReason::SpecValid.meaning(),
            "Everything in the template is valid."
        );
    }

    /// Checks that each word gives back its variant.
    macro_rules! gives_back {
        ($($name:ident),+) => { $(
            for known in $name::ALL {
                assert_eq!($name::named(known.as_str()), Some(*known));
            }
            for word in ["", "Unheard", "hookunsuccessful", " Measuring", "Measuring "] {
                assert_eq!($name::named(word), None, "{word}");
            }
        )+ };
    }

    #[test]
    fn a_word_gives_back_its_reason_and_no_other_text_does() {
        gives_back!(
            ContainerReason,
            ExecutionCondition,
            ExecutionReason,
            HookRunReason,
            TemplateReason,
            WorkloadCondition,
            WorkloadPhase,
            WorkloadReason
        );
    }
}
