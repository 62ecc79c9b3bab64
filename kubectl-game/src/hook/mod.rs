//! `kubectl game hook`: hooks tried out without a cluster, by the operator's own code; and HookRuns of a cluster.

mod evaluate;
mod identity;
mod input;
mod lint;
mod local;
mod local_run;
mod schema;
mod templates;

use std::process::ExitCode;

use clap::Subcommand;
use shared_api::Phase;

use crate::command;
pub(crate) use lint::Lint;

/// Exit code where the question could not even be put: bad flags, files or manifests.
pub(crate) const EXIT_USAGE: u8 = 64;

/// Hooks without a cluster, and HookRuns in one.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure a HookTemplate or HookRun for real, from this machine
    ///
    /// The whole run is taken here as in the cluster: interval, count, limits, policy, timeoutSeconds. Loopback
    /// addresses may be called. A metric that polls without end goes on until Ctrl-C.
    ///
    /// Exit code: 0 Successful, 1 Failed, 2 Error, 3 Inconclusive, 64 bad usage.
    Run(local_run::Run),
    /// Report everything that is wrong with hooks, with path and position
    ///
    /// The same as kubectl game lint: HookTemplates, HookRuns and GameDeployments are read as by the API server and by the
    /// operators. Other objects are passed over.
    ///
    /// Exit code: 0 nothing wrong, or nothing to check, 1 problems found, 64 bad usage.
    Lint(lint::Lint),
    /// Say what a given answer would yield, and why
    ///
    /// Judges one measurement: jsonPath, conditions, onNoData. Nobody is asked, and count and limits play no part.
    /// Arguments that no condition mentions may be left out.
    ///
    /// Exit code: 0 Successful, 1 Failed, 2 Error, 3 Inconclusive, 64 bad usage.
    Evaluate(evaluate::Evaluate),
    /// Show a HookRun of the cluster: what was measured, and its verdict
    ///
    /// Exit code: 0, or 64 bad usage or the cluster cannot be asked.
    Get(command::hook_runs::Get),
    /// List HookRuns of the cluster
    ///
    /// Exit code: 0, or 64 bad usage or the cluster cannot be asked.
    List(command::hook_runs::List),
    /// End a HookRun of the cluster without waiting for its verdict
    ///
    /// Its metrics without a verdict become Inconclusive; the gate stays closed.
    ///
    /// Exit code: 0, or 64 bad usage or the cluster cannot be asked.
    Terminate(command::hook_runs::Terminate),
}

impl Command {
    /// Whether no cluster is asked.
    pub(crate) fn is_local(&self) -> bool {
        matches!(self, Self::Run(_) | Self::Lint(_) | Self::Evaluate(_))
    }

    /// Runs a command that asks the cluster.
    pub(crate) async fn ask(&self) -> command::Outcome {
        match self {
            Self::Get(get) => get.main().await,
            Self::List(list) => list.main().await,
            Self::Terminate(terminate) => terminate.main().await,
            Self::Run(_) | Self::Lint(_) | Self::Evaluate(_) => command::DONE,
        }
    }
}

/// Runs a command that asks no cluster.
pub(crate) fn main(command: &Command) -> Result<ExitCode, Box<dyn std::error::Error>> {
    match command {
        Command::Run(run) => run.main(),
        Command::Lint(lint) => lint.main(),
        Command::Evaluate(evaluate) => evaluate.main(),
        Command::Get(_) | Command::List(_) | Command::Terminate(_) => Ok(ExitCode::SUCCESS),
    }
}

/// The exit code that stands for a phase.
fn exit_code(phase: Phase) -> ExitCode {
    ExitCode::from(match phase {
        Phase::Successful => 0,
        Phase::Failed => 1,
        Phase::Inconclusive => 3,
        Phase::Error | Phase::Running | Phase::Pending | Phase::Unset => 2,
    })
}
