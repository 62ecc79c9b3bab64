//! `cargo demo`: game servers that are deleted only after their hook succeeds, on a real control plane with
//! simulated nodes. Starts from scratch, prints progress in the terminal, and checks the outcome. The last
//! scene, in its own namespace, is a `kubectl drain`.

mod drain;
pub(crate) mod story;
pub(crate) mod teller;

use std::path::Path;
use std::process::ExitCode;

use test_kit::node::{self, Nodes};
use test_kit::{ControlPlane, Options, Process, Program};

use crate::operator;
use drain::Scene;
use story::{Harness, Servers};
use teller::Teller;

/// Flags of `demo`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Keep everything running until Ctrl-C, and print commands to try
    #[arg(long)]
    keep: bool,
}

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Runs the command.
pub(crate) fn run(args: &Args) -> ExitCode {
    match play(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nThe demo failed: {error}");
            ExitCode::FAILURE
        }
    }
}

fn play(args: &Args) -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let teller = Teller::new();
        teller.chapter("A local Kubernetes control plane (etcd, API server, controller manager)");
        let crds = shared_api::crd::all();
        let control_plane = ControlPlane::start(Options {
            crds,
            ..Options::default()
        })
        .await?;
        let namespace = control_plane.namespace("demo").await;
        teller.say(&format!(
            "API server {}, namespace {namespace}, CRDs applied",
            control_plane.api_url()
        ));

        teller.chapter("Simulated nodes with a real HTTP game server behind every pod, and both operators");
        let nodes = Nodes::start(&control_plane, &namespace, node::Options::default()).await?;
        let flags = ["--egress-allow-loopback"];
        let kubeconfig = control_plane.kubeconfig_path();
        let hooks = start_operator(kubeconfig, &namespace, operator::HOOKS, &flags).await?;
        let workloads = start_operator(kubeconfig, &namespace, operator::WORKLOADS, &[]).await?;
        for (name, process) in [(operator::HOOKS, &hooks), (operator::WORKLOADS, &workloads)] {
            teller.say(&format!("{name} is ready (pid {})", process.id()));
        }

        let harness = Harness {
            control_plane: &control_plane,
            namespace: &namespace,
            servers: &nodes,
            teller: &teller,
        };
        let outcome = harness.play().await;
        if outcome.is_err() {
            eprintln!(
                "\nLast log lines of the operators:\n{}\n{}",
                hooks.tail(20),
                workloads.tail(20)
            );
        }
        outcome?;
        let scene = play_last(&control_plane, &teller).await?;
        if args.keep {
            let server = harness.a_server().await?;
            teller.playground(&control_plane, &control_plane.kubeconfig_in(&namespace)?, &server);
            scene.as_ref().map_or(Ok(()), Scene::playground)?;
            tokio::signal::ctrl_c().await?;
        } else {
            teller.next_steps();
        }
        Ok(())
    })
}

/// Plays the last scene, and returns it while it is still running. An existing cluster cannot call a webhook
/// on this machine.
async fn play_last<'a>(control_plane: &'a ControlPlane, teller: &'a Teller) -> Outcome<Option<Scene<'a>>> {
    if !control_plane.is_own() {
        teller.say("kubectl drain is left out: the existing cluster cannot call a webhook on this machine");
        return Ok(None);
    }
    let scene = Scene::start(control_plane, teller).await?;
    scene.play().await?;
    Ok(Some(scene))
}

/// Simulated servers: one HTTP server of this process answers for every pod.
impl Servers for Nodes {
    fn image(&self, version: &str) -> &'static str {
        if version == "v1" { "game:v1" } else { "game:v2" }
    }

    fn path(&self) -> &'static str {
        "/"
    }

    async fn set_players(&self, pod: Option<&str>, players: u64) -> Outcome<()> {
        match pod {
            Some(pod) => self.pod(pod).set_players(players),
            None => self.every_pod().set_players(players),
        }
        Ok(())
    }

    async fn meanwhile(&self) -> Outcome<()> {
        Ok(())
    }
}

async fn start_operator(
    kubeconfig: &Path,
    namespace: &str,
    command: &str,
    flags: &[&str],
) -> Outcome<Process> {
    let program = Program::new(std::env::current_exe()?)
        .env("KUBECONFIG", kubeconfig)
        .args([command, "--namespace", namespace, "--listen", "127.0.0.1:0"])
        .args(["--log-format", "human"])
        .args(flags);
    let process = Process::start(program)?;
    process
        .await_output(&format!("{command} started"), story::PATIENCE)
        .await?;
    Ok(process)
}
