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
        /// The last 5 or more measurements of a metric are errors; the run recovers with the first one that is not.
        HookErrors,
        /// No measurement can make the run Successful, because a metric has neither `count` nor a success limit, or
        /// because the egress policy forbade its address 5 times in a row; the run continues until it fails.
        HookCannotSucceed,
        /// No request can be sent now, because the namespace uses its full share; the run retries automatically.
        NotAskedYet,
        /// The specs of other unfinished HookRuns use up the memory for specs; the run starts once some have ended.
        NoRoomForSpec,
        /// The Job of a measurement has not ended; the message describes the state of its pods.
        JobActive,
        /// Event: Jobs of a run that was stopped could not be deleted; they are deleted with the run at the latest.
        JobsLeft,
        /// Every metric is Successful.
        AllMetricsSuccessful,
        /// More measurements failed than `failureLimit` allows.
        FailureLimitExceeded,
        /// A metric took `count` measurements without reaching its success limit.
        SuccessLimitNotReached,
        /// More measurements were inconclusive than `inconclusiveLimit` allows.
        InconclusiveLimitExceeded,
        /// More consecutive errors occurred than `consecutiveErrorLimit` allows.
        ErrorLimitExceeded,
        /// The spec cannot be measured; the message lists every problem.
        InvalidSpec,
        /// The run was created for a workload and has no owner, as after a restore from a backup; it is not measured.
        OwnerMissing,
        /// `timeoutSeconds` elapsed without a verdict.
        TimedOut,
        /// `spec.terminate` was set.
        Terminated,
        /// Events only: the status cannot be written; the message explains why.
        StatusNotRecorded,
    }
}

reasons! {
    /// Reasons of measurements without a verdict of a condition
    /// (`status.metricResults[].measurements[].reason` of a HookRun), and of failed calls in metrics and traces.
    MeasurementReason {
        /// A placeholder, Secret or ConfigMap could not be resolved, or a rendered value is not usable.
        InvalidRequest,
        /// The egress policy forbids the address.
        Forbidden,
        /// Name resolution, connection or TLS failed.
        Unreachable,
        /// The response took longer than the timeout.
        Timeout,
        /// The status of the response is not 2xx (or is a redirect that is not followed).
        Status,
        /// The response is too large, not JSON, or not of the expected shape.
        MalformedAnswer,
        /// `jsonPath` found nothing.
        PathNotFound,
        /// The server reports that the query failed (Prometheus).
        QueryFailed,
        /// The server reports an incomplete response (Prometheus, Thanos, Mimir, `VictoriaMetrics`).
        PartialAnswer,
        /// The response contains no data, and no condition handles that case: `onNoData` decided.
        NoData,
        /// A condition cannot be evaluated on the response.
        ConditionFailed,
        /// The request was sent, but its response was not read because capacity ran out; the request may have changed
        /// something, so it is not repeated at once.
        AnswerDropped,
        /// The API server refused the Job, or a Job of that name has another owner.
        JobRefused,
        /// The Job was deleted before it ended, or the API server does not say how it ended.
        JobLost,
        /// The API server refused to read or annotate the object or to run the command, or does not serve the kind.
        ApiRefused,
        /// The object does not exist, or another pod has its name.
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
        /// The HookAction has problems; the message lists all of them, and the hook starts once they are corrected.
        InvalidAction,
        /// The pods cannot be listed; the message says why, and hook-operator retries.
        PodsNotListed,
        /// The HookAction cannot be read; the message says why, and hook-operator retries.
        ActionNotRead,
        /// The action is being carried out in the selected containers.
        Executing,
        /// The action succeeded in every selected container.
        ActionSucceeded,
        /// The action failed in at least one container; see `status.hookStatuses`.
        ActionFailed,
        /// No container is selected, so nothing was carried out.
        NothingSelected,
        /// More containers are selected than one ExecutionHook may have; nothing was carried out.
        TooManyContainers,
        /// The spec has problems; the message lists all of them.
        InvalidHook,
        /// The spec was changed after the containers were selected.
        SpecChanged,
        /// The action of the HookAction was changed, or it was replaced or deleted, before the hook had finished.
        ActionChanged,
        /// `spec.terminate` was set.
        HookTerminated,
        /// hook-operator runs without `--execution-hooks`.
        ExecutionHooksDisabled,
        /// Events only: the status of an ExecutionHook cannot be written; the message explains why.
        HookStatusNotRecorded,
        /// Events only: a finished ExecutionHook cannot be deleted; the message says why, and hook-operator retries.
        HookNotDeleted,
    }
}

