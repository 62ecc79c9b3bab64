//! Why an operator could not start or go on, and how an error is told in one line.

use std::net::SocketAddr;

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

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Neither a kubeconfig nor a service account.
    #[error("failed to find the API server: {0}; set KUBECONFIG, or run in a pod with a service account")]
    Config(#[from] kube::config::InferConfigError),
    /// The configuration cannot be used.
    #[error("failed to make a client of the API server: {0}")]
    Client(#[from] kube::Error),
}

/// The innermost error's text.
pub fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
