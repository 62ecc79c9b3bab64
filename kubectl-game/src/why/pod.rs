//! Explains why a pod waits: the planned action, what blocks it, and how to unblock it.

use gamedeployment_core::hook_kind::HookKind;
use gamedeployment_core::pod::Pod;
use k8s_openapi::api::core::v1 as api;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;
use shared_api::GameDeploymentStatus;
use shared_api::names::hook_run_annotation::INTENT;
use shared_api::names::pod::{DELETING, REVISION, SKIP_HOOK};
use shared_api::reason::{WorkloadCondition, WorkloadReason};

use super::hooks::HookWait;
use super::next::{Next, watch};
use super::remedy::{self, About};
use super::{Explanation, sentence, template};
use crate::cluster::Snapshot;
use crate::view::pod::waiting;
use crate::view::state::{condition, held, rollback, unseen};
use crate::view::{runs_of, status_of};

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
    if let Some(last) = answer.paragraphs.last_mut() {
        last.push_str(&skipping(&pod));
    }
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
        "Nothing is done to pod {}: the spec of {game} is invalid. {} {}",
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
    let begun = format!("Pod {} waits: {}", pod.name, intent(snapshot, pod, kind));
    Some(HookWait::of(snapshot, status, kind, entry).explain_pod(&begun))
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
        ("delete", _) => "it is selected for deletion,".to_owned(),
        ("recreate", _) => format!("it is selected for an update, by a new pod at revision {to},"),
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
    let remedy = remedy::of(reason, snapshot, about);
    let text = format!(
        "Pod {} waits ({}): {} {}",
        pod.name,
        found.reason,
        sentence(&found.message),
        remedy.words
    );
    let mut answer = Explanation::new(text, remedy.commands);
    answer.link(Some(reason), snapshot);
    answer
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
            "Pod {} waits for its turn: it is selected for deletion, and is deleted once its hook succeeds and enough other \
             pods are available.{more} {progress}",
            pod.name
        );
        Explanation::new(text, [watch(snapshot)])
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
        Explanation::new(text, [watch(snapshot)])
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
        let lower = format!(
            "kubectl patch gd {name} --type=merge -p '{patch}'{}",
            snapshot.flags
        );
        return Some(Explanation::new(text, [Next::new(lower, "updates all pods")]));
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
        "Pod {} waits to be ready: {} It is not waiting for a hook.",
        pod.name,
        sentence(&why)
    );
    Some(Explanation::new(text, [Next::new(describe, "its events")]))
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
