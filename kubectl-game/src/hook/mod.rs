//! `kubectl game hook`: tests hooks without a cluster, with the operator's own code, and manages HookRuns of
//! a cluster.

mod evaluate;
mod executions;
mod identity;
mod input;
mod lint;
mod local;
mod local_run;
mod migrate;
mod not_checked;
mod original;
mod schema;
mod templates;
mod wrong_type;

use std::process::ExitCode;

use clap::Subcommand;
use shared_api::Phase;

use crate::command;
pub(crate) use lint::Lint;
pub(crate) use migrate::Migrate;

/// Exit code for invalid flags, files or manifests, and if the cluster cannot be queried.
pub(crate) const EXIT_USAGE: u8 = 64;

/// Tests hooks without a cluster, and manages HookRuns.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a HookTemplate or HookRun from this machine, with real requests
    ///
    /// Performs the whole run as in the cluster, with interval, count, limits, policy and timeoutSeconds.
    /// Requests to loopback addresses are allowed. A metric that polls indefinitely runs until Ctrl-C.
    ///
    /// Exit code: 0 Successful, 1 Failed, 2 Error, 3 Inconclusive, 64 usage error.
    Run(local_run::LocalRun),
    /// Validate hooks, and report every problem with its path and position
    ///
    /// Same as kubectl game lint. Checks HookTemplates, HookRuns, GameDeployments, HookActions and ExecutionHooks as
    /// the API server and the operators do. Objects of other kinds are counted, but not checked. If a file cannot be
    /// read, the others are still checked.
    ///
    /// Exit code: 0 no problems, 1 problems found, 64 usage error, a file cannot be read, or there is no object of a
    /// supported kind.
    Lint(lint::Lint),
    /// Evaluate a given response, and explain the verdict
    ///
    /// Evaluates a single measurement with jsonPath, the conditions and onNoData. Sends no requests, and ignores
    /// count and limits. Arguments that no condition uses can be omitted.
    ///
    /// Exit code: 0 Successful, 1 Failed, 2 Error, 3 Inconclusive, 64 usage error.
    Evaluate(evaluate::Evaluate),
    /// Display a HookRun with its measurements and its verdict
    ///
    /// Exit code: 0 success, 64 usage error or the cluster cannot be queried.
    Get(command::hook_runs::Get),
    /// List HookRuns
    ///
    /// Exit code: 0 success, 64 usage error or the cluster cannot be queried.
    List(command::hook_runs::List),
    /// Terminate a HookRun without waiting for its verdict
    ///
    /// Metrics without a verdict become Inconclusive; the gate stays closed.
    ///
    /// Exit code: 0 success, 64 usage error or the cluster cannot be queried.
    Terminate(command::hook_runs::Terminate),
}

impl Command {
    /// Returns whether the command needs no cluster.
    pub(crate) fn is_local(&self) -> bool {
        matches!(self, Self::Run(_) | Self::Lint(_) | Self::Evaluate(_))
    }

    /// Runs a command that uses the cluster.
    pub(crate) async fn in_cluster(&self) -> command::Outcome {
        match self {
            Self::Get(get) => get.main().await,
            Self::List(list) => list.main().await,
            Self::Terminate(terminate) => terminate.main().await,
            Self::Run(_) | Self::Lint(_) | Self::Evaluate(_) => command::DONE,
        }
    }
}

/// Runs a command that uses no cluster.
pub(crate) fn main(command: &Command) -> Result<ExitCode, Box<dyn std::error::Error>> {
    match command {
        Command::Run(run) => run.main(),
        Command::Lint(lint) => lint.main(EXIT_USAGE),
        Command::Evaluate(evaluate) => evaluate.main(),
        Command::Get(_) | Command::List(_) | Command::Terminate(_) => Ok(ExitCode::SUCCESS),
    }
}

/// Returns the exit code for a phase.
fn exit_code(phase: Phase) -> ExitCode {
    ExitCode::from(match phase {
        Phase::Successful => 0,
        Phase::Failed => 1,
        Phase::Inconclusive => 3,
        Phase::Error | Phase::Running | Phase::Pending | Phase::Unset => 2,
    })
}
