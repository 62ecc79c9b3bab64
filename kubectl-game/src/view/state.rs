//! One word and one sentence about a workload: where it stands, and whether somebody is needed.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::Serialize;
use shared_api::reason::{WorkloadCondition, WorkloadReason};
use shared_api::{GameDeployment, GameDeploymentStatus};

use super::status_of;
use crate::paint::Tone;

/// The word where no operator has seen the newest spec.
pub(crate) const UNSEEN: &str = "Unseen";

/// Where a workload stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct State {
    /// A reason of the operator's, or [`UNSEEN`].
    pub(crate) word: String,
    /// What it means.
    pub(crate) tone: Tone,
    /// The operator's sentence.
    pub(crate) message: String,
    /// The condition that says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) condition: Option<String>,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<Timestamp>,
}

/// A condition of a status, while it is there.
pub(crate) fn condition(status: &GameDeploymentStatus, kind: WorkloadCondition) -> Option<&Condition> {
    let mut conditions = status.conditions.iter();
    conditions.find(|condition| condition.type_ == kind.as_str())
}

/// A condition that is True.
pub(crate) fn held(status: &GameDeploymentStatus, kind: WorkloadCondition) -> Option<&Condition> {
    condition(status, kind).filter(|condition| condition.status == "True")
}

/// The reason that a word stands for.
pub(crate) fn reason(word: &str) -> Option<WorkloadReason> {
    WorkloadReason::ALL
        .iter()
        .copied()
        .find(|reason| reason.as_str() == word)
}

/// Whether the operator has not seen the newest spec yet, and what to say then.
pub(crate) fn unseen(game: &GameDeployment) -> Option<String> {
    let (newest, seen) = (game.metadata.generation, status_of(game).observed_generation);
    let newest = newest.filter(|newest| seen.is_none_or(|seen| seen < *newest))?;
    Some(match seen {
        None => "gamedeployment-operator has not seen it yet; does it run, and in this namespace?".to_owned(),
        Some(seen) => format!(
            "gamedeployment-operator has seen generation {seen}, and the spec is at {newest}; if this stays so: does it run?"
        ),
    })
}

impl State {
    /// What matters most about a workload.
    pub(crate) fn of(game: &GameDeployment) -> Self {
        if let Some(message) = unseen(game) {
            return Self {
                word: UNSEEN.to_owned(),
                tone: Tone::Busy,
                message,
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
        let found = bad
            .map(|condition| (condition, Tone::Bad))
            .or_else(|| condition(&status, WorkloadCondition::Progressing).map(|found| (found, tone(found))));
        let Some((condition, tone)) = found else {
            return Self {
                word: UNSEEN.to_owned(),
                tone: Tone::Busy,
                message: "gamedeployment-operator has not said anything about it yet; does it run?"
                    .to_owned(),
                condition: None,
                since: None,
            };
        };
        let available = super::state::condition(&status, WorkloadCondition::Available);
        let too_few = available.filter(|available| available.status == "False" && tone == Tone::Good);
        let (condition, tone) = too_few.map_or((condition, tone), |available| (available, Tone::Warn));
        Self {
            word: condition.reason.clone(),
            tone,
            message: condition.message.clone(),
            condition: Some(condition.type_.clone()),
            since: Some(condition.last_transition_time.0),
        }
    }
}

fn tone(progressing: &Condition) -> Tone {
    match reason(&progressing.reason) {
        Some(WorkloadReason::RolloutComplete) => Tone::Good,
        Some(WorkloadReason::Paused | WorkloadReason::PausedByCanaryPauseStep) => Tone::Paused,
        Some(WorkloadReason::PausedByStepBasedHook | WorkloadReason::InvalidSpec) => Tone::Bad,
        _ if progressing.status == "False" => Tone::Warn,
        _ => Tone::Busy,
    }
}
