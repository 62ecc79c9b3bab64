//! Commands that play on a real node.
//!
//! Such a command runs twice: outside it fetches programs, makes an [`Enclosure`] and starts itself in there; inside it
//! starts the node and plays. A machine that cannot have a node is no failure: the command says why, and what would make
//! it run (`--require` makes that a failure).

use std::process::ExitCode;

use test_kit::real_node::{Enclosure, Error, Inside, RealNode};
use test_kit::whole;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

/// Flags of all of them.
#[derive(clap::Args)]
pub(crate) struct Flags {
    /// Fail where a node cannot be had, instead of skipping
    #[arg(long)]
    require: bool,
    /// Leave everything running at the end, until Ctrl-C, to look around with kubectl
    #[arg(long)]
    pub(crate) keep: bool,
    /// Given by the program to itself: this is the part that runs in the enclosure
    #[arg(long, hide = true)]
    inside: Option<String>,
}

pub(crate) type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// What the part inside ends with when it cannot have a node. It has said why.
const SKIPPED: u8 = 77;
/// What a shell reports of a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

/// Runs a command of this name. `prepare` is done outside, where there is a network; `play` inside. It says whether all
/// went well.
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

/// With `--keep`, waits for ever. `node` is what there is to look at.
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
