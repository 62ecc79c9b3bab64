//! What the API server does with the writes of gamedeployment-operator: the patches of the shell's `act`, each with the
//! preconditions that the action carries and no others.

use std::rc::Rc;

use gamedeployment_core::gate::{Grounds, HookKind, PodRef, owner};
use gamedeployment_core::plan::{Action, NewPod, NewRevision, RevisionRef};
use gamedeployment_core::revision::template_in;
use jiff::Timestamp;

use super::patch::patch;
use super::{Request, Seen};
use crate::objects::{PodObject, RevisionObject, RunObject, WorkloadObject};
use crate::server::{Deleted, Refusal, Server};
use crate::setup::strategy_of;

/// Kinds that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Workload,
    Pod,
    Revision,
    Run,
}

/// What became known by writing.
#[derive(Debug, Clone)]
pub enum Effect {
    Workload(Rc<WorkloadObject>),
    Pod(Rc<PodObject>),
    Revision(Rc<RevisionObject>),
    Run(Rc<RunObject>),
    Gone(Kind, String, String),
    Accepted(String),
    NodeNotGone(String),
    Uncertain(Kind, String),
}

/// As `operator_runtime::calls::CallError`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallError {
    Gone,
    Conflict,
    Refused,
    Unknown,
}

impl From<Refusal> for CallError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Gone => Self::Gone,
            Refusal::Conflict => Self::Conflict,
            Refusal::Forbidden => Self::Refused,
        }
    }
}

/// What came of a request, as its sender learns it.
#[derive(Debug, Clone, Default)]
pub struct Landed {
    pub effect: Option<Effect>,
    pub error: Option<CallError>,
    pub collision: bool,
}

impl Landed {
    fn done(effect: Effect) -> Self {
        Self {
            effect: Some(effect),
            ..Self::default()
        }
    }

    fn failed(error: CallError, effect: Option<Effect>) -> Self {
        Self {
            effect,
            error: Some(error),
            collision: false,
        }
    }

    /// A write to an existing object failed: `Trouble::of`.
    fn trouble(error: CallError, kind: Kind, name: &str, uid: &str) -> Self {
        let effect = match error {
            CallError::Gone => Some(Effect::Gone(kind, name.to_owned(), uid.to_owned())),
            CallError::Unknown | CallError::Conflict => Some(Effect::Uncertain(kind, name.to_owned())),
            CallError::Refused => None,
        };
        Self::failed(error, effect)
    }
}

/// The object that a request is about: kind, name, UID; none for one that is to be made.
fn target(request: &Request, seen: Option<&Seen>) -> (Kind, String, Option<String>) {
    let pod = |at: &PodRef| (Kind::Pod, at.name.clone(), Some(at.uid.clone()));
    let revision = |at: &RevisionRef| (Kind::Revision, at.name.clone(), Some(at.uid.clone()));
    let workload = || {
        let object = &seen.unwrap().object;
        (
            Kind::Workload,
            object.id.name.clone(),
            Some(object.id.uid.clone()),
        )
    };
    match request {
        Request::Status(_) => workload(),
        Request::Read(kind, name) => (*kind, name.clone(), None),
        Request::Act(action) => match action {
            Action::CreateRevision(new) => (Kind::Revision, new.name.clone(), None),
            Action::AdoptRevision(at) | Action::RenumberRevision(at, _) | Action::DeleteRevision(at) => {
                revision(at)
            }
            Action::CreatePod(new) | Action::TryPod(new, _) => (Kind::Pod, new.name.clone(), None),
            Action::Adopt(at)
            | Action::Release(at)
            | Action::Mark(at, _)
            | Action::Unmark(at)
            | Action::PutIn(at, _) => pod(at),
            Action::DeletePod(delete) => pod(delete.pod()),
            Action::TakeOut(update, _) | Action::WriteUpdate(update, _) => pod(update.pod()),
            Action::Confirm(confirmed) => pod(confirmed.pod()),
            Action::CreateRun(new) => (Kind::Run, new.run.metadata.name.clone().unwrap(), None),
            Action::DeleteRun(at) => (Kind::Run, at.name.clone(), Some(at.uid.clone())),
            Action::ResetRetry(_) | Action::Pause => workload(),
        },
    }
}

/// What its sender learns of a request that failed in this way.
#[must_use]
pub fn failed(request: &Request, seen: Option<&Seen>, error: CallError) -> Landed {
    if matches!(request, Request::Read(..)) {
        return Landed::failed(error, None);
    }
    match target(request, seen) {
        (kind, name, Some(uid)) => Landed::trouble(error, kind, &name, &uid),
        (kind, name, None) => {
            let unknown = error == CallError::Unknown;
            Landed::failed(error, unknown.then_some(Effect::Uncertain(kind, name)))
        }
    }
}

