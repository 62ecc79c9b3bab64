//! `kubectl game`: the kubectl plugin of game teams and webhook authors.
//!
//! | module | job |
//! | --- | --- |
//! | [`hook`] | `kubectl game hook run`, `lint`, `evaluate`: hooks tried out without a cluster |
//! | [`manifest`] | manifests read from files, with the place of every field |
//! | [`paint`] | colours and signs, where the terminal has them |

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod hook;
mod manifest;
mod paint;

/// Scale and update live game servers without killing players.
#[derive(Debug, Parser)]
#[command(
    name = "kubectl-game",
    bin_name = "kubectl game",
    version,
    about,
    max_term_width = 100
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Try out hooks: measure, check and judge them, no cluster needed
    #[command(subcommand)]
    Hook(hook::Command),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Hook(command) => hook::main(&command),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::from(hook::EXIT_USAGE)
    })
}
