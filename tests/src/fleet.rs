//! The stage of tests of GameDeployments: a namespace of its own on a real API server, simulated nodes with a real
//! HTTP game server behind every pod, and both operators as processes.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::Stdio;

use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use shared_api::{GameDeployment, GameDeploymentStatus, HookRun, HookTemplate};
use test_kit::node::{Nodes, Options};
use test_kit::{ControlPlane, eventually};

use crate::{Operator, SOON, Start, fail};

/// Name of the workload in most tests.
pub const GAME: &str = "test-gamedeployment";

/// Programs of both operators.
#[derive(Debug, Clone, Copy)]
pub struct Programs {
    /// gamedeployment-operator.
    pub workloads: &'static str,
    /// hook-operator.
    pub hooks: &'static str,
}

/// A namespace with both operators and simulated nodes.
pub struct Fleet<'c> {
    /// The control plane that it stands on.
    pub control_plane: &'c ControlPlane,
    /// Its namespace.
    pub namespace: String,
    /// Where pods run.
    pub nodes: Nodes,
    /// gamedeployment-operator; none while it is down.
    pub workloads: Option<Operator>,
    /// hook-operator; none while it is down.
    pub hooks: Option<Operator>,
    programs: Programs,
}

impl<'c> Fleet<'c> {
    /// A fleet whose operators are ready.
    pub async fn on(control_plane: &'c ControlPlane, programs: Programs, name: &str) -> Self {
        Self::with(control_plane, programs, name, Options::default()).await
    }

    /// A fleet with nodes of its own kind.
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

    /// A fleet in a namespace that exists.
    ///
    /// # Panics
    /// If something cannot be started.
    pub async fn within(
        control_plane: &'c ControlPlane,
        programs: Programs,
        namespace: String,
        options: Options,
    ) -> Self {
        let nodes = Nodes::start(control_plane, &namespace, options).await;
        let nodes = nodes.unwrap_or_else(|error| fail(&format!("the nodes: {error}")));
        let mut fleet = Self {
            control_plane,
            namespace,
            nodes,
            workloads: None,
            hooks: None,
            programs,
        };
        fleet.start_workloads().await;
        fleet.start_hooks().await;
        fleet
    }

    /// Starts gamedeployment-operator, in place of one that runs.
    pub async fn start_workloads(&mut self) {
        self.workloads = None;
        let start = Start::new(
            self.programs.workloads,
            self.control_plane.kubeconfig_path(),
            &self.namespace,
        )
        .flags(&[]);
        let operator = Operator::start(&start);
        operator.ready().await;
        self.workloads = Some(operator);
    }

    /// Starts hook-operator, in place of one that runs.
    pub async fn start_hooks(&mut self) {
        self.hooks = None;
        let start = Start::new(
            self.programs.hooks,
            self.control_plane.kubeconfig_path(),
            &self.namespace,
        );
        let operator = Operator::start(&start);
        operator.ready().await;
        self.hooks = Some(operator);
    }

    /// Ends gamedeployment-operator as a node that dies would.
    pub fn kill_workloads(&mut self) {
        self.workloads = None;
    }

    /// An administrator's client.
    #[must_use]
    pub fn client(&self) -> Client {
        self.control_plane.client()
    }

    /// The namespace's workloads.
    #[must_use]
    pub fn games(&self) -> Api<GameDeployment> {
        Api::namespaced(self.client(), &self.namespace)
    }

    /// The namespace's HookRuns.
    #[must_use]
    pub fn runs(&self) -> Api<HookRun> {
        Api::namespaced(self.client(), &self.namespace)
    }

    /// The namespace's HookTemplates.
    #[must_use]
    pub fn templates(&self) -> Api<HookTemplate> {
        Api::namespaced(self.client(), &self.namespace)
    }

