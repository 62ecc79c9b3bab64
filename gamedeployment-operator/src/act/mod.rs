//! Makes the driver's API calls: one request, one call, one answer; only [`ApiCall::ReportUnreadable`] reads
//! the object first. A write to an existing object carries its UID as a precondition and, where it depends on
//! a state, also the resource version of the decision. Only the deletion of many runs in one call carries
//! neither.

use std::sync::Arc;
use std::time::{Duration, Instant};

use gamedeployment_core::gate::{PodRef, owner};
use gamedeployment_core::plan::{Action, GatedWrite, Warning};
use gamedeployment_driver::NamespacedName;
use gamedeployment_driver::request::{
    ApiCall, Object, ObjectKind, ReconcileTarget, Request, RequestError, Response,
};
use k8s_openapi::api::core::v1::{Node, ObjectReference, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource};
use operator_runtime::calls::{CallError, CallLimiter};
use operator_runtime::events::Events;
use operator_runtime::traces::TARGET;
use operator_runtime::watch::key_of;
use serde::de::DeserializeOwned;
use shared_api::parsed::Parsed;
use shared_api::reason::WorkloadReason;
use shared_api::{GameDeployment, HookRun};
use tracing::Instrument as _;

use crate::clock::Clock;
use crate::metrics::{Metrics, Timed};
use crate::observe::{StoredRevision, read};
use event_aggregator::EventAggregator;

mod emit;
mod event_aggregator;
mod eviction;
mod guard_check;
mod new_pod;
mod object;
mod pod;
mod status;

/// Step of a direct read, for messages.
const READ: &str = "read an object";

/// Makes calls and emits events.
#[derive(Clone)]
pub struct Caller {
    client: Client,
    calls: Arc<CallLimiter>,
    events: Events,
    aggregator: EventAggregator,
    metrics: Metrics,
    clock: Clock,
}

impl Caller {
    /// Creates a caller that uses `client`.
    pub fn new(client: Client, calls: CallLimiter, events: Events, metrics: Metrics, clock: Clock) -> Self {
        Self {
            client,
            calls: Arc::new(calls),
            events,
            aggregator: EventAggregator::default(),
            metrics,
            clock,
        }
    }

    /// Makes the call of a request.
    pub async fn call(&self, request: Request) -> Result<Response, RequestError> {
        let Request {
            id: _,
            target,
            call,
            until,
        } = request;
        let until = until.map(|until| self.clock.deadline(until));
        let answer = match (call, target) {
            (ApiCall::Read(kind, key), _) => self.read(kind, &key).await,
            (ApiCall::ReportUnreadable(key, unreadable), _) => {
                self.report_unreadable(&key, &unreadable).await
            }
            (ApiCall::ReportEviction(key, report), _) => self.report_eviction(&key, report, until).await,
            (ApiCall::ReadNode(name), target) => {
                let namespace = target.as_ref().map_or("", |target| target.key.0.as_str());
                self.read_node(namespace, &name).await
            }
            (ApiCall::CheckGuard(namespace, pod), _) => self.check_guard(&namespace, &pod).await,
            (ApiCall::FindPod(selector), Some(target)) => self.find_pod(&target, &selector).await,
            (ApiCall::Act(action), Some(target)) => self.act(&target, action, until).await,
            (ApiCall::DeleteRuns(runs), Some(target)) => self.delete_runs(&target, &runs).await,
            (ApiCall::WriteStatus(status), Some(target)) => self.write_status(&target, &status).await,
            (
                ApiCall::FindPod(_) | ApiCall::Act(_) | ApiCall::DeleteRuns(_) | ApiCall::WriteStatus(_),
                None,
            ) => {
                return Err(RequestError::Refused("a call without its workload".to_owned()));
            }
        };
        answer.map_err(|error| request_error(&error))
    }

    /// Makes one write of a plan. It is not sent after `until`, on the scale of `operator_runtime::clock::elapsed`.
    async fn act(
        &self,
        target: &ReconcileTarget,
        action: Action,
        until: Option<Duration>,
    ) -> Result<Response, CallError> {
        let span = tracing::info_span!(
            target: TARGET, "act", action = action.kind().as_str(), namespace = target.key.0,
            gamedeployment = target.key.1, name = action.object()
        );
        let (timed, begun) = (Timed::of(&action), Instant::now());
        let answer = self.execute(target, action, until).instrument(span).await;
        self.metrics
            .took(&target.key, timed, answer.is_ok(), begun.elapsed());
        answer
    }

