//! Rollback of an aborted rollout: pods are updated to the last complete revision, although the spec's template is
//! another one.
//!
//! The recorded status is the memory: a rollback is recorded before any pod is updated for it, and lasts until the
//! template changes or a person requests a retry.

use std::collections::BTreeMap;

use shared_api::game_deployment::{LifecycleHookStatus, PauseCondition, RollbackStatus};
use shared_api::names::workload::{ABORT_REQUESTED, RETRY_REQUESTED};
use shared_api::reason::WorkloadReason;

use crate::canary::CanaryState;
use crate::facts::Facts;
use crate::gate::{RolloutRun, Run};
use crate::lifecycle::{Lifecycle, Wait};
use crate::plan::Warning;
use crate::plural::{form, pods, pods_are, updated_pods_are};
use crate::revision::Revision;
use crate::user_text::bounded;
use crate::view::View;
use crate::workload::{AbortAction, Pause, UpdateType};

/// Rollback part of the status, and warnings about requests without effect.
#[derive(Debug, Default)]
pub struct Rollback {
    /// Rollback to record.
    pub record: Option<RollbackStatus>,
    /// Whether pods stay as they are: the rollback is not recorded yet, or its target is lost.
    pub is_held: bool,
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
            Self::OtherRevision => "this is not the revision being rolled out; see status.updateRevision",
            Self::NoCompleteRevision => "there is no completed rollout to roll back to",
            Self::SameTemplate => "the last completed rollout used the same template",
            Self::Recreate => {
                "with spec.updateStrategy.type Recreate, new pods may have changed data; restore the earlier template \
                 instead, so that its hooks run"
            }
        }
    }
}

/// Returns the recorded rollback, if the spec's template is that of the aborted revision. If that revision is lost, the
/// template counts as its own: only a person or another template begins another rollout.
pub fn recorded<'a>(
    view: &View<'a>,
    spec: &Revision,
    by_name: &BTreeMap<&str, &Revision>,
) -> Option<&'a RollbackStatus> {
    let rollback = view.object.status.as_ref()?.rollback.as_ref()?;
    let from = by_name.get(rollback.from_revision.as_str());
    let is_of_spec = from.is_none_or(|from| from.name == spec.name || from.template == spec.template);
    is_of_spec.then_some(rollback)
}

/// Whether a person requests that the rolled-back rollout begins again. A request to abort it that is not handled
/// either prevails.
pub fn is_retry_requested(facts: &Facts<'_>) -> bool {
    let requested = facts.history.rollback.zip(annotation(facts, RETRY_REQUESTED));
    let Some((rollback, request)) = requested.filter(|_| !is_abort_requested(facts)) else {
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
    // The verdict of an earlier canary HookRun must not count again: its name is that of its step.
    let is_canary = |run: &&Run| run.rollout == Some(RolloutRun::CanaryStep) && !run.terminating;
    let mut runs = facts.view.runs.iter();
    is_meant && rollback.last_handled_retry != Some(request) && !runs.any(is_canary)
}

/// Whether a person aborts the rollout to the spec's template, and this is not recorded yet.
pub fn is_abort_requested(facts: &Facts<'_>) -> bool {
    new_request(facts).is_some_and(|text| check_revision(facts, &text).is_ok())
}

/// Begins, continues or ends a rollback, and reports what it waits for.
#[must_use]
pub fn advance(facts: &Facts<'_>, canary: &CanaryState, lifecycle: &mut Lifecycle) -> Rollback {
    let status = facts.view.object.status.as_ref();
    let mut rollback = Rollback {
        record: None,
        is_held: false,
        last_handled_abort: status.and_then(|status| status.last_handled_abort.clone()),
        warning: None,
    };
    if facts.history.unrecorded.is_some() {
        rollback.record = status.and_then(|status| status.rollback.clone());
        return rollback;
    }
    let request = new_request(facts);
    let begun = |reason| begin(facts, canary, reason);
    if let Some(recorded) = facts.history.rollback {
        if is_retry_requested(facts) {
            lifecycle.wait = Some(begins_again(recorded));
        } else {
            rollback.record = Some(continued(facts, recorded));
        }
        let rejected = |text: &String| Some(reject(text, check_revision(facts, text).err()?));
        rollback.warning = request.as_ref().and_then(rejected);
    } else if let Some(reason) = aborting_hook(facts, lifecycle).map(reason_of_hook) {
        match begun(reason) {
            Ok(begun) => rollback.record = Some(begun),
            Err(obstacle) => report_hold(lifecycle, obstacle),
        }
    } else if let Some(text) = &request {
        match check_revision(facts, text).and_then(|()| begun(WorkloadReason::RolloutAborted)) {
            Ok(begun) => rollback.record = Some(begun),
            Err(obstacle) => rollback.warning = Some(reject(text, obstacle)),
        }
    }
    rollback.last_handled_abort = request.or(rollback.last_handled_abort);
    if let Some(record) = &rollback.record {
        lifecycle.wait = Some(Wait::Blocked(
            reason_of(record),
            message(facts, lifecycle, record),
        ));
        rollback.is_held = !facts.history.is_rollback();
    }
    rollback
}

/// Returns the text of a request to abort the rollout that is not handled yet.
fn new_request(facts: &Facts<'_>) -> Option<String> {
    let handled = facts.view.object.status.as_ref()?.last_handled_abort.as_ref();
    let text = annotation(facts, ABORT_REQUESTED).filter(|text| Some(text) != handled)?;
    // A template that is not recorded is not rolled out yet.
    facts.history.unrecorded.is_none().then_some(text)
}

/// Checks that a request is about the revision of the spec's template.
fn check_revision(facts: &Facts<'_>, request: &str) -> Result<(), Obstacle> {
    let revision = request.split_once('=').map_or(request, |(revision, _)| revision);
    if revision == facts.history.spec.name {
        Ok(())
    } else {
        Err(Obstacle::OtherRevision)
    }
}

/// Returns the record of a rollback that goes on. A retry that was requested before an abort is handled with it.
fn continued(facts: &Facts<'_>, recorded: &RollbackStatus) -> RollbackStatus {
    let mut record = recorded.clone();
    if is_abort_requested(facts) {
        record.last_handled_retry = annotation(facts, RETRY_REQUESTED);
    }
    record
}

/// Returns the text of an annotation of the workload, as the status records it.
fn annotation(facts: &Facts<'_>, name: &str) -> Option<String> {
    facts.view.annotation(name).map(bounded)
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
fn begin(
    facts: &Facts<'_>,
    canary: &CanaryState,
    reason: WorkloadReason,
) -> Result<RollbackStatus, Obstacle> {
    let (history, status) = (&facts.history, facts.view.object.status.as_ref());
    let of_canary = || status?.canary.as_ref()?.revision.as_ref();
    let complete = status
        .and_then(|status| status.current_revision.as_ref())
        .or_else(of_canary);
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
        ignores_pause: is_paused_by_step(facts, canary),
        last_handled_retry: annotation(facts, RETRY_REQUESTED),
    })
}

