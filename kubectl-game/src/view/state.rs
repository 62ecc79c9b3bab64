//! State of a workload: one word and one sentence, and whether a person must act.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::Serialize;
use shared_api::game_deployment::{PauseCondition, RollbackStatus};
use shared_api::reason::{WorkloadCondition, WorkloadReason};
use shared_api::{GameDeployment, GameDeploymentStatus};

use super::status_of;
use super::waits::{causes, is_about, summaries};
use crate::paint::Tone;

/// Word for a workload whose newest spec the operator has not observed.
pub(crate) const UNSEEN: &str = "Unseen";

/// State of a workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct State {
    /// Reason from the operator, or [`UNSEEN`].
    pub(crate) word: String,
    /// Significance of the word.
    pub(crate) tone: Tone,
    /// Message from the operator. Of pods with the same cause, it names the cause once.
    pub(crate) message: String,
    /// The message by cause, if it is about hooks of pods.
    #[serde(skip)]
    pub(crate) causes: Vec<String>,
    /// Condition that reports the state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) condition: Option<String>,
    /// Time of the last transition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<Timestamp>,
}

/// Returns a condition of a status, if present.
pub(crate) fn condition(status: &GameDeploymentStatus, kind: WorkloadCondition) -> Option<&Condition> {
    let mut conditions = status.conditions.iter();
    conditions.find(|condition| condition.type_ == kind.as_str())
}

/// Returns a condition if it is True.
pub(crate) fn held(status: &GameDeploymentStatus, kind: WorkloadCondition) -> Option<&Condition> {
    condition(status, kind).filter(|condition| condition.status == "True")
}

/// Returns the condition that a hook of the spec cannot run, if so.
pub(crate) fn unresolved(status: &GameDeploymentStatus) -> Option<&Condition> {
    condition(status, WorkloadCondition::HooksResolved).filter(|found| found.status == "False")
}

/// Returns the condition `RemovalsGuarded`, unless it is True. It is absent with the policy `Unguarded`.
pub(crate) fn unguarded(status: &GameDeploymentStatus) -> Option<&Condition> {
    condition(status, WorkloadCondition::RemovalsGuarded).filter(|found| found.status != "True")
}

/// Returns the rollback of the rollout to the update revision, if that rollout is aborted.
pub(crate) fn rollback(status: &GameDeploymentStatus) -> Option<&RollbackStatus> {
    let rollback = status.rollback.as_ref()?;
    (status.update_revision.as_ref() == Some(&rollback.from_revision)).then_some(rollback)
}

/// Returns the recorded pause for this reason.
pub(crate) fn pause(status: &GameDeploymentStatus, reason: WorkloadReason) -> Option<&PauseCondition> {
    let mut pauses = status.pause_conditions.iter();
    pauses.find(|pause| pause.reason == reason.as_str())
}

/// Returns the last complete revision, if the operator has recorded one. Until it does, the canary knows where the rollout
/// comes from.
pub(crate) fn complete_revision(status: &GameDeploymentStatus) -> Option<&str> {
    let of_canary = || status.canary.as_ref()?.revision.as_ref();
    let recorded = status.current_revision.as_ref().or_else(of_canary);
    recorded.map(String::as_str)
}

/// Returns the revision that an undo restores while a rollout is aborted or under way: the last complete one, because
/// newer ones may be broken, too. Otherwise, an undo restores the newest revision with another template.
pub(crate) fn undo_target(game: &GameDeployment) -> Option<String> {
    let status = status_of(game);
    if unseen(game).is_some() {
        return None;
    }
    if let Some(rollback) = rollback(&status) {
        return Some(rollback.to_revision.clone());
    }
    let is_under_way = status.current_revision != status.update_revision;
    status.current_revision.filter(|_| is_under_way)
}

/// Returns a message if the operator has not observed the newest spec yet.
pub(crate) fn unseen(game: &GameDeployment) -> Option<String> {
    let (newest, seen) = (game.metadata.generation, status_of(game).observed_generation);
    let newest = newest.filter(|newest| seen.is_none_or(|seen| seen < *newest))?;
    Some(match seen {
        None => "gamedeployment-operator has not observed this workload yet; check that the operator is running and \
                 watches this namespace"
            .to_owned(),
        Some(seen) => format!(
            "gamedeployment-operator has observed generation {seen}, but the latest is {newest}; if this persists, \
             check that the operator is running"
        ),
    })
}

