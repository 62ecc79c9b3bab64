//! Explains why a workload waits: everything that needs a person, or else its progress.

use gamedeployment_core::hook_kind::HookKind;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;
use shared_api::reason::{WorkloadCondition, WorkloadReason};

use super::remedy::{self, About, flag_of};
use super::{Explanation, brief, ours, sentence, watch};
use crate::cluster::Snapshot;
use crate::view::state::{condition, held, rollback, unseen};
use crate::view::{entries, status_of};

pub(super) fn answer(snapshot: &Snapshot) -> Explanation {
    let name = snapshot.game.name_any();
    if let Some(words) = unseen(&snapshot.game) {
        let text = format!("{name} waits for its operator: {}", sentence(&words));
        return Explanation::new(text, [watch(snapshot)]);
    }
    let status = status_of(&snapshot.game);
    let mut answer = Explanation::default();
    for (kind, what) in [
        (WorkloadCondition::InvalidSpec, "cannot be worked on"),
        (
            WorkloadCondition::ScaleBlocked,
            "cannot be scaled without a person",
        ),
        (
            WorkloadCondition::UpdateBlocked,
            "cannot be updated without a person",
        ),
    ] {
        if let Some(condition) = held(&status, kind) {
            explain_condition(snapshot, &mut answer, condition, what);
        }
    }
    if !answer.text.is_empty() {
        return answer;
    }
    let progressing = condition(&status, WorkloadCondition::Progressing);
    let available = condition(&status, WorkloadCondition::Available).filter(|found| found.status == "False");
    match progressing {
        Some(found) if found.reason == WorkloadReason::RolloutComplete.as_str() => {
            answer.text = format!("{name} does not wait: {}", sentence(&found.message));
            if status.hook_pending_replicas > 0 {
                answer.text = format!("{name} waits for hooks: {}", sentence(&found.message));
            }
        }
        Some(found) => explain_condition(snapshot, &mut answer, found, "is on its way"),
        None => answer.text = format!("{name}: gamedeployment-operator has not said anything about it yet."),
    }
    if let Some(found) = available {
        explain_condition(snapshot, &mut answer, found, "has too few pods");
    }
    let hooks = condition(&status, WorkloadCondition::HooksResolved).filter(|found| found.status == "False");
    if let Some(found) = hooks {
        explain_condition(snapshot, &mut answer, found, "has a hook that could not be asked");
    }
    if let Some(found) = held(&status, WorkloadCondition::SpecWarning) {
        explain_condition(snapshot, &mut answer, found, "has a setting to correct");
    }
    answer
}

fn explain_condition(snapshot: &Snapshot, answer: &mut Explanation, condition: &Condition, what: &str) {
    let name = snapshot.game.name_any();
    let found = WorkloadReason::named(&condition.reason);
    let about = About {
        kind: found
            .filter(|found| *found == WorkloadReason::HookUnsuccessful)
            .and_then(|_| only_kind(snapshot)),
        pod: None,
    };
    let mut remedy = found
        .map(|found| remedy::of(found, snapshot, about))
        .unwrap_or_default();
    if about.kind.is_some() || found == Some(WorkloadReason::HookUnsuccessful) {
        remedy.words = String::from("Ask again, or find out more about one pod.");
        let refused = first_refused(snapshot);
        remedy.commands = vec![retry(snapshot, refused.as_ref().map(|(kind, _)| *kind))];
        remedy
            .commands
            .extend(refused.map(|(_, pod)| format!("kubectl game why {pod}{}", snapshot.flags)));
    }
    let paused = matches!(
        found,
        Some(
            WorkloadReason::Paused
                | WorkloadReason::PausedByCanaryPauseStep
                | WorkloadReason::PausedByStepBasedHook
        )
    );
    let what = if paused { "is paused" } else { what };
    let said = format!(
        "{name} {what} ({}): {}",
        condition.reason,
        sentence(&brief(&condition.message))
    );
    let words = [answer.text.as_str(), &said, &remedy.words];
    answer.text = words
        .into_iter()
        .filter(|words| !words.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    remedy
        .commands
        .into_iter()
        .for_each(|command| answer.and(command));
}

/// Returns the hook that pods wait for, if there is only one.
fn only_kind(snapshot: &Snapshot) -> Option<HookKind> {
    let status = status_of(&snapshot.game);
    let mut kinds = HookKind::ALL
        .into_iter()
        .filter(|kind| !entries(&status, *kind).is_empty());
    kinds.next().filter(|_| kinds.next().is_none())
}

/// Returns the command that runs hooks of pods again. Without `--hook`, it also begins an aborted rollout again.
fn retry(snapshot: &Snapshot, kind: Option<HookKind>) -> String {
    let command = ours(snapshot, "retry");
    let is_rolled_back = rollback(&status_of(&snapshot.game)).is_some();
    match kind.filter(|_| is_rolled_back) {
        Some(kind) => format!("{command} --hook {}", flag_of(kind)),
        None => command,
    }
}

/// Returns the first pod whose hook ended without success, and the hook.
fn first_refused(snapshot: &Snapshot) -> Option<(HookKind, String)> {
    let status = status_of(&snapshot.game);
    HookKind::ALL.into_iter().find_map(|kind| {
        let mut entries = entries(&status, kind).iter();
        let entry = entries.find(|entry| entry.phase.is_final())?;
        Some((kind, format!("pod/{}", entry.pod_name)))
    })
}
