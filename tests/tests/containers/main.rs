//! Tests of commands in containers on a real API server. Its kubelets are stand-ins that serve exec as a kubelet does, so
//! the way through the API server, its rights included, is real. Proof of what ran comes from the kubelets.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end so")]

use kube::ResourceExt as _;
use kube::api::PostParams;
use operator_tests::fleet::{Who, game};
use operator_tests::hook_rights::{
    grant_exec, grant_to_operator, hooks_kubeconfig_with_token, with_kubelets,
};
use operator_tests::{Fleet, Programs, SOON, Start, at_once, merge};
use serde_json::{Value, json};
use shared_api::hook_run::HookRunStatus;
use shared_api::names::hook_run_label::POD_UID;
use shared_api::{HookRun, Phase};
use test_kit::node::PodView;
use test_kit::{ControlPlane, eventually};

mod calls;
mod crowd;
mod exec;
mod executions;
mod faults;
mod gates;
mod snapshot;

/// Programs under test.
const PROGRAMS: Programs = Programs {
    workloads: env!("CARGO_BIN_EXE_gamedeployment-operator-under-test"),
    hooks: env!("CARGO_BIN_EXE_hook-operator-under-test"),
};

/// Fleet whose hooks may run commands; `None` on an existing cluster, which cannot reach the stand-in kubelets.
async fn fleet(name: &str) -> Option<Fleet<'static>> {
    let fleet = ungranted(name).await?;
    grant_exec(fleet.control_plane, &fleet.namespace).await;
    Some(fleet)
}

/// Fleet without a grant for its hooks.
async fn ungranted(name: &str) -> Option<Fleet<'static>> {
    ungranted_with(name, &["--provider-exec"]).await
}

/// Fleet whose hook-operator has these flags, without a grant for its hooks.
async fn ungranted_with(name: &str, flags: &[&str]) -> Option<Fleet<'static>> {
    let control_plane = ControlPlane::shared(shared_api::crd::all).await;
    with_kubelets(control_plane, PROGRAMS, name, flags).await
}

/// Returns the start of a second hook-operator of this fleet.
async fn hooks_of(fleet: &Fleet<'_>) -> Start {
    hooks_with(fleet, &["--provider-exec"]).await
}

/// Returns the start of a second hook-operator of this fleet with these flags.
async fn hooks_with(fleet: &Fleet<'_>, flags: &[&str]) -> Start {
    grant_to_operator(fleet.control_plane).await;
    let kubeconfig = hooks_kubeconfig_with_token(fleet.control_plane).await;
    let start = fleet.start_of(Who::Hooks, None).kubeconfig(&kubeconfig);
    start.flags(&[flags, &["--egress-allow-loopback"]].concat())
}

/// Starts a workload with one server and returns its pod.
async fn server(fleet: &Fleet<'_>) -> PodView {
    fleet.launch(&game(1, json!({}))).await;
    fleet.nodes.await_ready(1, SOON).await.unwrap().remove(0)
}

/// Metric that runs a command in the container `game`.
fn metric(more: Value) -> Value {
    let exec = json!({ "container": "game", "command": ["game-server", "players", "{{ args.PodName }}"] });
    let mut metric = json!({ "name": "m", "provider": { "exec": exec } });
    merge(&mut metric, more);
    metric
}

/// Creates a run for a pod, as gamedeployment-operator does.
async fn create(fleet: &Fleet<'_>, name: &str, pod: &PodView, metric: Value) -> HookRun {
    let args = json!([{ "name": "PodName", "value": pod.name }]);
    let spec = json!({ "metrics": [metric], "args": args });
    let mut run = HookRun::new(name, serde_json::from_value(spec).unwrap());
    run.labels_mut().insert(POD_UID.to_owned(), pod.uid.clone());
    fleet.runs().create(&PostParams::default(), &run).await.unwrap()
}

/// Waits for the verdict of a run.
async fn verdict(fleet: &Fleet<'_>, name: &str) -> HookRunStatus {
    until(fleet, name, |status| status.phase.is_final()).await
}

async fn until(fleet: &Fleet<'_>, name: &str, wanted: impl Fn(&HookRunStatus) -> bool) -> HookRunStatus {
    eventually(SOON, || async {
        let run = fleet.runs().get(name).await.map_err(|error| error.to_string())?;
        let status = run.status.unwrap_or_default();
        if wanted(&status) {
            Ok(status)
        } else {
            Err(format!("{status:?}"))
        }
    })
    .await
}

/// Runs one measurement, whose first error is final.
async fn measured(fleet: &Fleet<'_>, name: &str, pod: &PodView, more: Value) -> (Phase, String) {
    create(fleet, name, pod, at_once(metric(more))).await;
    let status = verdict(fleet, name).await;
    let result = &status.metric_results[0];
    (result.phase, result.message.clone().unwrap_or_default())
}
