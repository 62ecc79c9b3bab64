//! Status of an ExecutionHook: counts, conditions, and its end.

use std::fmt::Write as _;

use jiff::{Timestamp, TimestampRound, Unit};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use shared_api::ExecutionHookStatus;
use shared_api::execution_hook::ContainerHookStatus;
use shared_api::reason::{ExecutionCondition, ExecutionReason};

use super::container::{has_ended, hook_ended};
use crate::value::{counted, cut};

/// Longest message of a condition, in bytes.
const MAX_MESSAGE_BYTES: usize = 1024;
/// Most containers whose errors a message repeats.
const QUOTED_FAILURES: usize = 3;

/// Returns whether the tries in every selected container have ended by themselves.
pub fn is_over(status: &ExecutionHookStatus) -> bool {
    status.hook_statuses.iter().all(has_ended)
}

/// Counts the containers. `active`: number of tries under way.
pub fn count(status: &mut ExecutionHookStatus, active: usize) {
    let number = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
    let having = |succeed: bool| {
        let containers = status.hook_statuses.iter();
        containers
            .filter(|container| container.succeed == Some(succeed))
            .count()
    };
    let (succeeded, failed) = (having(true), having(false));
    status.total = number(status.hook_statuses.len());
    status.active = number(active);
    status.succeeded = number(succeeded);
    status.failed = number(failed);
}

/// Sets the conditions of a hook that has not ended. Returns whether its reason or message changed.
pub fn wait_for(
    status: &mut ExecutionHookStatus,
    generation: Option<i64>,
    reason: ExecutionReason,
    message: &str,
    now: Timestamp,
) -> bool {
    let state = State {
        reason,
        message,
        generation,
        now,
    };
    let is_new = state.set(status, ExecutionCondition::Complete, "False");
    state.set(status, ExecutionCondition::Succeeded, "Unknown") || is_new
}

/// Ends a hook: containers without a success have failed.
pub fn conclude(
    status: &mut ExecutionHookStatus,
    generation: Option<i64>,
    reason: ExecutionReason,
    message: &str,
    now: Timestamp,
) {
    for container in &mut status.hook_statuses {
        hook_ended(container, now);
    }
    count(status, 0);
    status.completion_time = Some(now.into());
    let state = State {
        reason,
        message,
        generation,
        now,
    };
    let succeeded = if reason == ExecutionReason::ActionSucceeded {
        "True"
    } else {
        "False"
    };
    state.set(status, ExecutionCondition::Complete, "True");
    state.set(status, ExecutionCondition::Succeeded, succeeded);
}

/// Returns the message of a hook that runs. `queued`: number of tries that wait for their turn.
pub fn progress(status: &ExecutionHookStatus, queued: usize) -> String {
    let ExecutionHookStatus {
        total,
        succeeded,
        failed,
        ..
    } = status;
    let mut message =
        format!("the action succeeded in {succeeded} of {total} containers and failed in {failed}");
    if queued > 0 {
        let attempts = counted(queued, "attempt", "attempts");
        let _ = write!(message, "; {attempts} waiting for a free slot");
    }
    let containers = status.hook_statuses.iter();
    let mut failing = containers.filter(|container| container.succeed.is_none() && container.error.is_some());
    if let Some(first) = failing.next() {
        let number = failing.count() + 1;
        let _ = write!(
            message,
            "; retrying in {number} of {total} containers: {}",
            failure_of(first)
        );
    }
    message
}

/// Returns the reason and the message of a hook whose containers have all ended.
pub fn summarize(status: &ExecutionHookStatus) -> (ExecutionReason, String) {
    let containers = &status.hook_statuses;
    let failed = containers
        .iter()
        .filter(|container| container.succeed != Some(true));
    let number = failed.clone().count();
    let total = containers.len();
    if number == 0 && total > 0 {
        let message = format!("the action succeeded in {total} of {total} containers");
        return (ExecutionReason::ActionSucceeded, message);
    }
    let quoted: Vec<String> = failed.take(QUOTED_FAILURES).map(failure_of).collect();
    let rest = number.saturating_sub(quoted.len());
    let more = if rest > 0 {
        format!("; and {rest} more")
    } else {
        String::new()
    };
    let message = format!(
        "the action failed in {number} of {total} containers: {}{more}",
        quoted.join("; ")
    );
    (ExecutionReason::ActionFailed, message)
}

fn failure_of(container: &ContainerHookStatus) -> String {
    let error = container.error.as_ref();
    let why = error.and_then(|error| error.message.as_deref());
    format!(
        "{}/{}: {}",
        container.pod_name,
        container.container_name,
        why.unwrap_or_default()
    )
}

/// State that conditions describe.
struct State<'a> {
    reason: ExecutionReason,
    message: &'a str,
    generation: Option<i64>,
    now: Timestamp,
}

impl State<'_> {
    /// Sets a condition. Returns whether it changed.
    fn set(&self, status: &mut ExecutionHookStatus, condition: ExecutionCondition, value: &str) -> bool {
        status.observed_generation = self.generation;
        // The API server keeps seconds.
        let second = TimestampRound::new()
            .smallest(Unit::Second)
            .mode(jiff::RoundMode::Floor);
        let now = self.now.round(second).unwrap_or(self.now);
        let mut new = Condition {
            last_transition_time: Time(now),
            message: cut(self.message, MAX_MESSAGE_BYTES),
            observed_generation: self.generation,
            reason: self.reason.to_string(),
            status: value.to_owned(),
            type_: condition.to_string(),
        };
        let mut conditions = status.conditions.iter_mut();
        let Some(old) = conditions.find(|old| old.type_ == new.type_) else {
            status.conditions.push(new);
            return true;
        };
        if old.status == new.status {
            new.last_transition_time = old.last_transition_time.clone();
        }
        let is_new = *old != new;
        *old = new;
        is_new
    }
}
