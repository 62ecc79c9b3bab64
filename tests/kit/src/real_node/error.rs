//! What can go wrong with a real node.

use std::io;

use crate::{assets, control_plane, process, wait};

/// Why a node is not there.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This machine, or who runs this, cannot have a node. That is nobody's mistake: tests are skipped.
    #[error("{obstacle}; {remedy}")]
    Unsuitable {
        /// What is in the way.
        obstacle: String,
        /// What would make it run.
        remedy: &'static str,
    },
    /// Its programs are missing.
    #[error("failed to find the node's programs")]
    Assets(#[from] assets::Error),
    /// No control plane.
    #[error("failed to start the control plane of the node")]
    ControlPlane(#[from] control_plane::Error),
    /// Files, mounts or processes failed us.
    #[error("failed to {action}")]
    Io {
        /// What was tried.
        action: String,
        /// Why.
        source: io::Error,
    },
    /// A program did not start.
    #[error("failed to start a component of the node")]
    Process(#[from] process::Error),
    /// A program that should have done something at once did not.
    #[error("{command} failed:\n{output}")]
    Command {
        /// What was run.
        command: String,
        /// What it said.
        output: String,
    },
    /// Something was not ready in time.
    #[error("failed to see {what}; the last output of its component:\n{tail}")]
    NotReady {
        /// What was awaited.
        what: &'static str,
        /// The last lines of the component's output.
        tail: String,
        /// What was seen instead.
        source: wait::TimedOut,
    },
    /// Something of ours is still there at the end.
    #[error("left behind: {left}")]
    LeftBehind {
        /// What it is.
        left: String,
    },
}

pub(super) fn io_error(action: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
    let action = action.into();
    move |source| Error::Io { action, source }
}
