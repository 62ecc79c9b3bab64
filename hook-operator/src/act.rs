//! Everything that this operator writes: statuses and deletions, both with preconditions, and events. Jobs are
//! written by [`crate::jobs`], and annotations by [`crate::objects`].

use std::fmt::Debug;
use std::sync::Arc;

use hook_core::answer::{FailureKind, MeasurementFailure, Transcript};
use hook_core::decide::{Delay, DelayCause, MeasurementKey};
use hook_core::request::{AnnotateRequest, ExecRequest, JobRequest, ReadRequest};
use hook_core::resolve::{OptionalProviders, Reference, run_unreadable};
use hook_driver::StoreError;
use hook_providers::MemoryReservation;
use hook_session::backend::{
    ClusterProviders, EndedJob, EventSink, ReferenceSource, RunStore, exec_is_off, kubernetes_is_off,
};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::core::{ApiResource, DynamicObject, NamespaceResourceScope, ObjectMeta, PartialObjectMeta};
use kube::{Api, Client, Resource, ResourceExt};
use operator_runtime::calls::{CallError, CallLimiter};
use operator_runtime::events::Events;
use operator_runtime::patch::replacing;
use operator_runtime::watch::Watched;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use shared_api::reason::HookRunReason;
use shared_api::{HookRun, HookRunStatus, HookTemplate, HookTemplateStatus, Phase};

use crate::commands::{Commands, MAX_COMMANDS};
use crate::jobs::{JobCalls, Jobs};
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

    fn api_of<K: Watched + Resource<Scope = NamespaceResourceScope>>(&self, metadata: &ObjectMeta) -> Api<K> {
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        Api::namespaced(self.client.clone(), namespace)
    }

    /// Reads an object, bypassing the cache. Another one of its name counts as gone.
    pub(crate) async fn read_same<K>(&self, step: &'static str, object: &K) -> Result<K, StoreError>
    where
        K: Watched + Resource<Scope = NamespaceResourceScope>,
    {
        let metadata = object.meta();
        let (api, name) = (self.api_of::<K>(metadata), object.name_any());
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        let current = self.call(namespace, step, api.get(&name)).await?;
        if current.meta().uid == metadata.uid {
            Ok(slim(current))
        } else {
            Err(StoreError::Gone)
        }
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
        let (api, name) = (self.api_of::<K>(metadata), object.name_any());
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        self.call(namespace, step, api.delete(&name, &params)).await?;
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
    ) -> Result<K, StoreError>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
    {
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        let api: Api<K> = Api::namespaced(self.client.clone(), namespace);
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
        let kind = ApiResource::erase::<HookRun>(&());
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), namespace, &kind);
        let name = metadata.name.as_deref().unwrap_or_default();
        let run = self.call(namespace, "read a run", api.get(name)).await?;
        let phase = run.data.pointer("/status/phase").and_then(Value::as_str);
        if Phase::from(phase.unwrap_or_default().to_owned()).is_final() {
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
        let _: PartialObjectMeta<HookRun> = self.patch_status("refuse a run", metadata, status).await?;
        Ok(())
    }

    /// Records the result of checking a template, which may be unreadable.
    pub async fn record_template(
        &self,
        metadata: &ObjectMeta,
        status: &HookTemplateStatus,
    ) -> Result<(), StoreError> {
        let status = json!(status);
        let _: PartialObjectMeta<HookTemplate> = self
            .patch_status("record a template's condition", metadata, status)
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

/// Drops the managed fields, as the watch does: they make up half of the object.
pub(crate) fn slim<K: Resource>(mut object: K) -> K {
    object.meta_mut().managed_fields = None;
    object
}

fn namespace_of(run: &HookRun) -> &str {
    run.metadata.namespace.as_deref().unwrap_or_default()
}

/// Returns what a user can do about a run that ended without success.
fn next_step(run: &HookRun) -> String {
    let mut owners = run.metadata.owner_references.iter().flatten();
    let game = owners.find(|owner| owner.controller == Some(true) && owner.kind == "GameDeployment");
    match game {
        Some(game) => format!(
            "mend that, then kubectl game retry {} -n {}",
            game.name,
            namespace_of(run)
        ),
        None => "mend that, then delete this HookRun and create it again".to_owned(),
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
            step: "write a status",
            message: error.to_string(),
        };
        let new = serde_json::to_value(status).map_err(failed)?;
        let old = serde_json::to_value(&base.status).map_err(failed)?;
        let recorded = self.patch_status("write a status", &base.metadata, replacing(old, new));
        Ok(slim(recorded.await?))
    }

    async fn read(&self, run: &HookRun) -> Result<HookRun, StoreError> {
        self.read_same("read a run", run).await
    }

    async fn delete(&self, run: &HookRun) -> Result<(), StoreError> {
        self.delete_same("delete a run", run).await
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
                FailureKind::JobRefused,
                "provider.job is off",
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
            "{why}. Next: kubectl delete job {} -n {}; they are deleted with this HookRun at the latest",
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
