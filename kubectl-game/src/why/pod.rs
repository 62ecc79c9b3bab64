//! Explains why a pod waits: the planned action, what blocks it, and how to unblock it.

use gamedeployment_core::hook_kind::HookKind;
use gamedeployment_core::pod::Pod;
use gamedeployment_core::status::is_not_taken_up;
use k8s_openapi::api::core::v1 as api;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;
use shared_api::game_deployment::HookCondition;
use shared_api::names::hook_run_annotation::INTENT;
use shared_api::names::pod::{DELETING, REVISION, SKIP_HOOK};
use shared_api::reason::{WorkloadCondition, WorkloadReason};
use shared_api::{GameDeploymentStatus, Phase};

use super::remedy::{self, About};
use super::{Explanation, sentence, watch};
use crate::cluster::Snapshot;
use crate::view::pod::waiting;
use crate::view::state::{condition, held, rollback, unseen};
use crate::view::{hook_name, runs_of, status_of};

pub(super) fn answer(snapshot: &Snapshot, object: &api::Pod) -> Explanation {
    let pod = Pod::read(object);
    let status = status_of(&snapshot.game);
    let mut answer = None;
    // The first explanation that applies wins.
    for asked in [
        over,
        unseen_or_invalid,
        hook,
        stalled,
        chosen,
        out_of_service,
        old,
        unready,
    ] {
        answer = answer.or_else(|| asked(snapshot, &status, &pod));
    }
    let mut answer = answer.unwrap_or_else(|| content(snapshot, &status, &pod));
    answer.text.push_str(&skipping(&pod));
    answer
}

/// The pod has ended or is terminating.
fn over(_: &Snapshot, _: &GameDeploymentStatus, pod: &Pod) -> Option<Explanation> {
    let name = &pod.name;
    if pod.terminating {
        let text =
            format!("Pod {name} does not wait: it is being deleted, and ends within its own grace period.");
        return Some(Explanation::new(text, []));
    }
    pod.is_finished().then(|| {
        let text = format!("Pod {name} does not wait: it has ended by itself, and no longer counts. Its object stays until somebody deletes it.");
        Explanation::new(text, [])
    })
}

fn unseen_or_invalid(snapshot: &Snapshot, status: &GameDeploymentStatus, pod: &Pod) -> Option<Explanation> {
    let game = snapshot.game.name_any();
    if let Some(words) = unseen(&snapshot.game) {
        let text = format!(
            "Nobody knows yet what pod {} waits for: {}",
            pod.name,
            sentence(&words)
        );
        return Some(Explanation::new(text, [watch(snapshot)]));
    }
    let invalid = held(status, WorkloadCondition::InvalidSpec)?;
    let remedy = remedy::of(WorkloadReason::InvalidSpec, snapshot, About::default());
    let text = format!(
        "Nothing is done to pod {}: the spec of {game} cannot be worked on. {} {}",
        pod.name,
        sentence(&invalid.message),
        remedy.words
    );
    Some(Explanation::new(text, remedy.commands))
}

/// The pod's hook is running, has failed, or cannot run.
fn hook(snapshot: &Snapshot, status: &GameDeploymentStatus, pod: &Pod) -> Option<Explanation> {
    let (kind, entry) = waiting(snapshot, &pod.name)?;
    let hook = hook_name(kind);
    let begun = format!("Pod {} waits: {}", pod.name, intent(snapshot, pod, kind));
    if entry.hook_run.is_none() || is_not_taken_up(&entry) {
        return Some(blocked(snapshot, status, pod, kind, &entry, &begun));
    }
    let run = entry.hook_run.clone().unwrap_or_default();
    let look = format!("kubectl game hook get {run}{}", snapshot.flags);
    let said = runs_of(snapshot, &pod.uid)
        .find(|known| known.metadata.name.as_deref() == Some(run.as_str()))
        .and_then(|known| known.status.as_ref()?.message.clone());
    if !entry.phase.is_final() {
        let so_far = said
            .map(|said| format!(" So far: {}", sentence(&said)))
            .unwrap_or_default();
        let text = format!(
            "{begun} and its {hook} hook is being asked by HookRun {run}.{so_far} It goes on by itself when the hook says \
             yes; until then the pod serves on."
        );
        return Some(Explanation::new(
            text,
            [format!("kubectl game hook get {run} -w{}", snapshot.flags)],
        ));
    }
    let verdict = if entry.phase == Phase::Successful {
        "is Successful without a measured success, which opens nothing".to_owned()
    } else {
        let said = said.map(|said| format!(": {said}")).unwrap_or_default();
        format!("is {}{said}", entry.phase)
    };
    let consequence = match kind {
        HookKind::PreDelete | HookKind::PreInplace => "The pod serves on as it is.",
        HookKind::PostInplace => "It serves on, and no further pod is updated.",
    };
    let about = About {
        kind: Some(kind),
        pod: Some(&pod.name),
    };
    let remedy = remedy::of(WorkloadReason::HookUnsuccessful, snapshot, about);
    let said = sentence(&format!(
        "{begun} and its {hook} hook did not say yes. HookRun {run} {verdict}"
    ));
    let text = format!("{said} {consequence} {}", remedy.words);
    Some(Explanation::new(text, remedy.commands.into_iter().chain([look])))
}

