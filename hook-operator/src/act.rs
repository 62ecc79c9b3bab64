//! Everything that this operator writes: statuses and deletions, both with preconditions, and events. Jobs are
//! written by [`crate::jobs`], and annotations by [`crate::objects`].

use std::fmt::Debug;
use std::sync::Arc;

use hook_core::answer::{MeasurementFailure, MeasurementReason, Transcript};
use hook_core::decide::{Delay, DelayCause, MeasurementKey};
use hook_core::request::{AnnotateRequest, ExecRequest, JobRequest, ReadRequest};
use hook_core::resolve::{OptionalProviders, Reference, run_unreadable};
use hook_driver::{ReadRun, StoreError, WaitingRun};
use hook_providers::MemoryReservation;
use hook_session::backend::{
    ClusterProviders, EndedJob, EventSink, ReferenceSource, RunStore, exec_is_off, kubernetes_is_off,
};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::core::{NamespaceResourceScope, ObjectMeta};
use kube::{Api, Client, Resource, ResourceExt};
use operator_runtime::calls::{CallError, CallLimiter};
use operator_runtime::events::Events;
use operator_runtime::objects;
use operator_runtime::patch::replacing;
use operator_runtime::watch::{NamespacedName, Watched};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use shared_api::hook_run::lacks_owner;
use shared_api::names::hook_run_annotation::{INTENT, INTENT_OF_NOTICE};
use shared_api::parsed::{InvalidObject, Parsed};
use shared_api::reason::HookRunReason;
use shared_api::{HookRun, HookRunStatus, HookTemplate, HookTemplateStatus, Phase};

use crate::commands::{Commands, MAX_COMMANDS};
use crate::jobs::{JobCalls, Jobs};
use crate::metadata;
use crate::objects::Objects;
use crate::references;

/// Backend that uses the API server.
pub struct ApiBackend {
    client: Client,
    events: Events,
    calls: Arc<CallLimiter>,
    enabled: OptionalProviders,
    jobs: Option<Jobs>,
    objects: Option<Objects>,
    commands: Option<Commands>,
}

impl ApiBackend {
    /// Creates a backend that uses `client`. Hooks read and annotate objects by calls of their own number.
    pub fn new(
        client: Client,
        events: Events,
        calls: CallLimiter,
        calls_of_hooks: CallLimiter,
        enabled: OptionalProviders,
    ) -> Self {
        let (calls, calls_of_hooks) = (Arc::new(calls), Arc::new(calls_of_hooks));
        let jobs = enabled
            .job
            .then(|| Jobs::new(JobCalls::new(client.clone(), calls.clone())));
        let objects = enabled
            .kubernetes
            .then(|| Objects::new(client.clone(), calls_of_hooks.clone()));
        let commands = enabled
            .exec
            .then(|| Commands::new(client.clone(), calls_of_hooks, MAX_COMMANDS));
        Self {
            client,
            events,
            calls,
            enabled,
            jobs,
            objects,
            commands,
        }
    }

    /// Returns the sender of events.
    pub(crate) fn events(&self) -> &Events {
        &self.events
    }

