//! `kubectl game`: the kubectl plugin of game teams and webhook authors.
//!
//! | module | job |
//! | --- | --- |
//! | [`hook`] | `kubectl game hook run`, `lint`, `evaluate`: hooks tried out without a cluster |
//! | [`manifest`] | manifests read from files, with the place of every field |
//! | [`paint`] | colours and signs, where the terminal has them |

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

mod hook;
mod manifest;
mod paint;

/// For game teams and webhook authors: hooks that decide whether a game server may go
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
    let arguments = match arguments() {
        Ok(arguments) => arguments,
        // Help and version are no mistake; every other word of clap is, and 2 already means Error.
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() {
                ExitCode::from(hook::EXIT_USAGE)
            } else {
                ExitCode::SUCCESS
            };
        }
    };
    let outcome = match arguments.command {
        Command::Hook(command) => hook::main(&command),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::from(hook::EXIT_USAGE)
    })
}

/// Reads the command line. Flags that are shared with the operator are shown as this program uses them.
fn arguments() -> Result<Arguments, clap::Error> {
    let run = |run: clap::Command| {
        run.mut_args(|arg| arg.hide_env(true))
            .mut_arg("egress_allow_loopback", |arg| arg.hide(true))
    };
    let command = Arguments::command().mut_subcommand("hook", |hook| hook.mut_subcommand("run", run));
    Arguments::from_arg_matches(&command.try_get_matches()?)
}
