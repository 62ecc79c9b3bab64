//! A session for every run without a verdict, and none for any other: finished runs cost nothing.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt};
use hook_session::measure::Measurer;
use hook_session::{End, Session};
use kube::core::error_boundary::InvalidObject;
use kube::runtime::watcher::Event;
use operator_runtime::watch::{Key, Observed, key_of};
use shared_api::HookRun;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

use crate::act::ApiLedger;
use crate::metrics::Metrics;
use crate::refusals::Refusals;

/// Pause before what should not have failed is tried again.
const AFTER_DEFECT: Duration = Duration::from_secs(10);

/// Keeps the sessions in step with the watch.
pub struct Controller {
    measurer: Measurer<ApiLedger>,
    metrics: Metrics,
    seats: HashMap<Key, Seat>,
    tasks: JoinSet<(Key, String, End)>,
    refusals: Refusals,
    /// Runs seen in the list that is being read.
    listed: Option<HashSet<Key>>,
}

/// What is known of a run besides what the watch says.
enum Seat {
    /// It is being measured.
    Taken(Handle),
    /// Its session has ended, and the watch has not shown that yet. An older state that arrives now must not bring
    /// the run back to life: it would be measured again for a slot that is recorded.
    Left {
        /// Of the run.
        uid: String,
        /// How it ended.
        end: End,
    },
}

/// A session, seen from outside. Dropping it ends the session and cancels its calls.
struct Handle {
    uid: String,
    updates: watch::Sender<Arc<HookRun>>,
    task: AbortHandle,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Controller {
    /// A controller without sessions.
    #[must_use]
    pub fn new(measurer: Measurer<ApiLedger>, metrics: Metrics) -> Self {
        Self {
            measurer,
            metrics,
            seats: HashMap::new(),
            tasks: JoinSet::new(),
            refusals: Refusals::default(),
            listed: None,
        }
    }

    /// Follows the watch until it ends.
    pub async fn drive(mut self, events: impl Stream<Item = Observed<HookRun>>) {
        let mut events = std::pin::pin!(events);
        loop {
            tokio::select! {
                event = events.next() => match event {
                    Some(event) => self.observe(event),
                    None => return,
                },
                Some(ended) = self.tasks.join_next(), if !self.tasks.is_empty() => self.leave(ended),
            }
            self.metrics
                .active_runs
                .set(i64::try_from(self.tasks.len()).unwrap_or(i64::MAX));
        }
    }

    fn observe(&mut self, event: Observed<HookRun>) {
        match event {
            Event::Init => self.listed = Some(HashSet::new()),
            Event::InitApply(run) | Event::Apply(run) => match run.0 {
                Ok(run) => self.apply(Arc::new(run)),
                Err(invalid) => self.refuse(invalid),
            },
            Event::Delete(run) => {
                let metadata = match &run.0 {
                    Ok(run) => &run.metadata,
                    Err(invalid) => &invalid.metadata,
                };
                self.seats.remove(&key_of(metadata));
                self.refusals.cancel(&key_of(metadata));
            }
            Event::InitDone => {
                // What was deleted while nobody watched is in no list.
                if let Some(listed) = self.listed.take() {
                    self.seats.retain(|key, _| listed.contains(key));
                    self.refusals.retain(&listed);
                }
            }
        }
    }

    fn apply(&mut self, run: Arc<HookRun>) {
        let key = key_of(&run.metadata);
        if let Some(listed) = &mut self.listed {
            listed.insert(key.clone());
        }
        self.refusals.cancel(&key);
        let uid = run.metadata.uid.clone().unwrap_or_default();
        if run.metadata.deletion_timestamp.is_some() {
            self.seats.remove(&key);
            return;
        }
        match self.seats.get(&key) {
            Some(Seat::Taken(session)) if session.uid == uid => {
                session.updates.send_replace(run);
            }
            Some(Seat::Left { uid: left, end }) if *left == uid && end.is_news_of_before(&run) => {}
            _ if is_over(&run) => {
                self.seats.remove(&key);
            }
            _ => self.open(key, uid, run, Duration::ZERO),
        }
    }

    fn open(&mut self, key: Key, uid: String, run: Arc<HookRun>, pause: Duration) {
        let (updates, receiver) = watch::channel(run);
        let measurer = self.measurer.clone();
        let identity = (key.clone(), uid.clone());
        let task = self.tasks.spawn(async move {
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            (
                identity.0,
                identity.1,
                Session::new(measurer, receiver).drive().await,
            )
        });
        self.seats.insert(key, Seat::Taken(Handle { uid, updates, task }));
    }

    /// Remembers how a session ended until the watch shows it.
    fn leave(&mut self, ended: Result<(Key, String, End), tokio::task::JoinError>) {
        match ended {
            Ok((key, uid, end)) => {
                let latest = match self.seats.get(&key) {
                    Some(Seat::Taken(session)) if session.uid == uid => session.updates.borrow().clone(),
                    _ => return,
                };
                if end.is_news_of_before(&latest) {
                    self.seats.insert(key, Seat::Left { uid, end });
                    return;
                }
                // The watch has shown the end already; what it brought since, nobody has heard.
                self.seats.remove(&key);
                if end.is_before(&latest) {
                    self.apply(latest);
                }
            }
            Err(error) if error.is_cancelled() => {}
            Err(error) => {
                tracing::error!(%error, "a session ended without a verdict; it is opened again");
                self.reopen();
            }
        }
    }

    /// Opens the sessions again whose task has ended in a defect of ours.
    fn reopen(&mut self) {
        let broken = self.seats.iter().filter_map(|(key, seat)| match seat {
            Seat::Taken(session) if session.task.is_finished() => {
                Some((key.clone(), session.uid.clone(), session.updates.borrow().clone()))
            }
            Seat::Taken(_) | Seat::Left { .. } => None,
        });
        for (key, uid, run) in broken.collect::<Vec<_>>() {
            self.open(key, uid, run, AFTER_DEFECT);
        }
    }

    fn refuse(&mut self, invalid: InvalidObject) {
        self.metrics.unreadable.inc();
        let key = key_of(&invalid.metadata);
        if let Some(listed) = &mut self.listed {
            listed.insert(key.clone());
        }
        self.seats.remove(&key);
        self.refusals.start(key, invalid, self.measurer.ledger.clone());
    }
}

/// Whether there is nothing left to do for a run.
fn is_over(run: &HookRun) -> bool {
    let ended = run.status.as_ref().is_some_and(|status| status.phase.is_final());
    ended && run.spec.ttl_seconds_after_finished.is_none()
}
