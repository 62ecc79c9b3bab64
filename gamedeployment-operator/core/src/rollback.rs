//! Rollback of an aborted rollout: pods are updated to the last complete revision, although the spec's template is
//! another one.
//!
//! The recorded status is the memory: a rollback is recorded before any pod is updated for it, and lasts until the
//! template changes or a person requests a retry.

use std::collections::BTreeMap;

use shared_api::game_deployment::{GameDeploymentStatus, LifecycleHookStatus, RollbackStatus};
use shared_api::names::workload::{ABORT_REQUESTED, RETRY_REQUESTED};
use shared_api::reason::WorkloadReason;

use crate::facts::Facts;
use crate::lifecycle::{Lifecycle, Wait};
use crate::plan::Warning;
use crate::revision::Revision;
use crate::user_text::bounded;
use crate::view::View;
use crate::workload::{AbortAction, UpdateType, Workload};

/// Rollback part of the status, and warnings about requests without effect.
#[derive(Debug, Default)]
pub struct Rollback {
    /// Rollback to record.
    pub record: Option<RollbackStatus>,
    /// Text of the last request to abort a rollout, which this decision handles.
    pub last_handled_abort: Option<String>,
    /// Warning about a request without effect.
    pub warning: Option<Warning>,
}

/// Reason why a rollout is not rolled back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Obstacle {
    /// The request names another revision.
    OtherRevision,
    /// No complete revision is recorded.
    NoCompleteRevision,
    /// Pods may have the template of the last complete revision already.
    SameTemplate,
    /// Pods of the other revision may have changed data.
    Recreate,
}

impl Obstacle {
    fn as_str(self) -> &'static str {
        match self {
            Self::OtherRevision => "pods are not updated to this revision; see status.updateRevision",
            Self::NoCompleteRevision => "the status names no revision whose rollout is complete",
            Self::SameTemplate => "the last complete rollout had the same template",
            Self::Recreate => {
                "with spec.updateStrategy.type Recreate the new pods may have changed data; set the earlier template, so \
                 that its hooks run"
            }
        }
    }
}

/// Returns the revision that pods are updated to during a recorded rollback; `None` if pods stay.
pub fn target<'a>(
    view: &View<'_>,
    workload: &Workload,
    spec: &Revision,
    by_name: &BTreeMap<&str, &'a Revision>,
) -> Option<&'a Revision> {
    let rollback = view.object.status.as_ref()?.rollback.as_ref()?;
    let is_in_force = rollback.from_revision == spec.name && workload.update != UpdateType::Recreate;
    by_name
        .get(rollback.to_revision.as_str())
        .copied()
        .filter(|to| is_in_force && to.template != spec.template)
}

/// Returns the recorded rollback of the spec's template.
pub fn recorded<'f>(facts: &'f Facts<'_>) -> Option<&'f RollbackStatus> {
    let rollback = facts.view.object.status.as_ref()?.rollback.as_ref()?;
    let is_of_spec = rollback.from_revision == facts.history.spec.name;
    (is_of_spec && facts.history.unrecorded.is_none()).then_some(rollback)
}

/// Whether a person requests that the rolled-back rollout begins again.
pub fn is_retry_requested(facts: &Facts<'_>) -> bool {
    let Some((rollback, request)) = recorded(facts).zip(annotation(facts, RETRY_REQUESTED)) else {
        return false;
    };
    let status = facts.view.object.status.as_ref();
    let mut hooks = status.into_iter().flat_map(|status| &status.lifecycle_hooks);
    let is_meant = match request.split_once('=') {
        Some(("rollout", _)) => true,
        Some((key, _)) => key
            .strip_prefix("lifecycle/")
            .is_some_and(|name| hooks.any(|entry| entry.name == name && entry.phase.is_aborted())),
        None => false,
    };
    is_meant && rollback.last_handled_retry != Some(request)
}

/// Whether a person aborts the rollout, and this is not recorded yet.
pub fn is_requested(facts: &Facts<'_>) -> bool {
    matches!(new_request(facts), Some((_, Ok(_))))
}

/// Begins, continues or ends a rollback, and reports what it waits for.
#[must_use]
pub fn advance(facts: &Facts<'_>, lifecycle: &mut Lifecycle) -> Rollback {
    let none = GameDeploymentStatus::default();
    let status = facts.view.object.status.as_ref().unwrap_or(&none);
    let mut rollback = Rollback {
        record: None,
        last_handled_abort: status.last_handled_abort.clone(),
        warning: None,
    };
    let request = new_request(facts);
    if let Some((text, _)) = &request {
        rollback.last_handled_abort = Some(text.clone());
    }
    if facts.history.unrecorded.is_some() {
        rollback.record.clone_from(&status.rollback);
        return rollback;
    }
    if let Some(recorded) = recorded(facts) {
        rollback.record = Some(recorded.clone()).filter(|_| !is_retry_requested(facts));
    } else if aborting_hook(facts, lifecycle).is_some() {
        match begin(facts, WorkloadReason::LifecycleHookAborted) {
            Ok(begun) => rollback.record = Some(begun),
            Err(obstacle) => report_hold(lifecycle, obstacle),
        }
    } else if let Some((text, begun)) = request {
        match begun {
            Ok(begun) => rollback.record = Some(begun),
            Err(obstacle) => rollback.warning = Some(rejected(&text, obstacle)),
        }
    }
    if let Some(record) = &rollback.record {
        let reason = reason_of(record);
        lifecycle.wait = Some(Wait::Blocked(reason, message(facts, lifecycle, record)));
        if !facts.history.is_rollback() {
            // No further pod gets the revision before the rollback is recorded.
            lifecycle.open = Some(facts.updated());
        }
    }
    rollback
}

