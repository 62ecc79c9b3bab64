//! New pods: created for real or as a dry run.

use gamedeployment_core::plan::NewPod;
use gamedeployment_driver::request::{ReconcileTarget, Response};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::PostParams;
use kube::core::{ApiResource, DynamicObject};
use operator_runtime::calls::CallError;
use serde_json::Value;

use super::{Caller, of_pod};

impl Caller {
    /// Creates a pod exactly as the manifest says, including fields that this version does not know.
    pub(super) async fn create_pod(
        &self,
        target: &ReconcileTarget,
        pod: NewPod,
    ) -> Result<Response, CallError> {
        let step = "create a pod";
        let unknown = |error: serde_json::Error| CallError::Unknown {
            step,
            message: error.to_string(),
        };
        let created = self
            .post_pod(target, pod.manifest, step, &PostParams::default())
            .await?;
        let value = serde_json::to_value(created).map_err(unknown)?;
        let pod: Pod = serde_json::from_value(value).map_err(unknown)?;
        Ok(of_pod(&pod))
    }

    /// Creates a pod as a dry run: the API server checks the schema, the quotas and the admission webhooks.
    pub(super) async fn dry_run_pod(
        &self,
        target: &ReconcileTarget,
        pod: NewPod,
    ) -> Result<Response, CallError> {
        let params = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        let step = "create a pod in a dry run";
        self.post_pod(target, pod.manifest, step, &params).await?;
        Ok(Response::Done)
    }

    async fn post_pod(
        &self,
        target: &ReconcileTarget,
        manifest: Value,
        step: &'static str,
        params: &PostParams,
    ) -> Result<DynamicObject, CallError> {
        let kind = ApiResource::erase::<Pod>(&());
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), &target.key.0, &kind);
        let object: DynamicObject = serde_json::from_value(manifest).map_err(|error| CallError::Refused {
            step,
            // The manifest is not sent.
            code: 400,
            message: error.to_string(),
        })?;
        self.calls
            .call(&target.key.0, step, api.create(params, &object))
            .await
    }
}
