//! What can go wrong with a control plane.

use std::io;
use std::path::PathBuf;

use crate::{assets, process, wait};

/// Why a control plane is not there, or does not do as it was told.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Its programs are missing.
    #[error("failed to find the control plane's programs")]
    Assets(#[from] assets::Error),
    /// A file could not be written, or a port not be found.
    #[error("failed to prepare the control plane's files")]
    Prepare(#[from] io::Error),
    /// No certificates.
    #[error("failed to issue certificates")]
    Certificates(#[from] rcgen::Error),
    /// A component did not start, stop or pause.
    #[error("failed to control a component")]
    Process(#[from] process::Error),
    /// A component ended while it was awaited.
    #[error("{component} ended with {status}; its last output:\n{tail}")]
    Died {
        /// The program's name.
        component: &'static str,
        /// How it ended.
        status: std::process::ExitStatus,
        /// The last lines it wrote.
        tail: String,
    },
    /// Something was not ready in time.
    #[error("failed to see {what}")]
    NotReady {
        /// What was awaited.
        what: String,
        /// What was seen instead.
        source: wait::TimedOut,
    },
    /// A kubeconfig that cannot be read, or lacks what it needs.
    #[error("failed to read the kubeconfig {}", path.display())]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// Why.
        source: kube::config::KubeconfigError,
    },
    /// A kubeconfig that cannot be written.
    #[error("failed to write a kubeconfig")]
    WriteKubeconfig(#[from] serde_json::Error),
    /// The API server said no.
    #[error("failed to {action}")]
    Api {
        /// What was tried.
        action: String,
        /// Why.
        source: Box<kube::Error>,
    },
    /// Not ours to do.
    #[error("{action} is not supported on an existing cluster (USE_EXISTING_CLUSTER=true)")]
    ExistingCluster {
        /// What was asked for.
        action: &'static str,
    },
}
