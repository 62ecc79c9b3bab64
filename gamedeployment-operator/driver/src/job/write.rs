//! Single write of a plan, from the checks right before it to the meaning of its answer.

use std::time::Duration;

use gamedeployment_core::gate::{CurrentReport, OpenReason};
use gamedeployment_core::plan::{Action, FinalizerRemoval, GatedWrite, RevisionRef, Warning, WriteKind};
use gamedeployment_core::revision::template_in;
use gamedeployment_core::template::Template;
use shared_api::reason::WorkloadReason;

use super::effect::{Effect, FailedWrite, Target};
use super::node_check::NodeCheck;
use super::stored::Expected;
use crate::request::{ApiCall, Object, ObjectKind, ReconcileTarget, RequestError, Response};
use runtime_core::clock::Now;

/// Write under way.
#[derive(Debug)]
pub(super) struct Write {
    /// Kind of the write.
    pub(super) kind: WriteKind,
    /// Object for which refusals are recorded.
    pub(super) object: String,
    /// Whether the write concerns the number of pods.
    pub(super) scales: bool,
    /// Event to emit on success.
    pub(super) events: Option<(WorkloadReason, String)>,
    /// Warning about the run that the write deletes or creates, to emit on success.
    pub(super) warning: Option<Box<Warning>>,
    target: Target,
    expected: Expected,
    step: WriteState,
    /// Time until which the workload is known to have the spec of the decision.
    confirmed_until: Option<Duration>,
}

#[derive(Debug)]
enum WriteState {
    /// No call was sent yet.
    New(Box<Action>),
    /// Reads the node that the approval rests on: the cache may be late.
    ConfirmsNode(Box<GatedWrite>, NodeCheck),
    /// Reads the workload to confirm that it exists: a workload that is being deleted adopts nothing.
    ConfirmsWorkload(Box<Action>),
    /// Lists the pods to confirm that none is left.
    ConfirmsNoPods(Box<Action>),
    /// The write was sent. Dry runs and new revisions carry the data that their answer needs.
    SentWrite(SentWrite),
    /// Reads the pod that already has the name.
    ReadsPod,
    /// Reads the revision that already has the name.
    ReadsRevision(Option<Template>),
}

#[derive(Debug)]
enum SentWrite {
    /// Change of an existing object, or a new run.
    Plain,
    /// Deletion; the object may already be gone.
    Deletion,
    Pod,
    DryRun(String),
    Revision(Option<Template>),
}

impl SentWrite {
    fn of(action: &Action) -> Self {
        match action {
            Action::CreatePod(_) => Self::Pod,
            Action::DryRunPod(_, revision) => Self::DryRun(revision.clone()),
            Action::CreateRevision(new) => Self::Revision(template_in(&new.data)),
            Action::DeleteRun(_) | Action::DeleteRevision(_) => Self::Deletion,
            Action::AdoptRevision(_)
            | Action::RenumberRevision(..)
            | Action::AdoptPod(_)
            | Action::ReleasePod(_)
            | Action::RecordSelection(..)
            | Action::ClearSelection(..)
            | Action::SetDrainingLabels(..)
            | Action::SetGuardLabel(..)
            | Action::SetAutoscalerAnnotations(..)
            | Action::WithdrawRequests(..)
            | Action::NoteQuestion(..)
            | Action::Gated(_)
            | Action::SetReady(..)
            | Action::CreateRun(_)
            | Action::TerminateRun(_)
            | Action::ResetRetry(_)
            | Action::Pause
            | Action::AddFinalizer
            | Action::RemoveFinalizer(_) => Self::Plain,
        }
    }
}

#[derive(Debug)]
pub(super) enum NextCall {
    /// Next call, and the time by which it must be sent.
    Send(ApiCall, Option<Duration>),
    /// Result of the write.
    End(Result<Effect, FailedWrite>),
}

impl Write {
    pub(super) fn new(action: Action, target: &ReconcileTarget) -> Self {
        let warning = if let Action::DeleteRun(run) = &action {
            run.stale_warning.clone()
        } else if let Action::CreateRun(new) = &action {
            new.warning().cloned().map(Box::new)
        } else {
            None
        };
        Self {
            kind: action.kind(),
            object: action.object().unwrap_or_default().to_owned(),
            scales: action.scales(),
            events: event_of(&action),
            warning,
            target: Target::of(&action, (&target.key.1, target.uid())),
            expected: Expected::of(&action, target),
            step: WriteState::New(Box::new(action)),
            confirmed_until: None,
        }
    }