    /// Reads an object, bypassing the cache. Another one of its name counts as gone.
    pub(crate) async fn read_same<K>(&self, step: &'static str, object: &K) -> Result<K, StoreError>
    where
        K: Watched + Resource<Scope = NamespaceResourceScope>,
    {
        let metadata = object.meta();
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        let current: Parsed<K> = self.get(namespace, step, &object.name_any()).await?;
        if current.meta().uid == metadata.uid {
            readable(step, current)
        } else {
            Err(StoreError::Gone)
        }
    }

    /// Reads an object, bypassing the cache.
    pub(crate) async fn get<K>(
        &self,
        namespace: &str,
        step: &'static str,
        name: &str,
    ) -> Result<Parsed<K>, StoreError>
    where
        K: Watched + Resource<Scope = NamespaceResourceScope>,
    {
        let api: Api<Parsed<K>> = Api::namespaced(self.client.clone(), namespace);
        self.call(namespace, step, api.get(name)).await
    }

    /// Deletes an object, if it is still exactly this one.
    pub(crate) async fn delete_same<K>(&self, step: &'static str, object: &K) -> Result<(), StoreError>
    where
        K: Watched + Resource<Scope = NamespaceResourceScope>,
    {
        let metadata = object.meta();
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: metadata.uid.clone(),
                resource_version: metadata.resource_version.clone(),
            }),
            ..DeleteParams::background()
        };
        let (namespace, name) = (
            metadata.namespace.as_deref().unwrap_or_default(),
            object.name_any(),
        );
        let call = objects::delete::<K>(&self.client, namespace, &name, &params);
        self.call(namespace, step, call).await?;
        Ok(())
    }

    /// Makes a call for a namespace.
    pub(crate) async fn call<T>(
        &self,
        namespace: &str,
        step: &'static str,
        call: impl Future<Output = Result<T, kube::Error>> + Send,
    ) -> Result<T, StoreError> {
        self.calls.call(namespace, step, call).await.map_err(class_of)
    }

    /// Writes a status. The UID is a precondition, and so is the resource version if the metadata has one.
    pub(crate) async fn patch_status<K>(
        &self,
        step: &'static str,
        metadata: &ObjectMeta,
        status: Value,
    ) -> Result<Parsed<K>, StoreError>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
    {
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        let api: Api<Parsed<K>> = Api::namespaced(self.client.clone(), namespace);
        let name = metadata.name.as_deref().unwrap_or_default();
        // Without a version, the patch applies to any version; a null would be refused.
        let mut same = json!({ "uid": metadata.uid });
        if let Some(version) = &metadata.resource_version {
            same["resourceVersion"] = json!(version);
        }
        let patch = json!({ "metadata": same, "status": status });
        let (params, patch) = (PatchParams::default(), Patch::Merge(&patch));
        self.call(
            namespace,
            step,
            api.patch_subresource("status", name, &params, &patch),
        )
        .await
    }

    /// Records that an object cannot be parsed as a HookRun. Keeps an existing verdict.
    pub async fn refuse_unreadable(&self, metadata: &ObjectMeta, error: &str) -> Result<(), StoreError> {
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        let name = metadata.name.as_deref().unwrap_or_default();
        let run: Parsed<HookRun> = self.get(namespace, "read a HookRun", name).await?;
        let Err(InvalidObject { status, .. }) = run.0 else {
            // It was corrected, which the watch will show.
            return Ok(());
        };
        let phase = status["phase"].as_str().unwrap_or_default();
        if Phase::from(phase.to_owned()).is_final() {
            return Ok(());
        }
        let message = run_unreadable(error);
        let status = json!({
            "phase": Phase::Error,
            "reason": HookRunReason::InvalidSpec.as_str(),
            "message": message,
            "observedGeneration": metadata.generation,
        });
        // Emit the event first: the watch may show the written status before the answer arrives, which ends
        // this attempt.
        let about = reference_of("HookRun", metadata);
        self.events
            .warn(about, HookRunReason::InvalidSpec.as_str(), "Validate", &message);
        self.patch_status::<HookRun>("mark a HookRun as invalid", metadata, status)
            .await?;
        Ok(())
    }

    /// Records that a run waits for memory, if it is still exactly this one.
    pub(crate) async fn record_waiting(
        &self,
        (namespace, name): &NamespacedName,
        run: &WaitingRun,
    ) -> Result<(), StoreError> {
        let metadata = ObjectMeta {
            namespace: Some(namespace.clone()),
            name: Some(name.clone()),
            uid: run.uid.clone(),
            resource_version: run.resource_version.clone(),
            ..ObjectMeta::default()
        };
        let (reason, message) = (HookRunReason::NoRoomForSpec.as_str(), run.why.to_string());
        let mut status = json!({ "reason": reason, "message": message });
        if run.phase.is_unset() {
            status["phase"] = json!(Phase::Pending);
        }
        self.patch_status::<HookRun>("record that a HookRun is waiting", &metadata, status)
            .await?;
        let note = format!(
            "{message}. Next: run kubectl game hook list -n {namespace}, then terminate or delete HookRuns that are no \
             longer needed"
        );
        self.events
            .warn(reference_of("HookRun", &metadata), reason, "Measure", &note);
        Ok(())
    }

    /// Reads a run that has waited for memory, bypassing the cache.
    pub(crate) async fn read_waiting(&self, namespace: &str, name: &str) -> Result<ReadRun, StoreError> {
        match self.get::<HookRun>(namespace, "read a HookRun", name).await {
            Ok(Parsed(Ok(run))) => Ok(ReadRun::Found(Arc::new(with_used_metadata(run)))),
            Ok(Parsed(Err(_))) => Ok(ReadRun::Unreadable),
            Err(StoreError::Gone) => Ok(ReadRun::Gone),
            Err(error @ (StoreError::Conflict | StoreError::Failed { .. })) => Err(error),
        }
    }

    /// Records the result of checking a template, which may be unreadable.
    pub async fn record_template(
        &self,
        metadata: &ObjectMeta,
        status: &HookTemplateStatus,
    ) -> Result<(), StoreError> {
        let status = json!(status);
        self.patch_status::<HookTemplate>("write the condition of a HookTemplate", metadata, status)
            .await?;
        Ok(())
    }

    /// Emits a warning event on a template that cannot be measured.
    pub fn warn_template(&self, metadata: &ObjectMeta, reason: &str, message: &str) {
        self.events.warn(
            reference_of("HookTemplate", metadata),
            reason,
            "Validate",
            message,
        );
    }
}

