//! Explains why a pod waits: the planned action, what blocks it, and how to unblock it.

use gamedeployment_core::gate::{NOTICE_WAIT, Run, awaited_until};
use gamedeployment_core::hook_kind::HookKind;
use gamedeployment_core::pod::Pod;
use k8s_openapi::api::core::v1 as api;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;
use shared_api::game_deployment::HookStrategy;
use shared_api::names::hook_run_annotation::{CHOICE, INTENT};
use shared_api::names::pod::{CHOSEN_FOR, DELETING, SKIP_HOOK};
use shared_api::reason::{WorkloadCondition, WorkloadReason};
use shared_api::{GameDeploymentStatus, HookRun};

use super::hooks::HookWait;
use super::next::{Next, quoted, watch};
use super::partition::{is_old, offer};
use super::remedy::{self, About, Remedy};
use super::{Explanation, capitalized, deletion, first_idle, pods, removal, sentence, template};
use crate::cluster::Snapshot;
use crate::rollout_state::strategy;
use crate::view::pod::waiting;
use crate::view::removal::RemovalView;
use crate::view::run::{is_notice, scout_hook};
use crate::view::state::{condition, held, unseen};
use crate::view::{runs_of, status_of};

pub(super) fn answer(snapshot: &Snapshot, object: &api::Pod) -> Explanation {
    let pod = Pod::read(object);
    let status = status_of(&snapshot.game);
    let mut answer = None;
    // The first explanation that applies wins.
    for explain in [
        over,
        collected,
        unseen_or_invalid,
        hook,
        stalled,
        notified,
        selected_for_deletion,
        first_idle::explain_pod,
        out_of_service,
        requested,
        old,
        unready,
    ] {
        answer = answer.or_else(|| explain(snapshot, &status, &pod));
    }
    let mut answer = answer.unwrap_or_else(|| content(&status, &pod));
    if let Some(last) = answer.paragraphs.last_mut() {
        last.push_str(&skipping(&pod));
    }
    removal::explain_pod(snapshot, &pod, &mut answer);
    answer
}

/// The pod has ended or is terminating.
fn over(_: &Snapshot, _: &GameDeploymentStatus, pod: &Pod) -> Option<Explanation> {
    let name = &pod.name;
    if pod.terminating {
        let text = format!(
            "Pod {name} is not waiting: it is being deleted and will terminate within its grace period."
        );
        return Some(Explanation::new(text, []));
    }
    pod.is_finished().then(|| {
        let text = format!(
            "Pod {name} is not waiting: it has finished and no longer counts toward the replicas. The Pod object \
             remains until it is deleted."
        );
        Explanation::new(text, [])
    })
}

/// The pod is deleted with its workload, and no hook runs.
fn collected(snapshot: &Snapshot, _: &GameDeploymentStatus, _: &Pod) -> Option<Explanation> {
    deletion::explain(snapshot)
}

fn unseen_or_invalid(snapshot: &Snapshot, status: &GameDeploymentStatus, pod: &Pod) -> Option<Explanation> {
    let game = snapshot.game.name_any();
    if let Some(words) = unseen(&snapshot.game) {
        let text = format!(
            "The state of pod {} is not known yet: {}",
            pod.name,
            sentence(&words)
        );
        return Some(Explanation::new(text, [watch(snapshot)]));
    }
    let invalid = held(status, WorkloadCondition::InvalidSpec)?;
    let remedy = remedy::of(WorkloadReason::InvalidSpec, snapshot, About::default());
    let text = format!(
        "Pod {} is not changed, because the spec of {game} is invalid. {} {}",
        pod.name,
        sentence(&invalid.message),
        remedy.words
    );
    let mut answer = Explanation::new(text, remedy.commands);
    answer.link(Some(WorkloadReason::InvalidSpec), snapshot);
    Some(answer)
}

