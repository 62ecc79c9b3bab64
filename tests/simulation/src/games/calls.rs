//! Executes the calls of gamedeployment-operator on the API server: the patches of the shell's `act`, with
//! exactly the preconditions that the action carries.

use std::rc::Rc;

use gamedeployment_core::digest::digest;
use gamedeployment_core::gate::{PodRef, owner};
use gamedeployment_core::guard_check::GuardCheck;
use gamedeployment_core::hook_kind::HookKind;
use gamedeployment_core::plan::{Action, GatedWrite, RevisionRef, RunRef};
use gamedeployment_driver::request::{ApiCall, DeletedRun, Object, ObjectKind, RequestError, Response};
use jiff::Timestamp;
use shared_api::metric::Argument;
use shared_api::names::hook_run_label::NAME_DIGEST;
use shared_api::names::revision::REUSED_AS;
use shared_api::names::workload::ASK_BEFORE_REMOVAL;

use super::Seen;
use super::patch::patch;
use super::watches::{revision, workload};
use crate::network::{pod_of, version_of};
use crate::objects::{PodObject, RevisionObject, RunObject, WorkloadObject, key, remove_finalizer};
use crate::referee::is_notice;
use crate::server::{Deleted, Refusal, Server, check};
use crate::setup::strategy_of;

fn of_pod(pod: &Rc<PodObject>) -> Response {
    Response::Object(Object::Pod(key(&pod.id.name), Box::new(pod.read.clone())))
}

fn of_run(run: &Rc<RunObject>) -> Response {
    Response::Object(Object::Run(key(&run.id.name), Box::new(run.read.clone())))
}

fn of_revision(object: &Rc<RevisionObject>) -> Response {
    Response::Object(Object::Revision(key(&object.id.name), Box::new(revision(object))))
}

fn of_workload(object: &Rc<WorkloadObject>) -> Response {
    Response::Object(Object::Workload(key(&object.id.name), workload(object)))
}

/// Executes a call.
pub fn perform(
    server: &mut Server,
    call: &ApiCall,
    seen: Option<&Seen>,
    now: Timestamp,
) -> Result<Response, RequestError> {
    let done = match (call, seen) {
        (ApiCall::Read(kind, (_, name)), _) => read(server, *kind, name),
        (ApiCall::CheckGuard(_, at), _) => {
            let pod = server.pods.get(&at.name);
            let pod = check(pod, Some(&at.uid), Some(&at.resource_version));
            let found = if server.guards {
                GuardCheck::Guarded
            } else {
                GuardCheck::NotGuarded
            };
            pod.map(|_| Response::Guarded(found))
        }
        (ApiCall::ReportEviction((_, name), report), _) => {
            let reported = server.report_eviction(name, report, now);
            reported.map(|()| Response::Done)
        }
        (ApiCall::FindPod(selector), Some(seen)) => Ok(find_pod(server, selector, seen.uid())),
        (ApiCall::ReadNode(node), _) => {
            let found = server.nodes.get(node);
            found
                .map(|node| Response::Node(node.facts()))
                .ok_or(Refusal::Gone)
        }
        (ApiCall::WriteStatus(status), Some(seen)) => {
            let mut status = (**status).clone();
            if server.alters.status {
                server.altered += 1;
                (status.phase, status.reason) = (None, None);
            }
            patch_workload(server, seen, |object| object.status = Some(status))
        }
        (ApiCall::DeleteRuns(_), Some(_)) if server.refuses.collections => Err(Refusal::Forbidden),
        (ApiCall::DeleteRuns(runs), Some(_)) => Ok(Response::Runs(delete_runs(server, runs))),
        (ApiCall::Act(action), Some(seen)) => act(server, action, seen, now),
        (other, _) => panic!("not in this world: {other:?}"),
    };
    done.map_err(|refusal| match refusal {
        Refusal::Gone => RequestError::Gone,
        Refusal::Conflict => RequestError::Conflict,
        Refusal::Forbidden => RequestError::Refused("failed: forbidden (403)".to_owned()),
        Refusal::Invalid => RequestError::Refused("failed: invalid (422)".to_owned()),
    })
}

fn act(server: &mut Server, action: &Action, seen: &Seen, now: Timestamp) -> Result<Response, Refusal> {
    match action {
        Action::CreateRevision(new) => {
            let owner = owner(&seen.target.key.1, seen.uid());
            server
                .create_revision(new, owner, now)
                .map(|made| of_revision(&made))
        }
        Action::CreatePod(new) => server.create_pod(&new.manifest, now).map(|pod| of_pod(&pod)),
        Action::DryRunPod(..) => Ok(Response::Done),
        Action::CreateRun(new) => {
            server.deny(server.refuses.runs)?;
            let mut run = new.render();
            if server.alters.runs {
                // An altered notice is not replaced.
                server.altered += usize::from(!is_notice(&run.metadata));
                let argument = Argument {
                    name: "added".to_owned(),
                    value: Some("by a webhook".to_owned()),
                    ..Argument::default()
                };
                run.spec.args.get_or_insert_default().push(argument);
            }
            server.create_run(&run, now).map(|run| of_run(&run))
        }
        Action::DeleteRun(at) => {
            server.delete_run(&at.name, Some(&at.uid), at.resource_version.as_deref())?;
            Ok(server.runs.get(&at.name).map_or(Response::Gone, of_run))
        }
        Action::TerminateRun(at) => server
            .terminate_run(&at.name, &at.uid, &at.resource_version)
            .map(|run| of_run(&run)),
        Action::DeleteRevision(at) => {
            let version = Some(at.resource_version.as_str());
            server.delete_revision(&at.name, Some(&at.uid), version)?;
            Ok(Response::Gone)
        }
        Action::RenumberRevision(at, number) => patch_revision(server, at, |object| {
            object.revision = *number;
            let notes = object.metadata.annotations.get_or_insert_default();
            notes.insert(REUSED_AS.to_owned(), number.to_string());
        }),
        Action::AdoptRevision(at) => {
            let owner = owner(&seen.target.key.1, seen.uid());
            patch_revision(server, at, |object| {
                object.metadata.owner_references = Some(vec![owner]);
            })
        }
        Action::ResetRetry(kinds) => reset_retry(server, seen, kinds),
        Action::Pause => patch_workload(server, seen, |object| {
            object.spec.update_strategy.get_or_insert_default().paused = Some(true);
        }),
        Action::AddFinalizer => patch_workload(server, seen, |object| {
            let finalizers = object.metadata.finalizers.get_or_insert_default();
            finalizers.push(ASK_BEFORE_REMOVAL.to_owned());
        }),
        Action::RemoveFinalizer(_) => patch_workload(server, seen, |object| {
            remove_finalizer(&mut object.metadata, ASK_BEFORE_REMOVAL);
        }),
        Action::Gated(GatedWrite::DeletePod(delete)) => delete_pod(server, delete.pod(), now),
        other => on_pod(server, other, seen, now),
    }
}

