//! `cargo xtask dashboards`: draws the dashboards with what a real run has measured, into `docs/pictures`.
//!
//! The run, and everything that is checked of it, is the suite `dashboards`; it draws when it is asked to.

use std::process::{Command, ExitCode};

/// Plays the run and draws.
#[derive(clap::Args)]
pub(crate) struct Args {}

const RUN: [&str; 8] = [
    "test",
    "--locked",
    "--workspace",
    "--test",
    "dashboards",
    "--",
    "--nocapture",
    "run::",
];

pub(crate) fn run(_: &Args) -> ExitCode {
    let status = Command::new(env!("CARGO"))
        .args(RUN)
        .env("DASHBOARD_PICTURES", "write")
        .status();
    match status {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: failed to run cargo: {error}");
            ExitCode::FAILURE
        }
    }
}