/// The pod's hook is running, has failed, or cannot run.
fn hook(snapshot: &Snapshot, status: &GameDeploymentStatus, pod: &Pod) -> Option<Explanation> {
    let (kind, entry) = waiting(snapshot, &pod.name)?;
    let begun = format!("Pod {} is waiting: {}", pod.name, intent(snapshot, pod, kind));
    Some(HookWait::of(snapshot, status, kind, entry).explain_pod(&begun))
}

/// Describes the planned action on the pod, with a trailing comma.
fn intent(snapshot: &Snapshot, pod: &Pod, kind: HookKind) -> String {
    let gates = |run: &&HookRun| scout_hook(run).is_none() && !is_notice(run);
    let mut runs = runs_of(snapshot, &pod.uid).filter(gates);
    let run = runs.find_map(|run| run.annotations().get(INTENT).cloned());
    let chosen = pod.annotation(CHOSEN_FOR).map(str::to_owned);
    let intent = run.or(chosen).unwrap_or_default();
    let (act, rest) = intent.split_once([':', '@']).unwrap_or((&intent, ""));
    let to = rest.split('@').next().unwrap_or_default();
    match (act, kind) {
        ("delete", _) => "it is selected for deletion,".to_owned(),
        ("recreate", _) => format!("it is selected for replacement by a new pod at revision {to},"),
        ("in-place", _) => format!("it is selected for an in-place update to revision {to},"),
        ("confirm", _) | (_, HookKind::PostInplace) => "it was updated in place,".to_owned(),
        (_, HookKind::PreInplace) => "it is selected for an in-place update,".to_owned(),
        (_, HookKind::PreDelete) => "it is selected for deletion or an update,".to_owned(),
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
        pod: Some(&pod.name),
        template: template::of_rollout(&snapshot.game, &found.reason),
        runs_named_in: Some(&found.message),
        ..About::default()
    };
    let Remedy {
        cause,
        words,
        commands,
    } = remedy::of(reason, snapshot, about);
    let message = cause.unwrap_or_else(|| sentence(&found.message));
    let text = format!(
        "Pod {} is waiting ({}): {message} {words}",
        pod.name, found.reason
    );
    let mut answer = Explanation::new(text, commands);
    answer.link(Some(reason), snapshot);
    answer
}

/// The pod is selected for deletion, and its hook waits for the notice.
fn notified(snapshot: &Snapshot, _: &GameDeploymentStatus, pod: &Pod) -> Option<Explanation> {
    let chosen = pod.annotation(CHOSEN_FOR);
    let has_notice = |strategy: &HookStrategy| strategy.notice.is_some();
    let is_selected = pod.annotation(DELETING) == Some("true")
        && strategy(&snapshot.game, HookKind::PreDelete).is_some_and(has_notice)
        && !pod.skips_hooks();
    let is_awaited = |run: &&HookRun| {
        is_notice(run)
            && run.annotations().get(CHOICE).map(String::as_str) == chosen
            && awaited_until(&Run::read(run), snapshot.now).is_some()
    };
    let mut runs = runs_of(snapshot, &pod.uid).filter(|_| is_selected);
    let notice = runs.find(is_awaited)?.name_any();
    let text = format!(
        "Pod {} is waiting: {} and its PreDelete hook is waiting for the notice (HookRun {notice}), at most {} s. The \
         hook runs after the first measurement of the notice, whatever its result. The pod keeps running and stays in \
         service.",
        pod.name,
        intent(snapshot, pod, HookKind::PreDelete),
        NOTICE_WAIT.as_secs()
    );
    let command = format!("kubectl game hook get {}{}", quoted(&notice), snapshot.flags);
    Some(Explanation::new(
        text,
        [Next::new(command, "show its measurements"), watch(snapshot)],
    ))
}

