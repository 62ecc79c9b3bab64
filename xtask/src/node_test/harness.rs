//! Environment of a check: a namespace, clients, the operators, and access to pods.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client};
use serde_json::Value;
use shared_api::{HookRun, HookRunStatus};
use test_kit::real_node::samples::GAME_PORT;
use test_kit::wait::within;
use test_kit::{Process, Program, RealNode, http_client};

use crate::enclosed::Outcome;

/// Timeout of any step on a busy machine.
pub(super) const PATIENCE: Duration = Duration::from_mins(1);
/// Timeout for a response of a game server.
const ANSWER_IN: Duration = Duration::from_secs(2);

/// Environment of one check.
pub(super) struct Harness<'a> {
    node: &'a RealNode,
    namespace: String,
    facts: Mutex<Vec<String>>,
}

impl<'a> Harness<'a> {
    /// Creates a fresh namespace.
    pub(super) async fn new(node: &'a RealNode) -> Self {
        Self {
            node,
            namespace: node.control_plane().namespace("node-test").await,
            facts: Mutex::default(),
        }
    }

    /// Returns an administrator's client.
    pub(super) fn client(&self) -> Client {
        self.node.control_plane().client()
    }

    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Returns the node's kubelet.
    pub(super) fn kubelet(&self) -> &Process {
        self.node.kubelet()
    }

    /// Returns the API of the namespace's pods.
    pub(super) fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client(), &self.namespace)
    }

    /// Waits for the verdict of a HookRun, and returns its status.
    pub(super) async fn verdict(&self, name: &str) -> Outcome<HookRunStatus> {
        self.verdict_within(name, PATIENCE).await
    }

    /// Waits for the verdict of a HookRun that takes longer than most, and returns its status.
    pub(super) async fn verdict_within(&self, name: &str, patience: Duration) -> Outcome<HookRunStatus> {
        let runs: Api<HookRun> = Api::namespaced(self.client(), &self.namespace);
        let found = within(patience, || async {
            let run = runs.get(name).await.map_err(|error| error.to_string())?;
            let status = run.status.unwrap_or_default();
            if status.phase.is_final() {
                Ok(status)
            } else {
                Err(format!("no verdict in {status:?}"))
            }
        });
        Ok(found.await?)
    }

    /// Runs kubectl in the namespace and returns its output. Its error message becomes the error.
    pub(super) fn kubectl(&self, arguments: &[&str]) -> Outcome<String> {
        let mut command = self.node.control_plane().kubectl();
        let output = command
            .args(["--namespace", &self.namespace])
            .args(arguments)
            .output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() {
            return Ok(text);
        }
        let complaint = String::from_utf8_lossy(&output.stderr);
        Err(format!("kubectl {arguments:?}: {complaint}{text}").into())
    }

    /// Starts an operator that is a hidden command of this program, and waits until it has written `COMMAND
    /// started`. It works only in the namespace, and ends when the process is dropped.
    pub(super) async fn start_operator(&self, command: &str, flags: &[&str]) -> Outcome<Process> {
        let program = Program::new(std::env::current_exe()?)
            .env("KUBECONFIG", self.node.control_plane().kubeconfig_path())
            .args([command, "--namespace", &self.namespace])
            .args(["--listen", "127.0.0.1:0", "--log-format", "human"])
            .args(flags);
        let process = Process::start(program)?;
        process
            .await_output(&format!("{command} started"), PATIENCE)
            .await?;
        Ok(process)
    }

    /// Returns the status document of the game server at this address.
    pub(super) async fn ask_game(&self, ip: &str) -> Outcome<Value> {
        self.ask(ip, GAME_PORT).await
    }

    /// Returns the status document of the server at this address and port.
    pub(super) async fn ask(&self, ip: &str, port: u16) -> Outcome<Value> {
        let url = format!("http://{ip}:{port}/status.json");
        let answer = http_client()?.get(url).timeout(ANSWER_IN).send().await?;
        Ok(answer.error_for_status()?.json().await?)
    }

    /// Records a noteworthy observation, which is printed below the check.
    pub(super) fn note(&self, fact: impl Into<String>) {
        self.facts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(fact.into());
    }

    /// Returns all recorded observations.
    pub(super) fn facts(&self) -> Vec<String> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Prints diagnostics after a failure.
    pub(super) fn last_words(&self) {
        for arguments in [&["describe", "pods"][..], &["get", "hookruns", "-o", "yaml"]] {
            match self.kubectl(arguments) {
                Ok(text) => println!("--- kubectl {}\n{text}", arguments.join(" ")),
                Err(error) => println!("--- {error}"),
            }
        }
        println!("--- the kubelet's last words\n{}", self.node.kubelet().tail(15));
    }
}
