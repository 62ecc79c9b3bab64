//! Fence: blocks writes once the lease may have been lost. Every request that changes something passes here.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::clock;

/// Time until which this process may write. Clones share it.
#[derive(Debug, Clone)]
pub struct Fence {
    /// Nanoseconds on the scale of [`clock::elapsed`].
    until: Arc<AtomicU64>,
}

/// The fence blocked a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this process is not the leader, so the write was not sent")]
pub struct Closed;

/// Reason why a write was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotSent {
    /// The fence blocked it.
    #[error(transparent)]
    Closed(#[from] Closed),
    /// Its own deadline was over.
    #[error("the deadline passed before the request could be sent")]
    Lapsed,
}

impl NotSent {
    /// Returns the reason if it caused an error.
    pub fn cause_of(error: &(dyn Error + 'static)) -> Option<Self> {
        let mut cause = Some(error);
        while let Some(error) = cause {
            if let Some(reason) = error.downcast_ref() {
                return Some(*reason);
            }
            cause = error.source();
        }
        None
    }
}

/// What allows a write.
#[derive(Debug, Clone)]
pub(crate) struct WritePermit {
    pub(crate) fence: Fence,
    /// Time until which it may be sent, on the scale of [`clock::elapsed`].
    pub(crate) until: Option<Duration>,
}

impl WritePermit {
    /// Time that the write may take, if it may be sent now.
    pub(crate) fn check(&self) -> Result<Duration, NotSent> {
        let now = clock::elapsed();
        if self.until.is_some_and(|until| now >= until) {
            return Err(NotSent::Lapsed);
        }
        Ok(self.fence.left_at(now)?)
    }
}

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

    /// Opens the fence until a time on the scale of [`clock::elapsed`], or closes it.
    pub(crate) fn set(&self, until: Option<Duration>) {
        let nanos = until.map_or(0, |until| u64::try_from(until.as_nanos()).unwrap_or(u64::MAX));
        self.until.store(nanos, Ordering::SeqCst);
    }

    /// Time that a write that begins now may take.
    pub fn left(&self) -> Result<Duration, Closed> {
        self.left_at(clock::elapsed())
    }

    /// Whether a write may begin now.
    pub fn is_open(&self) -> bool {
        self.left().is_ok()
    }

    fn left_at(&self, now: Duration) -> Result<Duration, Closed> {
        let until = Duration::from_nanos(self.until.load(Ordering::SeqCst));
        until
            .checked_sub(now)
            .filter(|left| !left.is_zero())
            .ok_or(Closed)
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use runtime_core::clock::{ElapsedTime, Reading};

    use super::*;

    #[test]
    fn it_is_open_until_its_time_is_over() {
        let second = Duration::from_secs(1);
        let fence = Fence::closed();
        assert_eq!(fence.left_at(Duration::ZERO), Err(Closed));
        fence.set(Some(10 * second));
        for (now, left) in [
            (Duration::ZERO, Ok(10 * second)),
            (9 * second, Ok(second)),
            (10 * second, Err(Closed)),
            (11 * second, Err(Closed)),
        ] {
            assert_eq!(fence.clone().left_at(now), left, "{now:?}");
        }
        fence.set(None);
        assert_eq!(fence.left_at(Duration::ZERO), Err(Closed));
        assert!(!fence.is_open() && Fence::open().is_open());
        let years = Duration::from_hours(24 * 365 * 100);
        assert!(Fence::open().left_at(years).is_ok());
    }

    /// The monotonic clock, which stands still meanwhile, would leave 8 s of the lease.
    #[test]
    fn it_is_closed_after_a_suspension_and_after_a_hold_that_the_wall_clock_shows() {
        let reading = |monotonic, boottime, wall| Reading {
            monotonic: Duration::from_secs(monotonic),
            boottime: Duration::from_secs(boottime),
            wall: Timestamp::from_second(wall).unwrap(),
        };
        for (after, is_open) in [
            (reading(102, 5_002, 1_000_002), true),
            (reading(102, 5_182, 1_000_182), false),
            (reading(102, 5_002, 1_000_182), false),
        ] {
            let mut elapsed = ElapsedTime::since(reading(100, 5_000, 1_000_000));
            let fence = Fence::closed();
            fence.set(Some(Duration::from_secs(10)));
            assert_eq!(
                fence.left_at(elapsed.observe(after)).is_ok(),
                is_open,
                "{after:?}"
            );
        }
    }
}
