//! Remedy for each reason: what would end the wait, and which command does it.

use gamedeployment_core::hook_kind::HookKind;
use kube::ResourceExt;
use shared_api::GameDeployment;
use shared_api::names::hook_run_label::LIFECYCLE_HOOK;
use shared_api::names::workload::INDEX_RANGE;
use shared_api::reason::WorkloadReason;

use super::{ours, watch};
use crate::cluster::Snapshot;
use crate::view::state::rollback;
use crate::view::{hook_name, status_of};

/// Remedy for a reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Remedy {
    /// Description; empty if nothing waits.
    pub(super) words: String,
    /// Commands to run.
    pub(super) commands: Vec<String>,
}

/// Subject of a reason.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct About<'a> {
    /// Hook, if the reason concerns a hook of a pod.
    pub(super) kind: Option<HookKind>,
    pub(super) pod: Option<&'a str>,
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
        | WorkloadReason::LifecycleHooksSucceeded
        | WorkloadReason::LifecycleHookIgnored
        | WorkloadReason::LifecycleHookFailed
        | WorkloadReason::AbortRejected
        | WorkloadReason::HookVolumesIgnored
        | WorkloadReason::PromotedDespiteFailure => Remedy::default(),
        WorkloadReason::MinimumPodsUnavailable => say(
            "It mends itself when these pods are ready; why one is not, its events tell.",
            [describe(snapshot, about)],
        ),
        WorkloadReason::RollingOut | WorkloadReason::Scaling => {
            say("It goes on by itself; nothing is to be done.", [watch(snapshot)])
        }
        WorkloadReason::LifecycleHookRunning => lifecycle_running(snapshot),
        WorkloadReason::LifecycleHookWaiting => lifecycle_waiting(snapshot),
        WorkloadReason::LifecycleHookAborted => lifecycle_aborted(snapshot),
        WorkloadReason::ProgressDeadlineExceeded => deadline_exceeded(snapshot),
        WorkloadReason::RolloutAborted => rolled_back(snapshot, "Begin the rollout again"),
        WorkloadReason::HookContainerMissing => container_missing(snapshot),
        WorkloadReason::Paused => say("It goes on when it is resumed.", [ours(snapshot, "resume")]),
        WorkloadReason::PausedByCanaryPauseStep => canary_pause(snapshot),
        WorkloadReason::PausedByStepBasedHook => canary_hook(snapshot),
        WorkloadReason::WaitingForDeletion => say(
            "With OnDelete a pod is updated when somebody deletes it; no hook is asked then.",
            [on_pod("delete", snapshot, about)],
        ),
        WorkloadReason::HookUnsuccessful => unsuccessful(snapshot, about),
        WorkloadReason::HookTemplateMissing
        | WorkloadReason::HookTemplateInvalid
        | WorkloadReason::HookArgumentsUnresolved
        | WorkloadReason::HookRunNameInvalid
        | WorkloadReason::PodAddressMissing => unaskable(reason, snapshot, about),
        WorkloadReason::HookNotTakenUp => not_taken_up(snapshot),
        WorkloadReason::NotInPlaceUpdatable => say(
            "Take the change back, or let such pods be recreated, gated by their PreDelete hook: set \
             spec.updateStrategy.inPlaceUpdateStrategy.fallback to Recreate.",
            [ours(snapshot, "undo"), edit(snapshot)],
        ),
        WorkloadReason::InPlaceStalled => {
            let image = format!("{} CONTAINER=IMAGE", ours(snapshot, "set image"));
            say(
                "It goes on by itself as soon as its containers run the new images.",
                [image, ours(snapshot, "undo"), describe(snapshot, about)],
            )
        }
        WorkloadReason::IndexesExhausted => say("Widen the range of indexes.", [widen(snapshot)]),
        WorkloadReason::PodsEndAtOnce => say(
            "They are replaced with a back-off. The pods that ended stay until then: look at one of them, mend the cause, or \
             take the change back.",
            [describe(snapshot, about), ours(snapshot, "undo")],
        ),
        WorkloadReason::HookRunTerminating => say(
            "Look for metadata.finalizers of that HookRun, and mend what should remove them. The gate stays closed until \
             it is gone.",
            [watch(snapshot)],
        ),
        WorkloadReason::RevisionNotRecorded => say(
            "It is tried again, after 30 s at the latest, and pods are healed and scaled at the recorded revision. If it \
             stays so, the cause is in these words: a quota, an admission webhook, rights of the operator.",
            [watch(snapshot), ours(snapshot, "undo")],
        ),
        WorkloadReason::PodRefused => say(
            "Correct the template, or what refuses its pods: a limit range, a quota, pod security, an admission webhook. \
             Until then no pod is deleted for the update.",
            [watch(snapshot)],
        ),
        WorkloadReason::WriteFailed => say(
            "It is tried again, after 30 s at the latest. If it stays so, the cause is in these words: rights of the \
             operator, a quota, an admission webhook.",
            [watch(snapshot)],
        ),
        WorkloadReason::PausedInManifest => say(
            "Remove the field from the manifest, then from the object.",
            [edit(snapshot)],
        ),
        WorkloadReason::InvalidSpec => say(
            "Correct the spec. Until then nothing is done to any pod; where only spec.template has problems, no pod is updated.",
            [edit(snapshot)],
        ),
    }
}