fn blocked(
    snapshot: &Snapshot,
    status: &GameDeploymentStatus,
    pod: &Pod,
    kind: HookKind,
    entry: &HookCondition,
    begun: &str,
) -> Explanation {
    let message = entry.message.clone().unwrap_or_default();
    let about = About {
        kind: Some(kind),
        pod: Some(&pod.name),
    };
    // The condition carries the reason of the pod that has waited longest; other pods may have other reasons.
    let conditions = [WorkloadCondition::ScaleBlocked, WorkloadCondition::UpdateBlocked];
    let mut conditions = conditions.into_iter().filter_map(|kind| held(status, kind));
    let named = conditions.find(|condition| {
        condition
            .message
            .contains(&format!("pod {}: {message}", pod.name))
    });
    let found = named.and_then(|condition| WorkloadReason::named(&condition.reason));
    let remedy = found
        .or(is_not_taken_up(entry).then_some(WorkloadReason::HookNotTakenUp))
        .map(|reason| remedy::of(reason, snapshot, about))
        .unwrap_or_default();

    let text = format!(
        "{begun} and {} The gate stays closed. {}",
        sentence(&message),
        remedy.words
    );
    // Inserts the name of the conflicting run.
    let taken = message
        .split_once(" exists and does not belong")
        .and_then(|(before, _)| before.rsplit(' ').next());
    let commands = remedy.commands.into_iter().map(|command| match taken {
        Some(run) => command.replace("hookrun NAME", &format!("hookrun {run}")),
        None => command,
    });
    Explanation::new(text.trim_end(), commands)
}

/// Describes the planned action on the pod, with a trailing comma.
fn intent(snapshot: &Snapshot, pod: &Pod, kind: HookKind) -> String {
    let run = runs_of(snapshot, &pod.uid).find_map(|run| run.annotations().get(INTENT).cloned());
    let chosen = pod
        .annotation(shared_api::names::pod::CHOSEN_FOR)
        .map(str::to_owned);
    let intent = run.or(chosen).unwrap_or_default();
    let (act, rest) = intent.split_once([':', '@']).unwrap_or((&intent, ""));
    let to = rest.split('@').next().unwrap_or_default();
    match (act, kind) {
        ("delete", _) => "it is to be deleted,".to_owned(),
        ("recreate", _) => format!("it is to be deleted and created again at revision {to},"),
        ("in-place", _) => format!("it is to be updated in place to revision {to},"),
        ("confirm", _) | (_, HookKind::PostInplace) => "it was updated in place,".to_owned(),
        (_, HookKind::PreInplace) => "it is to be updated in place,".to_owned(),
        (_, HookKind::PreDelete) => "it is to be deleted or updated,".to_owned(),
    }
}

/// The pod's update does not finish or cannot start.
fn stalled(snapshot: &Snapshot, status: &GameDeploymentStatus, pod: &Pod) -> Option<Explanation> {
    let at_old = is_old(status, pod);
    for kind in [WorkloadCondition::UpdateBlocked, WorkloadCondition::ScaleBlocked] {
        let Some(found) = held(status, kind) else { continue };
        let reason = WorkloadReason::named(&found.reason)?;
        let concerned = match reason {
            WorkloadReason::InPlaceStalled => found.message.contains(&pod.name),
            WorkloadReason::NotInPlaceUpdatable
            | WorkloadReason::PausedByStepBasedHook
            | WorkloadReason::RevisionNotRecorded => at_old,
            WorkloadReason::PodsEndAtOnce | WorkloadReason::HookRunTerminating => {
                found.message.contains(&pod.name)
            }
            WorkloadReason::WriteFailed => found.message.contains(&pod.name) || at_old,
            _ => false,
        };
        if concerned {
            return Some(explain_condition(snapshot, pod, found, reason));
        }
    }
    None
}