reasons! {
    /// Reasons of errors of containers in `status.hookStatuses` of an ExecutionHook.
    ContainerReason {
        /// The command exited with another code than 0.
        ExitCode,
        /// The program cannot be run or is not found, or the container is not running.
        CommandNotRun,
        /// The connection ended before the command, or the container ended during it.
        CommandLost,
        /// The API server, the kubelet, or the server of an `httpGet` or `tcpSocket` does not respond.
        Unreachable,
        /// The server of an `httpGet` returned a status other than 200 to 299.
        HttpStatus,
        /// The egress policy of hook-operator forbids calls to the pod's IP.
        EgressForbidden,
        /// The ServiceAccount `hookgate-hooks` is missing the right.
        ApiRefused,
        /// The attempt did not end within `callTimeoutSeconds`; a command may still be running.
        CallTimedOut,
        /// The action did not succeed within `actionTimeoutSeconds`.
        ActionTimedOut,
        /// The pod does not exist, or has no such container.
        NoSuchContainer,
        /// The pod was deleted, has ended, or was replaced.
        PodGone,
        /// Any other error of an attempt; the message describes it.
        TryFailed,
        /// The hook ended before the action succeeded; its condition says why.
        HookEnded,
    }
}

reasons! {
    /// Reasons of a HookTemplate's `Valid` condition.
    TemplateReason {
        /// Everything in the template compiles.
        SpecValid,
        /// The template has problems; the message lists all of them.
        SpecInvalid,
    }
}

reasons! {
    /// Condition types of a GameDeployment. The last four are present only while they are True,
    /// `HooksResolved` only if the spec has a hook, and `LifecycleHooksSucceeded` only after the start of a rollout
    /// with lifecycle hooks.
    WorkloadCondition {
        /// At least `replicas - maxUnavailable` pods are available.
        Available,
        /// Progress of the update.
        Progressing,
        /// Every hook of the spec can run; reported even if no pod waits for a hook.
        HooksResolved,
        /// Every lifecycle hook of the current or last rollout succeeded or is ignored; Unknown until they have ended.
        LifecycleHooksSucceeded,
        /// Scaling is blocked until a person acts.
        ScaleBlocked,
        /// The update is blocked until a person acts.
        UpdateBlocked,
        /// The spec is invalid; the message lists every problem.
        InvalidSpec,
        /// The spec is valid, but has an effect that few users want; the message explains it.
        SpecWarning,
    }
}

