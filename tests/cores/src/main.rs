//! What one step of the pure cores costs: time, and every allocation. `cargo xtask bench cores` builds it, runs it and
//! turns its lines into a report.
//!
//! | module | job |
//! | --- | --- |
//! | [`meter`] | times an operation, counts what it allocates, prints a line of JSON |
//! | [`games`] | decisions about large GameDeployments; [`fleet`]: how one comes to its state |
//! | [`hooks`] | conditions, JSON paths, placeholders and decisions of HookRuns |
//! | [`manifests`] | the objects that both are about |
//!
//! Allocations are exact: an operation that allocates another number of times in another round is said not to be. Its
//! times are with the allocator that counts, so they are a little too long; no object is made by the clock or by chance.

mod fleet;
mod games;
mod hooks;
mod manifests;
mod meter;

use std::process::ExitCode;

use clap::Parser;

use meter::Meter;

/// Measures the pure cores, and prints a line of JSON for each figure.
#[derive(Debug, Parser)]
struct Args {
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

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let args = Args::parse();
    let meter = Meter::new(args.rounds, args.only);
    let measured = games::measure(&meter, args.size).and_then(|()| hooks::measure(&meter));
    if let Err(error) = measured {
        eprintln!("cores-bench: {error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
