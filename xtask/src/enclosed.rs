//! Commands that use a real node.
//!
//! Such a command runs twice. The outer process fetches programs, creates an [`Enclosure`] and starts the
//! inner process in it, which starts the node and does the work. If a machine cannot run a node, the command
//! prints the reason and the remedy, and succeeds (with `--require`, it fails).

use std::process::ExitCode;

use test_kit::real_node::{Enclosure, Error, Inside, RealNode};
use test_kit::whole;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

/// Flags shared by all of these commands.
#[derive(clap::Args)]
pub(crate) struct Flags {
    /// Fail if the machine cannot run a node, instead of skipping
    #[arg(long)]
    require: bool,
    /// Keep everything running until Ctrl-C, for inspection with kubectl
    #[arg(long)]
    pub(crate) keep: bool,
    /// Set internally for the process inside the enclosure
    #[arg(long, hide = true)]
    inside: Option<String>,
}

pub(crate) type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Exit code of the inner process if it cannot run a node and has printed the reason.
const SKIPPED: u8 = 77;
/// Exit code that a shell reports for a program ended by Ctrl-C.
const INTERRUPTED: u8 = 130;

/// Runs a command of this name: `prepare` outside, where the network is available, and `play` inside. `play`
/// returns whether it succeeded.
pub(crate) fn run(
    name: &str,
    flags: &Flags,
    prepare: impl FnOnce() -> Outcome<()>,
    play: impl AsyncFnOnce(&Inside) -> Outcome<bool>,
) -> ExitCode {
    let outcome = match &flags.inside {
        Some(control_groups) => inside(control_groups, play),
        None => outside(name, flags, prepare),
    };
    outcome.unwrap_or_else(|error| {
        let Some(why) = unsuitable(error.as_ref()) else {
            eprintln!("{name}: {}", whole(error.as_ref()));
            return ExitCode::FAILURE;
        };
        println!("{name}: SKIPPED: {why}");
        let skipped = if flags.inside.is_some() { SKIPPED } else { 0 };
        ExitCode::from(if flags.require { 1 } else { skipped })
    })
}

fn outside(name: &str, flags: &Flags, prepare: impl FnOnce() -> Outcome<()>) -> Outcome<ExitCode> {
    Enclosure::check()?;
    RealNode::fetch_programs()?;
    prepare()?;
    runtime()?.block_on(async {
        let mut terminated = signal(SignalKind::terminate())?;
        let mut hung_up = signal(SignalKind::hangup())?;
        let arguments = std::env::args().skip(1).collect::<Vec<_>>();
        let enclosure = Enclosure::start(&std::env::current_exe()?, &arguments)?;
        if flags.keep {
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
                eprintln!("{name}: the part inside ended with {status}");
                ExitCode::FAILURE
            }
        })
    })
}

fn inside(control_groups: &str, play: impl AsyncFnOnce(&Inside) -> Outcome<bool>) -> Outcome<ExitCode> {
    let inside = Inside::enter(control_groups)?;
    runtime()?.block_on(async {
        let mut told_to_leave = signal(SignalKind::terminate())?;
        tokio::select! {
            well = play(&inside) => Ok(if well? { ExitCode::SUCCESS } else { ExitCode::FAILURE }),
            _ = told_to_leave.recv() => Ok(ExitCode::from(INTERRUPTED)),
        }
    })
}

/// Waits forever if `--keep` is set, and prints how to reach the node.
pub(crate) async fn keep(flags: &Flags, node: &RealNode) {
    if flags.keep {
        let kubeconfig = node.control_plane().kubeconfig_path().display();
        println!("still running, in there: export KUBECONFIG={kubeconfig}");
        std::future::pending::<()>().await;
    }
}

fn runtime() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}

/// Returns why this machine cannot run a node, if that is the cause of the error.
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
