//! A moment by both clocks. Ages and pauses are counted on the one that nobody can set; only times that are written to
//! objects, or read from them, are those of the wall.

use std::time::Duration;

use jiff::Timestamp;

/// A moment by both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// By the clock on the wall.
    pub wall: Timestamp,
    /// Since the process began, by a clock that nobody sets.
    pub mono: Duration,
}

impl Now {
    /// The moment by the clock that nobody sets at which the clock on the wall would show `then`; now, if that is past.
    pub fn at(&self, then: Timestamp) -> Duration {
        let left = Duration::try_from(then.duration_since(self.wall)).unwrap_or_default();
        self.mono.saturating_add(left)
    }
}
