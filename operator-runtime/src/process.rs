//! The life of an operator's process: logs, TLS, runtime, and a line that says why it could not start.

use std::net::SocketAddr;
use std::process::ExitCode;

use crate::client::ConnectError;
use crate::telemetry::{self, Telemetry};

/// Why an operator could not start, or not go on.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No way to the API server.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The address of the health endpoint cannot be used.
    #[error("failed to listen on {address}: {source}; choose another with --listen")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// Signals cannot be received.
    #[error("failed to listen for signals: {0}")]
    Signals(std::io::Error),
    /// Another process leads now.
    #[error("lost the lead: {0}; ending, so that this process starts anew as a candidate")]
    LostLead(String),
    /// The work came to an end that it should not have.
    #[error("the watches ended; this is a defect, please report it")]
    WorkEnded,
}

/// Runs an operator to its end.
#[must_use]
pub fn start(telemetry: &Telemetry, operator: impl Future<Output = Result<(), StartError>>) -> ExitCode {
    // Every TLS connection of this process uses the same implementation.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // There is no log yet that could say what goes wrong here.
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
