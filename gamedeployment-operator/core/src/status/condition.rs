//! Conditions. A transition time changes only with the condition's status.

use crate::user_text::cut;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use shared_api::reason::{WorkloadCondition, WorkloadPhase, WorkloadReason};

/// Maximum length of a message in bytes: an eighth of the characters that the API accepts in a condition.
const MAX_MESSAGE_BYTES: usize = 32_768 / 8;

/// Status of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConditionStatus {
    True,
    False,
    Unknown,
}

impl ConditionStatus {
    fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// Conditions of the new status.
pub(super) struct Conditions<'a> {
    known: &'a [Condition],
    generation: Option<i64>,
    now: Timestamp,
    new: Vec<Condition>,
}

impl<'a> Conditions<'a> {
    pub(super) fn new(known: &'a [Condition], generation: Option<i64>, now: Timestamp) -> Self {
        Self {
            known,
            generation,
            now,
            new: Vec::new(),
        }
    }

    pub(super) fn set(
        &mut self,
        kind: WorkloadCondition,
        status: bool,
        reason: WorkloadReason,
        message: String,
    ) {
        let status = if status {
            ConditionStatus::True
        } else {
            ConditionStatus::False
        };
        self.set_status(kind, status, reason, message);
    }

    pub(super) fn set_status(
        &mut self,
        kind: WorkloadCondition,
        status: ConditionStatus,
        reason: WorkloadReason,
        message: String,
    ) {
        let status = status.as_str();
        let known = self
            .known
            .iter()
            .find(|known| known.type_ == kind.as_str() && known.status == status);
        // Truncated to whole seconds, as the API server stores them.
        let now = Timestamp::from_second(self.now.as_second()).unwrap_or(self.now);
        self.new.push(Condition {
            type_: kind.as_str().to_owned(),
            status: status.to_owned(),
            reason: reason.as_str().to_owned(),
            message: cut(message, MAX_MESSAGE_BYTES),
            last_transition_time: known.map_or(Time(now), |known| known.last_transition_time.clone()),
            observed_generation: self.generation,
        });
    }

    /// Keeps a condition unchanged.
    pub(super) fn keep(&mut self, kind: WorkloadCondition) {
        self.new.extend(self.known(kind).cloned());
    }

    /// Returns a condition of the new status.
    pub(super) fn new_condition(&self, kind: WorkloadCondition) -> Option<&Condition> {
        self.new.iter().find(|new| new.type_ == kind.as_str())
    }

    /// Returns a condition of the old status.
    pub(super) fn known(&self, kind: WorkloadCondition) -> Option<&Condition> {
        self.known.iter().find(|known| known.type_ == kind.as_str())
    }

    pub(super) fn finish(self) -> Vec<Condition> {
        self.new
    }
}

/// Returns the workload's phase and the reason of the condition that determines it; `None` if there is no
/// such condition.
pub(super) fn phase(conditions: &[Condition]) -> Option<(WorkloadPhase, String)> {
    use WorkloadCondition::{
        Available, HooksResolved, InvalidSpec, Progressing, ScaleBlocked, UpdateBlocked,
    };
    let find = |kind: WorkloadCondition, status: &str| {
        let mut found = conditions.iter();
        found.find(|known| known.type_ == kind.as_str() && known.status == status)
    };
    let mut blocked = [InvalidSpec, ScaleBlocked, UpdateBlocked].into_iter();
    let blocked = blocked.find_map(|kind| find(kind, "True"));
    let degraded = || find(Available, "False").or_else(|| find(HooksResolved, "False"));
    let (phase, condition) = if let Some(blocked) = blocked {
        (WorkloadPhase::Blocked, blocked)
    } else if let Some(paused) = find(Progressing, "False") {
        (WorkloadPhase::Paused, paused)
    } else {
        let progressing = find(Progressing, "True")?;
        let complete = progressing.reason == WorkloadReason::RolloutComplete.as_str();
        match degraded().filter(|_| complete) {
            Some(degraded) => (WorkloadPhase::Degraded, degraded),
            None if complete => (WorkloadPhase::Complete, progressing),
            None => (WorkloadPhase::Progressing, progressing),
        }
    };
    Some((phase, condition.reason.clone()))
}

/// Whether a condition needs a person's attention.
pub(super) fn is_bad(condition: &Condition) -> bool {
    let bad = [
        WorkloadCondition::ScaleBlocked,
        WorkloadCondition::UpdateBlocked,
        WorkloadCondition::InvalidSpec,
        WorkloadCondition::SpecWarning,
    ];
    let is = |kind: WorkloadCondition| condition.type_ == kind.as_str();
    let unresolved = condition.status == "False" && is(WorkloadCondition::HooksResolved);
    let unguarded = condition.status != "True" && is(WorkloadCondition::RemovalsGuarded);
    unresolved || unguarded || condition.status == "True" && bad.into_iter().any(is)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stands(conditions: &[(&str, &str, &str)]) -> String {
        let conditions: Vec<Condition> = conditions
            .iter()
            .map(|(kind, status, reason)| Condition {
                type_: (*kind).to_owned(),
                status: (*status).to_owned(),
                reason: (*reason).to_owned(),
                message: String::new(),
                last_transition_time: Time(Timestamp::UNIX_EPOCH),
                observed_generation: None,
            })
            .collect();
        phase(&conditions).map_or_else(String::new, |(phase, reason)| format!("{phase} {reason}"))
    }

    #[test]
    fn the_phase_is_what_matters_most_and_has_the_reason_of_its_condition() {
        let good = ("Available", "True", "MinimumPodsAvailable");
        let few = ("Available", "False", "MinimumPodsUnavailable");
        let done = ("Progressing", "True", "RolloutComplete");
        let rolls = ("Progressing", "True", "RollingOut");
        let paused = ("Progressing", "False", "Paused");
        let unresolved = ("HooksResolved", "False", "HookTemplateMissing");
        let resolved = ("HooksResolved", "True", "HooksResolved");
        let scale = ("ScaleBlocked", "True", "HookNotTakenUp");
        let invalid = ("InvalidSpec", "True", "InvalidSpec");
        let table = [
            (vec![good, done, resolved], "Complete RolloutComplete"),
            (vec![few, rolls], "Progressing RollingOut"),
            (vec![few, done], "Degraded MinimumPodsUnavailable"),
            (vec![good, done, unresolved], "Degraded HookTemplateMissing"),
            (vec![good, rolls, unresolved], "Progressing RollingOut"),
            (vec![good, paused, unresolved], "Paused Paused"),
            (vec![good, rolls, scale], "Blocked HookNotTakenUp"),
            (vec![good, paused, invalid, scale], "Blocked InvalidSpec"),
            (vec![], ""),
        ];
        for (conditions, expected) in table {
            assert_eq!(stands(&conditions), expected, "{conditions:?}");
        }
    }
}
