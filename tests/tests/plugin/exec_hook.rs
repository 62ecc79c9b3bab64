//! Tests of `exec-hook`: actions in containers of real pods, followed until they are complete.

use std::time::Duration;

use operator_tests::fleet::{GAME, game};
use operator_tests::hook_rights::{grant_exec, with_kubelets};
use operator_tests::{Fleet, SOON, assert_has};
use serde_json::{Value, json};
use shared_api::ExecutionHook;
use test_kit::node::{Exec, PodView};
use test_kit::{ControlPlane, eventually};

use crate::PROGRAMS;
use crate::plugin::{Plugin, Said};
use crate::terminal::{terminal, until};

/// Fleet whose hooks may run commands; `None` on an existing cluster, which cannot reach the stand-in kubelets.
async fn fleet() -> Option<Fleet<'static>> {
    let control_plane = ControlPlane::shared(shared_api::crd::all).await;
    let fleet = with_kubelets(control_plane, PROGRAMS, "plugin", &["--execution-hooks"]).await?;
    grant_exec(fleet.control_plane, &fleet.namespace).await;
    Some(fleet)
}

async fn servers(fleet: &Fleet<'_>, count: usize) -> Vec<PodView> {
    fleet.launch(&game(count, json!({}))).await;
    fleet.nodes.await_ready(count, SOON).await.unwrap()
}

/// Creates the HookAction `freeze`, which fails for good after two seconds.
fn action(fleet: &Fleet<'_>) {
    fleet.apply(&json!({
        "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "HookAction", "metadata": { "name": "freeze" },
        "action": { "exec": { "command": ["game-server", "freeze"] } }, "actionTimeoutSeconds": 2
    }));
}

/// Returns the name that `run` prints first.
fn name_in(out: &str) -> String {
    let first = out.lines().next().unwrap();
    first
        .strip_prefix("executionhook.tkex.tencent.com/")
        .unwrap()
        .to_owned()
}

async fn hook_of(fleet: &Fleet<'_>, name: &str) -> ExecutionHook {
    let hooks: kube::Api<ExecutionHook> = kube::Api::namespaced(fleet.client(), &fleet.namespace);
    hooks.get(name).await.unwrap()
}

#[tokio::test]
async fn an_action_is_followed_until_it_has_succeeded_everywhere() {
    let Some(fleet) = fleet().await else { return };
    let plugin = Plugin { fleet: &fleet };
    let none = plugin.run("exec-hook get").await;
    assert_eq!((none.code, none.out.as_str()), (0, ""), "{none:?}");
    assert_has(&none.err, "no ExecutionHooks in namespace ");
    servers(&fleet, 3).await;
    fleet.nodes.every_pod().on_exec(Exec::exits(0));
    action(&fleet);
    let run = format!("exec-hook run freeze -l app={GAME},!other -c game --parallelism 2 --ttl 600");
    let out = plugin.ok(&run).await;
    let name = name_in(&out);
    assert_eq!(name.len(), "freeze-x7k2p".len(), "{name}");
    assert!(
        out.ends_with(
            "[##########] 3/3 succeeded, 0 failed\nsucceeded: ActionSucceeded: the action succeeded in 3 of 3 \
             containers\n"
        ),
        "{out}"
    );
    let spec = hook_of(&fleet, &name).await.spec;
    assert_eq!(
        (spec.parallelism, spec.ttl_seconds_after_finished),
        (Some(2), Some(600))
    );
    assert_eq!(fleet.nodes.commands().len(), 3);

    let table = plugin.ok("exec-hook get").await;
    let rows: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(
        rows[0],
        ["NAME", "ACTION", "SUCCEEDED", "FAILED", "TOTAL", "REASON", "AGE"]
    );
    assert_eq!(
        rows[1][..7],
        [&name, "freeze", "3", "0", "3", "+", "ActionSucceeded"]
    );
    let json: Value = plugin.json(&format!("exec-hook get {name}")).await;
    assert_eq!(
        (&json["kind"], &json["status"]["total"]),
        (&json!("ExecutionHook"), &json!(3))
    );
    let complete = plugin.refused(&format!("exec-hook terminate {name}")).await;
    assert_has(&complete, "is already complete");
    let at_once = plugin
        .ok(&format!("exec-hook run freeze -l app={GAME} --ttl 0"))
        .await;
    assert_has(&at_once, "\nsucceeded: ActionSucceeded: ");
    let taken = plugin
        .refused(&format!("exec-hook run freeze -l app={GAME} --name {name}"))
        .await;
    assert_has(&taken, &format!("{name} already exists; use another name"));
}

