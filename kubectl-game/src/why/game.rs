//! Explains why a workload waits: everything that needs a person, or else its progress.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;
use shared_api::GameDeploymentStatus;
use shared_api::reason::{WorkloadCondition, WorkloadReason};

use super::deletion;
use super::hooks::{self, HookExplanation};
use super::next::watch;
use super::pods::{self, NotStarting};
use super::remedy::{self, About, Remedy};
use super::{Explanation, capitalized, first_idle, partition, removal, sentence, template};
use crate::cluster::Snapshot;
use crate::view::state::{condition, held, unguarded, unresolved, unseen};
use crate::view::status_of;
use crate::view::waits::{causes, is_about};

pub(super) fn answer(snapshot: &Snapshot) -> Explanation {
    let name = snapshot.game.name_any();
    if let Some(answer) = deletion::explain(snapshot) {
        return answer;
    }
    if let Some(words) = unseen(&snapshot.game) {
        let is = if deletion::is_requested(snapshot) {
            "is being deleted, and is"
        } else {
            "is"
        };
        let text = format!("{name} {is} waiting for the operator: {}", sentence(&words));
        let mut answer = Explanation::new(text, [watch(snapshot)]);
        removal::explain(snapshot, &mut answer);
        return answer;
    }
    let status = status_of(&snapshot.game);
    let failing = pods::failing(snapshot);
    let of_pods = pods::explain(snapshot, &failing);
    let mut answer = blocked(snapshot, &status, &failing);
    let is_invalid = held(&status, WorkloadCondition::InvalidSpec).is_some();
    let HookExplanation {
        explanation: of_hooks,
        skips,
    } = if is_invalid {
        HookExplanation::default()
    } else {
        hooks::explain(snapshot)
    };
    if answer.paragraphs.is_empty() {
        let is_quiet = of_hooks.paragraphs.is_empty() && failing.is_empty();
        let Explanation {
            paragraphs,
            next,
            runbook,
        } = progress(snapshot, &status, is_quiet, failing.is_empty());
        // Pods that do not start are the cause of what the progress shows.
        if !failing.is_empty() {
            answer.say(&unavailable(snapshot, &status));
            answer.extend(of_pods);
            if too_few(&status).is_some() {
                answer.extend(pods::explain_others(snapshot));
            }
        }
        answer.paragraphs.extend(paragraphs);
        // Commands that end errors of hooks come before those of the progress.
        answer.extend(of_hooks);
        answer.extend(Explanation {
            next,
            runbook,
            ..Explanation::default()
        });
        explain_settings(snapshot, &status, failing.is_empty(), &mut answer);
    } else if is_stalled(&status, &failing) {
        answer.extend(of_pods);
        answer.extend(of_hooks);
    } else {
        answer.extend(of_hooks);
        answer.extend(of_pods);
    }
    if !is_invalid {
        answer.extend(first_idle::explain(snapshot, &status));
    }
    removal::explain(snapshot, &mut answer);
    // A skip is for one pod. With more of them, it is suggested for each pod by itself.
    if let [skip] = skips.as_slice() {
        answer.add(skip.clone());
    }
    answer
}

/// Explains the conditions that need a person. Of those about hooks of pods, and about pods that do not start, it names
/// only the reason.
fn blocked(snapshot: &Snapshot, status: &GameDeploymentStatus, failing: &[NotStarting]) -> Explanation {
    let name = snapshot.game.name_any();
    let causes = causes(&snapshot.game);
    let scaling = if deletion::is_requested(snapshot) {
        "The deletion"
    } else {
        "Scaling"
    };
    let mut answer = Explanation::default();
    for (kind, headline) in [
        (
            WorkloadCondition::InvalidSpec,
            format!("The spec of {name} is invalid"),
        ),
        (
            WorkloadCondition::ScaleBlocked,
            format!("{scaling} of {name} is blocked and needs attention"),
        ),
        (
            WorkloadCondition::UpdateBlocked,
            format!("The update of {name} is blocked and needs attention"),
        ),
    ] {
        let Some(found) = held(status, kind) else { continue };
        // The hooks are explained from their entries and HookRuns.
        if is_about(found, &causes) || hooks::explains_rollout(snapshot, &found.reason) {
            answer.say(&format!("{headline} ({}).", found.reason));
        } else if pods::explains(snapshot, failing, found) {
            answer.say(&format!("{headline} ({}).", found.reason));
            answer.link(WorkloadReason::named(&found.reason), snapshot);
        } else {
            let template = template::of_rollout(&snapshot.game, &found.reason);
            let template = template.or_else(|| template::only(&snapshot.game));
            explain_condition(snapshot, &mut answer, found, &headline, template);
        }
    }
    answer
}

/// Returns whether an update in place does not finish because of these pods.
fn is_stalled(status: &GameDeploymentStatus, failing: &[NotStarting]) -> bool {
    held(status, WorkloadCondition::UpdateBlocked).is_some_and(|found| pods::are_named(failing, found))
}

