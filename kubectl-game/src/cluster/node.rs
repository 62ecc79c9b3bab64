//! Nodes, and evictions of their pods.

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::change::FIELD_MANAGER;
use super::failure::{Failure, NODES, RequestInfo};
use super::flags::ClusterConnection;

/// Result of an eviction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Eviction {
    /// The pod is being deleted.
    Accepted,
    /// The pod no longer exists, or another one has its name.
    Gone,
    /// The eviction is denied for now, with the reason, for example by a `PodDisruptionBudget`.
    Denied(String),
}

impl ClusterConnection {
    /// Returns a node by name.
    pub(crate) async fn node(&self, name: &str) -> Result<Node, Failure> {
        let found = self.nodes().get(name).await;
        found.map_err(|error| self.node_failed("get", name, &error))
    }

    /// Cordons or uncordons a node.
    pub(crate) async fn set_cordoned(&self, name: &str, is_cordoned: bool) -> Result<(), Failure> {
        let patch = json!({ "spec": { "unschedulable": is_cordoned.then_some(true) } });
        let parameters = PatchParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let patched = self.nodes().patch(name, &parameters, &Patch::Merge(&patch)).await;
        patched
            .map(drop)
            .map_err(|error| self.node_failed("patch", name, &error))
    }

    /// Evicts the pod with this name and UID in the namespace.
    pub(crate) async fn evict(&self, name: &str, uid: &str) -> Result<Eviction, Failure> {
        let request = RequestInfo {
            resource: "pods/eviction",
            ..self.request::<Pod>("create", Some(name))
        };
        // Without a version, it has the one that the API server uses: policy/v1, or before Kubernetes 1.22
        // policy/v1beta1.
        let eviction = json!({
            "metadata": { "name": name, "namespace": self.namespace },
            "deleteOptions": { "preconditions": { "uid": uid } },
        });
        let (pods, parameters) = (self.api::<Pod>(), PostParams::default());
        let evicted = pods.create_subresource::<Value, Value>("eviction", name, &parameters, &eviction);
        match evicted.await {
            Ok(_) => Ok(Eviction::Accepted),
            Err(kube::Error::Api(status)) if status.code == 429 => Ok(Eviction::Denied(status.message)),
            Err(error) => match request.failed(&error) {
                Failure::NotFound(_) | Failure::Conflict(_) => Ok(Eviction::Gone),
                other => Err(other),
            },
        }
    }

    /// Returns a connection to another namespace of the cluster. The flags that it suggests name the namespace.
    pub(crate) fn in_namespace(&self, namespace: &str) -> Self {
        Self {
            client: self.client.clone(),
            namespace: namespace.to_owned(),
            user: self.user.clone(),
            flags: format!(" -n {namespace}{}", self.cluster_flags),
            cluster_flags: self.cluster_flags.clone(),
        }
    }

    fn nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    /// Returns the failure of a request for a node.
    fn node_failed(&self, verb: &'static str, name: &str, error: &kube::Error) -> Failure {
        let request = RequestInfo {
            verb,
            resource: NODES,
            name: Some(name),
            namespace: None,
        };
        match request.failed(error) {
            Failure::NotFound(_) => Failure::NotFound(format!(
                "no Node named {name:?}; to list the nodes: kubectl get nodes{}",
                self.cluster_flags
            )),
            other => other,
        }
    }
}
