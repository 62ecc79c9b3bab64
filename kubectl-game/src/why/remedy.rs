//! Remedy for each reason: what would end the wait, and which command does it.

use gamedeployment_core::hook_kind::HookKind;
use gamedeployment_core::pod::Pod;
use kube::ResourceExt;
use shared_api::GameDeployment;
use shared_api::names::hook_run_label::LIFECYCLE_HOOK;
use shared_api::names::namespace::REMOVAL_GUARD_ENABLED;
use shared_api::names::pod::REMOVAL_GUARD;
use shared_api::names::workload::INDEX_RANGE;
use shared_api::reason::WorkloadReason;

use super::next::{Next, describe, edit, ours, quoted, roll_back, watch};
use super::{canary, hook_remedy, pods};
use crate::cluster::Snapshot;
use crate::view::state::rollback;
use crate::view::status_of;

/// Remedy for a reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Remedy {
    /// Cause, in place of the operator's message; `None` if that message is explanation enough.
    pub(super) cause: Option<String>,
    /// Description; empty if nothing waits.
    pub(super) words: String,
    /// Commands to run.
    pub(super) commands: Vec<Next>,
}

/// Subject of a reason.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct About<'a> {
    /// Name of the pod, if the reason concerns one.
    pub(super) pod: Option<&'a str>,
    /// Name of the HookTemplate, if the reason concerns a hook.
    pub(super) template: Option<&'a str>,
    /// Hook of pods, if the reason concerns one.
    pub(super) kind: Option<HookKind>,
    /// Message that names a HookRun with the reason.
    pub(super) runs_named_in: Option<&'a str>,
    /// HookRun that has the name of the one to create.
    pub(super) conflicting_run: Option<&'a str>,
}

