//! State of the action in one container.

use std::time::Duration;

use jiff::Timestamp;
use shared_api::execution_hook::{ALL_CONTAINERS, ContainerHookStatus, ErrorType, HookError};
use shared_api::reason::ContainerReason;

use super::select::{FoundPod, container};
use crate::answer::{MeasurementFailure, MeasurementReason, ProviderResponse};

/// Longest message of an error, in bytes: the status has up to 1,000 of them.
const MAX_MESSAGE_BYTES: usize = 250;

/// Outcome of a try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TryOutcome {
    /// The pod was found.
    Found(FoundPod),
    /// The action succeeded.
    Succeeded,
    /// The action failed, and is tried again.
    Failed(ContainerReason, String),
    /// The pod does not exist any more, or all of its containers have ended.
    Gone(String),
}

/// Returns the outcome of a command.
pub fn outcome_of(response: Result<ProviderResponse, MeasurementFailure>) -> TryOutcome {
    match response {
        Ok(ProviderResponse::Decided { successful: true, .. }) => TryOutcome::Succeeded,
        Ok(ProviderResponse::Decided { message, .. }) => {
            TryOutcome::Failed(ContainerReason::ExitCode, message)
        }
        // Only conditions ask for these.
        Ok(ProviderResponse::Value { .. } | ProviderResponse::NoData { .. }) => TryOutcome::Failed(
            ContainerReason::TryFailed,
            "the command returned no verdict".to_owned(),
        ),
        Err(failure) => failed(failure),
    }
}

/// Returns the outcome of a try without a success.
pub fn failed(failure: MeasurementFailure) -> TryOutcome {
    let reason = match failure.kind {
        MeasurementReason::CommandNotRun => ContainerReason::CommandNotRun,
        MeasurementReason::CommandLost => ContainerReason::CommandLost,
        MeasurementReason::Unreachable => ContainerReason::Unreachable,
        MeasurementReason::ApiRefused => ContainerReason::ApiRefused,
        MeasurementReason::Timeout => ContainerReason::CallTimedOut,
        MeasurementReason::ObjectGone => ContainerReason::NoSuchContainer,
        MeasurementReason::Status => ContainerReason::HttpStatus,
        MeasurementReason::Forbidden => ContainerReason::EgressForbidden,
        MeasurementReason::InvalidRequest
        | MeasurementReason::MalformedAnswer
        | MeasurementReason::PathNotFound
        | MeasurementReason::QueryFailed
        | MeasurementReason::PartialAnswer
        | MeasurementReason::NoData
        | MeasurementReason::ConditionFailed
        | MeasurementReason::AnswerDropped
        | MeasurementReason::JobRefused
        | MeasurementReason::JobLost
        | MeasurementReason::NotAsked => ContainerReason::TryFailed,
    };
    TryOutcome::Failed(reason, failure.message)
}

impl TryOutcome {
    /// Applies the outcome to a container. Returns further containers, if it stood for all containers of its pod.
    pub fn apply(self, status: &mut ContainerHookStatus, now: Timestamp) -> Vec<ContainerHookStatus> {
        match self {
            Self::Found(pod) => return found(status, pod, now),
            Self::Succeeded => {
                status.attempts = status.attempts.saturating_add(1);
                status.succeed = Some(true);
                status.error = None;
            }
            Self::Failed(reason, message) => {
                status.attempts = status.attempts.saturating_add(1);
                status.error = Some(error(reason, &message, now));
            }
            Self::Gone(message) => {
                status.attempts = status.attempts.saturating_add(1);
                status.succeed = Some(false);
                status.error = Some(error(ContainerReason::PodGone, &message, now));
            }
        }
        Vec::new()
    }
}

fn found(status: &mut ContainerHookStatus, pod: FoundPod, now: Timestamp) -> Vec<ContainerHookStatus> {
    let name = &status.container_name;
    let stands_for_all = name == ALL_CONTAINERS;
    if !stands_for_all && !pod.has(name) {
        let message = format!(
            "pod {} has no container {name}; its containers are {}",
            pod.name,
            pod.containers.join(", ")
        );
        status.attempts = status.attempts.saturating_add(1);
        status.error = Some(error(ContainerReason::NoSuchContainer, &message, now));
        return Vec::new();
    }
    status.error = None;
    let mut others = Vec::new();
    if stands_for_all {
        let mut names = pod.containers.into_iter();
        status.container_name = names.next().unwrap_or_default();
        others.extend(names.map(|name| container(&pod.name, Some(&pod.uid), name)));
    }
    status.pod_uid = Some(pod.uid);
    others
}

