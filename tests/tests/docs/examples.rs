//! Tests of the examples: each is in the tour, its command ends with the documented verdict, and its workload
//! starts and scales down on a real API server.

use std::path::{Path, PathBuf};
use std::process::Command;

use kube::ResourceExt as _;
use kube::api::ListParams;
use operator_tests::Fleet;
use operator_tests::hook_rights::{grant_exec, grant_patches, grant_reads, grant_to_namespace, start_with};
use serde_json::{Value, json};
use test_kit::node::{Exec, Options};
use test_kit::{Answer, Webhook, eventually};

use crate::harness::quick;
use crate::page::root;

const TOUR: &str = include_str!("../../../examples/README.md");

/// Templates that the workloads of other files use.
const TEMPLATES: [&str; 3] = ["01-web-hook.yaml", "03-poll-until.yaml", "04-arguments.yaml"];

/// Minimum replicas of an example's HPA.
const SET_BY_HPA: i64 = 3;

/// Builds the status of every game server, which satisfies every hook.
fn content() -> Value {
    json!({ "players": 0, "name": "bryan", "male": "yes", "age": 45, "state": "idle", "rooms": [{ "state": "closed" }] })
}

fn files(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root().join(folder)).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    files
}

/// Returns the tour's rows: file, verdict, command.
fn rows() -> Vec<(&'static str, &'static str, &'static str)> {
    let rows = TOUR.lines().filter(|line| line.ends_with("` |"));
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        (cells[0], cells[2], cells[3].trim_matches('`'))
    })
    .collect()
}

#[test]
fn every_example_is_in_the_tour() {
    let listed: Vec<&str> = rows().iter().map(|(file, _, _)| *file).collect();
    for file in files("examples") {
        let name = file.file_name().unwrap().to_str().unwrap();
        let link = format!("[{name}]({name})");
        assert!(listed.contains(&link.as_str()), "{name} is not in the tour");
    }
}

#[test]
fn every_command_of_the_tour_ends_with_its_verdict() {
    let server = Webhook::start().unwrap();
    server.otherwise(Answer::json(content()));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tour");
    for place in ["examples", "examples/tutorial"] {
        let to = folder.join(place);
        std::fs::create_dir_all(&to).unwrap();
        for file in files(place) {
            let text = quick(&std::fs::read_to_string(&file).unwrap(), &server.url(""));
            let text = text.replace(":9091", &format!(":{}", server.address().port()));
            std::fs::write(to.join(file.file_name().unwrap()), text).unwrap();
        }
    }
    for (file, verdict, command) in rows() {
        let shell = format!("{} hook {command}", crate::PLUGIN);
        let output = Command::new("bash")
            .args(["-c", &shell])
            .current_dir(folder.join("examples"))
            .output();
        let output = output.unwrap();
        let wanted = match verdict {
            "Successful" | "ok" => 0,
            "Failed" => 1,
            "Error" => 2,
            "Inconclusive" => 3,
            other => panic!("{file}: no verdict: {other}"),
        };
        let said =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(wanted), "{command}: {said}");
        assert!(said.contains(verdict), "{command}: {said}");
    }
}