pub(super) fn of(reason: WorkloadReason, snapshot: &Snapshot, about: About<'_>) -> Remedy {
    match reason {
        // No wait; most of these are reasons of events only.
        WorkloadReason::MinimumPodsAvailable
        | WorkloadReason::HooksResolved
        | WorkloadReason::RolloutComplete
        | WorkloadReason::PodsCreated
        | WorkloadReason::HooksAsked
        | WorkloadReason::PodsDeleted
        | WorkloadReason::PodsAdopted
        | WorkloadReason::PodsReleased
        | WorkloadReason::PodDeleted
        | WorkloadReason::PodUpdateStarted
        | WorkloadReason::PodUpdated
        | WorkloadReason::HookVerdictExpired
        | WorkloadReason::HookRunEdited
        | WorkloadReason::UnreadableObject
        | WorkloadReason::DeletionCostPartial
        | WorkloadReason::HookSkipped
        | WorkloadReason::NoticeFailed
        | WorkloadReason::LifecycleHooksSucceeded
        | WorkloadReason::LifecycleHookIgnored
        | WorkloadReason::LifecycleHookFailed
        | WorkloadReason::AbortRejected
        | WorkloadReason::HookVolumesIgnored
        | WorkloadReason::RemovalsGuarded
        | WorkloadReason::RemovalRequestExpired
        | WorkloadReason::PodLostUngated
        | WorkloadReason::EvictionReportFailed
        | WorkloadReason::PromotedDespiteFailure => Remedy::default(),
        WorkloadReason::RemovalsNotGuarded => not_guarded(snapshot),
        WorkloadReason::GuardNotChecked => guard_not_checked(snapshot),
        WorkloadReason::MinimumPodsUnavailable => pods::unavailable(snapshot, about),
        WorkloadReason::RollingOut | WorkloadReason::Scaling => {
            say("Continues automatically. No action needed.", [watch(snapshot)])
        }
        WorkloadReason::Deleting => say(
            "Each pod will be deleted once its PreDelete hook succeeds, and the GameDeployment after its last pod.",
            [watch(snapshot)],
        ),
        WorkloadReason::LifecycleHookRunning => lifecycle_running(snapshot),
        WorkloadReason::LifecycleHookWaiting => lifecycle_waiting(snapshot),
        WorkloadReason::LifecycleHookAborted => lifecycle_aborted(snapshot),
        WorkloadReason::ProgressDeadlineExceeded => deadline_exceeded(snapshot),
        WorkloadReason::RolloutAborted => rolled_back(snapshot, "Restart the rollout"),
        WorkloadReason::HookContainerMissing => container_missing(snapshot),
        WorkloadReason::Paused => say(
            "Continues once the update is resumed.",
            [Next::from(ours(snapshot, "resume"))],
        ),
        WorkloadReason::PausedByCanaryPauseStep => canary_pause(snapshot),
        WorkloadReason::PausedByStepBasedHook => canary::hook_failed(snapshot),
        WorkloadReason::WaitingForDeletion => waiting_for_deletion(snapshot, about),
        WorkloadReason::HookUnsuccessful => hook_remedy::unsuccessful(snapshot, about),
        WorkloadReason::HookErrors => hook_remedy::corrected(snapshot, about, "fix the hook, if it is wrong"),
        WorkloadReason::HookCannotSucceed => hook_remedy::corrected(snapshot, about, "fix the hook"),
        WorkloadReason::HookTemplateMissing => hook_remedy::template_missing(snapshot, about),
        WorkloadReason::HookTemplateInvalid => hook_remedy::template_invalid(snapshot, about),
        WorkloadReason::HookArgumentsUnresolved => hook_remedy::arguments_unresolved(snapshot, about),
        WorkloadReason::HookRunNameInvalid => hook_remedy::name_invalid(snapshot, about),
        WorkloadReason::PodAddressMissing => say(
            "Continues automatically once the pod has an IP address.",
            [on_pod(snapshot, about, |pod| pod.is_active() && pod.ip.is_none())],
        ),
        WorkloadReason::HookNotTakenUp => hook_remedy::not_taken_up(snapshot),
        WorkloadReason::HookRunTerminating => hook_remedy::terminating(snapshot, about),
        WorkloadReason::NotInPlaceUpdatable => not_in_place_updatable(snapshot),
        WorkloadReason::InPlaceStalled => pods::stalled(snapshot, about),
        WorkloadReason::IndexesExhausted => say("Widen the index range.", [widen(snapshot)]),
        WorkloadReason::PodsEndAtOnce => pods_end_at_once(snapshot, about),
        WorkloadReason::RevisionNotRecorded => say(
            "The write is retried within 30s. Until it succeeds, pods are replaced and scaled at the recorded \
             revision. If it keeps failing, the message shows the cause: a quota, an admission webhook, or a \
             permission that the operator lacks.",
            [watch(snapshot), roll_back(snapshot)],
        ),
        WorkloadReason::PodRefused => say(
            "Fix the template, or the policy that rejects its pods (limit range, quota, pod security or admission \
             webhook). Until then, no pods are deleted for the update.",
            [watch(snapshot)],
        ),
        WorkloadReason::WriteFailed => say(
            "The write is retried within 30s. If it keeps failing, the message shows the cause: a permission that the \
             operator lacks, a quota, or an admission webhook.",
            [watch(snapshot)],
        ),
        WorkloadReason::PausedInManifest => say(
            "Remove the field from the manifest, then from the object.",
            [edit(snapshot, "remove spec.updateStrategy.paused")],
        ),
        WorkloadReason::SettingIneffective => say(
            "Set the other field, or remove the setting.",
            [edit(snapshot, "change the spec")],
        ),
        WorkloadReason::InvalidSpec => say(
            "Fix the spec. Until then, no pods are changed (if only spec.template is invalid, only updates stop).",
            [edit(snapshot, "fix the spec")],
        ),
    }
}

