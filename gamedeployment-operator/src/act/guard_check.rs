//! Check of the removal guard.

use gamedeployment_core::gate::PodRef;
use gamedeployment_driver::request::Response;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Patch, PatchParams};
use kube::core::Status;
use kube::{Api, Error, Resource};
use operator_runtime::calls::CallError;
use serde_json::json;
use shared_api::names::pod::{REMOVAL_GUARD, REMOVAL_GUARDED_CAUSE};
use shared_api::parsed::Parsed;

use super::Caller;

/// Step of the check, for messages.
const STEP: &str = "check the removal guard";

impl Caller {
    /// Returns whether the guard denies the removal of its label, in a dry run. The precondition on the resource
    /// version ensures that the pod still has the label and its owner.
    pub(super) async fn check_guard(&self, namespace: &str, pod: &PodRef) -> Result<Response, CallError> {
        let api: Api<Parsed<Pod>> = Api::namespaced(self.client.clone(), namespace);
        let patch = json!({ "metadata": {
            "uid": pod.uid, "resourceVersion": pod.resource_version, "labels": { REMOVAL_GUARD: null },
        } });
        let params = PatchParams {
            dry_run: true,
            ..PatchParams::default()
        };
        let patched = async {
            match api.patch(&pod.name, &params, &Patch::Strategic(&patch)).await {
                Ok(pod) => Ok(Some(pod)),
                Err(Error::Api(status)) if is_by_guard(&status) => Ok(None),
                Err(error) => Err(error),
            }
        };
        let patched = self.calls.call(namespace, STEP, patched).await?;
        let labels = patched.as_ref().and_then(|pod| pod.meta().labels.as_ref());
        if labels.is_some_and(|labels| labels.contains_key(REMOVAL_GUARD)) {
            return Err(CallError::Unknown {
                step: STEP,
                message: format!("another admission webhook sets the label {REMOVAL_GUARD} again"),
            });
        }
        Ok(Response::Guarded(patched.is_none()))
    }
}

/// Returns whether the removal guard denied the request.
fn is_by_guard(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes
        .into_iter()
        .any(|cause| cause.reason == REMOVAL_GUARDED_CAUSE)
}
