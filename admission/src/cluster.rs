//! Requests to the API server. If a request fails, a deletion or a hook with a Job is rejected, and warnings about
//! hooks are omitted.

use std::time::Duration;

use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, PostParams};
use kube::core::DeserializeGuard;
use kube::{Api, Client};
use operator_runtime::calls::CallLimiter;
use shared_api::HookTemplate;
use shared_api::names::GROUP;

use crate::authors::NeededRight;
use crate::guard::PendingDecision;
use crate::review::AdmissionDecision;

/// Maximum number of concurrent requests.
const MAX_CONCURRENT_CALLS: usize = 16;
/// Maximum timeout of one request. The API server waits 10 s for the guard's response, see
/// `deploy/admission.yaml`.
const MAX_TIMEOUT: Duration = Duration::from_secs(4);

/// Parts of the cluster that decisions depend on.
#[derive(Debug)]
pub struct ClusterReader {
    client: ClientDebug,
    calls: CallLimiter,
}

/// Wraps a client, which has no `Debug` implementation.
struct ClientDebug(Client);

impl std::fmt::Debug for ClientDebug {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Client")
    }
}

impl ClusterReader {
    /// Creates a reader that uses this client. `timeout` applies to each request, and is capped.
    pub fn new(client: Client, timeout: Duration) -> Self {
        Self {
            client: ClientDebug(client),
            calls: CallLimiter::new(MAX_CONCURRENT_CALLS, timeout.min(MAX_TIMEOUT)),
        }
    }

    /// Completes a pending decision: asks the API server for the facts that it depends on.
    pub async fn settle(&self, pending: PendingDecision) -> AdmissionDecision {
        let (refusal, open) = match pending {
            PendingDecision::Given(verdict) => return verdict,
            PendingDecision::UnlessNamespaceEnds { namespace, refusal } => {
                (refusal, self.namespace_ends(&namespace).await)
            }
            PendingDecision::UnlessNoObjects {
                version,
                plural,
                refusal,
            } => (refusal, self.no_objects(&version, &plural).await),
        };
        match open {
            Ok(true) => AdmissionDecision::Allowed(Vec::new()),
            Ok(false) => AdmissionDecision::Forbidden(refusal),
            Err(why) => AdmissionDecision::Forbidden(format!("{refusal} ({why})")),
        }
    }

    /// Returns the HookTemplates of a namespace; `None` if they cannot be read.
    pub async fn templates(&self, namespace: &str) -> Option<Vec<HookTemplate>> {
        let api: Api<DeserializeGuard<HookTemplate>> = Api::namespaced(self.client.0.clone(), namespace);
        let list = ListParams::default();
        let call = self
            .calls
            .call(namespace, "list the HookTemplates", api.list(&list))
            .await;
        let found = call
            .inspect_err(|error| tracing::debug!(%error, namespace, "hooks are not looked up"))
            .ok()?;
        Some(
            found
                .items
                .into_iter()
                .filter_map(|DeserializeGuard(read)| read.ok())
                .collect(),
        )
    }

    /// Refuses a write whose author lacks a right, or whose rights cannot be read.
    pub async fn authorize(&self, right: &NeededRight) -> AdmissionDecision {
        let api: Api<SubjectAccessReview> = Api::all(self.client.0.clone());
        let (params, review) = (PostParams::default(), right.review());
        let call = api.create(&params, &review);
        let answer = self.calls.call(&right.namespace, "review a right", call).await;
        let why = match answer.map(|review| review.status) {
            Ok(Some(status)) if status.allowed => return AdmissionDecision::Allowed(Vec::new()),
            Ok(status) => status.and_then(|status| status.reason).unwrap_or_default(),
            Err(error) => format!("the right is not known: {error}"),
        };
        let refusal = right.refusal();
        AdmissionDecision::Forbidden(if why.is_empty() {
            refusal
        } else {
            format!("{refusal} ({why})")
        })
    }

    async fn namespace_ends(&self, name: &str) -> Result<bool, String> {
        let api: Api<Namespace> = Api::all(self.client.0.clone());
        let call = self
            .calls
            .call(name, "read the namespace", api.get_metadata(name))
            .await;
        let found =
            call.map_err(|error| format!("whether the namespace is being deleted is not known: {error}"))?;
        Ok(found.metadata.deletion_timestamp.is_some())
    }

    async fn no_objects(&self, version: &str, plural: &str) -> Result<bool, String> {
        let kind = GroupVersionKind::gvk(GROUP, version, "");
        let kind = ApiResource::from_gvk_with_plural(&kind, plural);
        let api: Api<DynamicObject> = Api::all_with(self.client.0.clone(), &kind);
        let one = ListParams::default().limit(1);
        let call = self
            .calls
            .call("", "list the objects", api.list_metadata(&one))
            .await;
        let found = call.map_err(|error| format!("whether there are objects is not known: {error}"))?;
        Ok(found.items.is_empty())
    }
}