/// Returns whether a wait for this reason ends only if a person acts. The runbook has a section for each such reason.
pub(super) fn needs_person(reason: WorkloadReason, game: &GameDeployment) -> bool {
    match reason {
        WorkloadReason::Paused
        | WorkloadReason::PausedByStepBasedHook
        | WorkloadReason::WaitingForDeletion
        | WorkloadReason::LifecycleHookAborted
        | WorkloadReason::ProgressDeadlineExceeded
        | WorkloadReason::RolloutAborted
        | WorkloadReason::HookContainerMissing
        | WorkloadReason::HookUnsuccessful
        | WorkloadReason::HookErrors
        | WorkloadReason::HookCannotSucceed
        | WorkloadReason::HookTemplateMissing
        | WorkloadReason::HookTemplateInvalid
        | WorkloadReason::HookArgumentsUnresolved
        | WorkloadReason::HookRunNameInvalid
        | WorkloadReason::HookNotTakenUp
        | WorkloadReason::HookRunTerminating
        | WorkloadReason::NotInPlaceUpdatable
        | WorkloadReason::InPlaceStalled
        | WorkloadReason::IndexesExhausted
        | WorkloadReason::PodRefused
        | WorkloadReason::WriteFailed
        | WorkloadReason::RevisionNotRecorded
        | WorkloadReason::PodsEndAtOnce
        | WorkloadReason::RemovalsNotGuarded
        | WorkloadReason::PausedInManifest
        | WorkloadReason::SettingIneffective
        | WorkloadReason::InvalidSpec => true,
        WorkloadReason::PausedByCanaryPauseStep => waits_for_promotion(game),
        WorkloadReason::MinimumPodsAvailable
        | WorkloadReason::MinimumPodsUnavailable
        | WorkloadReason::RolloutComplete
        | WorkloadReason::RollingOut
        | WorkloadReason::Scaling
        | WorkloadReason::Deleting
        | WorkloadReason::HooksResolved
        | WorkloadReason::LifecycleHooksSucceeded
        | WorkloadReason::LifecycleHookIgnored
        | WorkloadReason::LifecycleHookRunning
        | WorkloadReason::LifecycleHookWaiting
        | WorkloadReason::LifecycleHookFailed
        | WorkloadReason::AbortRejected
        | WorkloadReason::HookVolumesIgnored
        | WorkloadReason::PodAddressMissing
        | WorkloadReason::HookVerdictExpired
        | WorkloadReason::HookRunEdited
        | WorkloadReason::PodsCreated
        | WorkloadReason::HooksAsked
        | WorkloadReason::PodsDeleted
        | WorkloadReason::PodsAdopted
        | WorkloadReason::PodsReleased
        | WorkloadReason::UnreadableObject
        | WorkloadReason::DeletionCostPartial
        | WorkloadReason::PodDeleted
        | WorkloadReason::PodUpdateStarted
        | WorkloadReason::PodUpdated
        | WorkloadReason::HookSkipped
        | WorkloadReason::NoticeFailed
        | WorkloadReason::RemovalsGuarded
        | WorkloadReason::GuardNotChecked
        | WorkloadReason::RemovalRequestExpired
        | WorkloadReason::PodLostUngated
        | WorkloadReason::EvictionReportFailed
        | WorkloadReason::PromotedDespiteFailure => false,
    }
}

/// Builds a remedy.
pub(super) fn say<const N: usize>(words: &str, commands: [Next; N]) -> Remedy {
    Remedy {
        cause: None,
        words: words.to_owned(),
        commands: commands.into(),
    }
}

/// Builds the command that describes the pod of a reason, or else the first pod that `concerns` selects.
pub(super) fn on_pod(snapshot: &Snapshot, about: About<'_>, concerns: fn(&Pod) -> bool) -> Next {
    let first = || find(snapshot, concerns).map(|pod| pod.name);
    match about.pod.map(str::to_owned).or_else(first) {
        Some(pod) => describe(snapshot, &pod),
        None => Next::new(ours(snapshot, "get"), "show its pods"),
    }
}

fn find(snapshot: &Snapshot, concerns: fn(&Pod) -> bool) -> Option<Pod> {
    snapshot.pods.iter().map(Pod::read).find(concerns)
}

