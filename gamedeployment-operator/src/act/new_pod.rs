//! New pods: created for real or as a dry run.

use gamedeployment_core::plan::NewPod;
use gamedeployment_driver::request::{ReconcileTarget, Response};
use k8s_openapi::api::core::v1::Pod;
use kube::Resource as _;
use kube::api::PostParams;
use kube::core::Request;
use operator_runtime::calls::CallError;
use serde_json::Value;
use shared_api::parsed::Parsed;

use super::{Caller, of_pod};

impl Caller {
    /// Creates a pod exactly as the manifest says, including fields that this version does not know.
    pub(super) async fn create_pod(
        &self,
        target: &ReconcileTarget,
        pod: NewPod,
    ) -> Result<Response, CallError> {
        let step = "create a pod";
        let params = PostParams::default();
        let created = self.post_pod(target, &pod.manifest, step, &params).await?;
        of_pod(step, created)
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
        self.post_pod(target, &pod.manifest, step, &params).await?;
        Ok(Response::Done)
    }

    async fn post_pod(
        &self,
        target: &ReconcileTarget,
        manifest: &Value,
        step: &'static str,
        params: &PostParams,
    ) -> Result<Parsed<Pod>, CallError> {
        let request = Request::new(Pod::url_path(&(), Some(&target.key.0)));
        let request = request.create(params, manifest.to_string().into_bytes());
        let call = async {
            self.client
                .request(request.map_err(kube::Error::BuildRequest)?)
                .await
        };
        self.calls.call(&target.key.0, step, call).await
    }
}