/// The pod is selected for deletion, and no hook blocks it.
fn selected_for_deletion(
    snapshot: &Snapshot,
    status: &GameDeploymentStatus,
    pod: &Pod,
) -> Option<Explanation> {
    (pod.annotation(DELETING) == Some("true")).then(|| {
        let progress = condition(status, WorkloadCondition::Progressing);
        let progress = progress.map(|found| sentence(&found.message)).unwrap_or_default();
        let progress = capitalized(&progress);
        let listed = usize::try_from(status.hook_pending_replicas).unwrap_or_default();
        let more = if listed > 100 {
            format!(" {listed} pods are waiting for a hook; the status lists only 100 of them.")
        } else {
            String::new()
        };
        let text = format!(
            "Pod {} is waiting to be deleted: it will be deleted once its hook succeeds and enough other pods are \
             available.{more} {progress}",
            pod.name
        );
        Explanation::new(text, [watch(snapshot)])
    })
}

fn out_of_service(snapshot: &Snapshot, status: &GameDeploymentStatus, pod: &Pod) -> Option<Explanation> {
    pod.is_out_of_service().then(|| {
        let progress = condition(status, WorkloadCondition::Progressing);
        let progress = progress.map(|found| sentence(&found.message)).unwrap_or_default();
        let progress = capitalized(&progress);
        let text = format!(
            "Pod {} is being updated in place: it is out of service until its containers run the new images. {progress}",
            pod.name
        );
        Explanation::new(text, [watch(snapshot)])
    })
}

/// The removal of the pod or of its workload is requested, but the operator has not selected the pod yet.
fn requested(snapshot: &Snapshot, _: &GameDeploymentStatus, pod: &Pod) -> Option<Explanation> {
    let because = if deletion::is_requested(snapshot) {
        "its GameDeployment is being deleted"
    } else {
        RemovalView::of(snapshot, pod).filter(RemovalView::is_effective)?;
        "its removal is requested"
    };
    let text = format!(
        "Pod {} is waiting: {because}, but gamedeployment-operator has not selected it for deletion yet.",
        pod.name
    );
    Some(Explanation::new(text, [watch(snapshot)]))
}

/// The pod is at an old revision and not yet due for its update.
fn old(snapshot: &Snapshot, status: &GameDeploymentStatus, pod: &Pod) -> Option<Explanation> {
    let found = condition(status, WorkloadCondition::Progressing).filter(|_| is_old(status, pod))?;
    let reason = WorkloadReason::named(&found.reason)?;
    if reason == WorkloadReason::RolloutComplete {
        return pod
            .is_ready()
            .then(|| kept(snapshot, status, pod, &found.message));
    }
    Some(explain_condition(snapshot, pod, found, reason))
}

/// Explains that a pod stays at an old revision after the rollout. `message`: that of the condition.
fn kept(snapshot: &Snapshot, status: &GameDeploymentStatus, pod: &Pod, message: &str) -> Explanation {
    let offer = offer(snapshot, status, pods::failing(snapshot).is_empty());
    let remedy = match offer {
        Some(_) => " To update it, lower spec.updateStrategy.partition.",
        None => "",
    };
    let text = format!(
        "Pod {} stays at an old revision: {}{remedy}",
        pod.name,
        sentence(message)
    );
    Explanation::new(text, offer)
}

/// No action is planned for the pod, but it is not ready.
fn unready(snapshot: &Snapshot, _: &GameDeploymentStatus, pod: &Pod) -> Option<Explanation> {
    (!pod.is_ready()).then(|| pods::explain_pod(snapshot, pod))
}

/// The pod is not waiting.
fn content(status: &GameDeploymentStatus, pod: &Pod) -> Explanation {
    let revision = if status.update_revision.as_deref() == Some(pod.revision()) {
        "at the newest revision"
    } else {
        "at its target revision"
    };
    let text = format!(
        "Pod {} is not waiting: it is ready and {revision}, and no change is planned.",
        pod.name
    );
    Explanation::new(text, [])
}

/// Describes the annotation that skips the pod's hooks, if it is set.
fn skipping(pod: &Pod) -> String {
    match pod.annotation(SKIP_HOOK) {
        None => String::new(),
        Some(uid) if uid == pod.uid => {
            format!(" Its hooks are skipped until annotation {SKIP_HOOK} is removed.")
        }
        Some(_) => {
            format!(" Annotation {SKIP_HOOK} has no effect, because its value is not the pod's UID.")
        }
    }
}