/// Does a request.
pub fn perform(server: &mut Server, request: &Request, seen: Option<&Seen>, now: Timestamp) -> Landed {
    // `act/leave.rs`: that a node is gone is asked right before the write.
    if let Request::Act(action) = request
        && let Some(Grounds::NodeGone { node }) = grounds(action)
        && server.nodes.get(node).is_some()
    {
        return Landed::failed(CallError::Conflict, Some(Effect::NodeNotGone(node.clone())));
    }
    let done = match request {
        Request::Read(kind, name) => return read(server, *kind, name),
        Request::Status(status) => {
            let object = &seen.unwrap().object;
            let id = &object.id;
            let written = server.patch_workload(&id.name, Some(&id.uid), Some(&id.version), |object| {
                object.status = Some((**status).clone());
            });
            written.map(Effect::Workload)
        }
        Request::Act(action) => match action {
            Action::CreateRevision(new) => return create_revision(server, new, seen.unwrap(), now),
            Action::CreatePod(new) => return create_pod(server, new, now),
            Action::TryPod(_, revision) => return Landed::done(Effect::Accepted(revision.clone())),
            Action::CreateRun(new) => {
                let denied = server.deny(server.refuses.runs);
                return match denied.and_then(|()| server.create_run(&new.run, now)) {
                    Ok(run) => Landed::done(Effect::Run(run)),
                    Err(error) => {
                        let name = new.run.metadata.name.clone().unwrap();
                        Landed::failed(error.into(), Some(Effect::Uncertain(Kind::Run, name)))
                    }
                };
            }
            Action::DeleteRun(at) => {
                let gone = Effect::Gone(Kind::Run, at.name.clone(), at.uid.clone());
                gone_anyway(server.delete_run(&at.name, Some(&at.uid), None)).map(|()| gone)
            }
            Action::DeleteRevision(at) => {
                let gone = Effect::Gone(Kind::Revision, at.name.clone(), at.uid.clone());
                let version = Some(at.resource_version.as_str());
                gone_anyway(server.delete_revision(&at.name, Some(&at.uid), version)).map(|()| gone)
            }
            Action::RenumberRevision(at, number) => {
                patch_revision(server, at, |object| object.revision = *number)
            }
            Action::AdoptRevision(at) => match still_there(server, seen.unwrap()) {
                Ok(()) => adopt_revision(server, at, seen.unwrap()),
                Err(error) => return Landed::failed(error.into(), None),
            },
            Action::ResetRetry(kinds) => reset_retry(server, seen.unwrap(), kinds),
            Action::Pause => patch_spec(server, seen.unwrap(), |spec| {
                spec.update_strategy.get_or_insert_default().paused = Some(true);
            }),
            Action::DeletePod(delete) => delete_pod(server, delete.pod(), now),
            Action::Adopt(_) if still_there(server, seen.unwrap()).is_err() => {
                return Landed::failed(CallError::Conflict, None);
            }
            other => on_pod(server, other, seen.unwrap(), now),
        },
    };
    match done {
        Ok(effect) => Landed::done(effect),
        Err(error) => failed(request, seen, error.into()),
    }
}

fn grounds(action: &Action) -> Option<&Grounds> {
    match action {
        Action::DeletePod(delete) => Some(delete.grounds()),
        Action::TakeOut(update, _) | Action::WriteUpdate(update, _) => Some(update.grounds()),
        Action::Confirm(confirmed) => Some(confirmed.grounds()),
        _ => None,
    }
}

fn gone_anyway(done: Result<(), Refusal>) -> Result<(), Refusal> {
    match done {
        Err(Refusal::Gone) => Ok(()),
        other => other,
    }
}

fn read(server: &Server, kind: Kind, name: &str) -> Landed {
    let effect = match kind {
        Kind::Workload => server.workloads.get(name).cloned().map(Effect::Workload),
        Kind::Pod => server.pods.get(name).cloned().map(Effect::Pod),
        Kind::Revision => server.revisions.get(name).cloned().map(Effect::Revision),
        Kind::Run => server.runs.get(name).cloned().map(Effect::Run),
    };
    Landed {
        effect,
        ..Landed::default()
    }
}

fn create_pod(server: &mut Server, new: &NewPod, now: Timestamp) -> Landed {
    match server.create_pod(&new.manifest, now) {
        Ok(pod) => Landed::done(Effect::Pod(pod)),
        // The same pod was made before.
        Err(Refusal::Conflict) => match server.pods.get(&new.name) {
            Some(pod) => Landed::done(Effect::Pod(pod.clone())),
            None => Landed::failed(
                CallError::Gone,
                Some(Effect::Uncertain(Kind::Pod, new.name.clone())),
            ),
        },
        Err(error) => Landed::failed(error.into(), None),
    }
}