/// Returns the remedy for a removal guard that is not in effect, or a missing hook.
fn not_guarded(snapshot: &Snapshot) -> Remedy {
    let strategy = snapshot.game.spec.pre_delete_update_strategy.as_ref();
    if strategy.is_none_or(|strategy| strategy.hook.is_none()) {
        return say("", [edit(snapshot, "set spec.preDeleteUpdateStrategy.hook")]);
    }
    let namespace = snapshot.game.namespace().unwrap_or_default();
    // Only the message says whether the guard is missing, incomplete or not enabled, so the remedy covers all three.
    say(
        "If the message names webhooks, upgrade the chart, or apply the manifest of hookgate-admission again. The \
         guard is checked again within a minute.",
        [
            Next::new(
                format!(
                    "kubectl get validatingwebhookconfigurations -l app.kubernetes.io/name=hookgate-admission -o \
                     yaml{}",
                    snapshot.flags
                ),
                "show the webhooks of the guard; none if hookgate-admission is not installed",
            ),
            Next::new(
                format!(
                    "kubectl label namespace {namespace} {REMOVAL_GUARD}={REMOVAL_GUARD_ENABLED} --overwrite{}",
                    snapshot.flags
                ),
                "enable the removal guard for the namespace, unless it is enabled",
            ),
        ],
    )
}

/// Returns the remedy for a failed check of the removal guard.
fn guard_not_checked(snapshot: &Snapshot) -> Remedy {
    say(
        "The check is repeated every minute.",
        // `-A` has precedence over a namespace in the flags.
        [Next::new(
            format!(
                "kubectl get deploy,pods -A -l app.kubernetes.io/name=hookgate-admission{}",
                snapshot.flags
            ),
            "check that hookgate-admission is running",
        )],
    )
}

fn waiting_for_deletion(snapshot: &Snapshot, about: About<'_>) -> Remedy {
    let command = match about.pod {
        Some(pod) => Next::new(
            format!("kubectl delete pod {pod}{}", snapshot.flags),
            "update this pod without running a hook, which disconnects its players",
        ),
        None => Next::new(ours(snapshot, "get"), "show its pods by revision"),
    };
    say(
        "With OnDelete, a pod is updated only when a user deletes it, and no hook runs.",
        [command],
    )
}

fn not_in_place_updatable(snapshot: &Snapshot) -> Remedy {
    say(
        "Roll back, or set spec.updateStrategy.inPlaceUpdateStrategy.fallback to Recreate, so that these pods are \
         recreated, each once its PreDelete hook succeeds.",
        [roll_back(snapshot), edit(snapshot, "set fallback to Recreate")],
    )
}

fn pods_end_at_once(snapshot: &Snapshot, about: About<'_>) -> Remedy {
    say(
        "These pods are kept until they are replaced, with increasing delays. Inspect one and fix the cause, or roll \
         back.",
        [on_pod(snapshot, about, Pod::is_finished), roll_back(snapshot)],
    )
}

fn container_missing(snapshot: &Snapshot) -> Remedy {
    say(
        "Fix execNewPod.containerName of the hook, or the container name in the template.",
        [edit(snapshot, "fix the container name")],
    )
}

fn canary_pause(snapshot: &Snapshot) -> Remedy {
    if waits_for_promotion(&snapshot.game) {
        say(
            "Continues once the rollout is promoted.",
            [Next::from(ours(snapshot, "promote"))],
        )
    } else {
        say(
            "Continues automatically once the pause is over.",
            [watch(snapshot)],
        )
    }
}

/// Returns whether the current canary step pauses until a person ends it.
fn waits_for_promotion(game: &GameDeployment) -> bool {
    is_paused(game) || !pauses_for_a_time(game)
}

/// Returns the remedy while a lifecycle hook runs.
fn lifecycle_running(snapshot: &Snapshot) -> Remedy {
    say(
        "Continues once the hook has finished. No further pods are updated until then.",
        [
            watch(snapshot),
            Next::new(
                format!("kubectl get hookruns -l {LIFECYCLE_HOOK}{}", snapshot.flags),
                "list HookRuns of lifecycle hooks",
            ),
        ],
    )
}

/// Returns the remedy while a lifecycle hook waits.
fn lifecycle_waiting(snapshot: &Snapshot) -> Remedy {
    say(
        "Continues when the rollout reaches the hook's trigger, or when the next attempt is due.",
        [watch(snapshot)],
    )
}