/// Describes how many pods are available.
fn unavailable(snapshot: &Snapshot, status: &GameDeploymentStatus) -> String {
    let name = snapshot.game.name_any();
    let (available, desired) = (
        status.available_replicas,
        snapshot.game.spec.replicas.unwrap_or(1),
    );
    match too_few(status) {
        Some(found) => format!(
            "{name} has too few available pods ({}): {available} of {desired}.",
            found.reason
        ),
        None => format!("{name} has pods that fail to start: {available} of {desired} pods are available."),
    }
}

/// Explains the progress. `is_quiet`: no hook brings errors, and no pod reports one. `all_start`: no pod does.
fn progress(
    snapshot: &Snapshot,
    status: &GameDeploymentStatus,
    is_quiet: bool,
    all_start: bool,
) -> Explanation {
    let name = snapshot.game.name_any();
    let Some(found) = condition(status, WorkloadCondition::Progressing) else {
        let text = format!("{name}: gamedeployment-operator has not reported a status yet.");
        return Explanation::new(text, []);
    };
    let message = sentence(&found.message);
    let reason = WorkloadReason::named(&found.reason);
    if reason == Some(WorkloadReason::RolloutComplete) {
        let staying = partition::explain(snapshot, status, all_start);
        let is_waiting = status.hook_pending_replicas > 0;
        let text = if is_waiting {
            format!("{name} is waiting for hooks. {}", capitalized(&message))
        } else if !is_quiet
            || too_few(status).is_some()
            || unresolved(status).is_some()
            || unguarded(status).is_some()
        {
            format!("The rollout of {name} is complete: {message}")
        } else {
            format!("{name} is not waiting: {message}")
        };
        let mut answer = Explanation::default();
        if is_waiting || staying.is_none() {
            answer.say(&text);
        }
        answer.extend(staying.unwrap_or_default());
        return answer;
    }
    let headline = match reason {
        Some(WorkloadReason::Scaling) => format!("{name} is scaling"),
        Some(WorkloadReason::Deleting) => format!("{name} is waiting"),
        Some(_) | None => format!("{name} is being updated"),
    };
    let is_automatic = matches!(
        reason,
        Some(WorkloadReason::Scaling | WorkloadReason::RollingOut | WorkloadReason::Deleting)
    );
    // Errors of a hook, and pods that do not start, need action.
    if is_automatic && !is_quiet {
        let text = format!("{headline} ({}): {message}", found.reason);
        return Explanation::new(text, [watch(snapshot)]);
    }
    let mut answer = Explanation::default();
    explain_condition(snapshot, &mut answer, found, &headline, None);
    answer
}

/// Returns the condition that too few pods are available, if so.
fn too_few(status: &GameDeploymentStatus) -> Option<&Condition> {
    condition(status, WorkloadCondition::Available).filter(|found| found.status == "False")
}

/// Explains missing pods, hooks that cannot run, and settings that should be changed. `all_start`: no pod reports an
/// error.
fn explain_settings(
    snapshot: &Snapshot,
    status: &GameDeploymentStatus,
    all_start: bool,
    answer: &mut Explanation,
) {
    let name = snapshot.game.name_any();
    if let Some(found) = too_few(status).filter(|_| all_start) {
        let headline = format!("{name} has too few available pods");
        explain_condition(snapshot, answer, found, &headline, None);
    }
    if let Some(found) = unresolved(status) {
        let headline = format!("{name} has a hook that cannot run");
        let template = template::only(&snapshot.game);
        explain_condition(snapshot, answer, found, &headline, template);
    }
    if let Some(found) = unguarded(status) {
        let headline = if found.status == "False" {
            format!("{name} is not protected by the removal guard")
        } else {
            format!("it is unknown whether {name} is protected by the removal guard")
        };
        explain_condition(snapshot, answer, found, &headline, None);
    }
    if let Some(found) = held(status, WorkloadCondition::SpecWarning) {
        let headline = format!("{name} has a setting that should be changed");
        explain_condition(snapshot, answer, found, &headline, None);
    }
}

/// Adds a condition with its remedy.
fn explain_condition(
    snapshot: &Snapshot,
    answer: &mut Explanation,
    condition: &Condition,
    headline: &str,
    template: Option<&str>,
) {
    let reason = WorkloadReason::named(&condition.reason);
    let about = About {
        template,
        runs_named_in: Some(&condition.message),
        ..About::default()
    };
    let Remedy {
        cause,
        words,
        commands,
    } = reason
        .map(|reason| remedy::of(reason, snapshot, about))
        .unwrap_or_default();
    let message = cause.unwrap_or_else(|| sentence(&condition.message));
    let paused = matches!(
        reason,
        Some(
            WorkloadReason::Paused
                | WorkloadReason::PausedByCanaryPauseStep
                | WorkloadReason::PausedByStepBasedHook
        )
    );
    let paused = paused.then(|| format!("{} is paused", snapshot.game.name_any()));
    let headline = paused.as_deref().unwrap_or(headline);
    answer.say(&format!("{headline} ({}): {message} {words}", condition.reason));
    for command in commands {
        answer.add(command);
    }
    answer.link(reason, snapshot);
}