fn say<const N: usize>(words: &str, commands: [String; N]) -> Remedy {
    Remedy {
        words: words.to_owned(),
        commands: commands.into(),
    }
}

fn edit(snapshot: &Snapshot) -> String {
    format!("kubectl edit gd {}{}", snapshot.game.name_any(), snapshot.flags)
}

fn describe(snapshot: &Snapshot, about: About<'_>) -> String {
    on_pod("describe", snapshot, about)
}

fn on_pod(verb: &str, snapshot: &Snapshot, about: About<'_>) -> String {
    format!(
        "kubectl {verb} pod {}{}",
        about.pod.unwrap_or("POD"),
        snapshot.flags
    )
}

/// Returns the remedy for a hook that cannot run: the gate stays closed until the cause is gone, then
/// continues automatically.
fn unaskable(reason: WorkloadReason, snapshot: &Snapshot, about: About<'_>) -> Remedy {
    let flags = &snapshot.flags;
    match reason {
        WorkloadReason::HookTemplateMissing => say(
            "It goes on by itself as soon as the HookTemplate is there and can be read.",
            [
                format!("kubectl apply -f TEMPLATE.yaml{flags}"),
                format!("kubectl get hooktemplates{flags}"),
            ],
        ),
        WorkloadReason::HookTemplateInvalid => say(
            "It goes on by itself as soon as the HookTemplate is correct.",
            [format!("kubectl edit hooktemplate NAME{flags}")],
        ),
        WorkloadReason::HookArgumentsUnresolved => say(
            "Give these arguments a value, in the workload's hook.args or in the template; it goes on by itself then.",
            [edit(snapshot)],
        ),
        WorkloadReason::HookRunNameInvalid => say(
            "Delete the HookRun that has the name, or give the template a shorter name; it goes on by itself then.",
            [format!("kubectl delete hookrun NAME{flags}")],
        ),
        _ => say(
            "It goes on by itself as soon as the pod has an address.",
            [describe(snapshot, about)],
        ),
    }
}

fn not_taken_up(snapshot: &Snapshot) -> Remedy {
    say(
        "It goes on by itself as soon as hook-operator measures the HookRun.",
        [
            "kubectl get pods -A -l app.kubernetes.io/name=hook-operator".to_owned(),
            format!("kubectl game hook list{}", snapshot.flags),
        ],
    )
}

fn container_missing(snapshot: &Snapshot) -> Remedy {
    say(
        "Correct execNewPod.containerName of the hook, or the name of the container in the template.",
        [edit(snapshot)],
    )
}

fn unsuccessful(snapshot: &Snapshot, about: About<'_>) -> Remedy {
    let (name, flags) = (snapshot.game.name_any(), &snapshot.flags);
    let hook = about
        .kind
        .map(|kind| format!(" --hook {}", flag_of(kind)))
        .unwrap_or_default();
    let words = match about.kind {
        Some(kind) => format!(
            "Ask its {} hook again, or let this one pod pass without asking.",
            hook_name(kind)
        ),
        None => "Ask again.".to_owned(),
    };
    let skip = about
        .pod
        .map(|pod| format!("kubectl game skip {pod} --reason 'WHY'{flags}"));
    Remedy {
        words,
        commands: [format!("kubectl game retry {name}{hook}{flags}")]
            .into_iter()
            .chain(skip)
            .collect(),
    }
}

/// Returns the value of `--hook` for a hook.
pub(crate) fn flag_of(kind: HookKind) -> &'static str {
    match kind {
        HookKind::PreDelete => "pre-delete",
        HookKind::PreInplace => "pre-inplace",
        HookKind::PostInplace => "post-inplace",
    }
}

