//! The script of docs/execution-hooks.md, which freezes servers, takes snapshots and thaws them; and the example of the
//! proposal behind ExecutionHooks.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use operator_tests::hook_rights::grant_exec;
use operator_tests::{Fleet, SOON, kubectl};
use serde_json::{Value, json};
use test_kit::node::{Exec, ExecCall, ExecScript, PodView};

use crate::executions::complete;
use crate::ungranted_with;

const PAGE: &str = include_str!("../../../docs/execution-hooks.md");
const EXAMPLE: &str = include_str!("../../../examples/29-freeze-and-thaw.yaml");

/// Returns the fleet of the example, with its pods.
async fn treasury(name: &str) -> Option<(Fleet<'static>, Vec<PodView>)> {
    let fleet = ungranted_with(name, &["--execution-hooks"]).await?;
    grant_exec(fleet.control_plane, &fleet.namespace).await;
    for document in serde_saphyr::from_multiple::<Value>(EXAMPLE).unwrap() {
        if document["kind"] == "GameDeployment" {
            fleet.apply(&document);
        }
    }
    let pods = fleet.nodes.await_ready(2, SOON).await.unwrap();
    Some((fleet, pods))
}

/// Returns the script of the page.
fn script() -> &'static str {
    let begin = PAGE.find("#!/bin/sh").unwrap();
    let script = &PAGE[begin..];
    &script[..script.find("```").unwrap()]
}

/// Writes an executable file.
fn write_program(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Returns the programs that ran in containers, without repetitions in a row.
fn order(fleet: &Fleet<'_>) -> Vec<String> {
    let mut programs: Vec<String> = fleet
        .nodes
        .commands()
        .iter()
        .map(|call| call.argv[0].clone())
        .collect();
    programs.dedup();
    programs
}

#[tokio::test]
async fn servers_are_thawed_whether_or_not_the_freeze_has_succeeded() {
    let Some((fleet, pods)) = treasury("eh-snapshot").await else {
        return;
    };
    let action = |name: &str, program: &str| {
        json!({ "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "HookAction", "metadata": { "name": name },
            "action": { "exec": { "command": [program] } }, "actionTimeoutSeconds": 2 })
    };
    fleet.apply(&action("freeze", "run_quiesce.sh"));
    fleet.apply(&action("thaw", "run_unquiesce.sh"));
    let directory = tempfile::tempdir().unwrap();
    let snapshots = directory.path().join("snapshots");
    // Snapshots need a storage driver: their calls are recorded, and all others are made.
    let real = fleet.control_plane.kubectl();
    let arguments: Vec<String> = real
        .get_args()
        .map(|argument| format!("'{}'", argument.to_string_lossy()))
        .collect();
    let wrapper = format!(
        "#!/bin/sh\ncase \"$*\" in *snapshot*) echo \"$*\" >> '{}'; exit 0;; esac\nexec '{}' {} --namespace '{}' \"$@\"\n",
        snapshots.display(),
        real.get_program().to_string_lossy(),
        arguments.join(" "),
        fleet.namespace
    );
    write_program(&directory.path().join("kubectl"), &wrapper);
    write_program(&directory.path().join("freeze-and-thaw"), script());
    let path = format!(
        "{}:{}",
        directory.path().display(),
        std::env::var("PATH").unwrap()
    );
    // The exit code of freeze in one server is that of the script; the other server is frozen in both cases.
    for (code, taken) in [(0, 2), (1, 0)] {
        let before = order(&fleet).len();
        let _ = fs::remove_file(&snapshots);
        let freeze = move |call: &ExecCall| match call.argv[0].as_str() {
            "run_quiesce.sh" => Exec::exits(code),
            _ => Exec::exits(0),
        };
        fleet.nodes.pod(&pods[0].name).on_exec(ExecScript::by(freeze));
        fleet.nodes.pod(&pods[1].name).on_exec(Exec::exits(0));
        let mut command = Command::new(directory.path().join("freeze-and-thaw"));
        command
            .env("PATH", &path)
            .envs(real.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let output = tokio::task::spawn_blocking(move || command.output().unwrap())
            .await
            .unwrap();
        let said =
            String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert_eq!(
            order(&fleet)[before..],
            ["run_quiesce.sh", "run_unquiesce.sh"],
            "{said}"
        );
        let calls = fs::read_to_string(&snapshots).unwrap_or_default();
        assert_eq!(calls.lines().count(), taken, "{calls}");
        for pod in &pods {
            let calls = fleet.nodes.commands();
            let last = calls.iter().rfind(|call| call.pod == pod.name).unwrap();
            assert_eq!(
                last.argv,
                ["run_unquiesce.sh"],
                "{} stays frozen: {said}",
                pod.name
            );
        }
    }
}

#[tokio::test]
async fn the_example_of_the_proposal_is_carried_out() {
    let Some((fleet, pods)) = treasury("eh-example").await else {
        return;
    };
    fleet.nodes.every_pod().on_exec(Exec::exits(0));
    let example = EXAMPLE
        .replace("treasury-x7k2p", &pods[0].name)
        .replace("treasury-b4n8c", &pods[1].name);
    let _ = kubectl(
        fleet.control_plane,
        &["apply", "--namespace", &fleet.namespace, "--filename", "-"],
        &example,
    );
    let status = complete(&fleet, "freeze-1").await;
    assert_eq!(
        (status.total, status.succeeded, status.failed),
        (4, 4, 0),
        "{status:?}"
    );
    let mut asked: Vec<(String, String)> = fleet
        .nodes
        .commands()
        .into_iter()
        .map(|call| (call.pod, call.container))
        .collect();
    asked.sort();
    let mut wanted = Vec::new();
    for pod in &pods {
        wanted.extend(["game", "store"].map(|container| (pod.name.clone(), container.to_owned())));
    }
    wanted.sort();
    assert_eq!(asked, wanted);
}
