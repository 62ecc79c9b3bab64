//! `cargo xtask pictures`: generates the files in `docs/pictures` and the screens of `docs/screens.md` from real runs.
//!
//! The runs and their checks are test suites, which write the pictures on request.

use std::process::ExitCode;

use test_kit::assets;

/// Runs the suites and generates the pictures.
#[derive(clap::Args)]
pub(crate) struct Args {}

/// Suite, test, and the environment variable that enables writing.
const RUNS: [(&str, &str, &str); 3] = [
    ("dashboards", "run::", "DASHBOARD_PICTURES"),
    ("plugin", "recording::", "RECORDING"),
    ("plugin", "captures::", "RECORDING"),
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
