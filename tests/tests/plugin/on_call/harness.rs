//! A workload of three servers with a trouble, and a shell for the commands that the plugin prints.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::os::unix::fs::symlink;
use std::process::Stdio;
use std::time::Duration;

use k8s_openapi::api::events::v1::Event;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use operator_tests::fleet::{GAME, empty_now, game, hooked};
use operator_tests::{Fleet, SOON, assert_has, merge};
use serde_json::{Value, json};
use tempfile::TempDir;
use test_kit::eventually;

use super::explanation::{Explanation, Printed};
use crate::plugin::{PROGRAM, Plugin};

/// Name of the HookTemplate.
pub(crate) const TEMPLATE: &str = "empty";

/// Port of the game servers.
pub(crate) const PORT: u16 = 9091;

/// Time limit for five errors of a hook that is measured once: they are 10 s apart, and may take a second each.
const PATIENCE: Duration = Duration::from_mins(3);

/// Pause between two explanations, because each is a process.
const PAUSE: Duration = Duration::from_millis(200);

/// Builds a hook that queries the pod once and succeeds if it has no players, with changes to its metric.
pub(crate) fn measures_once(changes: Value) -> Value {
    let mut template = empty_now();
    merge(&mut template["metrics"][0], changes);
    template
}

/// Builds such a hook that queries the pod each second until it has no players.
pub(crate) fn polls(changes: Value) -> Value {
    let mut template = measures_once(json!({ "interval": "1s", "successfulLimit": 1 }));
    merge(&mut template["metrics"][0], changes);
    template
}

/// Builds the change of a metric that sets its URL: a port of the pod, and a path.
pub(crate) fn url(port_and_path: &str) -> Value {
    let url = format!("http://{{{{ args.PodIP }}}}:{port_and_path}");
    json!({ "provider": { "web": { "url": url } } })
}

/// Returns an editor that replaces one text by another. Both are in the language of sed.
pub(crate) fn sed(from: &str, to: &str) -> String {
    format!("sed -i -e 's|{from}|{to}|'")
}

/// Workload with a trouble.
pub(crate) struct OnCall {
    pub(crate) fleet: Fleet<'static>,
    directory: TempDir,
}

impl OnCall {
    /// Returns three servers with this hook.
    pub(crate) async fn new(template: Value) -> Self {
        Self::with(template, json!({})).await
    }

    /// Returns three servers with this hook and this update strategy.
    pub(crate) async fn with(template: Value, update_strategy: Value) -> Self {
        let fleet = crate::fleet("on-call").await;
        fleet.hook(TEMPLATE, template).await;
        Self::within(fleet, update_strategy).await
    }

    /// Returns three servers with a hook whose template does not exist.
    pub(crate) async fn without_template() -> Self {
        Self::within(crate::fleet("on-call").await, json!({})).await
    }

    async fn within(fleet: Fleet<'static>, update_strategy: Value) -> Self {
        let mut spec = hooked(TEMPLATE);
        spec["updateStrategy"] = update_strategy;
        fleet.launch(&game(3, spec)).await;
        let directory = tempfile::tempdir().unwrap();
        let kubectl = fleet.control_plane.kubectl_file().unwrap();
        symlink(kubectl, directory.path().join("kubectl")).unwrap();
        symlink(PROGRAM, directory.path().join("kubectl-game")).unwrap();
        Self { fleet, directory }
    }

