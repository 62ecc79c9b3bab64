//! This program as one of the components: the demo needs more processes, but no further builds.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

/// Hidden command of hook-operator.
pub(crate) const HOOKS: &str = "hook-operator";
/// Hidden command of gamedeployment-operator.
pub(crate) const WORKLOADS: &str = "gamedeployment-operator";
/// Hidden command of hookgate-admission.
pub(crate) const ADMISSION: &str = "hookgate-admission";

/// Flags of the component.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    flags: Vec<OsString>,
}

/// Runs hook-operator.
pub(crate) fn hooks(args: Args) -> ExitCode {
    hook_operator::start(hook_operator::config::Config::parse_from(with_name(HOOKS, args)))
}

/// Runs gamedeployment-operator.
pub(crate) fn workloads(args: Args) -> ExitCode {
    gamedeployment_operator::start(gamedeployment_operator::config::Config::parse_from(with_name(
        WORKLOADS, args,
    )))
}

/// Runs hookgate-admission.
pub(crate) fn admission(args: Args) -> ExitCode {
    ::admission::start(::admission::config::Config::parse_from(with_name(
        ADMISSION, args,
    )))
}

fn with_name(name: &str, args: Args) -> impl Iterator<Item = OsString> {
    std::iter::once(OsString::from(name)).chain(args.flags)
}
