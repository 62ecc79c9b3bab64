//! Writes to a pod that need an approval of its gate.

use jiff::Timestamp;

use super::PodChange;
use crate::gate::{Confirmed, Delete, OpenReason, PodRef, Update};

/// A write to a pod that its gate approved. The approval may expire before the write is sent:
/// [`Self::open_reason`].
#[derive(Debug, PartialEq)]
pub enum GatedWrite {
    /// Delete a pod.
    DeletePod(Delete),
    /// Take a pod out of service for an update, with the time when it went out.
    SetNotReady(Update, Timestamp),
    /// Write an update to a pod: images, metadata, revision.
    WriteUpdate(Update, Box<PodChange>),
    /// Record on a pod that its update is confirmed.
    Confirm(Confirmed),
}

impl GatedWrite {
    /// Returns why the gate is open: what must still hold when the write is sent.
    pub fn open_reason(&self) -> &OpenReason {
        match self {
            Self::DeletePod(delete) => delete.open_reason(),
            Self::SetNotReady(update, _) | Self::WriteUpdate(update, _) => update.open_reason(),
            Self::Confirm(confirmed) => confirmed.open_reason(),
        }
    }

    /// Returns the pod, at the version that the decision is based on.
    pub fn pod(&self) -> &PodRef {
        match self {
            Self::DeletePod(delete) => delete.pod(),
            Self::SetNotReady(update, _) | Self::WriteUpdate(update, _) => update.pod(),
            Self::Confirm(confirmed) => confirmed.pod(),
        }
    }
}
