//! Reports to Evictions of `lifecycle.k8s.io`.

use std::time::Duration;

use gamedeployment_driver::NamespacedName;
use gamedeployment_driver::request::{EvictionReport, Response};
use kube::api::{Patch, PatchParams};
use kube::{Api, Resource};
use operator_runtime::calls::CallError;
use serde_json::json;
use shared_api::names::GAMEDEPLOYMENT_OPERATOR;
use shared_api::names::eviction::RESPONDER;
use shared_api::time::Time;

use super::Caller;
use crate::observe::StoredEviction;

impl Caller {
    /// Replaces this operator's entry in the status of an Eviction. The entries of other responders and of the
    /// controller, which share the list, belong to other field managers.
    pub(super) async fn report_eviction(
        &self,
        (namespace, name): &NamespacedName,
        report: EvictionReport,
        until: Option<Duration>,
    ) -> Result<Response, CallError> {
        let mut entry = json!({ "name": RESPONDER, "message": report.message });
        if let Some(heartbeat) = report.heartbeat {
            entry["heartbeatTime"] = json!(Time::from(heartbeat));
        }
        if let Some(completion) = report.completion {
            entry["completionTime"] = json!(Time::from(completion));
        }
        let patch = json!({
            "apiVersion": StoredEviction::api_version(&()), "kind": StoredEviction::kind(&()),
            "metadata": { "name": name, "uid": report.uid },
            "status": { "responders": [entry] },
        });
        let api: Api<StoredEviction> = Api::namespaced(self.client.clone(), namespace);
        let params = PatchParams::apply(GAMEDEPLOYMENT_OPERATOR).force();
        let patch = Patch::Apply(&patch);
        let patched = api.patch_status(name, &params, &patch);
        let calls = &self.calls;
        let reported = calls
            .call_before(until, namespace, "report to an Eviction", patched)
            .await;
        if let Err(error) = &reported
            && !matches!(error, CallError::Gone)
        {
            tracing::warn!(namespace, name, %error, "failed to report to an Eviction");
        }
        reported.map(|_| Response::Done)
    }
}
