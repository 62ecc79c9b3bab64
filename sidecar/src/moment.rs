//! Time that no adjustment of the clock changes.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Time since the machine started, including the time for which it was suspended.
///
/// The wall clock can jump: a report from before a jump would look fresh, or a fresh one stale. The clock of
/// [`std::time::Instant`] stands still while the machine is suspended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(Duration);

impl Moment {
    /// Returns the current time.
    pub(crate) fn now() -> Self {
        let time = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
        let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or_default();
        Self(Duration::new(seconds, nanoseconds))
    }

    /// Returns the time that has passed since an earlier moment. A clock that went back, as after a migration to another
    /// machine, says nothing: the time counts as unlimited.
    pub(crate) fn since(self, earlier: Self) -> Duration {
        self.0.checked_sub(earlier.0).unwrap_or(Duration::MAX)
    }

    #[cfg(test)]
    pub(crate) fn at(millis: u64) -> Self {
        Self(Duration::from_millis(millis))
    }
}