impl State {
    /// Returns the most important state of a workload.
    pub(crate) fn of(game: &GameDeployment) -> Self {
        if let Some(message) = unseen(game) {
            return Self {
                word: UNSEEN.to_owned(),
                tone: Tone::Busy,
                message,
                causes: vec![],
                condition: None,
                since: None,
            };
        }
        let status = status_of(game);
        let bad = [
            WorkloadCondition::InvalidSpec,
            WorkloadCondition::ScaleBlocked,
            WorkloadCondition::UpdateBlocked,
        ];
        let bad = bad.into_iter().find_map(|kind| held(&status, kind));
        let bad = bad.or_else(|| unresolved(&status));
        let found = bad
            .map(|condition| (condition, Tone::Bad))
            .or_else(|| condition(&status, WorkloadCondition::Progressing).map(|found| (found, tone(found))));
        let Some((condition, tone)) = found else {
            return Self {
                word: UNSEEN.to_owned(),
                tone: Tone::Busy,
                message: "gamedeployment-operator has not reported a status yet; check that the operator is running"
                    .to_owned(),
                causes: vec![],
                condition: None,
                since: None,
            };
        };
        let available = super::state::condition(&status, WorkloadCondition::Available);
        let too_few = available.filter(|available| available.status == "False" && tone == Tone::Good);
        let (condition, tone) = too_few.map_or((condition, tone), |available| (available, Tone::Warn));
        let causes = causes(game);
        let causes = if is_about(condition, &causes) {
            summaries(&causes)
        } else {
            vec![]
        };
        let message = if causes.is_empty() {
            condition.message.clone()
        } else {
            causes.join("; ")
        };
        Self {
            word: condition.reason.clone(),
            tone,
            message,
            causes,
            condition: Some(condition.type_.clone()),
            since: Some(condition.last_transition_time.0),
        }
    }
}

fn tone(progressing: &Condition) -> Tone {
    match WorkloadReason::named(&progressing.reason) {
        Some(WorkloadReason::RolloutComplete) => Tone::Good,
        Some(WorkloadReason::Paused | WorkloadReason::PausedByCanaryPauseStep) => Tone::Paused,
        Some(WorkloadReason::PausedByStepBasedHook | WorkloadReason::InvalidSpec) => Tone::Bad,
        _ if progressing.status == "False" => Tone::Warn,
        _ => Tone::Busy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::samples;

    fn state(game: &GameDeployment) -> (String, Tone) {
        let State { word, tone, .. } = State::of(game);
        (word, tone)
    }

    fn shown(word: &str, tone: Tone) -> (String, Tone) {
        (word.to_owned(), tone)
    }

    #[test]
    fn a_workload_with_a_hook_that_cannot_run_is_nowhere_green() {
        assert_eq!(
            state(&samples::complete().game),
            shown("RolloutComplete", Tone::Good)
        );
        let game = samples::unresolved("HookTemplateInvalid").game;
        assert_eq!(state(&game), shown("HookTemplateInvalid", Tone::Bad));
        assert_eq!(State::of(&game).condition.as_deref(), Some("HooksResolved"));
        // A pod that waits is more urgent.
        let mut blocked = samples::refused().game;
        let unresolved = game.status.unwrap().conditions.pop().unwrap();
        blocked.status.as_mut().unwrap().conditions.push(unresolved);
        assert_eq!(state(&blocked), shown("HookUnsuccessful", Tone::Bad));
    }

    #[test]
    fn errors_of_a_hook_are_bad_once_the_operator_reports_them() {
        for (reason, expected) in [
            ("Measuring", shown("Scaling", Tone::Busy)),
            ("HookErrors", shown("HookErrors", Tone::Bad)),
            ("HookCannotSucceed", shown("HookCannotSucceed", Tone::Bad)),
        ] {
            let snapshot = samples::erroring(reason, "Unreachable", "connection refused by 10.0.0.7:9091");
            assert_eq!(state(&snapshot.game), expected);
        }
    }

    #[test]
    fn the_message_holds_the_cause_without_remedies() {
        let message = State::of(&samples::refused().game).message;
        assert!(message.starts_with("pod arena-x7k2p: HookRun "), "{message}");
        assert!(message.ends_with("; the pod is kept"), "{message}");
    }
}
