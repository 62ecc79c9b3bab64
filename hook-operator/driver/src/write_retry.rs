//! Retries of status writes.

use std::time::Duration;

use runtime_core::backoff::Backoff;

/// Number of consecutive failed attempts after which a warning event is emitted, and the number of attempts
/// between further ones.
const FIRST_WARNING: u32 = 5;
const WARN_EVERY: u32 = 100;

/// Returns the back-off between attempts of a write.
pub(crate) const fn write_retry() -> Backoff {
    Backoff::new(Duration::from_millis(200), Duration::from_secs(5))
}

/// Returns whether a warning event follows this number of failed attempts.
pub(crate) const fn warns_after(failures: u32) -> bool {
    failures % WARN_EVERY == FIRST_WARNING
}
