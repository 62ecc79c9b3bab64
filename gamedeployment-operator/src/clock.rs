//! Clocks of this process.

use std::time::{Duration, Instant};

use operator_runtime::clock::{self, Reading};
use runtime_core::clock::Now;

/// Clocks that start when the process becomes leader.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    began: Reading,
}

impl Clock {
    /// Starts the clocks.
    pub fn begin() -> Self {
        Self { began: clock::read() }
    }

    /// Returns the time on all clocks.
    pub fn now(&self) -> Now {
        clock::now_since(self.began)
    }

    /// Converts an instant in the past to elapsed time; zero if it was before the start. One before a suspension comes
    /// out later than it was, as instants do not count suspensions.
    pub fn elapsed_at(&self, instant: Instant) -> Duration {
        // Read first: the result comes out later rather than earlier.
        let age = instant.elapsed();
        self.now().elapsed.saturating_sub(age)
    }

    /// Converts an instant in the past to monotonic time; zero if it was before the start.
    pub fn monotonic_at(&self, instant: Instant) -> Duration {
        let age = instant.elapsed();
        self.now().monotonic.saturating_sub(age)
    }

    /// Converts elapsed time to the scale of [`clock::elapsed`].
    pub fn deadline(&self, elapsed: Duration) -> Duration {
        self.began.elapsed.saturating_add(elapsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_convert_to_times_since_the_start() {
        let clock = Clock::begin();
        let (before, instant) = (clock.now(), Instant::now());
        let (elapsed, monotonic) = (clock.elapsed_at(instant), clock.monotonic_at(instant));
        let after = clock.now();
        assert!(
            before.elapsed <= elapsed && elapsed <= after.elapsed,
            "{elapsed:?}"
        );
        assert!(
            before.monotonic <= monotonic && monotonic <= after.monotonic,
            "{monotonic:?}"
        );
        if let Some(long_ago) = instant.checked_sub(Duration::from_mins(1)) {
            assert!(clock.elapsed_at(long_ago) <= elapsed && clock.monotonic_at(long_ago) <= monotonic);
        }
        assert!(clock.deadline(after.elapsed) <= clock::elapsed());
    }
}
