//! Tests of the processes that run programs under test.

use std::os::unix::process::ExitStatusExt as _;
use std::time::{Duration, Instant};

use test_kit::process::Error;
use test_kit::{Process, Program, eventually};

const A_WHILE: Duration = Duration::from_secs(20);

fn shell(script: &str) -> Process {
    Process::start(Program::new("/bin/sh").args(["-c", script])).unwrap()
}

#[tokio::test]
async fn output_and_status_are_captured() {
    let process = shell("echo out; echo err >&2; exit 3");
    assert_eq!(process.wait(A_WHILE).await.unwrap().code(), Some(3));
    assert_eq!(process.stdout().as_str(), "out\n");
    assert_eq!(process.stderr().as_str(), "err\n");
    assert_eq!(process.usage(), None, "it has ended");
}

#[tokio::test]
async fn arguments_and_environment_arrive_as_given() {
    let program =
        Program::new("/bin/sh").args(["-c", "echo \"$1|$COLOUR|$HOME|$KUBECONFIG\"", "name", "a 'b' $c"]);
    let process = Process::start(program.env("COLOUR", "dark blue")).unwrap();
    process.wait(A_WHILE).await.unwrap();
    assert_eq!(process.stdout(), "a 'b' $c|dark blue||\n");
}

#[tokio::test]
async fn termination_lets_a_program_say_goodbye() {
    let process = shell("trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.02; done");
    process.await_output("ready", A_WHILE).await.unwrap();
    assert!(process.exit_status().unwrap().is_none());
    assert!(process.terminate(A_WHILE).await.unwrap().success());
    assert!(process.stdout().ends_with("bye\n"));
    assert!(
        process.terminate(A_WHILE).await.unwrap().success(),
        "a second time is harmless"
    );
}

#[tokio::test]
async fn a_program_that_ignores_termination_is_reported_with_its_output() {
    let process = shell("trap '' TERM; echo stubborn; while :; do sleep 0.02; done");
    process.await_output("stubborn", A_WHILE).await.unwrap();
    let error = process.terminate(Duration::from_millis(200)).await.unwrap_err();
    assert!(
        matches!(&error, Error::GoesOn { tail, .. } if tail == "stubborn"),
        "{error}"
    );
    assert_eq!(process.kill_hard().unwrap().signal(), Some(9));
}

#[tokio::test]
async fn a_restart_is_a_new_process_with_the_same_arguments() {
    let process = shell("echo run; exec sleep 1000");
    process.await_output("run", A_WHILE).await.unwrap();
    let first = process.id();
    process.restart().unwrap();
    eventually(A_WHILE, || async {
        (process.stdout() == "run\nrun\n").then_some(())
    })
    .await;
    assert_ne!(process.id(), first);
    assert!(process.peak_rss_bytes() > 0);
}

#[tokio::test]
async fn a_paused_program_does_nothing_until_resumed() {
    let process = shell("while :; do echo tick; sleep 0.01; done");
    process.await_output("tick", A_WHILE).await.unwrap();
    process.pause().unwrap();
    let stopped = format!("/proc/{}/status", process.id());
    eventually(A_WHILE, || async {
        std::fs::read_to_string(&stopped)
            .unwrap()
            .contains("T (stopped)")
            .then_some(())
    })
    .await;
    let before = process.stdout().len();
    process.resume().unwrap();
    eventually(A_WHILE, || async {
        (process.stdout().len() > before).then_some(())
    })
    .await;
}

#[tokio::test]
async fn output_of_a_program_that_ended_is_not_waited_for() {
    let started = Instant::now();
    let missed = shell("echo other")
        .await_output("ready", A_WHILE)
        .await
        .unwrap_err();
    assert!(
        missed
            .last_seen
            .starts_with("exit status: 0, no \"ready\" in\nother"),
        "{missed}"
    );
    assert!(started.elapsed() < A_WHILE);
}

#[tokio::test]
async fn a_missing_program_is_an_error_at_once() {
    let error = Process::start(Program::new("/no/such/program")).unwrap_err();
    assert_eq!(error.to_string(), "failed to start /no/such/program");
}
