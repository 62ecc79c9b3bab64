//! `cargo xtask bench SCENARIO`: loads on the real control plane, told as a table. Counts are exact; times are
//! this machine's, in this run. Fails only where a count is wrong.

mod hook_runs;
mod report;
mod scale_down;
mod table;
mod world;

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
    /// A gated scale-down
    ScaleDown {
        /// How many pods
        #[arg(long, default_value_t = 1000)]
        pods: usize,
    },
}

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Runs the command.
pub(crate) fn run(args: &Args) -> ExitCode {
    let outcome = match &args.scenario {
        Scenario::HookRuns(args) => hook_runs::run(args),
        Scenario::ScaleDown { pods } => scale(*pods),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn scale(pods: usize) -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut report = report::Report::default();
    report.begin("scale-down".to_owned());
    runtime.block_on(scale_down::play(&mut report, pods))?;
    if report.well() { Ok(()) } else { Err("missed".into()) }
}
