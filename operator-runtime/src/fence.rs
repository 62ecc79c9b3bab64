//! No write after the lease may have been lost: every request that changes something passes here.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

/// The beginning of this process's time.
static BEGINNING: LazyLock<Instant> = LazyLock::new(Instant::now);

/// The time of this process, which no clock change moves.
pub(crate) fn now() -> Duration {
    BEGINNING.elapsed()
}

/// Until when this process may write. Clones share it.
#[derive(Debug, Clone)]
pub struct Fence {
    /// Nanoseconds since [`BEGINNING`].
    until: Arc<AtomicU64>,
}

/// A write was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this process does not lead (any more): the write was not sent")]
pub struct Closed;

impl Fence {
    /// One that nothing closes: for a process that works alone.
    pub fn open() -> Self {
        Self {
            until: Arc::new(AtomicU64::new(u64::MAX)),
        }
    }

    /// One that is closed until somebody leads.
    pub fn closed() -> Self {
        Self {
            until: Arc::new(AtomicU64::new(0)),
        }
    }

    pub(crate) fn set(&self, until: Option<Duration>) {
        let nanos = until.map_or(0, |until| u64::try_from(until.as_nanos()).unwrap_or(u64::MAX));
        self.until.store(nanos, Ordering::SeqCst);
    }

    /// How long a write that begins now may take.
    pub fn left(&self) -> Result<Duration, Closed> {
        let until = Duration::from_nanos(self.until.load(Ordering::SeqCst));
        until
            .checked_sub(now())
            .filter(|left| !left.is_zero())
            .ok_or(Closed)
    }
}
