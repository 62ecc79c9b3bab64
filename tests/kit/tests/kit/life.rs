//! Tests that nothing outlives the process that started it.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use test_kit::usage::Usage;
use test_kit::{Process, Program, eventually};

const A_WHILE: Duration = Duration::from_mins(1);

fn owner(how: &str) -> Process {
    let mut program = Program::new(env!("CARGO_BIN_EXE_owner")).arg(how);
    for name in ["HOME", "XDG_CACHE_HOME", "KUBEBUILDER_ASSETS"] {
        if let Some(value) = std::env::var_os(name) {
            program = program.env(name, value);
        }
    }
    Process::start(program).unwrap()
}

fn report(owner: &Process) -> (Vec<u32>, String) {
    let output = owner.stdout();
    let report: Value = serde_json::from_str(output.lines().next().unwrap()).unwrap();
    let processes = report["processes"].as_array().unwrap();
    let processes = processes
        .iter()
        .map(|id| u32::try_from(id.as_u64().unwrap()).unwrap())
        .collect();
    (processes, report["directory"].as_str().unwrap().to_owned())
}

async fn all_gone((processes, directory): (Vec<u32>, String)) {
    assert_eq!(processes.len(), 5, "three components, a program and its child");
    eventually(A_WHILE, || async {
        let left: Vec<&u32> = processes.iter().filter(|id| Usage::of(**id).is_some()).collect();
        if left.is_empty() && !Path::new(&directory).exists() {
            Ok(())
        } else {
            Err(format!("{left:?} {directory}"))
        }
    })
    .await;
}

#[tokio::test]
async fn a_killed_owner_leaves_nothing_even_stopped() {
    let owner = owner("wait");
    owner.await_output("waiting", A_WHILE).await.unwrap();
    let left = report(&owner);
    assert!(
        left.0.iter().all(|id| Usage::of(*id).is_some()),
        "all alive before"
    );
    assert!(Path::new(&left.1).exists());
    owner.kill_hard().unwrap();
    all_gone(left).await;
}

#[tokio::test]
async fn an_owner_that_exits_without_destructors_leaves_nothing() {
    let owner = owner("exit");
    assert!(owner.wait(A_WHILE).await.unwrap().success());
    all_gone(report(&owner)).await;
}
