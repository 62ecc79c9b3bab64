//! Clocks of this process.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use runtime_core::clock::Now;

/// Wall clock, and a monotonic clock that starts when the process becomes leader.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    began: Instant,
}

impl Clock {
    /// Starts the clock.
    pub fn begin() -> Self {
        Self {
            began: Instant::now(),
        }
    }

    /// Returns the wall-clock time and the monotonic time.
    pub fn now(&self) -> Now {
        Now {
            wall: Timestamp::now(),
            mono: self.began.elapsed(),
        }
    }

    /// Converts a monotonic time to an instant.
    pub fn instant(&self, mono: Duration) -> Instant {
        self.began + mono
    }

    /// Converts an instant to a monotonic time; zero if it was before the start.
    pub fn mono(&self, instant: Instant) -> Duration {
        instant.saturating_duration_since(self.began)
    }
}