/// Returns the remedy for a rollout that a lifecycle hook aborted.
fn lifecycle_aborted(snapshot: &Snapshot) -> Remedy {
    let status = status_of(&snapshot.game);
    if rollback(&status).is_some() {
        return rolled_back(snapshot, "Fix the cause and restart the rollout");
    }
    let hooks = &status.lifecycle_hooks;
    let hook = hooks.iter().find(|hook| hook.phase.is_aborted());
    let hook = hook.map_or_else(|| "NAME".to_owned(), |hook| quoted(&hook.name));
    say(
        "Fix the cause and rerun the hook, fix the template, or roll back.",
        [
            Next::new(
                format!("{} --lifecycle {hook}", ours(snapshot, "retry")),
                "rerun the hook",
            ),
            roll_back(snapshot),
        ],
    )
}

fn deadline_exceeded(snapshot: &Snapshot) -> Remedy {
    let status = status_of(&snapshot.game);
    if rollback(&status).is_some() {
        return rolled_back(snapshot, "Fix the cause and restart the rollout");
    }
    let mut remedy = say(
        "Fix the cause and restart the timeout of the rollout, raise spec.updateStrategy.timeoutSeconds, or fix the \
         template.",
        [
            Next::new(ours(snapshot, "retry"), "restart the timeout of the rollout"),
            edit(snapshot, "raise timeoutSeconds, or fix the template"),
        ],
    );
    let strategy = snapshot.game.spec.update_strategy.as_ref();
    let is_recreate = strategy.is_some_and(|strategy| strategy.type_.as_deref() == Some("Recreate"));
    // Once every pod has the revision, it is the current one. In the first rollout, and in a rollback, it is from the
    // start.
    if status.current_revision.is_some() && status.current_revision != status.update_revision {
        let back = if is_recreate { "undo" } else { "abort" };
        remedy.words.push_str(" Alternatively, roll back.");
        remedy.commands.push(Next::new(ours(snapshot, back), "roll back"));
    }
    remedy
}

/// Returns the remedy for an aborted rollout whose pods are rolled back. `again` says how to restart it.
fn rolled_back(snapshot: &Snapshot, again: &str) -> Remedy {
    let mut remedy = say(
        &format!("{again}, fix the template, or roll it back."),
        [
            Next::new(ours(snapshot, "retry"), "restart the rollout"),
            Next::new(ours(snapshot, "undo"), "roll back the template"),
        ],
    );
    let status = status_of(&snapshot.game);
    let is_held = !rollback(&status).is_some_and(|rollback| rollback.ignores_pause);
    if is_held && is_paused(&snapshot.game) && status.updated_replicas > 0 {
        remedy.words = format!(
            "No pod is rolled back until the update is resumed. {}",
            remedy.words
        );
        let resume = Next::new(ours(snapshot, "resume"), "let the pods roll back");
        remedy.commands.insert(0, resume);
    }
    remedy
}

/// Returns whether the current canary step pauses for a limited time.
pub(crate) fn pauses_for_a_time(game: &GameDeployment) -> bool {
    let strategy = game.spec.update_strategy.as_ref();
    let steps = strategy.and_then(|strategy| strategy.canary.as_ref()?.steps.as_ref());
    let place = status_of(game)
        .current_step_index
        .and_then(|index| usize::try_from(index).ok());
    let step = steps.zip(place).and_then(|(steps, place)| steps.get(place));
    step.and_then(|step| step.pause.as_ref()?.duration).is_some()
}

/// Returns whether the update is paused, by a person or a canary step.
pub(crate) fn is_paused(game: &GameDeployment) -> bool {
    let strategy = game.spec.update_strategy.as_ref();
    strategy.and_then(|strategy| strategy.paused) == Some(true)
}

fn widen(snapshot: &Snapshot) -> Next {
    let name = snapshot.game.name_any();
    Next::from(format!(
        "kubectl annotate gd {name} --overwrite {INDEX_RANGE}='{{\"podStartIndex\":0,\"podEndIndex\":NUMBER}}'{}",
        snapshot.flags
    ))
}
