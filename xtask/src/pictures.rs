//! `cargo xtask pictures`: generates the files in `docs/pictures` and the screens of `docs/screens.md` from real runs.
//!
//! The runs and their checks are test suites, which write the pictures on request. The picture of `FirstIdle` is of
//! a model, whose results are recorded: `cargo xtask gen` draws it from them.

use std::process::ExitCode;

use test_kit::assets;

use crate::{bench, generate};

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
    if let Err(error) = bench::first_idle::record() {
        eprintln!("error: {error}");
        return ExitCode::FAILURE;
    }
    generate::write()
}
