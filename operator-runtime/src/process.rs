//! Life of an operator's process: logs, TLS, runtime, and one line that reports a failed start.

use std::process::ExitCode;

use crate::error::OperatorError;
use crate::telemetry::{self, Telemetry};

/// Runs an operator to its end.
pub fn start(telemetry: &Telemetry, operator: impl Future<Output = Result<(), OperatorError>>) -> ExitCode {
    // Install one TLS implementation for every connection of this process.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // Logging is not set up yet.
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    runtime.block_on(async {
        let running = match telemetry::start(telemetry) {
            Ok(running) => running,
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::FAILURE;
            }
        };
        let ended = match operator.await {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => refuse(&error),
        };
        running.end().await;
        ended
    })
}

fn refuse(error: &dyn std::error::Error) -> ExitCode {
    tracing::error!("{error}");
    ExitCode::FAILURE
}
