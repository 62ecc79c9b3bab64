//! Environment of a scenario: a control plane, simulated nodes, and both operators as users run them, with
//! their metrics.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use shared_api::{GameDeployment, GameDeploymentStatus, HookRun, HookTemplate};
use test_kit::assets::{self, Profile};
use test_kit::node::{self, Nodes};
use test_kit::usage::Usage;
use test_kit::wait::within;
use test_kit::{ControlPlane, Options, Process, Program, http_client};

use super::Outcome;

/// Timeout of any step.
pub(super) const PATIENCE: Duration = Duration::from_mins(20);
const GAME: &str = "arena";

/// A running operator.
pub(super) struct Operator {
    process: Process,
    address: String,
}

/// Directory of the measured programs.
static PROGRAMS: OnceLock<PathBuf> = OnceLock::new();

/// Measures the programs in this directory from now on.
pub(super) fn measure_those_in(directory: PathBuf) {
    let _ = PROGRAMS.set(directory);
}

/// Builds the programs of this checkout once and returns their directory. Later changes are not measured.
pub(super) fn built(profile: Profile) -> Outcome<PathBuf> {
    let program = assets::built("hook-operator", profile)?;
    Ok(program
        .parent()
        .ok_or("a program without a directory")?
        .to_owned())
}

/// Returns the path of a measured program.
pub(super) fn program_path(program: &str) -> Outcome<PathBuf> {
    Ok(PROGRAMS.get().ok_or("no programs to measure")?.join(program))
}

/// Requests of an operator by verb and resource.
pub(super) type Requests = BTreeMap<String, u64>;

impl Operator {
    /// Starts an operator and returns once it is ready.
    pub(super) async fn start(program: &str, control_plane: &ControlPlane, flags: &[&str]) -> Outcome<Self> {
        let mut all = vec!["--leader-election", "false"];
        all.extend(flags);
        Self::launch(program, control_plane, &all).await
    }

    /// Starts a hookgate program, which may have no leader election, and returns once it is ready.
    pub(super) async fn launch(program: &str, control_plane: &ControlPlane, flags: &[&str]) -> Outcome<Self> {
        let path = program_path(program)?;
        let address = test_kit::free_address()?.to_string();
        let command = Program::new(path)
            .env("KUBECONFIG", control_plane.kubeconfig_path())
            .args(["--listen", &address, "--log", "warn"])
            .args(flags);
        let operator = Self {
            process: Process::start(command)?,
            address,
        };
        operator.ready().await?;
        Ok(operator)
    }

    async fn ready(&self) -> Outcome<()> {
        let client = http_client()?;
        within(PATIENCE, || async {
            let answer = client
                .get(format!("http://{}/readyz", self.address))
                .send()
                .await
                .ok()?;
            answer.status().is_success().then_some(())
        })
        .await?;
        Ok(())
    }

    /// Returns the text of `/metrics`.
    pub(super) async fn metrics(&self) -> Outcome<String> {
        let answer = http_client()?
            .get(format!("http://{}/metrics", self.address))
            .send()
            .await?;
        Ok(answer.text().await?)
    }

    /// Returns the number of requests so far, from the operator's metrics.
    pub(super) async fn requests(&self) -> Outcome<Requests> {
        let text = self.metrics().await?;
        let mut requests = Requests::new();
        for line in text
            .lines()
            .filter(|line| line.starts_with("hookgate_api_requests_total{"))
        {
            let label = |name: &str| {
                let (_, rest) = line.split_once(&format!("{name}=\""))?;
                rest.split_once('"').map(|(value, _)| value)
            };
            let count = line
                .rsplit(' ')
                .next()
                .and_then(|count| count.parse().ok())
                .unwrap_or(0);
            let conflict = if label("code") == Some("409") {
                CONFLICT
            } else {
                ""
            };
            let name = format!(
                "{} {}{conflict}",
                label("verb").unwrap_or_default(),
                label("resource").unwrap_or_default()
            );
            *requests.entry(name).or_default() += count;
        }
        Ok(requests)
    }

    /// Returns memory and CPU time.
    pub(super) fn usage(&self) -> Usage {
        self.process.usage().unwrap_or_default()
    }
}

/// Returns the requests between two counts.
pub(super) fn since(before: &Requests, after: &Requests) -> Requests {
    let come = |(name, count): (&String, &u64)| {
        let new = count - before.get(name).copied().unwrap_or(0);
        (new > 0).then(|| (name.clone(), new))
    };
    after.iter().filter_map(come).collect()
}

/// Suffix of requests that ended in a conflict.
const CONFLICT: &str = " (conflict)";

/// Returns the number of write requests, with or without conflicts.
pub(super) fn writes(requests: &Requests, conflicts: bool) -> u64 {
    let reads = ["get ", "list ", "watch "];
    let written = requests
        .iter()
        .filter(|(name, _)| !reads.iter().any(|verb| name.starts_with(verb)))
        .filter(|(name, _)| conflicts || !name.ends_with(CONFLICT));
    written.map(|(_, count)| count).sum()
}

