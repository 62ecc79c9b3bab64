//! This program as hook-operator: the demo needs one process more, not one build more.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use hook_operator::config::Config;

/// The hidden command's name.
pub(crate) const COMMAND: &str = "hook-operator";

/// Flags: the operator's own.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    flags: Vec<OsString>,
}

/// Runs the command.
pub(crate) fn run(args: Args) -> ExitCode {
    let name = OsString::from(COMMAND);
    hook_operator::start(Config::parse_from(std::iter::once(name).chain(args.flags)))
}
