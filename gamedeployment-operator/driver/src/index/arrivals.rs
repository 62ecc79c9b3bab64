//! Arrival times of verdicts, on the clock of elapsed time. The time since a verdict arrived does not depend on
//! wall clocks.

use std::collections::HashMap;
use std::time::Duration;

use super::sweep::Sweep;
use crate::NamespacedName;

/// Time after a watch break during which arrivals are ignored: those verdicts may be as old as the break.
const RELIST_WINDOW: Duration = Duration::from_secs(10);

/// Observed verdicts by run: UID and arrival time.
#[derive(Debug, Default)]
pub(super) struct VerdictArrivals {
    seen: HashMap<NamespacedName, (String, Duration)>,
    sweep: Sweep,
}

impl VerdictArrivals {
    /// Records that a known run now has a verdict, unless the watch broke recently. `healthy` is the time
    /// since which the watch has had no break.
    pub(super) fn arrived(
        &mut self,
        key: NamespacedName,
        uid: String,
        healthy: Option<Duration>,
        now: Duration,
    ) {
        let steady = healthy.is_some_and(|since| now.saturating_sub(since) >= RELIST_WINDOW);
        if steady {
            self.seen.insert(key, (uid, now));
        }
    }

    /// Time since the verdict arrived; `None` if its arrival was not recorded.
    pub(super) fn known_for(
        &self,
        key: &NamespacedName,
        uid: &str,
        now: Duration,
    ) -> Option<jiff::SignedDuration> {
        let (_, at) = self.seen.get(key).filter(|(of, _)| of == uid)?;
        jiff::SignedDuration::try_from(now.saturating_sub(*at)).ok()
    }

    /// Drops deleted runs whenever the number of entries has doubled since the last sweep.
    pub(super) fn sweep(&mut self, is_there: impl Fn(&NamespacedName, &str) -> bool) {
        if self.sweep.is_due(self.seen.len()) {
            self.seen.retain(|key, (uid, _)| is_there(key, uid));
            self.sweep.done(self.seen.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::sweep::MIN_SWEEP;

    #[test]
    fn an_arrival_counts_where_the_watch_was_not_catching_up() {
        let begin = Duration::ZERO;
        let at = |seconds: u64| begin + Duration::from_secs(seconds);
        let key = |name: &str| ("games".to_owned(), name.to_owned());
        let mut arrivals = VerdictArrivals::default();
        arrivals.arrived(key("a"), "1".to_owned(), Some(at(0)), at(20));
        arrivals.arrived(key("b"), "2".to_owned(), Some(at(15)), at(20));
        arrivals.arrived(key("c"), "3".to_owned(), None, at(20));
        let known = |name: &str, uid: &str| arrivals.known_for(&key(name), uid, at(27));
        assert_eq!(known("a", "1"), Some(jiff::SignedDuration::from_secs(7)));
        assert_eq!(known("a", "other"), None, "another run of that name");
        assert_eq!(known("b", "2"), None, "the watch had been broken shortly before");
        assert_eq!(known("c", "3"), None, "the watch is broken");
    }

    #[test]
    fn runs_that_are_gone_are_forgotten() {
        let mut arrivals = VerdictArrivals::default();
        let begin = Duration::ZERO;
        let now = begin + RELIST_WINDOW;
        for number in 0..MIN_SWEEP {
            let key = ("games".to_owned(), number.to_string());
            arrivals.arrived(key, number.to_string(), Some(begin), now);
            arrivals.sweep(|key, _| key.1 == "7");
        }
        assert_eq!(arrivals.seen.len(), 1);
    }
}