fn canary_pause(snapshot: &Snapshot) -> Remedy {
    if is_paused(&snapshot.game) || !pauses_for_a_time(&snapshot.game) {
        return Remedy {
            words: "It goes on when somebody promotes it.".to_owned(),
            commands: vec![ours(snapshot, "promote")],
        };
    }
    Remedy {
        words: "It goes on by itself when the time is over.".to_owned(),
        commands: vec![watch(snapshot)],
    }
}

fn canary_hook(snapshot: &Snapshot) -> Remedy {
    let promote = ours(snapshot, "promote");
    say(
        "Remove the cause, then run the hook again; or go on despite the failure, with a reason; or go back: undo, then \
         resume.",
        [
            ours(snapshot, "retry"),
            format!("{promote} --despite-failure --reason 'WHY'"),
            ours(snapshot, "undo"),
        ],
    )
}

/// Returns the remedy while a lifecycle hook runs.
fn lifecycle_running(snapshot: &Snapshot) -> Remedy {
    say(
        "Continues when the hook has ended. No more pods are updated before.",
        [
            watch(snapshot),
            format!("kubectl get hookruns -l {LIFECYCLE_HOOK}{}", snapshot.flags),
        ],
    )
}

/// Returns the remedy while a lifecycle hook waits.
fn lifecycle_waiting(snapshot: &Snapshot) -> Remedy {
    say(
        "Continues when the hook's point is reached, or at the time of its next attempt.",
        [watch(snapshot)],
    )
}

/// Returns the remedy for a rollout that a lifecycle hook aborted.
fn lifecycle_aborted(snapshot: &Snapshot) -> Remedy {
    let status = status_of(&snapshot.game);
    if rollback(&status).is_some() {
        return rolled_back(snapshot, "Remove the cause, then begin the rollout again");
    }
    let hooks = &status.lifecycle_hooks;
    let hook = hooks.iter().find(|hook| hook.phase.is_aborted());
    let hook = hook.map_or("NAME", |hook| hook.name.as_str());
    say(
        "Remove the cause, then run the hook again; or correct the template, or go back.",
        [
            format!("{} --lifecycle {hook}", ours(snapshot, "retry")),
            ours(snapshot, "undo"),
        ],
    )
}

fn deadline_exceeded(snapshot: &Snapshot) -> Remedy {
    let status = status_of(&snapshot.game);
    if rollback(&status).is_some() {
        return rolled_back(snapshot, "Remove the cause, then begin the rollout again");
    }
    let mut remedy = say(
        "Remove the cause, then give the rollout its time again; or raise spec.updateStrategy.timeoutSeconds, or correct the \
         template.",
        [ours(snapshot, "retry"), edit(snapshot)],
    );
    let strategy = snapshot.game.spec.update_strategy.as_ref();
    let is_recreate = strategy.is_some_and(|strategy| strategy.type_.as_deref() == Some("Recreate"));
    // Once every pod has the revision, it is the current one. In the first rollout, and on the way back, it is from the
    // start.
    if status.current_revision.is_some() && status.current_revision != status.update_revision {
        let back = if is_recreate { "undo" } else { "abort" };
        remedy.words.push_str(" Or go back.");
        remedy.commands.push(ours(snapshot, back));
    }
    remedy
}

/// Returns the remedy for an aborted rollout whose pods go back. `again` says how to begin it again.
fn rolled_back(snapshot: &Snapshot, again: &str) -> Remedy {
    let mut remedy = say(
        &format!("{again}; or correct the template, or set it back to the earlier one."),
        [ours(snapshot, "retry"), ours(snapshot, "undo")],
    );
    let status = status_of(&snapshot.game);
    let is_held = !rollback(&status).is_some_and(|rollback| rollback.ignores_pause);
    if is_held && is_paused(&snapshot.game) && status.updated_replicas > 0 {
        remedy.words = format!("No pod goes back until it is resumed. {}", remedy.words);
        remedy.commands.insert(0, ours(snapshot, "resume"));
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

fn widen(snapshot: &Snapshot) -> String {
    let name = snapshot.game.name_any();
    format!(
        "kubectl annotate gd {name} --overwrite {INDEX_RANGE}='{{\"podStartIndex\":0,\"podEndIndex\":NUMBER}}'{}",
        snapshot.flags
    )
}
