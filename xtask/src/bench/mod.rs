//! `cargo xtask bench SCENARIO`: loads on the real control plane, told as a table. Counts are exact; times are
//! this machine's, in this run. Fails only where a count is wrong.

mod hook_runs;
mod table;

use std::process::ExitCode;

/// Flags of `bench`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    scenario: Scenario,
}

#[derive(clap::Subcommand)]
enum Scenario {
    /// Many HookRuns with an interval against one sample server
    #[command(name = "hookruns")]
    HookRuns(hook_runs::Args),
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> ExitCode {
    let outcome = match &args.scenario {
        Scenario::HookRuns(args) => hook_runs::run(args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