reasons! {
    /// Summary of a GameDeployment's state, in one word (`status.phase`).
    WorkloadPhase {
        /// The workload matches its spec.
        Complete,
        /// Pods are being created, deleted or updated, or wait for their hooks.
        Progressing,
        /// The update is paused.
        Paused,
        /// No work is left, but pods are missing or a hook could not run.
        Degraded,
        /// A person must act.
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
        /// Every pod that the update covers is updated.
        RolloutComplete,
        /// Pods are being updated.
        RollingOut,
        /// `paused` is set.
        Paused,
        /// A canary step pauses the rollout.
        PausedByCanaryPauseStep,
        /// The hook of a canary step has not succeeded.
        PausedByStepBasedHook,
        /// Every hook of the spec can run.
        HooksResolved,
        /// Pods are being created or deleted.
        Scaling,
        /// The update strategy is `OnDelete`: a pod is updated when it is deleted.
        WaitingForDeletion,
        /// Every lifecycle hook of the rollout succeeded.
        LifecycleHooksSucceeded,
        /// A lifecycle hook failed, and the rollout continues because its `failurePolicy` is `Ignore`.
        LifecycleHookIgnored,
        /// A lifecycle hook is running; no pods are updated beyond its point of the rollout.
        LifecycleHookRunning,
        /// A lifecycle hook waits for its point of the rollout, or for its next attempt.
        LifecycleHookWaiting,
        /// A lifecycle hook failed and ended the rollout: no further pod is updated to this revision.
        LifecycleHookAborted,
        /// The rollout took longer than `updateStrategy.timeoutSeconds`: no further pod is updated to this revision.
        ProgressDeadlineExceeded,
        /// A person aborted the rollout: its pods are updated to the last revision whose rollout is complete.
        RolloutAborted,
        /// Events only: a request to abort the rollout has no effect; the message says why.
        AbortRejected,
        /// Events only: an attempt of a lifecycle hook failed.
        LifecycleHookFailed,
        /// Events only: the pod of a lifecycle hook does not have every volume that its `execNewPod` names.
        HookVolumesIgnored,
        /// A lifecycle hook cannot run: the pod template has no container with the name that its `execNewPod` gives.
        HookContainerMissing,
        /// A hook ended without success; `retry: true` reruns it.
        HookUnsuccessful,
        /// A hook cannot run: its template does not exist or cannot be read.
        HookTemplateMissing,
        /// A hook cannot run: its template has problems.
        HookTemplateInvalid,
        /// A hook cannot run: some of its arguments have no value.
        HookArgumentsUnresolved,
        /// A hook cannot run: the name of its HookRun is already taken or invalid.
        HookRunNameInvalid,
        /// A hook cannot run: the pod has no IP address yet.
        PodAddressMissing,
        /// A hook keeps failing with errors, 5 or more in a row of one metric; it recovers with the first measurement
        /// that is not an error, for example after its HookTemplate is corrected.
        HookErrors,
        /// A hook can never succeed: it has no success limit, or its address is forbidden.
        HookCannotSucceed,
        /// A HookRun is not being measured: hook-operator has recorded nothing for 30 s after it was due.
        HookNotTakenUp,
        /// A hook's success is older than `freshForSeconds` or has no usable time: the hook runs again.
        HookVerdictExpired,
        /// A HookRun of the workload was edited: it is deleted, and the hook runs again.
        HookRunEdited,
        /// The change cannot be made in place.
        NotInPlaceUpdatable,
        /// An in-place update does not finish.
        InPlaceStalled,
        /// A pod needs an index and none is free.
        IndexesExhausted,
        /// The API server rejects a pod of the new template in a dry run: the update deletes no pods.
        PodRefused,
        /// The API server rejected a write; the message explains why.
        WriteFailed,
        /// The ControllerRevision of the new template cannot be created; pods are replaced and scaled at the
        /// recorded revision.
        RevisionNotRecorded,
        /// Pods exit within 60 s of their start; they are replaced with a back-off of 10 s to 5 minutes.
        PodsEndAtOnce,
        /// A hook cannot run: its HookRun is being deleted, and a finalizer holds it.
        HookRunTerminating,
        /// The spec is invalid.
        InvalidSpec,
        /// The manifest sets `paused` beside canary steps: applying it again ends a pause.
        PausedInManifest,
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
        /// Events of pods and ControllerRevisions only: the object cannot be read, and is left alone.
        UnreadableObject,
        /// Events only: only some pods have a deletion cost, and those without one are deleted last.
        DeletionCostPartial,
        /// Events only: a pod was deleted after its gate opened.
        PodDeleted,
        /// Events only: an in-place update of a pod started after its gate opened.
        PodUpdateStarted,
        /// Events only: an in-place update of a pod finished.
        PodUpdated,
        /// Events only: the hooks of a pod were skipped because its annotation `skip-hook` names it.
        HookSkipped,
        /// Events only: the rollout continued past a canary step because the annotation `promote-despite-failure` names
        /// its failed HookRun.
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
            "Everything in the template compiles."
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
