//! Exponential back-off between retries.

use std::time::Duration;

/// Exponential back-off: starts with the first delay and doubles it after each failure, up to the longest. A
/// success resets it. It has no jitter; callers add it where needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    failures: u32,
}

impl Backoff {
    /// Creates a back-off without failures.
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self {
            first,
            longest,
            failures: 0,
        }
    }

    /// Records a failure. Returns the delay before the retry.
    #[must_use = "a failure that is not waited after is a hot loop"]
    pub fn fail(&mut self) -> Duration {
        let delay = self.delay_after(self.failures);
        self.failures = self.failures.saturating_add(1);
        delay
    }

    /// Records a success.
    pub fn reset(&mut self) {
        self.failures = 0;
    }

    /// Number of failures since the last success.
    pub const fn failures(&self) -> u32 {
        self.failures
    }

    fn delay_after(self, earlier_failures: u32) -> Duration {
        // An overflowing factor exceeds every longest delay, unless the first delay is zero.
        let factor = 1u32.checked_shl(earlier_failures).unwrap_or(u32::MAX);
        self.first.saturating_mul(factor).min(self.longest)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn milliseconds(number: u64) -> Duration {
        Duration::from_millis(number)
    }

    #[test]
    fn delays_double_up_to_the_longest_and_begin_again_after_a_success() {
        let mut backoff = Backoff::new(milliseconds(100), milliseconds(1000));
        let delays: Vec<_> = (0..6).map(|_| backoff.fail().as_millis()).collect();
        assert_eq!(delays, [100, 200, 400, 800, 1000, 1000]);
        assert_eq!(backoff.failures(), 6);
        backoff.reset();
        assert_eq!((backoff.failures(), backoff.fail()), (0, milliseconds(100)));
    }

    proptest! {
        #[test]
        fn a_delay_is_never_shorter_than_the_one_before_nor_longer_than_the_longest(
            first in 1u64..100_000, longest in 1u64..10_000_000, times in 1usize..200,
        ) {
            let mut backoff = Backoff::new(milliseconds(first), milliseconds(longest));
            let mut before = Duration::ZERO;
            for _ in 0..times {
                let delay = backoff.fail();
                prop_assert!(delay >= before && delay <= milliseconds(longest));
                before = delay;
            }
        }
    }
}
