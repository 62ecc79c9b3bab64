//! Outages of the API server, from the requests that fail.

use std::time::{Duration, Instant};

use jiff::Timestamp;

/// Time for which requests fail before that counts as an outage. If only some requests fail, such as those for one
/// resource, others are answered meanwhile: the Lease is renewed every 2 s.
const BEGINS_AFTER: Duration = Duration::from_secs(5);
/// Time without a failed request after which an outage is over even without a good answer: while the API server does
/// not answer, the watches fail again every few seconds.
const ENDS_AFTER: Duration = Duration::from_secs(30);

/// Outage of the API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outage {
    /// Time of the first failed request.
    pub since: Timestamp,
    /// Error of the newest failed request.
    pub error: String,
}

/// Requests that have failed since the last good answer.
#[derive(Debug, Default)]
pub(crate) struct Failures(Option<Streak>);

#[derive(Debug)]
struct Streak {
    outage: Outage,
    first: Instant,
    newest: Instant,
}

impl Streak {
    fn is_over(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.newest) >= ENDS_AFTER
    }
}

impl Failures {
    /// Notes a failed request.
    pub(crate) fn failed(&mut self, error: String, now: Instant) {
        let streak = self.0.take().filter(|streak| !streak.is_over(now));
        let mut streak = streak.unwrap_or_else(|| Streak {
            outage: Outage {
                since: Timestamp::now(),
                error: String::new(),
            },
            first: now,
            newest: now,
        });
        streak.outage.error = error;
        streak.newest = now;
        self.0 = Some(streak);
    }

    /// Notes a good answer.
    pub(crate) fn end(&mut self) {
        self.0 = None;
    }

    /// Returns the outage, if there is one.
    pub(crate) fn outage(&self, now: Instant) -> Option<Outage> {
        let streak = self.0.as_ref().filter(|streak| !streak.is_over(now))?;
        let lasts = streak.newest.saturating_duration_since(streak.first);
        (lasts >= BEGINS_AFTER).then(|| streak.outage.clone())
    }

    /// Returns the error of the newest failed request, if no good answer came since.
    #[cfg(test)]
    pub(crate) fn error(&self) -> Option<&str> {
        self.0.as_ref().map(|streak| streak.outage.error.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Outcome of a request; of a failed one with its time, in s.
    enum Request {
        Failed(u64),
        Good,
    }
    use Request::{Failed, Good};

    fn is_outage(requests: &[Request], at: u64) -> bool {
        let began = Instant::now();
        let time = |seconds| began + Duration::from_secs(seconds);
        let mut failures = Failures::default();
        for request in requests {
            match request {
                Failed(seconds) => failures.failed("refused".to_owned(), time(*seconds)),
                Good => failures.end(),
            }
        }
        failures.outage(time(at)).is_some()
    }

    #[test]
    fn an_outage_is_failures_without_a_good_answer_for_a_while() {
        for (requests, at, expected) in [
            (vec![], 0, false),
            (vec![Failed(0)], 0, false),
            (vec![Failed(0)], 20, false),
            (vec![Failed(0), Failed(4)], 20, false),
            (vec![Failed(0), Failed(5)], 5, true),
            (vec![Failed(0), Failed(2), Failed(9), Failed(12)], 12, true),
            (vec![Failed(0), Failed(5), Good], 6, false),
            (vec![Failed(0), Failed(5)], 34, true),
            (vec![Failed(0), Failed(5)], 35, false),
        ] {
            let count = requests.len();
            assert_eq!(is_outage(&requests, at), expected, "{count} requests, at {at}");
        }
    }

    /// One resource fails for good, while the Lease is renewed.
    #[test]
    fn one_failing_resource_is_no_outage_while_others_are_answered() {
        let mut requests = Vec::new();
        for second in (0..60).step_by(2) {
            requests.extend([Failed(second), Failed(second + 1), Good]);
            requests.push(Failed(second + 1));
            assert!(!is_outage(&requests, second + 1), "{second}");
        }
    }

    /// A process that makes few requests.
    #[test]
    fn failures_with_long_pauses_are_no_outage() {
        assert!(!is_outage(&[Failed(0), Failed(40), Failed(90)], 90));
        assert!(is_outage(&[Failed(0), Failed(40), Failed(60)], 60));
    }
}
