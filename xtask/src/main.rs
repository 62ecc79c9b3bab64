//! Generates, measures and demonstrates: `cargo xtask COMMAND`.
//!
//! | command | job |
//! | --- | --- |
//! | `parity DIR` | compares our languages with tables of what the Go libraries say |
//!
//! Each command is a module with an `Args` and a `run`; this file only chooses between them.

mod parity;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Generates, measures and demonstrates")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compare conditions, JSON paths, templates and durations with tables of what the Go libraries say
    Parity(parity::Args),
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Parity(args) => parity::run(&args),
    }
}
