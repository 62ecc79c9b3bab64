//! Writes to the workload itself: its status, and the two exceptions in its spec.

use gamedeployment_core::gate::HookKind;
use kube::api::{Patch, PatchParams};
use operator_runtime::calls::CallError;
use operator_runtime::patch::replacing;
use serde_json::{Value, json};
use shared_api::{GameDeployment, GameDeploymentStatus};

use super::{Effect, Hands, Kind, Subject, Trouble};

impl Hands {
    /// Sets `retry` back: what it asked for is done.
    pub(super) async fn reset_retry(&self, subject: &Subject, kinds: &[HookKind]) -> Result<Effect, Trouble> {
        let fields = kinds
            .iter()
            .map(|kind| (kind.field().to_owned(), json!({ "retry": false })));
        let spec: serde_json::Map<String, Value> = fields.collect();
        self.patch_workload(subject, "reset retry", None, json!({ "spec": spec }))
            .await
    }

    /// Stops the update for a canary step; who resumes sets `paused` back to false.
    pub(super) async fn pause(&self, subject: &Subject) -> Result<Effect, Trouble> {
        let patch = json!({ "spec": { "updateStrategy": { "paused": true } } });
        self.patch_workload(subject, "pause for a canary step", None, patch)
            .await
    }

    pub(super) async fn write_status(
        &self,
        subject: &Subject,
        status: &GameDeploymentStatus,
    ) -> Result<Effect, Trouble> {
        let value = |status: &Option<GameDeploymentStatus>| serde_json::to_value(status).unwrap_or_default();
        let new = value(&Some(status.clone()));
        let status = replacing(value(&subject.object.status), new);
        self.patch_workload(
            subject,
            "write the status",
            Some("status"),
            json!({ "status": status }),
        )
        .await
    }

    /// A patch under the precondition that nothing newer is recorded than what was decided on.
    async fn patch_workload(
        &self,
        subject: &Subject,
        step: &'static str,
        subresource: Option<&str>,
        mut patch: Value,
    ) -> Result<Effect, Trouble> {
        let metadata = &subject.object.metadata;
        patch["metadata"] = json!({ "uid": metadata.uid, "resourceVersion": metadata.resource_version });
        let api = self.api::<GameDeployment>(subject);
        let name = &subject.key.1;
        let (params, patch) = (PatchParams::default(), Patch::Merge(&patch));
        let call = async {
            match subresource {
                Some(subresource) => api.patch_subresource(subresource, name, &params, &patch).await,
                None => api.patch(name, &params, &patch).await,
            }
        };
        let patched: Result<GameDeployment, CallError> = self.calls.call(step, call).await;
        let uid = metadata.uid.as_deref().unwrap_or_default();
        patched
            .map(|object| Effect::Workload(Box::new(object)))
            .map_err(|error| Trouble::of(error, Kind::Workload, name, uid))
    }
}