    /// Returns the plugin.
    pub(crate) fn plugin(&self) -> Plugin<'_> {
        Plugin { fleet: &self.fleet }
    }

    /// Scales the workload down by one pod, and returns the pod that is selected for deletion.
    pub(crate) async fn scale_down(&self) -> String {
        self.fleet.scale(2);
        eventually(SOON, || async { self.fleet.marked().await.pop_first() }).await
    }

    /// Returns the address of a port of a pod.
    pub(crate) fn address(&self, pod: &str, port: u16) -> SocketAddr {
        SocketAddr::new(self.fleet.nodes.pod(pod).ip().unwrap(), port)
    }

    /// Returns the name of the only HookRun.
    pub(crate) async fn run_name(&self) -> String {
        self.fleet.until_runs(|runs| runs.len() == 1).await[0].name_any()
    }

    /// Returns the command that edits the HookTemplate.
    pub(crate) fn edit(&self) -> String {
        format!("kubectl edit hooktemplate {TEMPLATE} -n {}", self.fleet.namespace)
    }

    /// Returns the current explanation of the workload.
    pub(crate) async fn why(&self) -> Explanation {
        Explanation::read(self.plugin().ok(&format!("why {GAME}")).await)
    }

    /// Waits until the explanation has these facts, links this section of the runbook and prints a command with this
    /// beginning first; an empty text stands for any. Checks the rules for explanations.
    pub(crate) async fn why_until(&self, facts: &[&str], runbook: &str, first: &str) -> Explanation {
        let explanation = eventually(PATIENCE, || async {
            let found = self.why().await;
            let begins = |printed: &Printed| printed.command.starts_with(first);
            let is_first = first.is_empty() || found.commands.first().is_some_and(begins);
            let is_linked = runbook.is_empty() || found.runbook() == runbook;
            let missing: Vec<&&str> = facts.iter().filter(|fact| !found.out.contains(**fact)).collect();
            if is_first && is_linked && missing.is_empty() {
                return Ok(found);
            }
            tokio::time::sleep(PAUSE).await;
            Err(format!(
                "without {missing:?}, or without {first:?} as first command, or without #{runbook}:\n{}",
                found.out
            ))
        })
        .await;
        explanation.check(facts);
        explanation
    }

    /// Waits until exactly one warning about the pod has this reason.
    pub(crate) async fn is_warned_once(&self, pod: &str, reason: &str) {
        eventually(SOON, || async {
            let count = self.warnings(pod, reason).await;
            if count == 1 { Ok(()) } else { Err(count) }
        })
        .await;
    }

    async fn warnings(&self, pod: &str, reason: &str) -> i32 {
        let events: Api<Event> = Api::namespaced(self.fleet.client(), &self.fleet.namespace);
        let events = events.list(&ListParams::default()).await.unwrap().items;
        let is_such = |event: &Event| {
            let regarding = event.regarding.clone().unwrap_or_default();
            let subject = (regarding.kind.as_deref(), regarding.name.as_deref());
            let kind = (event.type_.as_deref(), event.reason.as_deref());
            subject == (Some("Pod"), Some(pod)) && kind == (Some("Warning"), Some(reason))
        };
        let such = events.into_iter().filter(is_such);
        such.map(|event| event.series.map_or(1, |series| series.count))
            .sum()
    }

    /// Records the event that a scheduler emits for a pod without a node, with the words of its condition. The
    /// simulated scheduler writes only the condition.
    pub(crate) async fn report_unscheduled(&self, pod: &str) {
        let found = self.fleet.pods().get(pod).await.unwrap();
        let status = found.status.clone().unwrap_or_default();
        let mut conditions = status.conditions.iter().flatten();
        let scheduled = conditions.find(|condition| condition.type_ == "PodScheduled");
        self.fleet.apply(&json!({
            "apiVersion": "v1", "kind": "Event", "metadata": { "name": format!("{pod}.unscheduled") },
            "involvedObject": {
                "apiVersion": "v1", "kind": "Pod", "namespace": self.fleet.namespace, "name": pod, "uid": found.uid()
            },
            "type": "Warning", "reason": "FailedScheduling", "message": scheduled.unwrap().message,
            "source": { "component": "default-scheduler" }, "count": 1
        }));
    }

    /// Runs a printed command like [`OnCall::run_printed_after`], before any server has ended.
    pub(crate) async fn run_printed(&self, printed: &Printed, editor: &str) -> String {
        self.run_printed_after(&BTreeSet::new(), printed, editor).await
    }

    /// Runs a printed command in a shell, and returns its output. `kubectl edit` starts `editor` with the name of its
    /// file. Until then, exactly these servers may have ended.
    pub(crate) async fn run_printed_after(
        &self,
        ended: &BTreeSet<String>,
        printed: &Printed,
        editor: &str,
    ) -> String {
        assert_eq!(self.fleet.nodes.terminated_pods(), *ended);
        let programs = self.directory.path();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut shell = tokio::process::Command::new("bash");
        shell
            .args(["--noprofile", "--norc", "-c", &printed.command])
            .env("PATH", format!("{}:{path}", programs.display()))
            .env("KUBECONFIG", self.fleet.control_plane.kubeconfig_path())
            .env("HOME", programs)
            .env("SHELL", "/bin/sh")
            .env("KUBE_EDITOR", editor)
            .env_remove("RUST_BACKTRACE")
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let output = tokio::time::timeout(PATIENCE, shell.output()).await;
        let output = output.unwrap_or_else(|_| panic!("{} does not end", printed.command));
        let output = output.unwrap();
        let text =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {text}", printed.command);
        text
    }

    /// Runs the first command, `kubectl edit` of the HookTemplate, with an editor that replaces one text by another.
    /// Both are in the language of sed.
    pub(crate) async fn correct(&self, explanation: &Explanation, from: &str, to: &str) {
        let said = self.run_printed(explanation.first(), &sed(from, to)).await;
        assert_has(&said, &format!("{TEMPLATE} edited"));
    }

    /// Waits until the selected pod is gone, and checks that the workload is complete and no other server has ended.
    pub(crate) async fn settled_without(&self, pod: &str) {
        self.fleet.settled(2).await;
        assert_eq!(
            self.fleet.nodes.terminated_pods(),
            BTreeSet::from([pod.to_owned()])
        );
        let said = self.plugin().ok(&format!("status {GAME} --timeout 60s")).await;
        assert_has(&said, "complete: RolloutComplete");
    }

    /// Returns the row of the workload in `kubectl game list`.
    pub(crate) async fn row(&self) -> String {
        let table = self.plugin().ok("list").await;
        let mut rows = table.lines().filter(|line| line.starts_with(GAME));
        rows.next().unwrap_or_else(|| panic!("{table}")).to_owned()
    }
}
