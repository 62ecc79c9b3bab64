//! Waits for a condition with a deadline.

use std::fmt::Debug;
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

/// Limit of every wait: far longer than a slow machine needs.
pub(crate) const DEADLINE: Duration = Duration::from_secs(40);

/// Runs a check for each item, all at once: most of the time of a check is waiting.
pub(crate) fn at_once<T: Send>(items: impl IntoIterator<Item = T>, check: impl Fn(T) + Sync) {
    scope(|threads| {
        for item in items {
            threads.spawn(|| check(item));
        }
    });
}

/// Repeats `look` until it returns a value. Panics at the deadline, with the last thing that was seen instead.
#[track_caller]
pub(crate) fn eventually<T, E: Debug>(mut look: impl FnMut() -> Result<T, E>) -> T {
    let begin = Instant::now();
    loop {
        match look() {
            Ok(found) => return found,
            Err(seen) => assert!(begin.elapsed() < DEADLINE, "not in time; last seen: {seen:?}"),
        }
        sleep(Duration::from_millis(10));
    }
}