/// Maps the error of a call to the session's error type.
fn class_of(error: CallError) -> StoreError {
    match error {
        CallError::Gone => StoreError::Gone,
        // Writes here have no deadline.
        CallError::Conflict | CallError::Lapsed => StoreError::Conflict,
        CallError::Refused { step, message, .. } | CallError::Unknown { step, message } => {
            StoreError::Failed { step, message }
        }
    }
}

/// Returns the object of an answer without the managed fields, which make up half of it. The watch drops them too.
pub(crate) fn readable<K: Resource>(step: &'static str, Parsed(read): Parsed<K>) -> Result<K, StoreError> {
    let mut object = read.map_err(|invalid| StoreError::Failed {
        step,
        message: format!("the object cannot be parsed: {invalid}"),
    })?;
    object.meta_mut().managed_fields = None;
    Ok(object)
}

/// Returns the run with the metadata that sessions use.
pub(crate) fn with_used_metadata(mut run: HookRun) -> HookRun {
    run.metadata = metadata::used(run.metadata);
    run
}

fn namespace_of(run: &HookRun) -> &str {
    run.metadata.namespace.as_deref().unwrap_or_default()
}

/// Returns what a user can do about a run that ended without success.
fn next_step(run: &HookRun) -> String {
    if lacks_owner(&run.metadata) {
        let (name, namespace) = (run.name_any(), namespace_of(run));
        return format!("if it still has no owner, run: kubectl delete hookrun {name} -n {namespace}");
    }
    if run
        .annotations()
        .get(INTENT)
        .is_some_and(|intent| intent == INTENT_OF_NOTICE)
    {
        return "fix the cause for later notices; the hook of this pod runs nevertheless".to_owned();
    }
    let mut owners = run.metadata.owner_references.iter().flatten();
    let game = owners.find(|owner| owner.controller == Some(true) && owner.kind == "GameDeployment");
    match game {
        Some(game) => format!(
            "fix the cause, then run: kubectl game retry {} -n {}",
            game.name,
            namespace_of(run)
        ),
        None => "fix the cause, then delete and recreate this HookRun".to_owned(),
    }
}

pub(crate) fn reference_of(kind: &str, metadata: &ObjectMeta) -> ObjectReference {
    ObjectReference {
        kind: Some(kind.to_owned()),
        api_version: Some(format!(
            "{}/{}",
            shared_api::names::GROUP,
            shared_api::names::VERSION
        )),
        name: metadata.name.clone(),
        namespace: metadata.namespace.clone(),
        uid: metadata.uid.clone(),
        ..ObjectReference::default()
    }
}

impl RunStore for ApiBackend {
    async fn record(&self, base: &HookRun, status: &HookRunStatus) -> Result<HookRun, StoreError> {
        let failed = |error: serde_json::Error| StoreError::Failed {
            step: "write the status",
            message: error.to_string(),
        };
        let new = serde_json::to_value(status).map_err(failed)?;
        let old = serde_json::to_value(&base.status).map_err(failed)?;
        let step = "write the status";
        let recorded = self.patch_status(step, &base.metadata, replacing(old, new));
        readable(step, recorded.await?).map(with_used_metadata)
    }

    async fn read(&self, run: &HookRun) -> Result<HookRun, StoreError> {
        self.read_same("read a HookRun", run)
            .await
            .map(with_used_metadata)
    }

    async fn delete(&self, run: &HookRun) -> Result<(), StoreError> {
        self.delete_same("delete a HookRun", run).await
    }
}

impl ReferenceSource for ApiBackend {
    async fn resolve(
        &self,
        namespace: &str,
        reference: &Reference,
        reservation: &mut MemoryReservation,
    ) -> Result<String, MeasurementFailure> {
        references::read(&self.client, &self.calls, namespace, reference, reservation).await
    }
}

