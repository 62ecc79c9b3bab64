//! Reports to one Eviction: when the next one is due, and which time it carries.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::NamespacedName;
use crate::request::{EvictionReport, RequestError};
use crate::watch_event::Eviction;
use runtime_core::clock::Now;

/// Time from an Eviction's activation to its first report: by then, the pod's hook usually runs.
const FIRST_REPORT: Duration = Duration::from_secs(2);
/// Shortest time between two reports to an Eviction, and the interval at which its message is compared. The API asks
/// responders not to send heartbeats more often.
pub(super) const MIN_INTERVAL: Duration = Duration::from_secs(20);
/// Longest time between two heartbeats.
const HEARTBEAT: Duration = Duration::from_mins(5);
/// Longest pause after a failure.
const MAX_PAUSE: Duration = Duration::from_mins(2);
/// Number of consecutive failures after which a Warning event is emitted.
const FAILURES_BEFORE_WARNING: u32 = 3;

/// Progress of the reports to one Eviction.
#[derive(Debug)]
pub(super) struct ReportState {
    /// UID of the Eviction.
    pub(super) uid: String,
    /// Workload of the pod, as far as known.
    pub(super) workload: Option<NamespacedName>,
    /// Time at which this process first saw the Eviction as active, and the heartbeat that it showed then.
    seen: (Duration, Option<Timestamp>),
    /// Last report of this process.
    last: Option<LastReport>,
    /// Time at which the last report was sent, even if it failed.
    sent: Option<Duration>,
    pub(super) progress: Progress,
    /// Number of failed requests since the last successful report.
    failures: u32,
    /// Clock of the next report.
    clock: ReportClock,
}

/// Clock by which the time of a report is determined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReportClock {
    /// The wall clock, unless it is behind.
    Wall,
    /// The time that has passed since the start or the last heartbeat: the wall clock may be ahead.
    Elapsed,
}

/// Report that was written.
#[derive(Debug)]
struct LastReport {
    at: Duration,
    heartbeat: Option<Timestamp>,
    message: String,
}

/// Whether a request for the Eviction is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// No request is under way.
    Idle,
    /// A request is under way.
    Pending,
    /// The completion has been reported. The watch may not have shown it yet.
    Completed,
}

impl ReportState {
    pub(super) fn new(eviction: &Eviction, now: Now) -> Self {
        Self {
            uid: eviction.uid.clone(),
            workload: None,
            seen: (now.elapsed, eviction.heartbeat),
            last: None,
            sent: None,
            progress: Progress::Idle,
            failures: 0,
            clock: ReportClock::Wall,
        }
    }

    /// Returns the time of the first report. An earlier process may have reported recently.
    pub(super) fn first_due(&self, now: Now) -> Duration {
        let (seen, shown) = self.seen;
        let age = shown.map(|shown| Duration::try_from(now.wall.duration_since(shown)).unwrap_or_default());
        let left = age.map_or(Duration::ZERO, |age| MIN_INTERVAL.saturating_sub(age));
        seen + left.max(FIRST_REPORT)
    }

    /// Returns the time at which a report with this message is due.
    pub(super) fn due(&self, message: &str) -> Duration {
        match &self.last {
            // A report may have been stored even if its request failed.
            Some(last) if last.message != message => {
                last.at.max(self.sent.unwrap_or_default()) + MIN_INTERVAL
            }
            Some(_) | None => self.heartbeat_due(),
        }
    }

    /// Returns the time at which the next heartbeat is due, even if the message stays the same.
    pub(super) fn heartbeat_due(&self) -> Duration {
        let last = self.last.as_ref().map(|last| last.at + HEARTBEAT);
        let sent = self.sent.map(|sent| sent + MIN_INTERVAL);
        last.max(sent).unwrap_or(Duration::ZERO)
    }

    /// Records that a report is sent.
    pub(super) fn record_sent(&mut self, now: Duration) {
        self.sent = Some(now);
    }

    /// Returns the last message of this process.
    pub(super) fn message(&self) -> Option<&str> {
        self.last.as_ref().map(|last| last.message.as_str())
    }

    /// Returns the time of the last heartbeat.
    pub(super) fn last_heartbeat(&self, eviction: &Eviction) -> Option<Timestamp> {
        let own = self.last.as_ref().and_then(|last| last.heartbeat);
        eviction.heartbeat.max(own)
    }

    /// Returns the time to report: now, but never before the start or the last heartbeat, which the API server rejects.
    /// The time elapsed since these is added to them. If the clock is behind, the sum is used, so that heartbeats
    /// advance; if the clock may be ahead, only the sum is used.
    ///
    /// The API stores whole seconds, and rejects a heartbeat that differs from the stored one and is old.
    pub(super) fn report_time(&self, eviction: &Eviction, now: Now) -> Timestamp {
        let (seen, shown) = self.seen;
        let last = self.last.as_ref().map(|last| (last.heartbeat, last.at));
        let moving = [(eviction.started, seen), (shown, seen)].into_iter().chain(last);
        let moving = moving.filter_map(|(time, at)| {
            let since = SignedDuration::try_from(now.elapsed.saturating_sub(at)).ok()?;
            time?.checked_add(since).ok()
        });
        let moving = moving.max();
        let time = match self.clock {
            ReportClock::Wall => moving.max(Some(now.wall)),
            ReportClock::Elapsed => moving,
        };
        let time = time.unwrap_or(now.wall);
        let whole = Timestamp::from_second(time.as_second()).unwrap_or(time);
        let earliest = [eviction.started, self.last_heartbeat(eviction)];
        earliest.into_iter().flatten().fold(whole, Timestamp::max)
    }

    /// Records a report that was written.
    pub(super) fn record(&mut self, report: EvictionReport, now: Duration) {
        self.failures = 0;
        self.last = Some(LastReport {
            at: now,
            heartbeat: report.heartbeat,
            message: report.message,
        });
    }

    /// Changes the clock if the API server has rejected a report: its time may have been the reason. The clock of an
    /// accepted report stays.
    pub(super) fn record_refusal(&mut self, error: &RequestError) {
        if matches!(error, RequestError::Refused(_)) {
            self.clock = match self.clock {
                ReportClock::Wall => ReportClock::Elapsed,
                ReportClock::Elapsed => ReportClock::Wall,
            };
        }
    }

    /// Records a failure. Returns the pause until the next attempt, which doubles with each failure, and whether to
    /// emit a warning.
    pub(super) fn record_failure(&mut self, first_pause: Duration) -> (Duration, bool) {
        self.failures = self.failures.saturating_add(1);
        let doubled = 2_u32.saturating_pow(self.failures - 1);
        let pause = first_pause.saturating_mul(doubled).min(MAX_PAUSE);
        (pause, self.failures == FAILURES_BEFORE_WARNING)
    }
}