#[tokio::test]
async fn a_container_that_fails_is_named_and_the_exit_code_says_so() {
    let Some(fleet) = fleet().await else { return };
    let plugin = Plugin { fleet: &fleet };
    let pods = servers(&fleet, 2).await;
    fleet.nodes.every_pod().on_exec(Exec::exits(0));
    let bad = &pods[0].name;
    fleet.nodes.pod(bad).on_exec(Exec::exits(3));
    action(&fleet);
    let said = plugin
        .run(&format!(
            "exec-hook run freeze --pod {} {}",
            pods[0].name, pods[1].name
        ))
        .await;
    assert_eq!(said.code, 1, "{said:?}");
    let name = name_in(&said.out);
    assert_has(
        &said.out,
        &format!("\n{bad}/game: the action did not succeed within 2s"),
    );
    assert_has(
        &said.out,
        "\n[##########] 1/2 succeeded, 1 failed\nfailed: ActionFailed: ",
    );
    let next = format!(
        "for details: kubectl game exec-hook get {name} -n {}\n",
        fleet.namespace
    );
    assert_eq!(said.err, next);
    let command = next.strip_prefix("for details: ").unwrap();
    let shown = plugin.obeys(command).await.out;
    assert_has(&shown, "Progress:   [##########] 1/2 succeeded, 1 failed");
    let row = shown.lines().last().unwrap();
    assert!(row.starts_with(bad) && row.contains("x Failed"), "{shown}");
    assert_has(row, "ActionTimedOut: the action did not succeed within 2s");

    let nothing = plugin
        .run("exec-hook run freeze -l app=nobody --name nothing")
        .await;
    assert_eq!(nothing.code, 1, "{nothing:?}");
    assert!(
        nothing.out.starts_with(
            "executionhook.tkex.tencent.com/nothing\nfailed: NothingSelected: no running pod matches"
        ),
        "{nothing:?}"
    );
    let said = plugin.refused("exec-hook run freeze").await;
    assert_has(&said, "<--selector <SELECTOR>|--pod <POD>...>");
    let said = plugin.refused("exec-hook run freeze -l '' --wait=false").await;
    assert_has(&said, "would select all pods in the namespace; specify a label");
    let said = plugin
        .run_as_is("exec-hook run freeze --pod a --wait=false -n nowhere-at-all")
        .await;
    assert_eq!((said.code, said.out.as_str()), (2, ""), "{said:?}");
    assert_has(&said.err, "namespace nowhere-at-all does not exist");
}

/// On a terminal, and with a HookAction that is created later.
#[tokio::test]
async fn a_hook_that_waits_for_its_action_says_so_and_begins_when_there_is_one() {
    let Some(fleet) = fleet().await else { return };
    servers(&fleet, 1).await;
    fleet.nodes.every_pod().on_exec(Exec::exits(0));
    let words = ["exec-hook", "run", "freeze", "-l", &format!("app={GAME}")];
    let mut run = terminal(&fleet, &words);
    until(&run, |shown| {
        shown.contains("waiting: ActionNotFound: HookAction freeze does not exist in this namespace")
    })
    .await;
    action(&fleet);
    until(&run, |shown| shown.contains("succeeded: ActionSucceeded: ")).await;
    assert_eq!(run.ended(), 0);
    let shown = run.shows().join("\n");
    assert_has(&shown, "[██████████] 1/1 succeeded, 0 failed");
}

#[tokio::test]
async fn a_hook_that_cannot_succeed_is_left_and_then_terminated() {
    let Some(fleet) = fleet().await else { return };
    let plugin = Plugin { fleet: &fleet };
    let namespace = &fleet.namespace;
    servers(&fleet, 1).await;
    let Said { code, out, err } = plugin
        .run(&format!(
            "exec-hook run freeze -l app={GAME} --name endless --timeout 100ms"
        ))
        .await;
    assert_eq!((code, name_in(&out).as_str()), (3, "endless"), "{err}");
    assert_has(
        &err,
        &format!(
            "not complete after 100ms; endless continues in the cluster; to follow it: kubectl game exec-hook get \
             endless -w -n {namespace}; to terminate it: kubectl game exec-hook terminate endless -n {namespace}"
        ),
    );
    let mut watch = terminal(&fleet, &["exec-hook", "get", "endless", "-w"]);
    until(&watch, |shown| shown.contains("waiting: ActionNotFound")).await;
    assert_eq!(watch.interrupt(), 3);
    assert_has(
        &watch.transcript(),
        "interrupted; endless continues in the cluster; ",
    );
    eventually(Duration::from_secs(1), || async {
        let still = hook_of(&fleet, "endless").await;
        if still.is_complete() {
            Err("complete")
        } else {
            Ok(())
        }
    })
    .await;
    let ended = plugin.ok("exec-hook terminate eh/endless").await;
    assert_has(
        &ended,
        "failed actions will not be retried, and containers in which the action has not succeeded count as failed",
    );
    assert_has(&ended, "Commands that are already running are not stopped.");
    let watched = plugin.run("exec-hook get endless -w").await;
    assert_eq!(watched.code, 1, "{watched:?}");
    assert_eq!(watched.out, "failed: HookTerminated: spec.terminate is set\n");
}
