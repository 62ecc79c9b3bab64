//! `cargo xtask node-test`: what a real kubelet and real containers do with the pods that the operators change.
//!
//! The command runs twice: outside it fetches programs, makes an [`Enclosure`] and starts itself in there; inside it
//! starts the node and plays the [`suite`]. A machine that cannot have a node is no failure: the command says why, and
//! what would make it run (`--require` makes that a failure).

mod checks;
mod pod;
mod suite;
mod world;

use std::process::ExitCode;

use test_kit::real_node::{Enclosure, Error, Inside, RealNode};
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

/// Flags of `node-test`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Fail where a node cannot be had, instead of skipping
    #[arg(long)]
    require: bool,
    /// Only checks whose name contains this
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Leave everything running at the end, until Ctrl-C, to look around with kubectl
    #[arg(long)]
    keep: bool,
    /// Given by the program to itself: this is the part that runs in the enclosure
    #[arg(long, hide = true)]
    inside: Option<String>,
}

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// What the part inside ends with when it cannot have a node. It has said why.
const SKIPPED: u8 = 77;
/// What a shell reports of a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

/// Runs the command.
pub(crate) fn run(args: &Args) -> ExitCode {
    let outcome = match &args.inside {
        Some(control_groups) => inside(args, control_groups),
        None => outside(args),
    };
    outcome.unwrap_or_else(|error| {
        let Some(why) = unsuitable(error.as_ref()) else {
            eprintln!("node-test: {}", whole(error.as_ref()));
            return ExitCode::FAILURE;
        };
        println!("node-test: SKIPPED: {why}");
        let skipped = if args.inside.is_some() { SKIPPED } else { 0 };
        ExitCode::from(if args.require { 1 } else { skipped })
    })
}

fn outside(args: &Args) -> Outcome<ExitCode> {
    suite::check_selection(args.only.as_deref())?;
    Enclosure::check()?;
    RealNode::fetch_programs()?;
    runtime()?.block_on(async {
        let mut terminated = signal(SignalKind::terminate())?;
        let mut hung_up = signal(SignalKind::hangup())?;
        let arguments = std::env::args().skip(1).collect::<Vec<_>>();
        let enclosure = Enclosure::start(&std::env::current_exe()?, &arguments)?;
        if args.keep {
            let process = enclosure.first_process().await?;
            println!("to look around: nsenter --target {process} --net --mount --pid");
        }
        let status = tokio::select! {
            status = enclosure.wait() => Some(status?),
            _ = tokio::signal::ctrl_c() => None,
            _ = terminated.recv() => None,
            _ = hung_up.recv() => None,
        };
        enclosure.end()?;
        let Some(status) = status else {
            return Ok(ExitCode::from(INTERRUPTED));
        };
        Ok(match status.code().map(u8::try_from) {
            Some(Ok(SKIPPED)) => ExitCode::SUCCESS,
            Some(Ok(code)) => ExitCode::from(code),
            _ => {
                eprintln!("node-test: the part inside ended with {status}");
                ExitCode::FAILURE
            }
        })
    })
}

fn inside(args: &Args, control_groups: &str) -> Outcome<ExitCode> {
    let inside = Inside::enter(control_groups)?;
    runtime()?.block_on(async {
        let mut told_to_leave = signal(SignalKind::terminate())?;
        tokio::select! {
            code = play(&inside, args) => code,
            _ = told_to_leave.recv() => Ok(ExitCode::from(INTERRUPTED)),
        }
    })
}

async fn play(inside: &Inside, args: &Args) -> Outcome<ExitCode> {
    let started = std::time::Instant::now();
    let node = RealNode::start(inside, shared_api::crd::all()).await?;
    let took = started.elapsed().as_secs_f64();
    println!("node-test: a control plane and a node are ready after {took:.1} s");
    let all_well = suite::play(&node, args.only.as_deref()).await;
    if args.keep {
        let kubeconfig = node.control_plane().kubeconfig_path().display();
        println!("still running, in there: export KUBECONFIG={kubeconfig}");
        std::future::pending::<()>().await;
    }
    Ok(if all_well {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn runtime() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}

/// Why this machine cannot have a node, if that is what the error says.
fn unsuitable(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    match error.downcast_ref::<Error>()? {
        Error::Unsuitable { .. } => Some(whole(error)),
        Error::Assets(why) => Some(format!(
            "its programs are missing, which are made on first need on Debian 12 with a network: {}",
            whole(why)
        )),
        _ => None,
    }
}

/// The error with all its causes.
fn whole(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
