//! Clocks of this process.
//!
//! | clock | suspended machine | fit for |
//! | --- | --- | --- |
//! | [`monotonic`] | stands still | deciding that another process has stopped: it never runs faster than time |
//! | [`elapsed`] | goes on | fences, deadlines and ages: it never runs slower, as far as the machine's clocks show |

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use runtime_core::clock::{self, ElapsedTime, Now};

/// Start of both scales.
static CLOCKS: LazyLock<Clocks> = LazyLock::new(|| {
    let began = Instant::now();
    Clocks {
        began,
        elapsed: Mutex::new(ElapsedTime::since(sample(began))),
        reported: Mutex::new(Duration::ZERO),
    }
});

/// Nanoseconds that [`jumped`] returns.
static JUMPED: AtomicU64 = AtomicU64::new(0);

/// Longest time between the first and the last reading of a sample.
const ONE_MOMENT: Duration = Duration::from_millis(1);
/// Most samples that are dropped because the process was interrupted meanwhile.
const MAX_DROPPED: u32 = 8;
/// Longest jump that no log mentions.
const SMALL_JUMP: Duration = Duration::from_secs(2);

struct Clocks {
    began: Instant,
    elapsed: Mutex<ElapsedTime>,
    /// Time of [`jumped`] that is logged.
    reported: Mutex<Duration>,
}

/// Times on both scales at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// Time on the scale of [`monotonic`].
    pub monotonic: Duration,
    /// Time on the scale of [`elapsed`].
    pub elapsed: Duration,
}

/// Time since the start of the process by the monotonic clock: never more than has passed.
pub fn monotonic() -> Duration {
    CLOCKS.began.elapsed()
}

/// Time since the start of the process, suspensions of the machine included: never less than has passed, as far as the
/// clocks show. See [`ElapsedTime`].
pub fn elapsed() -> Duration {
    read().elapsed
}

/// Returns the time since a reading, on all clocks.
pub fn now_since(began: Reading) -> Now {
    // Read first: if the machine is suspended in between, what is left of a wall-clock time comes out shorter.
    let reading = read();
    Now {
        wall: Timestamp::now(),
        elapsed: reading.elapsed.saturating_sub(began.elapsed),
        monotonic: reading.monotonic.saturating_sub(began.monotonic),
    }
}

/// Time by which [`elapsed`] was set ahead since the start of the process: suspensions of the machine, and jumps of the
/// wall clock. As of the last reading of the clocks: waits for no thread that reads them.
pub fn jumped() -> Duration {
    Duration::from_nanos(JUMPED.load(Ordering::Relaxed))
}

/// Reads both scales.
pub fn read() -> Reading {
    // Locks first: readings must come in order.
    let mut elapsed = CLOCKS.elapsed.lock().unwrap_or_else(PoisonError::into_inner);
    let sample = sample(CLOCKS.began);
    let reading = Reading {
        monotonic: sample.monotonic,
        elapsed: elapsed.observe(sample),
    };
    let jumped = elapsed.suspended().saturating_add(elapsed.skipped());
    let nanoseconds = u64::try_from(jumped.as_nanos()).unwrap_or(u64::MAX);
    JUMPED.store(nanoseconds, Ordering::Relaxed);
    reading
}

/// Returns the time by which the clocks jumped since the last jump that was returned, if it is worth a warning.
pub(crate) fn new_jump() -> Option<Duration> {
    let jumped = jumped();
    let mut reported = CLOCKS.reported.lock().unwrap_or_else(PoisonError::into_inner);
    growth(&mut reported, jumped)
}

fn growth(reported: &mut Duration, jumped: Duration) -> Option<Duration> {
    let grown = jumped.saturating_sub(*reported);
    (grown > SMALL_JUMP).then(|| {
        *reported = jumped;
        grown
    })
}

/// Logs a jump: it explains why deadlines are over, and a wall clock that is set may need repair.
pub(crate) fn warn_of(jump: Duration) {
    let seconds = jump.as_secs();
    tracing::warn!(
        seconds,
        "the machine was suspended or its clock jumped ahead; treating {seconds}s as elapsed"
    );
}

/// Reads the clocks of the machine. Starts again if time passes between two of them, which would look as if one had
/// jumped.
fn sample(began: Instant) -> clock::Reading {
    let mut dropped = 0;
    let mut before = boottime(began);
    loop {
        let monotonic = began.elapsed();
        let wall = Timestamp::now();
        let boottime = boottime(began);
        if boottime.saturating_sub(before) <= ONE_MOMENT || dropped == MAX_DROPPED {
            return clock::Reading {
                monotonic,
                boottime,
                wall,
            };
        }
        dropped += 1;
        before = boottime;
    }
}

/// Time since the machine was booted.
#[cfg(target_os = "linux")]
fn boottime(began: Instant) -> Duration {
    let read = nix::time::ClockId::CLOCK_BOOTTIME.now().ok();
    let time = read.and_then(|time| {
        let seconds = u64::try_from(time.tv_sec()).ok()?;
        Some(Duration::new(seconds, u32::try_from(time.tv_nsec()).ok()?))
    });
    // Every Linux has this clock. Without it, the wall clock alone shows that the machine was suspended.
    time.unwrap_or_else(|| began.elapsed())
}

/// Time on the monotonic clock: the wall clock alone shows here that the machine was suspended.
#[cfg(not(target_os = "linux"))]
fn boottime(began: Instant) -> Duration {
    began.elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elapsed_time_is_not_behind_the_monotonic_clock() {
        let first = read();
        for _ in 0..1000 {
            let (before, reading, after) = (monotonic(), read(), monotonic());
            assert!(before <= reading.monotonic && reading.monotonic <= after);
            let (monotonic, elapsed) = (
                reading.monotonic.saturating_sub(first.monotonic),
                reading.elapsed.saturating_sub(first.elapsed),
            );
            assert!(elapsed >= monotonic, "{elapsed:?} of {monotonic:?}");
        }
    }

    #[test]
    fn a_jump_is_logged_once_and_small_ones_when_they_add_up() {
        let mut reported = Duration::ZERO;
        for (jumped, logged) in [
            (0, None),
            (2_000, None),
            (2_001, Some(2_001)),
            (2_001, None),
            (3_500, None),
            (182_001, Some(180_000)),
            (182_001, None),
        ] {
            let grown = growth(&mut reported, Duration::from_millis(jumped));
            assert_eq!(grown, logged.map(Duration::from_millis), "{jumped} ms");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_boot_time_is_read() {
        let uptime = std::fs::read_to_string("/proc/uptime").unwrap();
        let seconds: f64 = uptime.split_once(' ').unwrap().0.parse().unwrap();
        // A process without the clock would count from its own start.
        assert!(boottime(Instant::now()).as_secs_f64() + 0.01 >= seconds);
    }
}