/// A control plane with a namespace for games.
pub(super) struct Harness {
    pub(super) control_plane: ControlPlane,
    pub(super) namespace: String,
    pub(super) nodes: Nodes,
}

impl Harness {
    pub(super) async fn new() -> Outcome<Self> {
        let options = Options {
            crds: shared_api::crd::all(),
            ..Options::default()
        };
        let control_plane = ControlPlane::start(options).await?;
        let namespace = control_plane.namespace("bench").await;
        let options = node::Options {
            nodes: 10,
            concurrent_calls: 64,
            ..node::Options::default()
        };
        let nodes = Nodes::start(&control_plane, &namespace, options).await?;
        nodes.every_pod().set_players(0);
        Ok(Self {
            control_plane,
            namespace,
            nodes,
        })
    }

    pub(super) async fn hooks(&self) -> Outcome<Operator> {
        Operator::start("hook-operator", &self.control_plane, &["--egress-allow-loopback"]).await
    }

    pub(super) async fn workloads(&self) -> Outcome<Operator> {
        Operator::start("gamedeployment-operator", &self.control_plane, &[]).await
    }

    pub(super) fn client(&self) -> Client {
        self.control_plane.client()
    }

    pub(super) fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client(), &self.namespace)
    }

    pub(super) fn games(&self) -> Api<GameDeployment> {
        Api::namespaced(self.client(), &self.namespace)
    }

    /// Creates the hook that queries each server for its number of players.
    pub(super) async fn template(&self) -> Outcome<()> {
        let template: HookTemplate = serde_json::from_value(json!({
            "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "HookTemplate", "metadata": { "name": "nobody-plays" },
            "spec": {
                "args": [{ "name": "PodIP" }],
                "metrics": [{
                    "name": "players", "successCondition": "asInt(result) == 0",
                    "provider": { "web": { "url": "http://{{ args.PodIP }}:9091", "jsonPath": "{$.players}" } }
                }]
            }
        }))?;
        let templates: Api<HookTemplate> = Api::namespaced(self.client(), &self.namespace);
        templates.create(&PostParams::default(), &template).await?;
        Ok(())
    }

    /// Creates a game of this size whose pods are gated by the hook.
    pub(super) async fn game(&self, name: &str, replicas: usize, strategy: Value) -> Outcome<()> {
        let hook = json!({ "hook": { "templateName": "nobody-plays" } });
        let game: GameDeployment = serde_json::from_value(json!({
            "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "GameDeployment", "metadata": { "name": name },
            "spec": {
                "replicas": replicas, "selector": { "matchLabels": { "app": name } },
                "template": {
                    "metadata": { "labels": { "app": name } },
                    "spec": { "containers": [{ "name": "game", "image": "game:v1" }] }
                },
                "preDeleteUpdateStrategy": hook, "preInplaceUpdateStrategy": hook, "updateStrategy": strategy
            }
        }))?;
        self.games().create(&PostParams::default(), &game).await?;
        Ok(())
    }

    /// Creates hook and game, and returns once all pods are available.
    pub(super) async fn launch(&self, replicas: usize, strategy: Value) -> Outcome<()> {
        self.template().await?;
        self.game(GAME, replicas, strategy).await?;
        let all = i32::try_from(replicas)?;
        self.until(|status| status.available_replicas == all && status.replicas == all)
            .await
    }

    /// Patches the game.
    pub(super) async fn change(&self, patch: &Value) -> Outcome<()> {
        self.games()
            .patch(GAME, &PatchParams::default(), &Patch::Merge(patch))
            .await?;
        Ok(())
    }

    pub(super) async fn until(&self, wanted: impl Fn(&GameDeploymentStatus) -> bool) -> Outcome<()> {
        let games = self.games();
        within(PATIENCE, || async {
            let game = games.get(GAME).await.map_err(|error| error.to_string())?;
            let status = game.status.clone().unwrap_or_default();
            let current = status.observed_generation == game.metadata.generation;
            if current && wanted(&status) {
                Ok(())
            } else {
                Err(json!(status).to_string())
            }
        })
        .await?;
        Ok(())
    }

    /// Waits until no HookRun exists.
    pub(super) async fn without_runs(&self) -> Outcome<()> {
        let runs: Api<HookRun> = Api::namespaced(self.client(), &self.namespace);
        within(PATIENCE, || async {
            let left = runs
                .list(&ListParams::default().limit(1))
                .await
                .map_err(|error| error.to_string())?;
            if left.items.is_empty() {
                Ok(())
            } else {
                Err("HookRuns are left".to_owned())
            }
        })
        .await?;
        Ok(())
    }
}