/// Deletes the runs that a label selects: a collection call names no UID, and anybody can write labels.
fn delete_runs(server: &mut Server, runs: &[RunRef]) -> Vec<DeletedRun> {
    let wanted: Vec<String> = runs.iter().map(|run| digest(&run.name)).collect();
    let selects = |run: &&Rc<RunObject>| {
        let label = run
            .api
            .metadata
            .labels
            .as_ref()
            .and_then(|labels| labels.get(NAME_DIGEST));
        label.is_some_and(|label| wanted.contains(label))
    };
    let selected: Vec<_> = server.runs.iter().filter(selects).cloned().collect();
    let delete = |run: Rc<RunObject>| {
        let _ = server.delete_run(&run.id.name, None, None);
        DeletedRun {
            name: run.id.name.clone(),
            uid: run.id.uid.clone(),
            kept: server.runs.get(&run.id.name).is_some(),
        }
    };
    selected.into_iter().map(delete).collect()
}

fn read(server: &Server, kind: ObjectKind, name: &str) -> Result<Response, Refusal> {
    let found = match kind {
        ObjectKind::Workload => server.workloads.get(name).map(of_workload),
        ObjectKind::Pod => server.pods.get(name).map(of_pod),
        ObjectKind::Revision => server.revisions.get(name).map(of_revision),
        ObjectKind::Run => server.runs.get(name).map(of_run),
    };
    found.ok_or(Refusal::Gone)
}

/// Lists the pods that labels select. Returns an active one that the owner controls.
fn find_pod(server: &Server, selector: &str, owner: &str) -> Response {
    let rules = selector.split(',').filter(|rule| !rule.is_empty());
    let rules: Vec<_> = rules.map(|rule| rule.split_once('=').unwrap()).collect();
    let is_selected = |pod: &PodObject| {
        let mut rules = rules.iter();
        rules.all(|(key, value)| pod.read.labels.get(*key).is_some_and(|label| label == value))
    };
    let is_own = |pod: &PodObject| pod.read.is_active() && pod.id.owner.as_deref() == Some(owner);
    let mut pods = server.pods.iter();
    let found = pods.find(|pod| is_selected(pod) && is_own(pod));
    found.map_or(Response::Gone, of_pod)
}

fn delete_pod(server: &mut Server, at: &PodRef, now: Timestamp) -> Result<Response, Refusal> {
    server.deny(server.refuses.deletions)?;
    let deleted = server.delete_pod(&at.name, Some(&at.uid), Some(&at.resource_version), now)?;
    Ok(match deleted {
        Deleted::Ending(pod) => of_pod(&pod),
        Deleted::Gone => Response::Gone,
    })
}

fn patch_revision(
    server: &mut Server,
    at: &RevisionRef,
    change: impl FnOnce(&mut k8s_openapi::api::apps::v1::ControllerRevision),
) -> Result<Response, Refusal> {
    let version = Some(at.resource_version.as_str());
    let patched = server.patch_revision(&at.name, Some(&at.uid), version, change)?;
    Ok(of_revision(&patched))
}

fn patch_workload(
    server: &mut Server,
    seen: &Seen,
    change: impl FnOnce(&mut shared_api::GameDeployment),
) -> Result<Response, Refusal> {
    let metadata = &seen.object().metadata;
    let (uid, version) = (metadata.uid.as_deref(), metadata.resource_version.as_deref());
    let name = &seen.target.key.1;
    let patched = server.patch_workload(name, uid, version, change)?;
    let is_left = server.workloads.get(name).is_some();
    Ok(if is_left {
        of_workload(&patched)
    } else {
        Response::Gone
    })
}

fn reset_retry(server: &mut Server, seen: &Seen, kinds: &[HookKind]) -> Result<Response, Refusal> {
    patch_workload(server, seen, |object| {
        for kind in kinds {
            strategy_of(&mut object.spec, *kind).get_or_insert_default().retry = Some(false);
        }
    })
}

/// Executes the writes that patch a pod.
fn on_pod(server: &mut Server, action: &Action, seen: &Seen, now: Timestamp) -> Result<Response, Refusal> {
    let (name, (uid, version)) = (pod_of(action).unwrap(), version_of(action).unwrap());
    let patched = server.patch_pod(name, Some(uid), Some(version), |pod| {
        patch(pod, action, seen, now);
    })?;
    Ok(of_pod(&patched))
}
