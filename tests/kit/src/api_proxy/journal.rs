//! What went through the proxy.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::call::ApiCall;
use crate::keeper::lock;
use crate::wait::{TimedOut, changed_until};

/// One request and what was answered.
#[derive(Debug, Clone)]
pub struct Entry {
    /// When it arrived.
    pub at: Instant,
    /// What it was.
    pub call: ApiCall,
    /// What was answered, by the API server or in its place.
    pub outcome: Outcome,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Not yet: it waits for its answer, or the client gave it up.
    Pending,
    /// With this HTTP status.
    Status(u16),
    /// The connection was closed instead.
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
