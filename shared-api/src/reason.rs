//! Every reason that a status, a condition or an event may carry: one word, in `CamelCase`.

macro_rules! reasons {
    ($(#[$doc:meta])* $name:ident { $($(#[doc = $item_doc:literal])+ $item:ident),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[doc = $item_doc])+ $item),+ }

        impl $name {
            /// All of them, in the order of their declaration.
            pub const ALL: &'static [Self] = &[$(Self::$item),+];

            /// The word that the API shows.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$item => stringify!($item)),+ }
            }

            /// What it means, in one sentence.
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
    /// Why a HookRun has the phase that it has (`status.reason`).
    HookRunReason {
        /// Measurements are being taken.
        Measuring,
        /// There is no room to ask, because the namespace uses its share; the run goes on and asks again.
        NotAskedYet,
        /// Every metric is Successful.
        AllMetricsSuccessful,
        /// More measurements failed than `failureLimit` allows.
        FailureLimitExceeded,
        /// `count` was used up before the success limit was reached.
        SuccessLimitNotReached,
        /// More measurements were inconclusive than `inconclusiveLimit` allows.
        InconclusiveLimitExceeded,
        /// More errors in a row than `consecutiveErrorLimit` allows.
        ErrorLimitExceeded,
        /// The spec cannot be measured; the message names every problem.
        InvalidSpec,
        /// `timeoutSeconds` passed without a verdict.
        TimedOut,
        /// `spec.terminate` was set.
        Terminated,
        /// Of events only: the status cannot be written; the message says why.
        StatusNotRecorded,
    }
}

reasons! {
    /// Reasons of a HookTemplate's `Valid` condition.
    TemplateReason {
        /// Everything in the template compiles.
        SpecValid,
        /// Something does not; the message names every problem.
        SpecInvalid,
    }
}

reasons! {
    /// Types of a GameDeployment's conditions. The last three are there while they are True, `HooksResolved` where a
    /// hook is set.
    WorkloadCondition {
        /// At least `replicas - maxUnavailable` pods are available.
        Available,
        /// Where the update stands.
        Progressing,
        /// Every hook of the spec can be asked; said while nothing waits for it, too.
        HooksResolved,
        /// Scaling waits for something that needs a person.
        ScaleBlocked,
        /// The update waits for something that needs a person.
        UpdateBlocked,
        /// The spec cannot be worked on; the message names every problem.
        InvalidSpec,
    }
}

reasons! {
    /// Where a GameDeployment stands, in a word (`status.phase`).
    WorkloadPhase {
        /// Nothing is left to be done.
        Complete,
        /// Pods are being created, deleted or updated, or wait for their hooks.
        Progressing,
        /// The update is paused.
        Paused,
        /// Nothing is left to be done, and pods are missing or a hook could not be asked.
        Degraded,
        /// A person is needed.
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
        /// Every pod that is to be updated is.
        RolloutComplete,
        /// Pods are being updated.
        RollingOut,
        /// `paused` is set.
        Paused,
        /// A canary step pauses.
        PausedByCanaryPauseStep,
        /// The hook of a canary step has no success.
        PausedByStepBasedHook,
        /// Every hook of the spec can be asked.
        HooksResolved,
        /// Pods are being created or deleted.
        Scaling,
        /// The update strategy is `OnDelete`: pods change when they are deleted.
        WaitingForDeletion,
        /// A hook said no, or could not be measured; it is asked again on `retry: true`.
        HookUnsuccessful,
        /// A hook cannot be asked: its template is missing or cannot be read.
        HookTemplateMissing,
        /// A hook cannot be measured: its template is there and has problems.
        HookTemplateInvalid,
        /// A hook cannot be asked: arguments have no value.
        HookArgumentsUnresolved,
        /// A hook cannot be asked: the name of its run is taken or not valid.
        HookRunNameInvalid,
        /// A hook cannot be asked: the pod has no address yet.
        PodAddressMissing,
        /// A HookRun is not measured: hook-operator has recorded nothing for 30 s after it was due.
        HookNotTakenUp,
        /// A hook's success is older than `freshForSeconds`, or its time cannot be told: the pod is asked again.
        HookVerdictExpired,
        /// Somebody has edited a HookRun of the workload: it is removed, and the pod is asked again.
        HookRunEdited,
        /// The change cannot be made in place.
        NotInPlaceUpdatable,
        /// An in-place update does not come to an end.
        InPlaceStalled,
        /// A pod index is needed and none is free.
        IndexesExhausted,
        /// The API server refuses a pod of the new template in a dry run: no pod is deleted for the update.
        PodRefused,
        /// The API server refused a write; the message says why.
        WriteFailed,
        /// The ControllerRevision of the new template cannot be created; pods are healed and scaled at the recorded revision.
        RevisionNotRecorded,
        /// Pods end within 60 s of their start; they are replaced with a back-off of 10 s to 5 minutes.
        PodsEndAtOnce,
        /// A hook cannot be asked: its HookRun is being deleted, and a finalizer keeps it.
        HookRunTerminating,
        /// The spec has problems.
        InvalidSpec,
        /// Of events of the workload: pods were created.
        PodsCreated,
        /// Of events of the workload: HookRuns were created about pods, or for a canary step.
        HooksAsked,
        /// Of events of the workload: pods were deleted after their gates opened.
        PodsDeleted,
        /// Of events of the workload: pods without a controller that its selector finds were adopted.
        PodsAdopted,
        /// Of events of the workload: pods that its selector does not find any more were released; no gate protects them.
        PodsReleased,
        /// Of events: only some pods have a deletion cost, and those without one go last.
        DeletionCostPartial,
        /// Of events: a pod was deleted after its gate opened.
        PodDeleted,
        /// Of events: an in-place update of a pod began after its gate opened.
        PodUpdateStarted,
        /// Of events: an in-place update of a pod was finished.
        PodUpdated,
        /// Of events: a pod passed its gate because its annotation `skip-hook` names it.
        HookSkipped,
    }
}

/// Type of the HookTemplate condition that says whether the template can be measured.
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
}
