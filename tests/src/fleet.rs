//! Test environment for GameDeployments: its own namespace on a real API server, simulated nodes with a real
//! HTTP game server behind every pod, and both operators as processes.

use std::time::Duration;

use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use shared_api::{GameDeployment, GameDeploymentStatus, HookRun, HookTemplate};
use test_kit::ControlPlane;
use test_kit::node::{Nodes, Options};

use crate::identity::Identities;
use crate::witnessed::AuditLogOffset;
use crate::{Operator, fail, kubectl};

mod explained;
mod manifest;
mod notice;
mod operators;
mod seen;

pub use manifest::{empty_now, game, hooked, one_of, until_empty};
pub use notice::{FINISH, finish, noticed};
pub use operators::Who;
pub use seen::{condition, pod_of};

/// Name of the workload in most tests.
pub const GAME: &str = "test-gamedeployment";

/// Paths of both operators' programs.
#[derive(Debug, Clone, Copy)]
pub struct Programs {
    /// gamedeployment-operator.
    pub workloads: &'static str,
    /// hook-operator.
    pub hooks: &'static str,
}

/// Namespace with both operators and simulated nodes. On drop, the [witness] judges the operators' writes.
pub struct Fleet<'c> {
    /// Control plane of the fleet.
    pub control_plane: &'c ControlPlane,
    /// Namespace of the fleet.
    pub namespace: String,
    /// Simulated nodes that run the pods.
    pub nodes: Nodes,
    /// gamedeployment-operator; `None` while it is down.
    pub workloads: Option<Operator>,
    /// hook-operator; `None` while it is down.
    pub hooks: Option<Operator>,
    /// Time for which the operators may have been unable to see changes; the witness allows for it.
    pub blind: Duration,
    /// Whether an older build of the operators works on the fleet too: it notes no questions on pods.
    pub with_older: bool,
    programs: Programs,
    identities: Identities,
    beginning: Option<AuditLogOffset>,
}

impl<'c> Fleet<'c> {
    /// Returns a fleet whose operators are ready.
    pub async fn on(control_plane: &'c ControlPlane, programs: Programs, name: &str) -> Self {
        Self::with(control_plane, programs, name, Options::default()).await
    }

    /// Returns a fleet with its own node options.
    ///
    /// # Panics
    /// If something cannot be started.
    pub async fn with(
        control_plane: &'c ControlPlane,
        programs: Programs,
        name: &str,
        options: Options,
    ) -> Self {
        let namespace = control_plane.namespace(name).await;
        Self::within(control_plane, programs, namespace, options).await
    }

    /// Returns a fleet in an existing namespace.
    ///
    /// # Panics
    /// If something cannot be started.
    pub async fn within(
        control_plane: &'c ControlPlane,
        programs: Programs,
        namespace: String,
        options: Options,
    ) -> Self {
        let beginning = AuditLogOffset::of(control_plane);
        let identities = Identities::on(control_plane).await;
        let nodes = Nodes::start(control_plane, &namespace, options).await;
        let nodes = nodes.unwrap_or_else(|error| fail(&format!("the nodes: {error}")));
        let mut fleet = Self {
            control_plane,
            namespace,
            nodes,
            workloads: None,
            hooks: None,
            blind: Duration::ZERO,
            with_older: false,
            programs,
            identities,
            beginning,
        };
        fleet.start_workloads().await;
        fleet.start_hooks().await;
        fleet
    }

    /// Returns an administrator's client.
    pub fn client(&self) -> Client {
        self.control_plane.client()
    }

    /// Returns the namespace's workloads.
    pub fn games(&self) -> Api<GameDeployment> {
        Api::namespaced(self.client(), &self.namespace)
    }

    /// Returns the namespace's HookRuns.
    pub fn runs(&self) -> Api<HookRun> {
        Api::namespaced(self.client(), &self.namespace)
    }

    /// Returns the namespace's HookTemplates.
    pub fn templates(&self) -> Api<HookTemplate> {
        Api::namespaced(self.client(), &self.namespace)
    }