/// Whether a canary step has set `paused`. During a pause for a limited time, a person has.
fn is_paused_by_step(facts: &Facts<'_>, canary: &CanaryState) -> bool {
    let (workload, index) = (
        facts.workload,
        canary.index.and_then(|index| usize::try_from(index).ok()),
    );
    let step = index.and_then(|index| workload.steps.get(index));
    let is_timed = step.is_some_and(|step| matches!(step.pause, Some(Pause::For(_))));
    let by_hook = |pause: &PauseCondition| pause.reason == WorkloadReason::PausedByStepBasedHook.as_str();
    workload.paused && canary.pauses.iter().any(|pause| !is_timed || by_hook(pause))
}

/// Returns the wait of a rollout in the decision that begins it again.
fn begins_again(recorded: &RollbackStatus) -> Wait {
    let message = format!("restarting the rollout to revision {}", recorded.from_revision);
    Wait::Hook(WorkloadReason::RollingOut, message)
}

/// Adds the reason why pods stay to the message about the hook that aborted the rollout.
fn report_hold(lifecycle: &mut Lifecycle, obstacle: Obstacle) {
    if let Some(Wait::Blocked(_, message)) = &mut lifecycle.wait {
        *message = format!("{message}; not rolled back: {}", obstacle.as_str());
    }
}

fn reject(request: &str, obstacle: Obstacle) -> Warning {
    Warning {
        pod: None,
        reason: WorkloadReason::AbortRejected,
        message: format!(
            "ignored annotation {ABORT_REQUESTED}={request}: {}",
            obstacle.as_str()
        ),
    }
}

/// Returns the reason why a hook aborted its rollout.
pub fn reason_of_hook(entry: &LifecycleHookStatus) -> WorkloadReason {
    let late = WorkloadReason::ProgressDeadlineExceeded;
    if entry.reason.as_deref() == Some(late.as_str()) {
        late
    } else {
        WorkloadReason::LifecycleHookAborted
    }
}

fn reason_of(record: &RollbackStatus) -> WorkloadReason {
    let reasons = [
        WorkloadReason::RolloutAborted,
        WorkloadReason::ProgressDeadlineExceeded,
    ];
    let known = reasons
        .into_iter()
        .find(|reason| reason.as_str() == record.reason);
    known.unwrap_or(WorkloadReason::LifecycleHookAborted)
}

/// Describes why the rollout was aborted, which pods are left to roll back, and how to restart it.
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
    let left = if facts.history.is_rollback() {
        facts.old()
    } else {
        facts.with_spec_template().count()
    };
    let exists = facts.history.revisions().any(|revision| revision.name == *to);
    let outcome = if !exists {
        format!(
            "revision {to} no longer exists, so {} kept and no replacement pods are created",
            updated_pods_are(left)
        )
    } else if workload.update == UpdateType::Recreate {
        format!("{} kept: {}", updated_pods_are(left), Obstacle::Recreate.as_str())
    } else if left == 0 {
        format!("no pods need to be rolled back to revision {to}")
    } else if workload.paused && !record.ignores_pause {
        format!(
            "{} will be rolled back to revision {to} once spec.updateStrategy.paused is set to false",
            pods(left)
        )
    } else if workload.update == UpdateType::OnDelete {
        let they_are = form(left, "it is", "they are");
        format!(
            "{} will be rolled back to revision {to} when {they_are} deleted",
            pods(left)
        )
    } else {
        format!("{} being rolled back to revision {to}", pods_are(left))
    };
    format!(
        "{why}; {outcome}; fix the template, or restart the rollout: kubectl annotate gamedeployment {} -n {} \
         --overwrite {RETRY_REQUESTED}=rollout=$(date +%s)",
        workload.name, workload.namespace
    )
}