fn explain_condition(
    snapshot: &Snapshot,
    pod: &Pod,
    found: &Condition,
    reason: WorkloadReason,
) -> Explanation {
    let about = About {
        kind: None,
        pod: Some(&pod.name),
    };
    let remedy = remedy::of(reason, snapshot, about);
    let text = format!(
        "Pod {} waits ({}): {} {}",
        pod.name,
        found.reason,
        sentence(&super::brief(&found.message)),
        remedy.words
    );
    Explanation::new(text, remedy.commands)
}

/// The pod is selected for deletion, and no hook blocks it.
fn chosen(snapshot: &Snapshot, status: &GameDeploymentStatus, pod: &Pod) -> Option<Explanation> {
    (pod.annotation(DELETING) == Some("true")).then(|| {
        let progress = condition(status, WorkloadCondition::Progressing);
        let progress = progress.map(|found| sentence(&found.message)).unwrap_or_default();
        let listed = usize::try_from(status.hook_pending_replicas).unwrap_or_default();
        let more = if listed > 100 {
            format!(" {listed} pods wait for a hook, and the status names 100 of them.")
        } else {
            String::new()
        };
        let text = format!(
            "Pod {} waits for its turn: it is chosen to be deleted, and goes when its hook says yes and enough other pods \
             are available.{more} {progress}",
            pod.name
        );
        Explanation::new(text.trim_end(), [watch(snapshot)])
    })
}

fn out_of_service(snapshot: &Snapshot, status: &GameDeploymentStatus, pod: &Pod) -> Option<Explanation> {
    pod.is_out_of_service().then(|| {
        let progress = condition(status, WorkloadCondition::Progressing);
        let progress = progress.map(|found| sentence(&found.message)).unwrap_or_default();
        let text = format!(
            "Pod {} is being updated in place: it is out of service until its containers run the new images. {progress}",
            pod.name
        );
        Explanation::new(text.trim_end(), [watch(snapshot)])
    })
}

/// The pod is at an old revision and not yet due for its update.
fn old(snapshot: &Snapshot, status: &GameDeploymentStatus, pod: &Pod) -> Option<Explanation> {
    let found = condition(status, WorkloadCondition::Progressing).filter(|_| is_old(status, pod))?;
    let reason = WorkloadReason::named(&found.reason)?;
    if reason == WorkloadReason::RolloutComplete {
        let text = format!(
            "Pod {} is at an old revision, and stays there: {} To update it, lower spec.updateStrategy.partition.",
            pod.name,
            sentence(&found.message)
        );
        let patch = r#"{"spec":{"updateStrategy":{"partition":0}}}"#;
        let name = snapshot.game.name_any();
        return Some(Explanation::new(
            text,
            [format!(
                "kubectl patch gd {name} --type=merge -p '{patch}'{}",
                snapshot.flags
            )],
        ));
    }
    Some(explain_condition(snapshot, pod, found, reason))
}

/// No action is planned for the pod, but it is not ready.
fn unready(snapshot: &Snapshot, _: &GameDeploymentStatus, pod: &Pod) -> Option<Explanation> {
    if pod.is_ready() {
        return None;
    }
    let describe = format!("kubectl describe pod {}{}", pod.name, snapshot.flags);
    let why = pod
        .complaint()
        .unwrap_or_else(|| "its containers are starting, or their readiness probes fail".to_owned());
    let text = format!(
        "Pod {} waits to be ready: {} No hook keeps it.",
        pod.name,
        sentence(&why)
    );
    Some(Explanation::new(text, [describe]))
}

/// The pod does not wait.
fn content(snapshot: &Snapshot, status: &GameDeploymentStatus, pod: &Pod) -> Explanation {
    let revision = if status.update_revision.as_deref() == Some(pod.revision()) {
        "has the newest revision"
    } else {
        "has the revision that it is to have"
    };
    let text = format!(
        "Pod {} does not wait: it is ready, {revision}, and nothing is to be done to it in {}.",
        pod.name,
        snapshot.game.name_any()
    );
    Explanation::new(text, [])
}

/// Returns whether pods are updated, or go back, to another revision than that of the pod.
fn is_old(status: &GameDeploymentStatus, pod: &Pod) -> bool {
    let target = rollback(status).map(|rollback| &rollback.to_revision);
    let target = target.or(status.update_revision.as_ref());
    target.is_some() && pod.labels.get(REVISION) != target
}

/// Describes the annotation that skips the pod's hooks, if it is set.
fn skipping(pod: &Pod) -> String {
    match pod.annotation(SKIP_HOOK) {
        None => String::new(),
        Some(uid) if uid == pod.uid => {
            " Its hooks are skipped: it passes without being asked, as long as it has the annotation."
                .to_owned()
        }
        Some(_) => format!(" Its annotation {SKIP_HOOK} does not name its UID, so it does nothing."),
    }
}