    async fn execute(
        &self,
        target: &ReconcileTarget,
        action: Action,
        until: Option<Duration>,
    ) -> Result<Response, CallError> {
        match action {
            Action::CreateRevision(revision) => self.create_revision(target, revision).await,
            Action::AdoptRevision(revision) => self.adopt_revision(target, revision).await,
            Action::RenumberRevision(revision, number) => self.renumber(target, revision, number).await,
            Action::DeleteRevision(revision) => self.delete_revision(target, revision).await,
            Action::AdoptPod(pod) => self.adopt(target, pod).await,
            Action::ReleasePod(pod) => self.release(target, pod).await,
            Action::CreatePod(pod) => self.create_pod(target, *pod).await,
            Action::DryRunPod(pod, _) => self.dry_run_pod(target, *pod).await,
            Action::RecordSelection(pod, text, labels) => {
                self.record_selection(target, &pod, &text, labels).await
            }
            Action::ClearSelection(pod, labels) => self.clear_selection(target, &pod, labels).await,
            Action::SetDrainingLabels(pod, patch) => {
                let step = "correct the draining labels of a pod";
                self.write_metadata(target, step, &pod, &patch).await
            }
            Action::SetGuardLabel(pod, is_set) => self.set_guard_label(target, pod, is_set).await,
            Action::SetAutoscalerAnnotations(pod, patch) => {
                let step = "set the autoscaler annotations";
                self.write_metadata(target, step, &pod, &patch).await
            }
            Action::WithdrawRequests(pod, text) => self.withdraw_requests(target, pod, text).await,
            Action::NoteQuestion(pod, question, labels) => {
                self.note_question(target, &pod, question.text, labels).await
            }
            Action::Gated(write) => self.gated_write(target, write, until).await,
            Action::SetReady(pod, updated) => self.set_ready(target, pod, updated).await,
            Action::CreateRun(run) => self.create_run(target, *run).await,
            Action::DeleteRun(run) => self.delete_run(target, run).await,
            Action::TerminateRun(run) => self.terminate_run(target, run).await,
            Action::ResetRetry(kinds) => self.reset_retry(target, &kinds).await,
            Action::Pause => self.pause(target).await,
            Action::AddFinalizer => self.set_finalizer(target, true).await,
            Action::RemoveFinalizer(_) => self.set_finalizer(target, false).await,
        }
    }

    async fn gated_write(
        &self,
        target: &ReconcileTarget,
        write: GatedWrite,
        until: Option<Duration>,
    ) -> Result<Response, CallError> {
        match write {
            GatedWrite::DeletePod(delete) => self.delete_pod(target, delete, until).await,
            GatedWrite::SetNotReady(update, since) => self.set_not_ready(target, update, since, until).await,
            GatedWrite::WriteUpdate(update, change) => {
                self.write_update(target, update, *change, until).await
            }
            GatedWrite::Confirm(confirmed) => self.confirm(target, confirmed, until).await,
        }
    }

    /// Reads an object, bypassing the cache.
    async fn read(&self, kind: ObjectKind, key: &NamespacedName) -> Result<Response, CallError> {
        match kind {
            ObjectKind::Workload => Ok(of_workload(self.get(key).await?)),
            ObjectKind::Pod => of_pod(READ, self.get(key).await?),
            ObjectKind::Revision => Ok(of_revision(self.get(key).await?)),
            ObjectKind::Run => Ok(of_run(self.get(key).await?)),
        }
    }

    async fn get<K>(&self, (namespace, name): &NamespacedName) -> Result<Parsed<K>, CallError>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug,
    {
        let api: Api<Parsed<K>> = Api::namespaced(self.client.clone(), namespace);
        self.calls.call(namespace, READ, api.get(name)).await
    }