    /// Whether nothing permits the write but the spec, which has no hook for it.
    pub(super) fn rests_on_spec(&self) -> bool {
        let WriteState::New(action) = &self.step else {
            return false;
        };
        let Action::Gated(write) = &**action else {
            return false;
        };
        match write.open_reason() {
            OpenReason::NoHook | OpenReason::HotPatch => true,
            OpenReason::Verdict { .. }
            | OpenReason::NodeGone { .. }
            | OpenReason::NeverStarted { .. }
            | OpenReason::NotScheduled
            | OpenReason::Ended
            | OpenReason::AlreadyStarted
            | OpenReason::Skipped { .. } => false,
        }
    }

    /// Records until when the workload is known to have the spec of the decision.
    pub(super) fn confirm(&mut self, until: Duration) {
        self.confirmed_until = Some(until);
    }

    /// Returns the first call.
    pub(super) fn begin(&mut self, target: &ReconcileTarget, now: Now) -> NextCall {
        let WriteState::New(action) = std::mem::replace(&mut self.step, WriteState::ReadsPod) else {
            return fails(
                RequestError::Unknown("the write was started twice".to_owned()),
                None,
            );
        };
        self.send(action, target, now)
    }

    /// Sends the action, or first confirms its precondition.
    fn send(&mut self, action: Box<Action>, target: &ReconcileTarget, now: Now) -> NextCall {
        match *action {
            Action::Gated(write) => self.send_gated(write, target, now),
            Action::AdoptPod(_) | Action::AdoptRevision(_) => {
                self.step = WriteState::ConfirmsWorkload(action);
                NextCall::Send(ApiCall::Read(ObjectKind::Workload, target.key.clone()), None)
            }
            Action::CreateRevision(_)
            | Action::RenumberRevision(..)
            | Action::DeleteRevision(_)
            | Action::ReleasePod(_)
            | Action::CreatePod(_)
            | Action::DryRunPod(..)
            | Action::RecordSelection(..)
            | Action::ClearSelection(..)
            | Action::SetDrainingLabels(..)
            | Action::SetGuardLabel(..)
            | Action::SetAutoscalerAnnotations(..)
            | Action::WithdrawRequests(..)
            | Action::NoteQuestion(..)
            | Action::SetReady(..)
            | Action::CreateRun(_)
            | Action::DeleteRun(_)
            | Action::TerminateRun(_)
            | Action::ResetRetry(_)
            | Action::Pause
            | Action::AddFinalizer
            | Action::RemoveFinalizer(FinalizerRemoval::Unasked) => self.act(*action, None),
            Action::RemoveFinalizer(FinalizerRemoval::NoPods(ref selector)) => {
                let call = ApiCall::FindPod(selector.clone());
                self.step = WriteState::ConfirmsNoPods(action);
                NextCall::Send(call, None)
            }
        }
    }

    /// Sends a write that a gate approved, or first confirms what the approval rests on.
    fn send_gated(&mut self, write: GatedWrite, target: &ReconcileTarget, now: Now) -> NextCall {
        let check = match write.open_reason() {
            OpenReason::NodeGone { node } => NodeCheck::is_gone(node, now),
            OpenReason::NeverStarted {
                report: CurrentReport::NodeReady { node, since },
            } => NodeCheck::is_ready(node, *since, now),
            OpenReason::NeverStarted {
                report: CurrentReport::Recent { until },
            } => {
                let until = target.decided.at(*until);
                return self.act(Action::Gated(write), Some(until));
            }
            OpenReason::Verdict { until, .. } => {
                let until = until.map(|until| target.decided.at(until));
                return self.act(Action::Gated(write), until);
            }
            OpenReason::NoHook | OpenReason::HotPatch => {
                let Some(until) = self.confirmed_until else {
                    return fails(RequestError::Lapsed, None);
                };
                return self.act(Action::Gated(write), Some(until));
            }
            OpenReason::NotScheduled
            | OpenReason::Ended
            | OpenReason::AlreadyStarted
            | OpenReason::Skipped { .. } => return self.act(Action::Gated(write), None),
        };
        let call = ApiCall::ReadNode(check.node.clone());
        self.step = WriteState::ConfirmsNode(Box::new(write), check);
        NextCall::Send(call, None)
    }

    fn act(&mut self, action: Action, until: Option<Duration>) -> NextCall {
        self.step = WriteState::SentWrite(SentWrite::of(&action));
        NextCall::Send(ApiCall::Act(action), until)
    }

