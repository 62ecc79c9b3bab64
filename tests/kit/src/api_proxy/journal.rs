//! Records the requests that pass through the proxy.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::call::ApiCall;
use crate::keeper::lock;
use crate::wait::{TimedOut, changed_until};

/// Request and its outcome.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Arrival time.
    pub at: Instant,
    /// The request.
    pub call: ApiCall,
    /// Outcome, from the API server or from the proxy.
    pub outcome: Outcome,
}

/// Outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Waits for a response, or the client has cancelled it.
    Pending,
    /// Ended with this HTTP status.
    Status(u16),
    /// Ended with a closed connection.
    HungUp,
}

#[derive(Debug, Default)]
pub(super) struct Journal {
    entries: Mutex<Vec<Entry>>,
    changed: watch::Sender<()>,
}

impl Journal {
    pub(super) fn arrived(&self, call: &ApiCall) -> usize {
        let mut entries = lock(&self.entries);
        entries.push(Entry {
            at: Instant::now(),
            call: call.clone(),
            outcome: Outcome::Pending,
        });
        self.changed.send_replace(());
        entries.len() - 1
    }

    pub(super) fn answered(&self, number: usize, status: Option<u16>) {
        if let Some(entry) = lock(&self.entries).get_mut(number) {
            entry.outcome = status.map_or(Outcome::HungUp, Outcome::Status);
        }
        self.changed.send_replace(());
    }

    pub(super) fn entries(&self) -> Vec<Entry> {
        lock(&self.entries).clone()
    }

    pub(super) fn count(&self, verb: &str, resource: &str) -> usize {
        let entries = lock(&self.entries);
        entries
            .iter()
            .filter(|entry| entry.call.verb == verb && entry.call.resource == resource)
            .count()
    }

    pub(super) async fn await_count(
        &self,
        verb: &str,
        resource: &str,
        count: usize,
        deadline: Duration,
    ) -> Result<(), TimedOut> {
        let holds = || self.count(verb, resource) >= count;
        let seen = || format!("{verb} {resource}: {} of {count}", self.count(verb, resource));
        changed_until(self.changed.subscribe(), deadline, holds, seen).await
    }
}
