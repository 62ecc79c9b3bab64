//! Generates, measures and demonstrates: `cargo xtask COMMAND`.
//!
//! | command | job |
//! | --- | --- |
//! | `gen [--check]` | writes what is generated from code |
//! | `parity DIR` | compares our languages with tables of what the Go libraries say |
//!
//! Each command is a module with an `Args` and a `run`; this file only chooses between them.

mod generate;
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
    /// Write what is generated from code: the CRDs
    #[command(name = "gen")]
    Generate(generate::Args),
    /// Compare conditions, JSON paths, templates and durations with tables of what the Go libraries say
    Parity(parity::Args),
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Generate(args) => generate::run(&args),
        Command::Parity(args) => parity::run(&args),
    }
}