    /// The namespace's pods.
    #[must_use]
    pub fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client(), &self.namespace)
    }

    /// The namespace's ControllerRevisions.
    #[must_use]
    pub fn revisions(&self) -> Api<ControllerRevision> {
        Api::namespaced(self.client(), &self.namespace)
    }

    /// Runs kubectl in the namespace and returns what it prints.
    ///
    /// # Panics
    /// If it fails.
    #[must_use]
    pub fn kubectl(&self, arguments: &[&str], input: &str) -> String {
        let mut command = self.control_plane.kubectl();
        command.args(["--namespace", &self.namespace]).args(arguments);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let output = command.spawn().and_then(|mut child| {
            if let Some(mut stdin) = child.stdin.take() {
                stdin.write_all(input.as_bytes())?;
            }
            child.wait_with_output()
        });
        let output = output.unwrap_or_else(|error| fail(&format!("kubectl: {error}")));
        let text =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            fail(&format!("kubectl {arguments:?}: {text}"));
        }
        text
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

    /// Changes the image of the first container.
    pub async fn set_image(&self, image: &str) {
        let mut game = self.game().await;
        game.spec.template["spec"]["containers"][0]["image"] = json!(image);
        self.patch(json!({ "spec": { "template": game.spec.template } }))
            .await;
    }

    /// The workload.
    ///
    /// # Panics
    /// If it is not there.
    pub async fn game(&self) -> GameDeployment {
        let game = self.games().get(GAME).await;
        game.unwrap_or_else(|error| fail(&format!("reading {GAME}: {error}")))
    }

    /// The workload's status, empty where there is none.
    pub async fn status(&self) -> GameDeploymentStatus {
        self.game().await.status.unwrap_or_default()
    }

    /// Waits until the workload's status, of its newest generation, is as wanted.
    pub async fn until(&self, wanted: impl Fn(&GameDeploymentStatus) -> bool) -> GameDeploymentStatus {
        self.until_of(GAME, wanted).await
    }

    /// As [`Fleet::until`], of any workload.
    pub async fn until_of(
        &self,
        name: &str,
        wanted: impl Fn(&GameDeploymentStatus) -> bool,
    ) -> GameDeploymentStatus {
        let games = self.games();
        eventually(SOON, || async {
            let game = games.get(name).await.map_err(|error| error.to_string())?;
            let status = game.status.unwrap_or_default();
            if status.observed_generation == game.metadata.generation && wanted(&status) {
                Ok(status)
            } else {
                Err(format!("{}\n{}", json!(status), self.last_words()))
            }
        })
        .await
    }

    fn last_words(&self) -> String {
        self.workloads
            .as_ref()
            .map(|operator| operator.process.tail(15))
            .unwrap_or_default()
    }

    /// Waits until the HookRuns are as wanted.
    pub async fn until_runs(&self, wanted: impl Fn(&[HookRun]) -> bool) -> Vec<HookRun> {
        let runs = self.runs();
        eventually(SOON, || async {
            let list = runs
                .list(&ListParams::default())
                .await
                .map_err(|error| error.to_string())?;
            if wanted(&list.items) {
                Ok(list.items)
            } else {
                let seen: Vec<_> = list
                    .items
                    .iter()
                    .map(|run| (run.name_any(), run.status.clone().map(|s| s.phase)))
                    .collect();
                Err(format!("{seen:?}\n{}", self.last_words()))
            }
        })
        .await
    }

    /// The workload's pods by name, terminating ones included.
    pub async fn all_pods(&self) -> BTreeMap<String, Pod> {
        let list = self.pods().list(&ListParams::default()).await;
        let pods = list.map(|list| list.items).unwrap_or_default();
        pods.into_iter().map(|pod| (pod.name_any(), pod)).collect()
    }

    /// Waits until the pods are as wanted.
    pub async fn until_pods(&self, wanted: impl Fn(&BTreeMap<String, Pod>) -> bool) -> BTreeMap<String, Pod> {
        eventually(SOON, || async {
            let pods = self.all_pods().await;
            if wanted(&pods) {
                Ok(pods)
            } else {
                Err(format!("{:?}\n{}", pods.keys(), self.last_words()))
            }
        })
        .await
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

    /// Deletes a pod as a person would.
    ///
    /// # Panics
    /// If the API server refuses it.
    pub async fn delete_pod(&self, name: &str) {
        let deleted = self.pods().delete(name, &DeleteParams::default()).await;
        deleted.map_or_else(|error| fail(&format!("deleting {name}: {error}")), drop);
    }

    /// Waits until everything is as it should be, with no HookRun and no mark left; then sees that the operator makes
    /// no further request.
    ///
    /// # Panics
    /// If something else happens.
    pub async fn settled(&self, replicas: usize) -> GameDeploymentStatus {
        let wanted = i32::try_from(replicas).unwrap_or(i32::MAX);
        let status = self
            .until(|status| {
                status.replicas == wanted
                    && status.ready_replicas == wanted
                    && status.hook_pending_replicas == 0
                    && condition(status, "Progressing")
                        .is_some_and(|(_, reason, _)| reason != "Scaling" && reason != "RollingOut")
            })
            .await;
        self.until_runs(<[HookRun]>::is_empty).await;
        self.until_pods(|pods| pods.len() == replicas).await;
        self.quiet().await;
        for (name, pod) in self.all_pods().await {
            let marked = pod.annotations().contains_key(shared_api::names::pod::DELETING);
            assert!(!marked, "pod {name} is still marked");
        }
        status
    }

    /// Waits until the operator's requests come to rest: as many decisions as it takes, none of which writes.
    pub async fn quiet(&self) {
        let Some(operator) = &self.workloads else { return };
        let before = std::cell::Cell::new(None);
        eventually(SOON, || async {
            let now = operator.metric("hookgate_api_requests_total", "").await;
            let decisions = operator
                .metric("hookgate_gamedeployment_decisions_total", "")
                .await;
            if before.replace(Some((now, decisions))) == Some((now, decisions)) {
                Ok(())
            } else {
                Err(format!("{now} requests, {decisions} decisions"))
            }
        })
        .await;
    }

    /// Notes of the events about the workload, each with its reason.
    pub async fn events(&self) -> Vec<String> {
        let events: Api<k8s_openapi::api::events::v1::Event> =
            Api::namespaced(self.client(), &self.namespace);
        let Ok(list) = events.list(&ListParams::default()).await else {
            return vec![];
        };
        let text = |event: k8s_openapi::api::events::v1::Event| {
            format!(
                "{} {}",
                event.reason.unwrap_or_default(),
                event.note.unwrap_or_default()
            )
        };
        list.items.into_iter().map(text).collect()
    }

    /// Waits for an event that holds these words.
    pub async fn told(&self, words: &str) {
        eventually(SOON, || async {
            let events = self.events().await;
            if events.iter().any(|event| event.contains(words)) {
                Ok(())
            } else {
                Err(events)
            }
        })
        .await;
    }
}