    /// Returns the namespace's pods.
    pub fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client(), &self.namespace)
    }

    /// Returns the namespace's ControllerRevisions.
    pub fn revisions(&self) -> Api<ControllerRevision> {
        Api::namespaced(self.client(), &self.namespace)
    }

    /// Runs kubectl in the namespace and returns its output.
    ///
    /// # Panics
    /// If it fails.
    pub fn kubectl(&self, arguments: &[&str], input: &str) -> String {
        let within = ["--namespace", &self.namespace];
        kubectl(self.control_plane, &[&within, arguments].concat(), input)
    }

    /// Creates or changes an object with `kubectl apply`.
    pub fn apply(&self, manifest: &Value) {
        let _ = self.kubectl(&["apply", "--filename", "-"], &manifest.to_string());
    }

    /// Creates a workload and waits until all its pods are ready.
    pub async fn launch(&self, manifest: &Value) {
        self.apply(manifest);
        let replicas = manifest
            .pointer("/spec/replicas")
            .and_then(Value::as_i64)
            .unwrap_or(1);
        let name = manifest
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .unwrap_or(GAME)
            .to_owned();
        let replicas = i32::try_from(replicas).unwrap_or(i32::MAX);
        self.until_of(&name, |status| {
            status.available_replicas == replicas
                && status.updated_ready_replicas == replicas
                && status.replicas == replicas
        })
        .await;
    }

    /// Changes the workload with a merge patch.
    ///
    /// # Panics
    /// If the API server refuses it.
    pub async fn patch(&self, patch: Value) {
        let patched = self
            .games()
            .patch(GAME, &PatchParams::default(), &Patch::Merge(patch))
            .await;
        patched.unwrap_or_else(|error| fail(&format!("patching {GAME}: {error}")));
    }

    /// Changes fields of the workload's spec.
    pub async fn set(&self, spec: Value) {
        self.patch(json!({ "spec": spec })).await;
    }

    /// Changes the number of replicas with `kubectl scale`.
    pub fn scale(&self, replicas: usize) {
        let _ = self.kubectl(
            &[
                "scale",
                &format!("--replicas={replicas}"),
                &format!("gamedeployment/{GAME}"),
            ],
            "",
        );
    }

    /// Sets `retry` of a strategy to true, with the documented command.
    pub fn retry(&self, strategy: &str) {
        let patch = format!("-p=[{{\"op\":\"replace\",\"path\":\"/spec/{strategy}/retry\",\"value\":true}}]");
        let _ = self.kubectl(&["patch", "gamedeployment", GAME, "--type=json", &patch], "");
    }

    /// Sets annotations that influence decisions on a pod, as a user would, and waits until the operator has
    /// seen them.
    ///
    /// # Panics
    /// If the API server refuses it.
    pub async fn annotate(&self, pod: &str, annotations: Value) {
        let before = self.decisions().await;
        let patch = Patch::Merge(json!({ "metadata": { "annotations": annotations } }));
        let patched = self.pods().patch(pod, &PatchParams::default(), &patch).await;
        patched.map_or_else(|error| fail(&format!("annotating {pod}: {error}")), drop);
        self.decided_since(before).await;
    }

    /// Deletes a HookRun as a user would.
    ///
    /// # Panics
    /// If the API server refuses it.
    pub async fn delete_run(&self, name: &str) {
        let deleted = self.runs().delete(name, &DeleteParams::default()).await;
        deleted.map_or_else(|error| fail(&format!("deleting {name}: {error}")), drop);
    }

    /// Adds a finalizer that keeps a HookRun when it is deleted, or removes it.
    ///
    /// # Panics
    /// If the API server refuses it.
    pub async fn keep_run(&self, name: &str, keep: bool) {
        let finalizers = keep.then_some(["example.com/keep"]);
        let patch = Patch::Merge(json!({ "metadata": { "finalizers": finalizers } }));
        let patched = self.runs().patch(name, &PatchParams::default(), &patch).await;
        patched.map_or_else(|error| fail(&format!("patching {name}: {error}")), drop);
    }

    /// Changes a HookTemplate.
    ///
    /// # Panics
    /// If the API server refuses it.
    pub async fn change_hook(&self, name: &str, spec: Value) {
        let patch = Patch::Merge(json!({ "spec": spec }));
        let patched = self
            .templates()
            .patch(name, &PatchParams::default(), &patch)
            .await;
        patched.map_or_else(|error| fail(&format!("changing {name}: {error}")), drop);
    }

    /// Changes the image of the first container.
    pub async fn set_image(&self, image: &str) {
        let mut template = self.game().await.spec.template.value();
        template["spec"]["containers"][0]["image"] = json!(image);
        self.set(json!({ "template": template })).await;
    }

    /// Returns the workload.
    ///
    /// # Panics
    /// If it is not there.
    pub async fn game(&self) -> GameDeployment {
        let game = self.games().get(GAME).await;
        game.unwrap_or_else(|error| fail(&format!("reading {GAME}: {error}")))
    }

    /// Returns the workload's status; the default if it has none.
    pub async fn status(&self) -> GameDeploymentStatus {
        self.game().await.status.unwrap_or_default()
    }

    /// Creates a workload's HookTemplate from its spec.
    ///
    /// # Panics
    /// If the API server refuses it.
    pub async fn hook(&self, name: &str, spec: Value) {
        let spec = serde_json::from_value(spec).unwrap_or_else(|error| fail(&error.to_string()));
        let created = self
            .templates()
            .create(&PostParams::default(), &HookTemplate::new(name, spec))
            .await;
        created.unwrap_or_else(|error| fail(&format!("creating {name}: {error}")));
    }

    /// Deletes a pod as a user would.
    ///
    /// # Panics
    /// If the API server refuses it.
    pub async fn delete_pod(&self, name: &str) {
        let deleted = self.pods().delete(name, &DeleteParams::default()).await;
        deleted.map_or_else(|error| fail(&format!("deleting {name}: {error}")), drop);
    }
}

impl Drop for Fleet<'_> {
    fn drop(&mut self) {
        for operator in self.workloads.iter().chain(&self.hooks) {
            operator.speak_if_a_test_fails();
        }
        self.workloads = None;
        self.hooks = None;
        if let Some(beginning) = self.beginning.as_ref().filter(|_| !std::thread::panicking()) {
            beginning.judge(&self.namespace, &[], self.blind, self.with_older);
        }
    }
}
