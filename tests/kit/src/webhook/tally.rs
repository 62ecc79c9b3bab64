//! Counts requests, and wakes the tasks that wait for a count.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;

use super::Received;
use crate::keeper::lock;
use crate::wait::{TimedOut, changed_until};

/// Counts for one path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Completely received requests.
    pub received: usize,
    /// Received requests that wait for their response or read it.
    pub in_flight: usize,
    /// Requests that the client cancelled, before or during the response.
    pub cancelled: usize,
    /// Body bytes handed to connections. A connection holds some megabytes that the client never read.
    pub sent_bytes: u64,
}

#[derive(Debug, Default)]
struct Log {
    requests: Vec<Received>,
    paths: HashMap<String, Counts>,
}

#[derive(Debug)]
pub(crate) struct Tally {
    log: Mutex<Log>,
    changed: watch::Sender<()>,
}

impl Tally {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            log: Mutex::default(),
            changed: watch::Sender::new(()),
        })
    }

    pub(crate) fn requests(&self) -> Vec<Received> {
        lock(&self.log).requests.clone()
    }

    pub(crate) fn counts(&self, path: &str) -> Counts {
        lock(&self.log).paths.get(path).copied().unwrap_or_default()
    }

    pub(super) fn enter(self: &Arc<Self>, request: &Received) -> InFlight {
        let in_flight = InFlight {
            tally: Arc::clone(self),
            path: request.path.clone(),
            finished: false,
        };
        lock(&self.log).requests.push(request.clone());
        in_flight.update(|counts| {
            counts.received += 1;
            counts.in_flight += 1;
        });
        in_flight
    }

    /// Waits until the counts satisfy the predicate. Every change wakes it, so nothing is polled.
    pub(crate) async fn reach(
        &self,
        path: &str,
        deadline: Duration,
        wanted: impl Fn(&Counts) -> bool,
    ) -> Result<(), TimedOut> {
        let holds = || wanted(&self.counts(path));
        let seen = || format!("{path}: {:?}", self.counts(path));
        changed_until(self.changed.subscribe(), deadline, holds, seen).await
    }
}

/// Request in flight. Dropping it unfinished means that the client cancelled it.
#[derive(Debug)]
pub(super) struct InFlight {
    tally: Arc<Tally>,
    path: String,
    finished: bool,
}

impl InFlight {
    pub(super) fn sent(&self, bytes: usize) {
        self.update(|counts| counts.sent_bytes += bytes as u64);
    }

    pub(super) fn finish(mut self, bytes: usize) {
        self.sent(bytes);
        self.finished = true;
    }

    fn update(&self, change: impl FnOnce(&mut Counts)) {
        change(lock(&self.tally.log).paths.entry(self.path.clone()).or_default());
        self.tally.changed.send_replace(());
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.update(|counts| {
            counts.in_flight -= 1;
            counts.cancelled += usize::from(!self.finished);
        });
    }
}
