//! Errors of a real node.

use std::io;

use crate::{assets, control_plane, process, wait};

/// Error from starting a node.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This machine or user cannot run a node. This is not a failure: tests are skipped.
    #[error("{obstacle}; {remedy}")]
    Unsuitable {
        /// Obstacle.
        obstacle: String,
        /// Remedy.
        remedy: &'static str,
    },
    /// The programs are missing.
    #[error("failed to find the node's programs")]
    Assets(#[from] assets::Error),
    /// Failed to start the control plane.
    #[error("failed to start the control plane of the node")]
    ControlPlane(#[from] control_plane::Error),
    /// A file, mount or process operation failed.
    #[error("failed to {action}")]
    Io {
        /// Attempted action.
        action: String,
        /// Cause.
        source: io::Error,
    },
    /// A program failed to start.
    #[error("failed to start a component of the node")]
    Process(#[from] process::Error),
    /// A short command failed.
    #[error("{command} failed:\n{output}")]
    Command {
        /// Command.
        command: String,
        /// Output.
        output: String,
    },
    /// Something was not ready in time.
    #[error("failed to see {what}; the last output of its component:\n{tail}")]
    NotReady {
        /// Awaited state.
        what: &'static str,
        /// Last lines of the component's output.
        tail: String,
        /// Last observed state.
        source: wait::TimedOut,
    },
    /// Something is left behind at the end.
    #[error("left behind: {left}")]
    LeftBehind {
        /// Description of the leftovers.
        left: String,
    },
}

pub(super) fn io_error(action: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
    let action = action.into();
    move |source| Error::Io { action, source }
}
