//! Single write of a plan, from the checks right before it to the meaning of its answer.

use std::time::Duration;

use gamedeployment_core::gate::Grounds;
use gamedeployment_core::plan::{Action, RevisionRef, Warning};
use gamedeployment_core::revision::template_in;
use gamedeployment_core::template::Template;
use shared_api::reason::WorkloadReason;

use super::effect::{Effect, Failure, Target};
use crate::request::{Answer, Call, CallError, Kind, Object, Subject};
use runtime_core::clock::Now;

/// Validity of a confirmation that a node does not exist, counted from the request because the answer may be
/// slow.
const NODE_GONE_FOR: Duration = Duration::from_secs(5);

/// Write under way.
#[derive(Debug)]
pub(super) struct Write {
    /// [`Action::name`].
    pub(super) act: &'static str,
    /// Object for which refusals are recorded.
    pub(super) object: String,
    /// Whether it changes the number of pods.
    pub(super) scales: bool,
    /// Event to emit on success.
    pub(super) told: Option<(WorkloadReason, String)>,
    /// Warning to emit when the write deletes a run.
    pub(super) void: Option<Box<Warning>>,
    target: Target,
    step: Step,
}

#[derive(Debug)]
enum Step {
    /// No call was sent yet.
    New(Box<Action>),
    /// Reads the node, since this time, to confirm that it is gone: the cache may be late, or the node
    /// registered again.
    ConfirmsNode(Box<Action>, String, Duration),
    /// Reads the workload to confirm that it exists: a workload that is being deleted adopts nothing.
    ConfirmsWorkload(Box<Action>),
    /// The write was sent. Dry runs and new revisions carry the data that their answer needs.
    Sent(Sent),
    /// Reads the pod that already has the name.
    ReadsPod,
    /// Reads the revision that already has the name.
    ReadsRevision(Option<Template>),
}

#[derive(Debug)]
enum Sent {
    /// Change of an existing object, or a new run.
    Plain,
    /// Deletion; the object may already be gone.
    Deletion,
    Pod,
    DryRun(String),
    Revision(Option<Template>),
}

impl Sent {
    fn of(action: &Action) -> Self {
        match action {
            Action::CreatePod(_) => Self::Pod,
            Action::TryPod(_, revision) => Self::DryRun(revision.clone()),
            Action::CreateRevision(new) => Self::Revision(template_in(&new.data)),
            Action::DeleteRun(_) | Action::DeleteRevision(_) => Self::Deletion,
            _ => Self::Plain,
        }
    }
}

#[derive(Debug)]
pub(super) enum Follows {
    /// Next call, and the time by which it must be sent.
    Call(Call, Option<Duration>),
    /// Result of the write.
    End(Result<Effect, Failure>),
}

impl Write {
    pub(super) fn new(action: Action, subject: &Subject) -> Self {
        let void = match &action {
            Action::DeleteRun(run) => run.void.clone(),
            _ => None,
        };
        Self {
            act: action.name(),
            object: action.object().unwrap_or_default().to_owned(),
            scales: action.scales(),
            told: told_of(&action),
            void,
            target: Target::of(&action, (&subject.key.1, subject.uid())),
            step: Step::New(Box::new(action)),
        }
    }

    /// Returns the first call.
    pub(super) fn begin(&mut self, subject: &Subject, now: Now) -> Follows {
        match std::mem::replace(&mut self.step, Step::ReadsPod) {
            Step::New(action) => self.send(action, subject, now),
            other => {
                self.step = other;
                Follows::End(Err(Failure::new(
                    CallError::Unknown("it was begun twice".to_owned()),
                    None,
                )))
            }
        }
    }

    /// Sends the action, or first confirms its precondition.
    fn send(&mut self, action: Box<Action>, subject: &Subject, now: Now) -> Follows {
        if matches!(*action, Action::Adopt(_) | Action::AdoptRevision(_)) {
            self.step = Step::ConfirmsWorkload(action);
            return Follows::Call(Call::Read(Kind::Workload, subject.key.clone()), None);
        }
        match grounds(&action) {
            Some(Grounds::NodeGone { node }) => {
                let node = node.clone();
                self.step = Step::ConfirmsNode(action, node.clone(), now.mono);
                Follows::Call(Call::ReadNode(node), None)
            }
            Some(Grounds::Verdict { until, .. }) => {
                let until = until.map(|until| subject.decided.at(until));
                self.act(*action, until)
            }
            Some(
                Grounds::NoHook
                | Grounds::HotPatch
                | Grounds::NotScheduled
                | Grounds::NeverStarted
                | Grounds::Ended
                | Grounds::UnderWay
                | Grounds::Skipped { .. },
            )
            | None => self.act(*action, None),
        }
    }

    fn act(&mut self, action: Action, until: Option<Duration>) -> Follows {
        self.step = Step::Sent(Sent::of(&action));
        Follows::Call(Call::Act(action), until)
    }

