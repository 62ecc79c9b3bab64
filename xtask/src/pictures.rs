//! `cargo xtask pictures`: draws what `docs/pictures` holds, from real runs.
//!
//! The runs, and everything that is checked of them, are suites; they write when they are asked to.

use std::process::ExitCode;

use test_kit::assets;

/// Plays the runs and draws.
#[derive(clap::Args)]
pub(crate) struct Args {}

/// Suite, test, and the variable that lets it write.
const RUNS: [(&str, &str, &str); 2] = [
    ("dashboards", "run::", "DASHBOARD_PICTURES"),
    ("plugin", "recording::", "RECORDING"),
];

pub(crate) fn run(_: &Args) -> ExitCode {
    for (suite, test, variable) in RUNS {
        let status = assets::cargo()
            .args([
                "test",
                "--locked",
                "--workspace",
                "--test",
                suite,
                "--",
                "--nocapture",
                test,
            ])
            .env(variable, "write")
            .status();
        match status {
            Ok(status) if status.success() => {}
            Ok(_) => return ExitCode::FAILURE,
            Err(error) => {
                eprintln!("error: failed to run cargo: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}