    /// Applies the answer to the call under way.
    pub(super) fn answered(
        &mut self,
        answer: Result<Response, RequestError>,
        target: &ReconcileTarget,
        now: Now,
    ) -> NextCall {
        match std::mem::replace(&mut self.step, WriteState::ReadsPod) {
            WriteState::New(action) => self.send(action, target, now),
            WriteState::ConfirmsNode(write, check) => match check.confirmed(answer) {
                Ok(until) => self.act(Action::Gated(*write), Some(until)),
                Err(failed) => NextCall::End(Err(*failed)),
            },
            WriteState::ConfirmsWorkload(action) => match is_there(answer, target) {
                Ok(()) => self.act(*action, None),
                Err(error) => fails(error, None),
            },
            WriteState::ConfirmsNoPods(action) => match answer {
                Ok(Response::Gone) => self.act(*action, None),
                // The cache does not contain this pod yet.
                Ok(Response::Object(object)) => fails(RequestError::Conflict, Some(Effect::Object(object))),
                Ok(_) => fails(RequestError::Conflict, None),
                Err(error) => fails(error, None),
            },
            WriteState::SentWrite(sent) => self.settled(sent, answer, target),
            WriteState::ReadsPod => match answer {
                Ok(Response::Object(object)) => NextCall::End(Ok(Effect::Object(object))),
                Ok(_) => fails(RequestError::Conflict, Some(self.target.uncertain())),
                Err(error) => fails(error, Some(self.target.uncertain())),
            },
            WriteState::ReadsRevision(template) => self.found_revision(template, answer, target, now),
        }
    }

    /// Applies the answer to the write itself.
    fn settled(
        &mut self,
        sent: SentWrite,
        answer: Result<Response, RequestError>,
        target: &ReconcileTarget,
    ) -> NextCall {
        let Target { kind, name, uid, .. } = self.target.clone();
        let gone = || Effect::Gone(kind, name.clone(), uid.clone().unwrap_or_default());
        match (sent, answer) {
            (SentWrite::DryRun(revision), Ok(_) | Err(RequestError::Conflict)) => {
                NextCall::End(Ok(Effect::Accepted(revision)))
            }
            (SentWrite::DryRun(revision), Err(RequestError::Refused(message)))
                if says_nothing_of_the_pod(&message) =>
            {
                NextCall::End(Ok(Effect::Accepted(revision)))
            }
            (SentWrite::DryRun(_), Err(error)) => fails(error, None),
            (_, Ok(Response::Object(object))) if !self.expected.is_in(&object) => {
                fails(RequestError::NotStored, Some(Effect::Object(object)))
            }
            (_, Ok(Response::Object(object))) if self.expected.reverts() => {
                fails(RequestError::Repeated, Some(Effect::Object(object)))
            }
            (_, Ok(Response::Object(object))) => NextCall::End(Ok(Effect::Object(object))),
            (_, Ok(Response::Gone)) | (SentWrite::Deletion, Err(RequestError::Gone)) => {
                NextCall::End(Ok(gone()))
            }
            (
                _,
                Ok(
                    Response::Foreign
                    | Response::Node(_)
                    | Response::Guarded(_)
                    | Response::Done
                    | Response::Runs(_),
                ),
            ) => NextCall::End(Ok(Effect::Nothing)),
            // Pod names are deterministic: an earlier attempt created the same pod and its answer was lost.
            (SentWrite::Pod, Err(RequestError::Conflict)) => {
                self.step = WriteState::ReadsPod;
                NextCall::Send(ApiCall::Read(ObjectKind::Pod, (target.key.0.clone(), name)), None)
            }
            (SentWrite::Revision(template), Err(RequestError::Conflict)) => {
                self.step = WriteState::ReadsRevision(template);
                NextCall::Send(
                    ApiCall::Read(ObjectKind::Revision, (target.key.0.clone(), name)),
                    None,
                )
            }
            // Nothing repeats such a creation without back-off.
            (_, Err(RequestError::Gone)) if uid.is_none() => fails(
                RequestError::Refused(format!(
                    "failed to create {} {name}: its namespace or its kind does not exist (404)",
                    kind.as_str()
                )),
                None,
            ),
            (_, Err(error)) => {
                let effect = self.target.after(&error);
                fails(error, effect)
            }
        }
    }

