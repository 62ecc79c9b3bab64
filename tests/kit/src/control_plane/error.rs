//! Errors of a control plane.

use std::io;
use std::path::PathBuf;

use crate::{assets, process, wait};

/// Error from starting or operating a control plane.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The programs are missing.
    #[error("failed to find the control plane's programs")]
    Assets(#[from] assets::Error),
    /// Failed to write a file or find a port.
    #[error("failed to prepare the control plane's files")]
    Prepare(#[from] io::Error),
    /// Failed to issue certificates.
    #[error("failed to issue certificates")]
    Certificates(#[from] rcgen::Error),
    /// Failed to start, stop or pause a component.
    #[error("failed to control a component")]
    Process(#[from] process::Error),
    /// A component ended during the wait for it.
    #[error("{component} ended with {status}; its last output:\n{tail}")]
    Died {
        /// Program name.
        component: &'static str,
        /// Exit status.
        status: std::process::ExitStatus,
        /// Last lines of its output.
        tail: String,
    },
    /// Something was not ready in time.
    #[error("failed to see {what}")]
    NotReady {
        /// Awaited state.
        what: String,
        /// Last observed state.
        source: wait::TimedOut,
    },
    /// The kubeconfig cannot be read or is incomplete.
    #[error("failed to read the kubeconfig {}", path.display())]
    Kubeconfig {
        /// File.
        path: PathBuf,
        /// Cause.
        source: kube::config::KubeconfigError,
    },
    /// The kubeconfig cannot be written.
    #[error("failed to write a kubeconfig")]
    WriteKubeconfig(#[from] serde_json::Error),
    /// The API server returned an error.
    #[error("failed to {action}")]
    Api {
        /// Attempted action.
        action: String,
        /// Cause.
        source: Box<kube::Error>,
    },
    /// The operation is not allowed on an existing cluster.
    #[error("{action} is not supported on an existing cluster (USE_EXISTING_CLUSTER=true)")]
    ExistingCluster {
        /// Requested operation.
        action: &'static str,
    },
}