    /// Reads whether a node exists: the cache may be late, and a node may have registered again.
    async fn read_node(&self, namespace: &str, name: &str) -> Result<Response, CallError> {
        let api: Api<Parsed<Node>> = Api::all(self.client.clone());
        let Parsed(node) = self.calls.call(namespace, "read a node", api.get(name)).await?;
        Ok(Response::Node(read::node(node)))
    }

    fn api<K>(&self, target: &ReconcileTarget) -> Api<Parsed<K>>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &target.key.0)
    }

    /// Logs warnings and emits them as events. `EventAggregator` limits those about notices, many of which usually fail
    /// for one reason.
    pub fn warn(&self, target: &ReconcileTarget, warnings: Vec<Warning>) {
        for Warning { pod, reason, message } in warnings {
            tracing::warn!(namespace = target.key.0, name = target.key.1, %reason, "{message}");
            let about = pod.map_or_else(|| reference(target), |pod| pod_reference(target, &pod));
            let emit = || self.events.warn(about, reason.as_str(), "Reconcile", &message);
            if reason == WorkloadReason::NoticeFailed {
                let (events, workload) = (self.events.clone(), reference(target));
                let rest = move |more| {
                    let message = format!("the notices of {more} more pods failed");
                    events.warn(workload, reason.as_str(), "Reconcile", &message);
                };
                self.aggregator.emit(&target.key, reason, 1, emit, rest);
            } else {
                emit();
            }
        }
    }
}

/// References the workload in events.
fn reference(target: &ReconcileTarget) -> ObjectReference {
    target.object.object_ref(&())
}

/// References a pod in events: `kubectl describe pod` shows what was done to it, or why it is held.
fn pod_reference(target: &ReconcileTarget, pod: &PodRef) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Pod".to_owned()),
        name: Some(pod.name.clone()),
        namespace: Some(target.key.0.clone()),
        uid: Some(pod.uid.clone()),
        ..ObjectReference::default()
    }
}

/// References the workload as the controller of an object.
fn as_owner(target: &ReconcileTarget) -> OwnerReference {
    owner(&target.key.1, target.uid())
}

/// Converts the failure of a call. An API server that has no capacity has not decided on the call.
fn request_error(error: &CallError) -> RequestError {
    match error {
        CallError::Gone => RequestError::Gone,
        CallError::Conflict => RequestError::Conflict,
        CallError::Lapsed => RequestError::Lapsed,
        CallError::Refused { code: 429, .. } => RequestError::Throttled(error.to_string()),
        CallError::Refused { .. } => RequestError::Refused(error.to_string()),
        CallError::Unknown { .. } => RequestError::Unknown(error.to_string()),
    }
}

fn of_workload(object: Parsed<GameDeployment>) -> Response {
    let key = key_of(object.meta());
    Response::Object(Object::Workload(key, read::workload(object.0)))
}

/// Converts a pod. Without it, its state is unknown.
fn of_pod(step: &'static str, Parsed(pod): Parsed<Pod>) -> Result<Response, CallError> {
    let pod = pod.map_err(|invalid| CallError::Unknown {
        step,
        message: format!("the response is not a pod: {invalid}"),
    })?;
    Ok(Response::Object(Object::Pod(
        key_of(&pod.metadata),
        Box::new(read::pod(&pod)),
    )))
}

fn of_revision(object: Parsed<StoredRevision>) -> Response {
    let key = key_of(object.meta());
    let revision = object.0.ok().and_then(|object| read::revision(&object));
    revision.map_or(Response::Foreign, |revision| {
        Response::Object(Object::Revision(key, Box::new(revision)))
    })
}

fn of_run(run: Parsed<HookRun>) -> Response {
    let key = key_of(run.meta());
    Response::Object(Object::Run(key, Box::new(read::run(run.0))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_api_server_without_capacity_has_not_decided_on_the_call() {
        let refused = |code: u16| CallError::Refused {
            step: "try",
            code,
            message: "no".to_owned(),
        };
        let message = || "failed to try: no".to_owned();
        for (code, wanted) in [
            (403, RequestError::Refused(message())),
            (422, RequestError::Refused(message())),
            (429, RequestError::Throttled(message())),
        ] {
            assert_eq!(request_error(&refused(code)), wanted);
        }
    }
}
