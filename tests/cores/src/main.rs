//! Measures one step of the pure cores: its time and every allocation. `cargo xtask bench cores` builds it,
//! runs it and turns its output into a report. The subcommand `matches` plays scale-downs of a simulated fleet
//! instead, for `cargo xtask bench first-idle`.
//!
//! | module | job |
//! | --- | --- |
//! | [`meter`] | times an operation, counts what it allocates, prints a line of JSON |
//! | [`games`] | decisions about large GameDeployments; [`fleet`]: brings one into its state |
//! | [`hooks`] | conditions, JSON paths, placeholders and decisions of HookRuns |
//! | [`manifests`] | the objects for both |
//! | [`mod@matches`] | scale-downs of game servers that play matches, decided by both cores |
//!
//! Allocation counts are exact: an operation whose counts differ between rounds is reported as not exact.
//! Times include the counting allocator, so they are slightly too long. No object depends on the clock, and only
//! the matches depend on chance, which a seed reproduces.

mod fleet;
mod games;
mod hooks;
mod manifests;
mod matches;
mod meter;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use meter::Meter;

/// Measures the pure cores and prints one line of JSON for each figure.
#[derive(Debug, Parser)]
struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Pods of the largest workload
    #[arg(long, default_value_t = 10_000)]
    size: usize,
    /// How often each operation is timed
    #[arg(long, default_value_t = 11)]
    rounds: usize,
    /// Only figures whose name contains this
    #[arg(long, default_value = "")]
    only: String,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Play scale-downs of a fleet of game servers, and print one line of JSON for each
    Matches(matches::Args),
}

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let args = Args::parse();
    let measured = match args.command {
        Some(Command::Matches(args)) => matches::play(&args),
        None => {
            let meter = Meter::new(args.rounds, args.only);
            games::measure(&meter, args.size).and_then(|()| hooks::measure(&meter))
        }
    };
    if let Err(error) = measured {
        eprintln!("cores-bench: {error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
