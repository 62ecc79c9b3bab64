//! `kubectl game hook`: hooks tried out without a cluster, by the operator's own code.

mod evaluate;
mod input;
mod lint;
mod local;
mod run;
mod schema;

use std::process::ExitCode;

use clap::Subcommand;
use shared_api::Phase;

/// Exit code where the question could not even be put: bad flags, files or manifests.
pub(crate) const EXIT_USAGE: u8 = 64;

/// Hooks without a cluster.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure a HookTemplate or HookRun for real, from this machine
    ///
    /// The whole run is taken here as in the cluster: interval, count, limits, policy, timeoutSeconds. Loopback
    /// addresses may be called. A metric that polls without end goes on until Ctrl-C.
    ///
    /// Exit code: 0 Successful, 1 Failed, 2 Error, 3 Inconclusive, 64 bad usage.
    Run(run::Run),
    /// Report everything that is wrong with hooks, with path and position
    ///
    /// HookTemplates and HookRuns are compiled as in the operator. GameDeployments are compared with their schema.
    /// Other objects in the files are passed over.
    ///
    /// Exit code: 0 nothing wrong, 1 problems found, 64 bad usage.
    Lint(lint::Lint),
    /// Say what a given answer would yield, and why
    ///
    /// Judges one measurement: jsonPath, conditions, onNoData. Nobody is asked, and count and limits play no part.
    /// Arguments that no condition mentions may be left out.
    ///
    /// Exit code: 0 Successful, 1 Failed, 2 Error, 3 Inconclusive, 64 bad usage.
    Evaluate(evaluate::Evaluate),
}

/// Runs a command.
pub(crate) fn main(command: &Command) -> Result<ExitCode, Box<dyn std::error::Error>> {
    match command {
        Command::Run(run) => run.main(),
        Command::Lint(lint) => lint.main(),
        Command::Evaluate(evaluate) => evaluate.main(),
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