#[tokio::test]
async fn every_example_comes_up_and_lets_one_pod_go() {
    let control_plane = crate::shared().await;
    let mut fleet = Fleet::with(
        control_plane,
        crate::PROGRAMS,
        "examples",
        Options {
            kubelet: true,
            ..Options::default()
        },
    )
    .await;
    grant_to_namespace(control_plane, &fleet.namespace).await;
    grant_reads(control_plane, &fleet.namespace).await;
    grant_patches(control_plane, &fleet.namespace).await;
    grant_exec(control_plane, &fleet.namespace).await;
    let providers = [
        "--provider-job",
        "--provider-kubernetes",
        "--patch-annotations=games.example.com/drain",
        "--provider-exec",
    ];
    start_with(&mut fleet, &providers).await;
    fleet.nodes.every_pod().set_document(content());
    fleet.nodes.every_pod().on_exec(Exec::exits(0).stdout("0"));
    let server = Webhook::start().unwrap();
    server.otherwise(Answer::json(content()));
    let read = |path: &Path| {
        let text = quick(&std::fs::read_to_string(path).unwrap(), &server.url(""));
        control_plane.in_its_versions(&text)
    };
    for template in TEMPLATES {
        let _ = fleet.kubectl(
            &["apply", "-f", "-"],
            &read(&root().join("examples").join(template)),
        );
    }
    let mut workloads = 0;
    let mut all = [files("examples/tutorial"), files("examples")].concat();
    // A workload needs an existing template. Of the tutorial's templates, all named `test`, the last one
    // succeeds.
    all.sort_by_key(|file| !file.to_string_lossy().contains("hook-template"));
    for file in all {
        // The simulated game servers answer in place of their sidecars, too.
        let text = read(&file).replace("http://1.1.1.1:9091", &server.url(""));
        let text = text.replace(":9357/", &format!(":{}/", fleet.nodes.port()));
        let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
        let verb = if text.contains("generateName") {
            "create"
        } else {
            "apply"
        };
        let _ = fleet.kubectl(&[verb, "-f", "-"], &text);
        for workload in documents
            .iter()
            .filter(|document| document["kind"] == "GameDeployment")
        {
            complete_jobs(&fleet, workload).await;
            lets_one_go(&fleet, workload).await;
            workloads += 1;
        }
    }
    assert!(workloads >= 12, "{workloads}");
}

/// Lets the Jobs of a workload's lifecycle hooks succeed.
async fn complete_jobs(fleet: &Fleet<'_>, workload: &Value) {
    let hooks = workload["spec"]["lifecycleHooks"]
        .as_array()
        .into_iter()
        .flatten();
    let is_job = |hook: &&Value| {
        ["jobSpec", "execNewPod"]
            .iter()
            .any(|field| hook.get(field).is_some())
    };
    let jobs = hooks.filter(is_job).count();
    let of_jobs = ListParams::default().labels("job-name");
    let pods = eventually(operator_tests::SOON, || async {
        let pods = fleet.pods().list(&of_jobs).await.unwrap().items;
        if pods.len() == jobs {
            Ok(pods)
        } else {
            Err(pods.len())
        }
    })
    .await;
    for pod in pods {
        fleet.nodes.pod(&pod.name_any()).succeed();
    }
}

/// Waits until a workload is ready, removes one pod, and deletes it.
async fn lets_one_go(fleet: &Fleet<'_>, workload: &Value) {
    let name = workload["metadata"]["name"].as_str().unwrap();
    // Without replicas in the manifest, its HPA sets them.
    let replicas = workload["spec"]["replicas"].as_i64().unwrap_or(SET_BY_HPA);
    let replicas = i32::try_from(replicas).unwrap();
    fleet
        .until_of(name, |status| {
            status.available_replicas == replicas && status.hook_pending_replicas == 0
        })
        .await;
    let _ = fleet.kubectl(&["delete", "hpa", "--all"], "");
    // As the matchmaker does when the last player has left.
    let empty = [
        "annotate",
        "pods",
        "--all",
        "--overwrite",
        "games.example.com/players=0",
    ];
    let _ = fleet.kubectl(&empty, "");
    let _ = fleet.kubectl(
        &[
            "scale",
            &format!("--replicas={}", replicas - 1),
            &format!("gd/{name}"),
        ],
        "",
    );
    let status = fleet
        .until_of(name, |status| {
            status.replicas == replicas - 1 && status.hook_pending_replicas == 0
        })
        .await;
    let blocked = status
        .conditions
        .iter()
        .find(|condition| condition.type_.ends_with("Blocked"));
    assert!(blocked.is_none(), "{name}: {blocked:?}");
    let _ = fleet.kubectl(&["delete", &format!("gd/{name}"), "--wait=true"], "");
    fleet.until_pods(std::collections::BTreeMap::is_empty).await;
}
