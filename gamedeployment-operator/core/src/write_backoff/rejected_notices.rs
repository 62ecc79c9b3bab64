//! Notices whose creation the API server rejects. The hook of a pod waits for its notice for a limited time, and then
//! runs without it. Neither an edit of the spec restarts that time, nor a plan without the notice: its pod may lose its
//! turn for a moment. A notice is forgotten [`REMEMBERED`] after its last rejection.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::SignedDuration;

use super::{REMEMBERED, WriteFailure, WriteResult};
use crate::cluster::RejectedNotice;
use crate::gate::NOTICE_WAIT;

/// Rejected notices of one workload, by the name of the HookRun.
#[derive(Debug, Default)]
pub(super) struct RejectedNotices(BTreeMap<String, Rejections>);

/// Rejections of one notice.
#[derive(Debug)]
struct Rejections {
    /// Time of the first one.
    since: Duration,
    /// Time of the last one.
    last: Duration,
    /// Last answer.
    answer: String,
}

impl Rejections {
    /// Returns the time at which they are forgotten.
    fn end(&self) -> Duration {
        self.last.saturating_add(REMEMBERED)
    }
}

impl RejectedNotices {
    /// Records the outcome of a write. One on which the API server has not decided changes nothing: it says nothing
    /// about the notice.
    pub(super) fn record(&mut self, result: &WriteResult, now: Duration) {
        if !result.class().is_notice {
            return;
        }
        match &result.failure {
            Some(WriteFailure::Rejected(answer)) => {
                let first = || Rejections {
                    since: now,
                    last: now,
                    answer: String::new(),
                };
                let rejections = self.0.entry(result.object.clone()).or_insert_with(first);
                rejections.last = now;
                rejections.answer.clone_from(answer);
            }
            Some(WriteFailure::Unanswered(_)) => {}
            None | Some(WriteFailure::NotStored(_) | WriteFailure::Repeated(_)) => {
                self.0.remove(&result.object);
            }
        }
    }

    /// Drops notices that have not been rejected for a while.
    pub(super) fn forget_old(&mut self, now: Duration) {
        self.0.retain(|_, known| now < known.end());
    }

    /// Returns whether this notice is remembered as rejected.
    pub(super) fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Returns the rejection of the notice of this name.
    pub(super) fn get(&self, name: &str, now: Duration) -> Option<RejectedNotice<'_>> {
        // A decision precedes the cleanup.
        let rejections = self.0.get(name).filter(|known| now < known.end())?;
        Some(RejectedNotice {
            lasts: SignedDuration::try_from(now.saturating_sub(rejections.since)).ok()?,
            answer: &rejections.answer,
        })
    }

    /// Returns the next time at which a hook stops waiting for its notice, or at which a notice is forgotten.
    pub(super) fn next_end(&self, now: Duration) -> Option<Duration> {
        let wait = NOTICE_WAIT.unsigned_abs();
        let ends = |known: &Rejections| [known.since.saturating_add(wait), known.end()];
        self.0.values().flat_map(ends).filter(|end| *end > now).min()
    }

    /// Whether no notice is remembered as rejected.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests;
