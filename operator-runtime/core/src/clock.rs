//! Points in time, and time that has passed. Ages and pauses are measured on a clock that cannot be set; only times in
//! objects are wall-clock times.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

#[cfg(test)]
mod tests;

/// Point in time on three clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Wall-clock time.
    pub wall: Timestamp,
    /// Time since the start, never less than has passed: for deadlines, and for ages that must not be too high.
    pub elapsed: Duration,
    /// Time since the start, never more than has passed: for waits that must not be too short.
    pub monotonic: Duration,
}

impl Now {
    /// Returns the elapsed time at which the wall clock will show `then`; now, if that is past.
    pub fn at(&self, then: Timestamp) -> Duration {
        let left = Duration::try_from(then.duration_since(self.wall)).unwrap_or_default();
        self.elapsed.saturating_add(left)
    }
}

/// Largest advance of the wall clock over the other clocks that may be a correction of the wall clock alone.
const MAX_CORRECTION: SignedDuration = SignedDuration::from_secs(2);
/// Reciprocal of the fastest slewing of a clock by NTP: 500 ppm.
const SLEWING: u32 = 2000;
/// Longest advance of the boot time over the monotonic clock that may only show that they are read one after the other.
const ONE_MOMENT: Duration = Duration::from_millis(10);

/// Readings of the clocks of a machine at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// Time on the monotonic clock, which stands still while the machine is suspended.
    pub monotonic: Duration,
    /// Time since the machine was booted, suspensions included. It stands still while a hypervisor holds it.
    pub boottime: Duration,
    /// Wall-clock time. After a hold, it is behind until the guest or NTP sets it.
    pub wall: Timestamp,
}

/// Time that may have passed: never less than any of the clocks shows.
///
/// It runs with the faster of the monotonic clock and the boot time. When the wall clock is ahead of that by more than
/// 2 s, it has jumped, and the whole difference is added. A wall clock that is set back changes nothing, and a later
/// jump counts whole, even one that only corrects the setting: time is counted twice rather than lost.
///
/// The difference is taken from an anchor, so that a jump in many small steps counts as well. The anchor follows a wall
/// clock that falls back at once, and one that is ahead by 500 ppm of the time that passes: slewing by NTP never adds
/// up to a jump. (Linux slews the monotonic clock alike; other systems need not.) So over any time, the sum is behind
/// the wall clock by at most 2 s and 500 ppm.
#[derive(Debug, Clone)]
pub struct ElapsedTime {
    last: Reading,
    /// Sum of the steps of the faster of the monotonic clock and the boot time.
    running: Duration,
    /// Sum of the steps of the monotonic clock.
    awake: Duration,
    /// Sum of the steps of the boot time.
    booted: Duration,
    /// Time by which the boot time is ahead of the monotonic clock.
    suspended: Duration,
    /// Sum of the jumps of the wall clock.
    skipped: Duration,
    /// Wall-clock time minus `running` at which the wall clock is not ahead.
    anchor: SignedDuration,
}

impl ElapsedTime {
    /// Starts at zero.
    pub fn since(first: Reading) -> Self {
        Self {
            last: first,
            running: Duration::ZERO,
            awake: Duration::ZERO,
            booted: Duration::ZERO,
            suspended: Duration::ZERO,
            skipped: Duration::ZERO,
            anchor: first.wall.as_duration(),
        }
    }

    /// Takes in a reading. Returns the time since the first one.
    pub fn observe(&mut self, reading: Reading) -> Duration {
        // A clock that goes backwards stands still for that step.
        let monotonic = reading.monotonic.saturating_sub(self.last.monotonic);
        let boottime = reading.boottime.saturating_sub(self.last.boottime);
        let slewed = self.running / SLEWING;
        self.running = self.running.saturating_add(monotonic.max(boottime));
        self.awake = self.awake.saturating_add(monotonic);
        self.booted = self.booted.saturating_add(boottime);
        // A difference of sums, so that frequent readings add up no moments between two clocks.
        let suspended = self.booted.saturating_sub(self.awake);
        if suspended.saturating_sub(self.suspended) > ONE_MOMENT {
            self.suspended = suspended;
        }
        self.last = reading;
        let offset = reading.wall.as_duration().saturating_sub(signed(self.running));
        let ahead = offset.saturating_sub(self.anchor);
        if ahead > MAX_CORRECTION {
            self.skipped = self.skipped.saturating_add(ahead.unsigned_abs());
            self.anchor = offset;
        } else if ahead.is_negative() {
            self.anchor = offset;
        } else {
            // A difference of sums, so that frequent readings lose nothing by rounding.
            let slewing = signed((self.running / SLEWING).saturating_sub(slewed));
            self.anchor = self.anchor.saturating_add(ahead.min(slewing));
        }
        self.running.saturating_add(self.skipped)
    }

    /// Returns the time for which the machine was suspended, by its boot time.
    pub fn suspended(&self) -> Duration {
        self.suspended
    }

    /// Returns the sum of the jumps of the wall clock.
    pub fn skipped(&self) -> Duration {
        self.skipped
    }
}

fn signed(duration: Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}