fn delete_pod(server: &mut Server, at: &PodRef, now: Timestamp) -> Result<Effect, Refusal> {
    server.deny(server.refuses.deletions)?;
    let deleted = server.delete_pod(&at.name, Some(&at.uid), Some(&at.resource_version), now)?;
    Ok(match deleted {
        Deleted::Ending(pod) => Effect::Pod(pod),
        Deleted::Gone => Effect::Gone(Kind::Pod, at.name.clone(), at.uid.clone()),
    })
}

fn create_revision(server: &mut Server, new: &NewRevision, seen: &Seen, now: Timestamp) -> Landed {
    let object = &seen.object;
    let owner = owner(&object.id.name, object.uid());
    let error = match server.create_revision(new, owner, now) {
        Ok(revision) => return Landed::done(Effect::Revision(revision)),
        Err(error) => error,
    };
    let Some(found) = server
        .revisions
        .get(&new.name)
        .filter(|_| error == Refusal::Conflict)
        .cloned()
    else {
        return Landed::failed(error.into(), None);
    };
    let holds = found.api.data.as_ref().and_then(|data| template_in(&data.0));
    let same = holds.is_some() && holds == template_in(&new.data);
    if same && found.id.owner.as_deref() == Some(object.uid()) {
        return Landed::done(Effect::Revision(found));
    }
    if same && found.id.owner.is_none() {
        let at = RevisionRef {
            name: found.id.name.clone(),
            uid: found.id.uid.clone(),
            resource_version: found.id.version.clone(),
        };
        if let Err(error) = still_there(server, seen) {
            return Landed::failed(error.into(), None);
        }
        return match adopt_revision(server, &at, seen) {
            Ok(effect) => Landed::done(effect),
            Err(error) => Landed::trouble(error.into(), Kind::Revision, &at.name, &at.uid),
        };
    }
    Landed {
        error: Some(CallError::Conflict),
        collision: true,
        ..Landed::default()
    }
}

/// Nothing is adopted by a workload that is being deleted.
fn still_there(server: &Server, seen: &Seen) -> Result<(), Refusal> {
    let known = server.workloads.get(&seen.object.id.name).ok_or(Refusal::Gone)?;
    let there = known.id.uid == seen.object.id.uid && known.api.metadata.deletion_timestamp.is_none();
    if there { Ok(()) } else { Err(Refusal::Conflict) }
}

fn patch_revision(
    server: &mut Server,
    at: &RevisionRef,
    change: impl FnOnce(&mut k8s_openapi::api::apps::v1::ControllerRevision),
) -> Result<Effect, Refusal> {
    let version = Some(at.resource_version.as_str());
    let patched = server.patch_revision(&at.name, Some(&at.uid), version, change);
    patched.map(Effect::Revision)
}

fn adopt_revision(server: &mut Server, at: &RevisionRef, seen: &Seen) -> Result<Effect, Refusal> {
    let owner = owner(&seen.object.id.name, seen.object.uid());
    patch_revision(server, at, |object| {
        object.metadata.owner_references = Some(vec![owner]);
    })
}

fn patch_spec(
    server: &mut Server,
    seen: &Seen,
    change: impl FnOnce(&mut shared_api::GameDeploymentSpec),
) -> Result<Effect, Refusal> {
    let id = &seen.object.id;
    let patched = server.patch_workload(&id.name, Some(&id.uid), Some(&id.version), |object| {
        change(&mut object.spec);
    });
    patched.map(Effect::Workload)
}

fn reset_retry(server: &mut Server, seen: &Seen, kinds: &[HookKind]) -> Result<Effect, Refusal> {
    patch_spec(server, seen, |spec| {
        for kind in kinds {
            strategy_of(spec, *kind).get_or_insert_default().retry = Some(false);
        }
    })
}

/// The writes that patch a pod.
fn on_pod(server: &mut Server, action: &Action, seen: &Seen, now: Timestamp) -> Result<Effect, Refusal> {
    let (_, name, uid) = target(&Request::Act(action.clone()), Some(seen));
    let version = match action {
        Action::Adopt(at)
        | Action::Release(at)
        | Action::Mark(at, _)
        | Action::Unmark(at)
        | Action::PutIn(at, _) => &at.resource_version,
        Action::TakeOut(update, _) | Action::WriteUpdate(update, _) => &update.pod().resource_version,
        Action::Confirm(confirmed) => &confirmed.pod().resource_version,
        other => panic!("not about a pod: {other:?}"),
    };
    let patched = server.patch_pod(&name, uid.as_deref(), Some(version), |pod| {
        patch(pod, action, seen, now);
    });
    patched.map(Effect::Pod)
}