impl ClusterProviders for ApiBackend {
    fn providers(&self) -> OptionalProviders {
        self.enabled.clone()
    }

    async fn run_job(
        &self,
        run: &HookRun,
        key: &MeasurementKey,
        request: JobRequest,
        active: &(dyn Fn(String) + Send + Sync),
    ) -> Result<EndedJob, MeasurementFailure> {
        match &self.jobs {
            Some(jobs) => jobs.run(run, key, request, active).await,
            // Such a run is refused before its first measurement.
            None => Err(MeasurementFailure::new(
                MeasurementReason::JobRefused,
                "provider.job is disabled",
            )),
        }
    }

    async fn delete_jobs(&self, run: &HookRun, names: &[String]) -> Result<(), StoreError> {
        match &self.jobs {
            Some(jobs) => jobs.delete(run, names).await,
            None => Ok(()),
        }
    }

    async fn read_object(
        &self,
        run: &HookRun,
        request: &ReadRequest,
        reservation: &mut MemoryReservation,
    ) -> Result<Vec<u8>, MeasurementFailure> {
        match &self.objects {
            Some(objects) => objects.read(run, request, reservation).await,
            None => Err(kubernetes_is_off()),
        }
    }

    async fn annotate_pod(&self, run: &HookRun, request: &AnnotateRequest) -> Result<(), MeasurementFailure> {
        match &self.objects {
            Some(objects) => objects.annotate(run, request).await,
            None => Err(kubernetes_is_off()),
        }
    }

    async fn run_command(
        &self,
        run: &HookRun,
        request: &ExecRequest,
        reservation: &mut MemoryReservation,
    ) -> Result<Transcript, MeasurementFailure> {
        match &self.commands {
            Some(commands) => commands.run(run, request, reservation).await,
            None => Err(exec_is_off()),
        }
    }
}

impl EventSink for ApiBackend {
    fn concluded(&self, run: &HookRun) {
        let Some(status) = &run.status else { return };
        let reason = status.reason.as_deref().unwrap_or_default();
        let message = status.message.as_deref().unwrap_or_default();
        let name = run.name_any();
        tracing::info!(name, namespace = run.namespace(), phase = %status.phase, reason, why = message, "run ended");
        // A success is in the status; events are for problems that need a person.
        if status.phase != Phase::Successful {
            self.events.warn(
                run.object_ref(&()),
                reason,
                "Measure",
                &format!("{}: {message}. Next: {}", status.phase, next_step(run)),
            );
        }
    }

    fn held_up(&self, run: &HookRun, delay: &Delay) {
        let (about, reason) = (run.object_ref(&()), delay.reason().as_str());
        match delay.cause() {
            DelayCause::NotAsked => self.events.warn(about, reason, "Measure", delay.message()),
            DelayCause::JobActive => self.events.normal(about, reason, "Measure", delay.message()),
        }
    }

    fn jobs_left(&self, run: &HookRun, jobs: &[String], why: &StoreError) {
        let message = format!(
            "{why}. To delete the Jobs now: kubectl delete job {} -n {}; otherwise they are deleted along with this \
             HookRun",
            jobs.join(" "),
            namespace_of(run)
        );
        let reason = HookRunReason::JobsLeft.as_str();
        self.events
            .warn(run.object_ref(&()), reason, "DeleteJobs", &message);
    }

    fn unwritable(&self, run: &HookRun, why: &str) {
        let reason = HookRunReason::StatusNotRecorded.as_str();
        self.events.warn(run.object_ref(&()), reason, "Record", why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_failed_notice_needs_no_retry() {
        let owner = json!({
            "apiVersion": "v1", "kind": "GameDeployment", "name": "arena", "uid": "1", "controller": true,
        });
        let step = |intent: &str| {
            let metadata = json!({
                "name": "run", "namespace": "games", "annotations": { INTENT: intent }, "ownerReferences": [owner],
            });
            let run = json!({ "metadata": metadata, "spec": { "metrics": [] } });
            next_step(&with_used_metadata(serde_json::from_value(run).unwrap()))
        };
        let retry = "fix the cause, then run: kubectl game retry arena -n games";
        assert_eq!([step("delete"), step("scout")], [retry, retry]);
        let notice = "fix the cause for later notices; the hook of this pod runs nevertheless";
        assert_eq!(step(INTENT_OF_NOTICE), notice);
    }
}