/// Returns a request to abort the rollout that is not handled yet, and the rollback that it begins.
fn new_request(facts: &Facts<'_>) -> Option<(String, Result<RollbackStatus, Obstacle>)> {
    let handled = facts.view.object.status.as_ref()?.last_handled_abort.as_ref();
    let text = annotation(facts, ABORT_REQUESTED).filter(|text| Some(text) != handled)?;
    // A template that is not recorded is not rolled out yet.
    if facts.history.unrecorded.is_some() {
        return None;
    }
    let revision = text
        .split_once('=')
        .map_or(text.as_str(), |(revision, _)| revision);
    let begun = if revision == facts.history.spec.name {
        begin(facts, WorkloadReason::RolloutAborted)
    } else {
        Err(Obstacle::OtherRevision)
    };
    Some((text, begun))
}

/// Returns the text of an annotation of the workload, as the status records it.
fn annotation(facts: &Facts<'_>, name: &str) -> Option<String> {
    let annotations = facts.view.object.metadata.annotations.as_ref()?;
    annotations.get(name).map(|text| bounded(text))
}

/// Returns the entry of a hook that aborted the rollout and requires a rollback.
fn aborting_hook<'l>(facts: &Facts<'_>, lifecycle: &'l Lifecycle) -> Option<&'l LifecycleHookStatus> {
    let rolls_back = |entry: &&LifecycleHookStatus| {
        let mut hooks = facts.workload.lifecycle_hooks.iter();
        hooks.any(|hook| hook.name == entry.name && hook.abort_action == AbortAction::Rollback)
    };
    let mut entries = lifecycle.hooks.iter();
    entries.find(|entry| {
        entry.phase.is_aborted() && entry.revision == facts.history.spec.name && rolls_back(entry)
    })
}

/// Returns the rollback to the last complete revision.
fn begin(facts: &Facts<'_>, reason: WorkloadReason) -> Result<RollbackStatus, Obstacle> {
    let (history, status) = (&facts.history, facts.view.object.status.as_ref());
    let canary = || status?.canary.as_ref()?.revision.as_ref();
    let complete = status
        .and_then(|status| status.current_revision.as_ref())
        .or_else(canary);
    // The first rollout has none.
    if complete != Some(&history.current.name) {
        return Err(Obstacle::NoCompleteRevision);
    }
    if history.is_updated(&history.current.name) {
        return Err(Obstacle::SameTemplate);
    }
    if facts.workload.update == UpdateType::Recreate {
        return Err(Obstacle::Recreate);
    }
    Ok(RollbackStatus {
        from_revision: history.spec.name.clone(),
        to_revision: history.current.name.clone(),
        reason: reason.as_str().to_owned(),
        start_time: Some(facts.now.into()),
        last_handled_retry: annotation(facts, RETRY_REQUESTED),
    })
}

/// Adds the reason why pods stay to the message about the hook that aborted the rollout.
fn report_hold(lifecycle: &mut Lifecycle, obstacle: Obstacle) {
    if let Some(Wait::Blocked(WorkloadReason::LifecycleHookAborted, message)) = &mut lifecycle.wait {
        *message = format!("{message}; no rollback: {}", obstacle.as_str());
    }
}

fn rejected(request: &str, obstacle: Obstacle) -> Warning {
    Warning {
        pod: None,
        reason: WorkloadReason::AbortRejected,
        message: format!("annotation {ABORT_REQUESTED}={request}: {}", obstacle.as_str()),
    }
}

fn reason_of(record: &RollbackStatus) -> WorkloadReason {
    if record.reason == WorkloadReason::RolloutAborted.as_str() {
        WorkloadReason::RolloutAborted
    } else {
        WorkloadReason::LifecycleHookAborted
    }
}

/// Describes why the rollout was aborted, which pods are left to go back, and how to begin again.
fn message(facts: &Facts<'_>, lifecycle: &Lifecycle, record: &RollbackStatus) -> String {
    let (workload, to) = (facts.workload, &record.to_revision);
    let aborted = lifecycle.hooks.iter().find(|entry| entry.phase.is_aborted());
    let why = match aborted {
        Some(entry) => {
            let why = entry.message.as_deref().unwrap_or_default();
            format!("lifecycle hook {}: {why}", entry.name)
        }
        None => format!("the rollout to revision {} was aborted", record.from_revision),
    };
    let left = facts.with_spec_template().count();
    let exists = facts.history.revisions().any(|revision| revision.name == *to);
    let pods = if !exists {
        format!("revision {to} does not exist any more, so {left} updated pods stay")
    } else if workload.update == UpdateType::Recreate {
        format!("{left} updated pods stay: {}", Obstacle::Recreate.as_str())
    } else if left == 0 {
        format!(
            "no pod has revision {} any more; new pods get revision {to}",
            record.from_revision
        )
    } else if workload.paused {
        format!("{left} pods go back to revision {to} once spec.updateStrategy.paused is false")
    } else if workload.update == UpdateType::OnDelete {
        format!("{left} pods go back to revision {to} when they are deleted")
    } else {
        format!("{left} pods go back to revision {to}")
    };
    format!(
        "{why}; {pods}; correct the template, or begin again: kubectl annotate gamedeployment {} -n {} --overwrite \
         {RETRY_REQUESTED}=rollout=$(date +%s)",
        workload.name, workload.namespace
    )
}
