//! The clocks of this process.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use runtime_core::clock::Now;

/// Tells the time since the process began to lead.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    began: Instant,
}

impl Clock {
    /// Begins to count.
    pub fn begin() -> Self {
        Self {
            began: Instant::now(),
        }
    }

    /// Now, by both clocks.
    pub fn now(&self) -> Now {
        Now {
            wall: Timestamp::now(),
            mono: self.began.elapsed(),
        }
    }

    /// The instant so long after the beginning.
    pub fn instant(&self, mono: Duration) -> Instant {
        self.began + mono
    }

    /// How long after the beginning an instant is; zero if it was before.
    pub fn mono(&self, instant: Instant) -> Duration {
        instant.saturating_duration_since(self.began)
    }
}
