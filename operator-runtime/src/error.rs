//! Errors that end an operator, and their form in one line.

use std::net::SocketAddr;

/// Error that ends an operator.
#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    /// The API server cannot be reached.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The health endpoint cannot listen on its address.
    #[error("failed to listen on {address}: {source}; choose another with --listen")]
    Listen {
        /// Address to listen on.
        address: SocketAddr,
        /// Cause.
        source: std::io::Error,
    },
    /// Signals cannot be received.
    #[error("failed to listen for signals: {0}")]
    Signals(std::io::Error),
    /// The lease was lost.
    #[error("lost the lead: {0}; ending, so that this process starts anew as a candidate")]
    LostLead(String),
    /// The work ended although it never should.
    #[error("the watches ended; this is a defect, please report it")]
    WorkEnded,
}

/// Error while creating a client.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Neither a kubeconfig nor a service account exists.
    #[error("failed to find the API server: {0}; set KUBECONFIG, or run in a pod with a service account")]
    Config(#[from] kube::config::InferConfigError),
    /// The configuration cannot be used.
    #[error("failed to make a client of the API server: {0}")]
    Client(#[from] kube::Error),
}

/// Returns the innermost error's message.
pub fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
