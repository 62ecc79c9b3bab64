//! Tests of the simulated nodes.

mod commands;
mod images;
mod life;
mod losses;
mod servers;
mod trouble;

use std::time::Duration;

use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodCondition, PodStatus};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use test_kit::ControlPlane;
use test_kit::node::{EndReason, GameEvent, Nodes, Options, PodView};

pub(crate) const A_WHILE: Duration = Duration::from_secs(30);

/// Namespace with nodes, with the test in the role of the operator.
pub(crate) struct NodeHarness {
    pub(crate) nodes: Nodes,
    pub(crate) pods: Api<Pod>,
    pub(crate) shared: &'static ControlPlane,
}

impl NodeHarness {
    pub(crate) async fn new(prefix: &str) -> Self {
        Self::with(prefix, Options::default()).await
    }

    pub(crate) async fn with(prefix: &str, options: Options) -> Self {
        let shared = ControlPlane::shared(crate::control_plane::crds).await;
        let namespace = shared.namespace(prefix).await;
        let nodes = Nodes::start(shared, &namespace, options).await.unwrap();
        let pods = Api::namespaced(shared.client(), &namespace);
        Self { nodes, pods, shared }
    }

    pub(crate) async fn create(&self, name: &str) {
        self.create_with(name, json!({})).await;
    }

    /// Creates a pod with the containers `game` and `sidecar`, and additional spec fields.
    pub(crate) async fn create_with(&self, name: &str, more: Value) {
        let mut pod = json!({"metadata": {"name": name}, "spec": {"containers": [
            {"name": "game", "image": "game:1"},
            {"name": "sidecar", "image": "sidecar:1"},
        ]}});
        for (key, value) in more.as_object().unwrap() {
            pod["spec"][key] = value.clone();
        }
        let pod: Pod = serde_json::from_value(pod).unwrap();
        self.pods.create(&PostParams::default(), &pod).await.unwrap();
    }

    pub(crate) async fn ready<const N: usize>(&self, names: [&str; N]) -> [PodView; N] {
        for name in names {
            self.create(name).await;
        }
        let mut views = Vec::new();
        for name in names {
            views.push(self.that(name, |pod| pod.ready).await);
        }
        views.try_into().unwrap()
    }

    pub(crate) async fn that(&self, name: &str, holds: impl Fn(&PodView) -> bool) -> PodView {
        self.nodes.pod(name).await_that(A_WHILE, holds).await.unwrap()
    }

    pub(crate) async fn gone(&self, name: &str) {
        self.nodes.pod(name).await_gone(A_WHILE).await.unwrap();
    }

    pub(crate) async fn delete(&self, name: &str) {
        self.pods.delete(name, &DeleteParams::default()).await.unwrap();
    }

    pub(crate) async fn set_image(&self, name: &str, image: &str) {
        let patch = json!({"spec": {"containers": [{"name": "game", "image": image}]}});
        self.pods
            .patch(name, &PatchParams::default(), &Patch::Strategic(patch))
            .await
            .unwrap();
    }

    pub(crate) async fn status(&self, name: &str) -> PodStatus {
        self.pods.get(name).await.unwrap().status.unwrap()
    }

    pub(crate) async fn game(&self, name: &str) -> ContainerStatus {
        self.status(name).await.container_statuses.unwrap().remove(0)
    }

    pub(crate) async fn condition(&self, name: &str, kind: &str) -> PodCondition {
        let conditions = self.status(name).await.conditions.unwrap();
        conditions.into_iter().find(|one| one.type_ == kind).unwrap()
    }

    /// Returns pod, container and reason of every container end.
    pub(crate) fn ends(&self) -> Vec<(String, String, EndReason)> {
        let ends = self.nodes.terminations().into_iter();
        ends.map(|event| match event.what {
            GameEvent::Terminated { container, why, .. } => (event.pod, container, why),
            other => unreachable!("{other:?} is no end"),
        })
        .collect()
    }
}

/// Builds an entry of [`NodeHarness::ends`].
pub(crate) fn end(pod: &str, container: &str, why: EndReason) -> (String, String, EndReason) {
    (pod.to_owned(), container.to_owned(), why)
}
