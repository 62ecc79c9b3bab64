//! Environment of a check: a namespace, clients, the operators, and access to pods.

use std::fmt::Debug;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::Value;
use shared_api::names::namespace::REMOVAL_GUARD_ENABLED;
use shared_api::names::pod::REMOVAL_GUARD;
use shared_api::{HookRun, HookRunStatus};
use test_kit::real_node::NODE_NAME;
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

    pub(super) fn node(&self) -> &RealNode {
        self.node
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

    /// Starts kubectl in the namespace. It ends when the process is dropped.
    pub(super) fn start_kubectl(&self, arguments: &[&str]) -> Outcome<Process> {
        let control_plane = self.node.control_plane();
        let program = Program::new(control_plane.kubectl().get_program())
            .env("KUBECONFIG", control_plane.kubeconfig_path())
            // For its cache.
            .env("HOME", std::env::temp_dir())
            .args(["--namespace", &self.namespace])
            .args(arguments);
        Ok(Process::start(program)?)
    }

    /// Uncordons the node, and deletes the pods that earlier checks left on it. The removal guards of these
    /// checks no longer respond, so they are disabled in their namespaces.
    pub(super) async fn clear_node(&self) -> Outcome<()> {
        self.kubectl(&["uncordon", NODE_NAME])?;
        let guarded = format!("--selector={REMOVAL_GUARD}={REMOVAL_GUARD_ENABLED}");
        let disabled = format!("{REMOVAL_GUARD}=Disabled");
        self.kubectl(&["label", "namespaces", &guarded, &disabled, "--overwrite"])?;
        let cleared = within(PATIENCE, || async {
            let jobs = self.delete_everywhere::<Job>().await;
            let pods = self.delete_everywhere::<Pod>().await;
            match (jobs, pods) {
                (Ok(0), Ok(0)) => Ok(()),
                left => Err(format!("jobs and pods: {left:?}")),
            }
        });
        Ok(cleared.await?)
    }

    /// Deletes the objects of a kind in all namespaces at once. Returns how many there were.
    async fn delete_everywhere<K>(&self) -> Result<usize, kube::Error>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        let found = Api::<K>::all(self.client()).list(&ListParams::default()).await?;
        let at_once = DeleteParams::background().grace_period(0);
        for object in &found.items {
            let namespace = object.namespace().unwrap_or_default();
            let objects: Api<K> = Api::namespaced(self.client(), &namespace);
            match objects.delete(&object.name_any(), &at_once).await {
                Ok(_) => {}
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found.items.len())
    }

    /// Starts an operator that is a hidden command of this program, and waits until it has written `COMMAND
    /// started`. It works only in the namespace, and ends when the process is dropped.
    pub(super) async fn start_operator(&self, command: &str, flags: &[&str]) -> Outcome<Process> {
        let kubeconfig = self.node.control_plane().kubeconfig_path();
        self.start_operator_with(kubeconfig, command, flags).await
    }

    /// Starts an operator like [`start_operator`](Self::start_operator), as the user of this kubeconfig.
    pub(super) async fn start_operator_with(
        &self,
        kubeconfig: &Path,
        command: &str,
        flags: &[&str],
    ) -> Outcome<Process> {
        let program = Program::new(std::env::current_exe()?)
            .env("KUBECONFIG", kubeconfig)
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