    /// Resolves a name conflict of a new revision. The name belongs to the same revision if an answer was
    /// lost, to one that an earlier workload of this name left behind, or to something else.
    fn found_revision(
        &mut self,
        template: Option<Template>,
        answer: Result<Response, RequestError>,
        target: &ReconcileTarget,
        now: Now,
    ) -> NextCall {
        let found = match answer {
            Ok(Response::Object(Object::Revision(key, found))) => (key, found),
            Ok(_) => return collides(),
            Err(error) => return fails(error, None),
        };
        let (key, found) = found;
        let same = template.as_ref() == Some(&found.revision.template);
        match &found.owner {
            Some(owner) if same && owner == target.uid() => {
                NextCall::End(Ok(Effect::Object(Object::Revision(key, found))))
            }
            None if same => {
                let at = RevisionRef {
                    name: found.revision.name,
                    uid: found.revision.uid,
                    resource_version: found.revision.resource_version,
                };
                self.target.uid = Some(at.uid.clone());
                self.send(Box::new(Action::AdoptRevision(at)), target, now)
            }
            _ => collides(),
        }
    }
}

fn fails(error: RequestError, effect: Option<Effect>) -> NextCall {
    NextCall::End(Err(FailedWrite::new(error, effect)))
}

fn collides() -> NextCall {
    NextCall::End(Err(FailedWrite {
        collision: true,
        ..FailedWrite::new(RequestError::Conflict, None)
    }))
}

/// Confirms that the workload still exists and is not being deleted.
fn is_there(answer: Result<Response, RequestError>, target: &ReconcileTarget) -> Result<(), RequestError> {
    let Response::Object(Object::Workload(_, workload)) = answer? else {
        return Err(RequestError::Conflict);
    };
    let ends = match &workload.object {
        Ok(object) => object.metadata.deletion_timestamp.is_some(),
        Err(unreadable) => unreadable.metadata.deletion_timestamp.is_some(),
    };
    if workload.uid == target.uid() && !ends {
        Ok(())
    } else {
        Err(RequestError::Conflict)
    }
}

/// Event reason for a completed action and the name of its object; `None` for actions without an event.
fn event_of(action: &Action) -> Option<(WorkloadReason, String)> {
    match action {
        Action::CreatePod(pod) => Some((WorkloadReason::PodsCreated, pod.name.clone())),
        Action::Gated(GatedWrite::DeletePod(delete)) => {
            Some((WorkloadReason::PodsDeleted, delete.pod().name.clone()))
        }
        Action::AdoptPod(pod) => Some((WorkloadReason::PodsAdopted, pod.name.clone())),
        Action::ReleasePod(pod) => Some((WorkloadReason::PodsReleased, pod.name.clone())),
        Action::CreateRun(run) => Some((WorkloadReason::HooksAsked, run.name().to_owned())),
        Action::Gated(GatedWrite::SetNotReady(..) | GatedWrite::WriteUpdate(..) | GatedWrite::Confirm(_))
        | Action::CreateRevision(_)
        | Action::AdoptRevision(_)
        | Action::RenumberRevision(..)
        | Action::DeleteRevision(_)
        | Action::DryRunPod(..)
        | Action::RecordSelection(..)
        | Action::ClearSelection(..)
        | Action::SetDrainingLabels(..)
        | Action::SetGuardLabel(..)
        | Action::SetAutoscalerAnnotations(..)
        | Action::WithdrawRequests(..)
        | Action::NoteQuestion(..)
        | Action::SetReady(..)
        | Action::DeleteRun(_)
        | Action::TerminateRun(_)
        | Action::ResetRetry(_)
        | Action::Pause
        | Action::AddFinalizer
        | Action::RemoveFinalizer(_) => None,
    }
}

/// Whether a dry run was refused for reasons unrelated to the pod: the quota has room once the old pod is
/// gone, and some webhooks do not support dry runs.
fn says_nothing_of_the_pod(message: &str) -> bool {
    message.contains("exceeded quota") || message.contains("does not support dry run")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_quota_and_a_webhook_without_dry_runs_say_nothing_of_the_pod() {
        for message in [
            "pods \"a\" is forbidden: exceeded quota: full, requested: pods=1, used: pods=3, limited: pods=3 (403)",
            "admission webhook \"a.example\" does not support dry run (400)",
        ] {
            assert!(says_nothing_of_the_pod(message), "{message}");
        }
        assert!(!says_nothing_of_the_pod(
            "pods \"a\" is forbidden: maximum memory usage per Container is 1Gi (403)"
        ));
    }
}