/// Status, reason and message of a condition.
#[must_use]
pub fn condition(status: &GameDeploymentStatus, kind: &str) -> Option<(String, String, String)> {
    let condition = status
        .conditions
        .iter()
        .find(|condition| condition.type_ == kind)?;
    Some((
        condition.status.clone(),
        condition.reason.clone(),
        condition.message.clone(),
    ))
}

/// A workload: in-place updates, no hook, one container called `game`.
#[must_use]
pub fn game(replicas: usize, extra: Value) -> Value {
    let mut manifest = json!({
        "apiVersion": "tkex.tencent.com/v1alpha1",
        "kind": "GameDeployment",
        "metadata": { "name": GAME, "labels": { "app": GAME } },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": GAME } },
            "template": {
                "metadata": { "labels": { "app": GAME } },
                "spec": { "containers": [{ "name": "game", "image": "game:v1", "ports": [{ "containerPort": 9091 }] }] }
            },
            "updateStrategy": { "type": "InplaceUpdate", "maxUnavailable": 2 }
        }
    });
    crate::merge(&mut manifest["spec"], extra);
    manifest
}

/// A hook that asks the pod itself until nobody plays: as many times as it takes.
#[must_use]
pub fn until_empty() -> Value {
    json!({
        "args": [{ "name": "PodIP" }],
        "metrics": [{
            "name": "players", "interval": "100ms", "successfulLimit": 1, "successCondition": "asInt(result) == 0",
            "provider": { "web": { "url": "http://{{ args.PodIP }}:9091", "jsonPath": "{$.players}" } }
        }]
    })
}

/// A hook that asks the pod itself once: may it go now?
#[must_use]
pub fn empty_now() -> Value {
    json!({
        "args": [{ "name": "PodIP" }],
        "metrics": [{
            "name": "players", "successCondition": "asInt(result) == 0",
            "provider": { "web": { "url": "http://{{ args.PodIP }}:9091", "jsonPath": "{$.players}" } }
        }]
    })
}
