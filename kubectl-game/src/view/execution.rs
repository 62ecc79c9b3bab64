//! View of an ExecutionHook: counts, reason, and the containers that have not succeeded.

use jiff::Timestamp;
use kube::ResourceExt;
use shared_api::ExecutionHook;
use shared_api::execution_hook::ContainerHookStatus;
use shared_api::reason::{ExecutionCondition, ExecutionReason};
use shared_api::time::Time;

use super::created;
use crate::paint::Tone;

/// View of an ExecutionHook.
#[derive(Debug, Clone)]
pub(crate) struct ExecutionView {
    pub(crate) name: String,
    pub(crate) namespace: String,
    /// Name of the HookAction.
    pub(crate) action: String,
    /// Time of its creation.
    pub(crate) created: Option<Timestamp>,
    /// Numbers of containers.
    pub(crate) counts: ContainerCounts,
    /// Stage of the hook.
    pub(crate) stage: Stage,
    /// Reason of the condition Complete; `None` if hook-operator has not seen the hook.
    pub(crate) reason: Option<String>,
    /// Message of the condition Complete.
    pub(crate) message: String,
    /// Containers that have not succeeded, failed ones first.
    pub(crate) containers: Vec<ContainerView>,
}

/// Numbers of containers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ContainerCounts {
    pub(crate) total: i32,
    pub(crate) succeeded: i32,
    pub(crate) failed: i32,
}

/// Stage of an ExecutionHook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// hook-operator has not seen the hook.
    Unseen,
    /// Nothing can be carried out now; the condition says why.
    Waiting,
    /// The action is carried out.
    Executing,
    /// The action succeeded in every container.
    Succeeded,
    /// The hook ended without a success in every container.
    Failed,
}

/// View of a container that has not succeeded.
#[derive(Debug, Clone)]
pub(crate) struct ContainerView {
    pub(crate) pod: String,
    pub(crate) container: String,
    pub(crate) state: ContainerState,
    /// Number of tries that have ended.
    pub(crate) attempts: i32,
    /// Reason of the last error.
    pub(crate) reason: Option<String>,
    /// Message of the last error.
    pub(crate) message: Option<String>,
}

/// State of a container that has not succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ContainerState {
    /// The action failed for good.
    Failed,
    /// The last try failed, and there will be another one.
    Retrying,
    /// A try is under way.
    Running,
    /// There was no try.
    Waiting,
}

impl Stage {
    /// Returns whether the hook is complete.
    pub(crate) fn is_complete(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

impl From<Stage> for Tone {
    fn from(stage: Stage) -> Self {
        match stage {
            Stage::Unseen => Self::Waiting,
            Stage::Waiting => Self::Warn,
            Stage::Executing => Self::Busy,
            Stage::Succeeded => Self::Good,
            Stage::Failed => Self::Bad,
        }
    }
}

impl ContainerState {
    /// Returns the word for the state.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Failed => "Failed",
            Self::Retrying => "Retrying",
            Self::Running => "Running",
            Self::Waiting => "Waiting",
        }
    }
}

impl From<ContainerState> for Tone {
    fn from(state: ContainerState) -> Self {
        match state {
            ContainerState::Failed => Self::Bad,
            ContainerState::Retrying => Self::Warn,
            ContainerState::Running => Self::Busy,
            ContainerState::Waiting => Self::Waiting,
        }
    }
}

impl ExecutionView {
    /// Builds the view of a hook.
    pub(crate) fn of(hook: &ExecutionHook) -> Self {
        let status = hook.status.clone().unwrap_or_default();
        let condition = |kind: ExecutionCondition| {
            let mut conditions = status.conditions.iter();
            conditions.find(|condition| condition.type_ == kind.as_str())
        };
        let complete = condition(ExecutionCondition::Complete);
        let succeeded = condition(ExecutionCondition::Succeeded);
        let reason = complete.map(|condition| condition.reason.clone());
        let stage = if hook.is_complete() {
            let has_succeeded = succeeded.is_some_and(|condition| condition.status == "True");
            if has_succeeded {
                Stage::Succeeded
            } else {
                Stage::Failed
            }
        } else {
            match reason.as_deref() {
                None => Stage::Unseen,
                Some(reason) if reason == ExecutionReason::Executing.as_str() => Stage::Executing,
                Some(_) => Stage::Waiting,
            }
        };
        let mut containers: Vec<ContainerView> = status
            .hook_statuses
            .iter()
            .filter_map(ContainerView::of)
            .collect();
        containers.sort_by_key(|container| container.state);
        Self {
            name: hook.name_any(),
            namespace: hook.namespace().unwrap_or_default(),
            action: hook.spec.action_name.clone(),
            created: created(hook),
            counts: ContainerCounts {
                total: status.total,
                succeeded: status.succeeded,
                failed: status.failed,
            },
            stage,
            message: complete
                .map(|condition| condition.message.clone())
                .unwrap_or_default(),
            reason,
            containers,
        }
    }

    /// Returns the containers in which the action failed for good.
    pub(crate) fn failed(&self) -> impl Iterator<Item = &ContainerView> {
        self.in_state(ContainerState::Failed)
    }

    /// Returns the containers whose last try failed.
    pub(crate) fn retrying(&self) -> impl Iterator<Item = &ContainerView> {
        self.in_state(ContainerState::Retrying)
    }

    fn in_state(&self, state: ContainerState) -> impl Iterator<Item = &ContainerView> {
        let containers = self.containers.iter();
        containers.filter(move |container| container.state == state)
    }
}

impl ContainerView {
    /// Builds the view of a container; `None` if the action succeeded there.
    fn of(status: &ContainerHookStatus) -> Option<Self> {
        let error = status.error.as_ref();
        let failed_at = error.and_then(|error| error.timestamp).map(Time::timestamp);
        let state = match (status.succeed, status.timestamp.map(Time::timestamp)) {
            (Some(true), _) => return None,
            (Some(false), _) => ContainerState::Failed,
            (None, Some(began)) if failed_at.is_none_or(|failed| began > failed) => ContainerState::Running,
            (None, _) if error.is_some() => ContainerState::Retrying,
            (None, _) => ContainerState::Waiting,
        };
        Some(Self {
            pod: status.pod_name.clone(),
            container: status.container_name.clone(),
            state,
            attempts: status.attempts,
            reason: error.and_then(|error| error.reason.clone()),
            message: error.and_then(|error| error.message.clone()),
        })
    }
}
