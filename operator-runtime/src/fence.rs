//! Fence: blocks writes once the lease may have been lost. Every request that changes something passes here.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

/// Start of this process's monotonic time.
static BEGINNING: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Monotonic time of this process.
pub(crate) fn now() -> Duration {
    BEGINNING.elapsed()
}

/// Time until which this process may write. Clones share it.
#[derive(Debug, Clone)]
pub struct Fence {
    /// Nanoseconds since [`BEGINNING`].
    until: Arc<AtomicU64>,
}

/// The fence blocked a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this process does not lead (any more): the write was not sent")]
pub struct Closed;

impl Fence {
    /// Creates a fence that never closes, for a process without an election.
    pub fn open() -> Self {
        Self {
            until: Arc::new(AtomicU64::new(u64::MAX)),
        }
    }

    /// Creates a fence that is closed until this process leads.
    pub fn closed() -> Self {
        Self {
            until: Arc::new(AtomicU64::new(0)),
        }
    }

    pub(crate) fn set(&self, until: Option<Duration>) {
        let nanos = until.map_or(0, |until| u64::try_from(until.as_nanos()).unwrap_or(u64::MAX));
        self.until.store(nanos, Ordering::SeqCst);
    }

    /// Time that a write that begins now may take.
    pub fn left(&self) -> Result<Duration, Closed> {
        let until = Duration::from_nanos(self.until.load(Ordering::SeqCst));
        until
            .checked_sub(now())
            .filter(|left| !left.is_zero())
            .ok_or(Closed)
    }
}
