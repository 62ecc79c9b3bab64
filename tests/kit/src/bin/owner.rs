//! Owns a control plane and prints its parts, so that a test can kill the owner and check what remains.
//!
//! `owner wait` waits for a kill, with a stopped API server; `owner exit` exits without running any
//! destructor.

use std::process::ExitCode;

use test_kit::assets::Component;
use test_kit::{ControlPlane, Options, Process, Program};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match own().await {
        Ok(never) => match never {},
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn own() -> Result<std::convert::Infallible, Box<dyn std::error::Error>> {
    let control_plane = ControlPlane::start(Options::default()).await?;
    let with_child =
        Process::start(Program::new("/bin/sh").args(["-c", "sleep 1000 & echo child $!; wait"]))?;
    with_child
        .await_output("child", std::time::Duration::from_secs(10))
        .await?;

    let components = [
        Component::Etcd,
        Component::ApiServer,
        Component::ControllerManager,
    ];
    let mut processes: Vec<u32> = components
        .iter()
        .filter_map(|one| control_plane.process_id(*one))
        .collect();
    processes.push(with_child.id());
    processes.extend(
        with_child
            .stdout()
            .split_whitespace()
            .filter_map(|word| word.parse::<u32>().ok()),
    );
    let report = serde_json::json!({ "processes": processes, "directory": control_plane.directory()? });
    println!("{report}");

    if std::env::args().any(|argument| argument == "exit") {
        std::process::exit(0);
    }
    control_plane.pause_api_server()?;
    println!("waiting");
    std::future::pending().await
}
