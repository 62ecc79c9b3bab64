//! Writes to the workload itself: its status, its finalizer, and `retry` and `paused`, the only fields of its spec that
//! the operator sets.

use gamedeployment_core::hook_kind::HookKind;
use gamedeployment_core::workload;
use gamedeployment_driver::NamespacedName;
use gamedeployment_driver::request::{ReconcileTarget, Response};
use gamedeployment_driver::watch_event::Unreadable;
use jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::{Api, Resource};
use operator_runtime::calls::CallError;
use operator_runtime::patch::replacing;
use serde_json::{Value, json};
use shared_api::names::workload::ASK_BEFORE_REMOVAL;
use shared_api::parsed::{InvalidObject, Parsed};
use shared_api::reason::{WorkloadCondition, WorkloadPhase, WorkloadReason};
use shared_api::time::Time;
use shared_api::{GameDeployment, GameDeploymentStatus};

use super::{Caller, of_workload};

impl Caller {
    /// Resets `retry` once the request has been carried out.
    pub(super) async fn reset_retry(
        &self,
        target: &ReconcileTarget,
        kinds: &[HookKind],
    ) -> Result<Response, CallError> {
        let fields = kinds
            .iter()
            .map(|kind| (kind.field().to_owned(), json!({ "retry": false })));
        let spec: serde_json::Map<String, Value> = fields.collect();
        self.patch_workload(target, "reset retry", None, json!({ "spec": spec }))
            .await
    }

    /// Pauses the rollout for a canary step; users resume it by setting `paused` back to false.
    pub(super) async fn pause(&self, target: &ReconcileTarget) -> Result<Response, CallError> {
        let patch = json!({ "spec": { "updateStrategy": { "paused": true } } });
        self.patch_workload(target, "pause for a canary step", None, patch)
            .await
    }

    /// Adds the finalizer of a workload with guarded pods, or removes it. The finalizers of others stay.
    pub(super) async fn set_finalizer(
        &self,
        target: &ReconcileTarget,
        is_set: bool,
    ) -> Result<Response, CallError> {
        let known = target.object.metadata.finalizers.iter().flatten();
        let mut finalizers: Vec<&str> = known.map(String::as_str).collect();
        finalizers.retain(|known| *known != ASK_BEFORE_REMOVAL);
        finalizers.extend(is_set.then_some(ASK_BEFORE_REMOVAL));
        let patch = json!({ "metadata": { "finalizers": finalizers } });
        let step = if is_set {
            "add the finalizer tkex.tencent.com/ask-before-removal"
        } else {
            "remove the finalizer tkex.tencent.com/ask-before-removal"
        };
        self.patch_workload(target, step, None, patch).await
    }

    pub(super) async fn write_status(
        &self,
        target: &ReconcileTarget,
        status: &GameDeploymentStatus,
    ) -> Result<Response, CallError> {
        let value = |status: &Option<GameDeploymentStatus>| serde_json::to_value(status).unwrap_or_default();
        let new = value(&Some(status.clone()));
        let status = replacing(value(&target.object.status), new);
        self.patch_workload(
            target,
            "write the status",
            Some("status"),
            json!({ "status": status }),
        )
        .await
    }

    /// Records that an object cannot be parsed as a GameDeployment, so that tools that compare `observedGeneration` or
    /// `phase` do not wait. The pod counts in its status stay.
    pub(super) async fn report_unreadable(
        &self,
        key: &NamespacedName,
        invalid: &Unreadable,
    ) -> Result<Response, CallError> {
        let metadata = &invalid.metadata;
        let found: Parsed<GameDeployment> = self.get(key).await?;
        let Err(InvalidObject { status, .. }) = &found.0 else {
            // It was corrected, which the watch will show.
            return Ok(Response::Done);
        };
        let invalid_spec = WorkloadCondition::InvalidSpec.as_str();
        let reason = WorkloadReason::InvalidSpec.as_str();
        let mut conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        let message = workload::unreadable(&invalid.error);
        let said = |condition: &Value| {
            condition["type"] == invalid_spec
                && condition["status"] == "True"
                && condition["message"] == message
                && condition["observedGeneration"] == json!(metadata.generation)
        };
        if conditions.iter().any(said) {
            return Ok(Response::Done);
        }
        conditions.retain(|condition| condition["type"] != invalid_spec);
        conditions.push(json!({
            "type": invalid_spec, "status": "True", "reason": reason,
            "message": message, "observedGeneration": metadata.generation,
            "lastTransitionTime": Time::new(Timestamp::now()),
        }));
        let patch = json!({
            "metadata": { "uid": metadata.uid, "resourceVersion": metadata.resource_version },
            "status": {
                "conditions": conditions, "observedGeneration": metadata.generation,
                "phase": WorkloadPhase::Blocked.as_str(), "reason": reason,
            },
        });
        let api: Api<Parsed<GameDeployment>> = Api::namespaced(self.client.clone(), &key.0);
        let (params, patch) = (PatchParams::default(), Patch::Merge(&patch));
        let call = api.patch_status(&key.1, &params, &patch);
        self.calls
            .call(&key.0, "report an unreadable workload", call)
            .await?;
        let about = found.object_ref(&());
        self.events.warn(about, reason, "Validate", &message);
        Ok(Response::Done)
    }

    /// Patches the workload, with the UID and resource version of the decision as preconditions.
    async fn patch_workload(
        &self,
        target: &ReconcileTarget,
        step: &'static str,
        subresource: Option<&str>,
        mut patch: Value,
    ) -> Result<Response, CallError> {
        let metadata = &target.object.metadata;
        patch["metadata"]["uid"] = json!(metadata.uid);
        patch["metadata"]["resourceVersion"] = json!(metadata.resource_version);
        let api = self.api::<GameDeployment>(target);
        let name = &target.key.1;
        let (params, patch) = (PatchParams::default(), Patch::Merge(&patch));
        let call = async {
            match subresource {
                Some(subresource) => api.patch_subresource(subresource, name, &params, &patch).await,
                None => api.patch(name, &params, &patch).await,
            }
        };
        let object = self.calls.call(&target.key.0, step, call).await?;
        let metadata = object.meta();
        let holds = metadata.finalizers.as_ref().is_some_and(|held| !held.is_empty());
        if metadata.deletion_timestamp.is_some() && !holds {
            // The API server has deleted it.
            return Ok(Response::Gone);
        }
        Ok(of_workload(object))
    }
}