/// Ends the tries in a container whose pod has too many containers for the hook.
pub fn refuse(status: &mut ContainerHookStatus, message: &str, now: Timestamp) {
    status.succeed = Some(false);
    status.error = Some(error(ContainerReason::TryFailed, message, now));
}

/// Ends the tries in a container because `actionTimeoutSeconds` has passed.
pub fn timed_out(status: &mut ContainerHookStatus, timeout: Duration, now: Timestamp) {
    let last = status.error.as_ref().and_then(|error| error.message.as_deref());
    let message = format!(
        "the action did not succeed within {}s (attempts: {}); last attempt: {}",
        timeout.as_secs(),
        status.attempts,
        last.unwrap_or("not finished")
    );
    status.succeed = Some(false);
    status.error = Some(error(ContainerReason::ActionTimedOut, &message, now));
}

/// Ends the tries in a container because its hook ends.
pub(super) fn hook_ended(status: &mut ContainerHookStatus, now: Timestamp) {
    if status.succeed.is_some() {
        return;
    }
    status.succeed = Some(false);
    let last = status.error.as_ref().and_then(|error| error.message.as_deref());
    let message = match (last, status.timestamp) {
        (Some(last), _) => {
            format!("the ExecutionHook ended before the action succeeded; last attempt: {last}")
        }
        (None, Some(_)) => {
            "the ExecutionHook ended during this attempt; a command may still be running".to_owned()
        }
        (None, None) => "the ExecutionHook ended before the action started in this container".to_owned(),
    };
    status.error = Some(error(ContainerReason::HookEnded, &message, now));
}

/// Returns whether the tries in a container have ended, and not because of its hook.
pub(super) fn has_ended(status: &ContainerHookStatus) -> bool {
    let reason = status.error.as_ref().and_then(|error| error.reason.as_deref());
    status.succeed.is_some() && reason != Some(ContainerReason::HookEnded.as_str())
}

/// Returns whether a state of a container is newer than a recorded one of the same container.
pub fn is_ahead(ours: &ContainerHookStatus, recorded: &ContainerHookStatus) -> bool {
    let is_same_pod = recorded.pod_uid.is_none() || recorded.pod_uid == ours.pod_uid;
    let progress = |status: &ContainerHookStatus| {
        (
            status.succeed.is_some(),
            status.attempts,
            status.pod_uid.is_some(),
            status.timestamp,
        )
    };
    // The end of a hook counts only together with its condition: it may have been withdrawn.
    let is_ended_by_hook = ours.succeed.is_some() && !has_ended(ours);
    is_same_pod && !is_ended_by_hook && recorded.succeed.is_none() && progress(ours) > progress(recorded)
}

/// Shortens a message in its middle: it begins with the place and ends with the output.
fn shorten(message: &str) -> String {
    const MARK: &str = " … ";
    if message.len() <= MAX_MESSAGE_BYTES {
        return message.to_owned();
    }
    let room = MAX_MESSAGE_BYTES - MARK.len();
    let head = message.floor_char_boundary(room / 2);
    let tail = message.ceil_char_boundary(message.len() - room / 2);
    let part = |range: Option<&str>| range.unwrap_or_default().to_owned();
    part(message.get(..head)) + MARK + &part(message.get(tail..))
}

fn error(reason: ContainerReason, message: &str, now: Timestamp) -> HookError {
    let error_type = match reason {
        ContainerReason::CallTimedOut | ContainerReason::ActionTimedOut => ErrorType::Timeout,
        ContainerReason::ApiRefused | ContainerReason::EgressForbidden => ErrorType::Forbidden,
        ContainerReason::NoSuchContainer | ContainerReason::PodGone => ErrorType::NotFound,
        ContainerReason::ExitCode
        | ContainerReason::CommandNotRun
        | ContainerReason::CommandLost
        | ContainerReason::Unreachable
        | ContainerReason::HttpStatus
        | ContainerReason::TryFailed
        | ContainerReason::HookEnded => ErrorType::Error,
    };
    HookError {
        error_type,
        message: Some(shorten(message)),
        reason: Some(reason.to_string()),
        timestamp: Some(now.into()),
    }
}
