//! Conditions: the time of a transition moves with the status alone.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use shared_api::reason::{WorkloadCondition, WorkloadReason};

/// Longest message that the API takes for a condition.
const LONGEST: usize = 32_768 / 8;

/// The conditions that are being written.
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
        let status = if status { "True" } else { "False" };
        let known = self
            .known
            .iter()
            .find(|known| known.type_ == kind.as_str() && known.status == status);
        // Whole seconds: that is what the API server keeps.
        let now = Timestamp::from_second(self.now.as_second()).unwrap_or(self.now);
        self.new.push(Condition {
            type_: kind.as_str().to_owned(),
            status: status.to_owned(),
            reason: reason.as_str().to_owned(),
            message: cut(message),
            last_transition_time: known.map_or(Time(now), |known| known.last_transition_time.clone()),
            observed_generation: self.generation,
        });
    }

    /// Leaves a condition as it is.
    pub(super) fn keep(&mut self, kind: WorkloadCondition) {
        self.new.extend(
            self.known
                .iter()
                .find(|known| known.type_ == kind.as_str())
                .cloned(),
        );
    }

    pub(super) fn finish(self) -> Vec<Condition> {
        self.new
    }
}

fn cut(mut message: String) -> String {
    if message.len() > LONGEST {
        let end = (0..=LONGEST)
            .rev()
            .find(|at| message.is_char_boundary(*at))
            .unwrap_or(0);
        message.truncate(end);
        message.push_str(" …");
    }
    message
}

/// Whether a condition says that something needs a person.
pub(super) fn is_bad(condition: &Condition) -> bool {
    let bad = [
        WorkloadCondition::ScaleBlocked,
        WorkloadCondition::UpdateBlocked,
        WorkloadCondition::InvalidSpec,
    ];
    condition.status == "True" && bad.iter().any(|kind| kind.as_str() == condition.type_)
}