    /// Applies the answer to the call under way.
    pub(super) fn answered(
        &mut self,
        answer: Result<Answer, CallError>,
        subject: &Subject,
        now: Now,
    ) -> Follows {
        match std::mem::replace(&mut self.step, Step::ReadsPod) {
            Step::New(action) => self.send(action, subject, now),
            Step::ConfirmsNode(action, node, asked) => match answer {
                Err(CallError::Gone) => self.act(*action, Some(asked + NODE_GONE_FOR)),
                Ok(_) => fails(CallError::Conflict, Some(Effect::NodeNotGone(node))),
                Err(error) => fails(error, Some(Effect::NodeNotGone(node))),
            },
            Step::ConfirmsWorkload(action) => match is_there(answer, subject) {
                Ok(()) => self.act(*action, None),
                Err(error) => fails(error, None),
            },
            Step::Sent(sent) => self.settled(sent, answer, subject),
            Step::ReadsPod => match answer {
                Ok(Answer::Object(object)) => Follows::End(Ok(Effect::Object(object))),
                Ok(_) => fails(CallError::Conflict, Some(self.uncertain())),
                Err(error) => fails(error, Some(self.uncertain())),
            },
            Step::ReadsRevision(template) => self.found_revision(template, answer, subject, now),
        }
    }

    /// Applies the answer to the write itself.
    fn settled(&mut self, sent: Sent, answer: Result<Answer, CallError>, subject: &Subject) -> Follows {
        let Target { kind, name, uid } = self.target.clone();
        let gone = || Effect::Gone(kind, name.clone(), uid.clone().unwrap_or_default());
        match (sent, answer) {
            (Sent::DryRun(revision), Ok(_) | Err(CallError::Conflict)) => {
                Follows::End(Ok(Effect::Accepted(revision)))
            }
            (Sent::DryRun(revision), Err(CallError::Refused(message)))
                if says_nothing_of_the_pod(&message) =>
            {
                Follows::End(Ok(Effect::Accepted(revision)))
            }
            (Sent::DryRun(_), Err(error)) => fails(error, None),
            (_, Ok(Answer::Object(object))) => Follows::End(Ok(Effect::Object(object))),
            (_, Ok(Answer::Gone)) | (Sent::Deletion, Err(CallError::Gone)) => Follows::End(Ok(gone())),
            (_, Ok(Answer::Foreign | Answer::Done | Answer::Runs(_))) => Follows::End(Ok(Effect::Nothing)),
            // Pod names are deterministic: an earlier attempt created the same pod and its answer was lost.
            (Sent::Pod, Err(CallError::Conflict)) => {
                self.step = Step::ReadsPod;
                Follows::Call(Call::Read(Kind::Pod, (subject.key.0.clone(), name)), None)
            }
            (Sent::Revision(template), Err(CallError::Conflict)) => {
                self.step = Step::ReadsRevision(template);
                Follows::Call(Call::Read(Kind::Revision, (subject.key.0.clone(), name)), None)
            }
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
        answer: Result<Answer, CallError>,
        subject: &Subject,
        now: Now,
    ) -> Follows {
        let found = match answer {
            Ok(Answer::Object(Object::Revision(key, found))) => (key, found),
            Ok(_) => return collides(),
            Err(error) => return fails(error, None),
        };
        let (key, found) = found;
        let same = template.as_ref() == Some(&found.revision.template);
        match &found.owner {
            Some(owner) if same && owner == subject.uid() => {
                Follows::End(Ok(Effect::Object(Object::Revision(key, found))))
            }
            None if same => {
                let at = RevisionRef {
                    name: found.revision.name,
                    uid: found.revision.uid,
                    resource_version: found.revision.resource_version,
                };
                self.target.uid = Some(at.uid.clone());
                self.send(Box::new(Action::AdoptRevision(at)), subject, now)
            }
            _ => collides(),
        }
    }

    fn uncertain(&self) -> Effect {
        Effect::Uncertain(self.target.kind, self.target.name.clone())
    }
}

fn fails(error: CallError, effect: Option<Effect>) -> Follows {
    Follows::End(Err(Failure::new(error, effect)))
}

fn collides() -> Follows {
    Follows::End(Err(Failure {
        collision: true,
        ..Failure::new(CallError::Conflict, None)
    }))
}

/// Confirms that the workload still exists and is not being deleted.
fn is_there(answer: Result<Answer, CallError>, subject: &Subject) -> Result<(), CallError> {
    let Answer::Object(Object::Workload(_, workload)) = answer? else {
        return Err(CallError::Conflict);
    };
    let ends = match &workload.object {
        Ok(object) => object.metadata.deletion_timestamp.is_some(),
        Err(unreadable) => unreadable.metadata.deletion_timestamp.is_some(),
    };
    if workload.uid == subject.uid() && !ends {
        Ok(())
    } else {
        Err(CallError::Conflict)
    }
}

/// Approval of a write to a pod; `None` for actions that need none.
fn grounds(action: &Action) -> Option<&Grounds> {
    match action {
        Action::DeletePod(delete) => Some(delete.grounds()),
        Action::TakeOut(update, _) | Action::WriteUpdate(update, _) => Some(update.grounds()),
        Action::Confirm(confirmed) => Some(confirmed.grounds()),
        _ => None,
    }
}

/// Event reason for a completed action, and the name of its object.
fn told_of(action: &Action) -> Option<(WorkloadReason, String)> {
    match action {
        Action::CreatePod(pod) => Some((WorkloadReason::PodsCreated, pod.name.clone())),
        Action::DeletePod(delete) => Some((WorkloadReason::PodsDeleted, delete.pod().name.clone())),
        Action::Adopt(pod) => Some((WorkloadReason::PodsAdopted, pod.name.clone())),
        Action::Release(pod) => Some((WorkloadReason::PodsReleased, pod.name.clone())),
        Action::CreateRun(run) => {
            let name = run.run.metadata.name.clone().unwrap_or_default();
            Some((WorkloadReason::HooksAsked, name))
        }
        _ => None,
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
