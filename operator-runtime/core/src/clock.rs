//! Point in time on both clocks. Ages and pauses are measured on the monotonic clock; only times in objects
//! are wall-clock times.

use std::time::Duration;

use jiff::Timestamp;

/// Point in time on both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Wall-clock time.
    pub wall: Timestamp,
    /// Monotonic time since the start of the process.
    pub mono: Duration,
}

impl Now {
    /// Returns the monotonic time at which the wall clock will show `then`; now, if that is past.
    pub fn at(&self, then: Timestamp) -> Duration {
        let left = Duration::try_from(then.duration_since(self.wall)).unwrap_or_default();
        self.mono.saturating_add(left)
    }
}
