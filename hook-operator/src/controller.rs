//! A session for every run without a verdict, and none for any other: finished runs cost nothing.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures::{Stream, StreamExt};
use kube::core::error_boundary::InvalidObject;
use kube::runtime::watcher::Event;
use shared_api::HookRun;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

use crate::act::ApiLedger;
use crate::measure::Measurer;
use crate::observe::Observed;
use crate::session::Session;

/// Namespace and name.
type Key = (String, String);

/// Keeps the sessions in step with the watch.
pub struct Controller {
    measurer: Measurer<ApiLedger>,
    sessions: HashMap<Key, Handle>,
    tasks: JoinSet<(Key, String)>,
    /// Runs seen in the list that is being read.
    listed: Option<HashSet<Key>>,
}

/// A session, seen from outside. Dropping it ends the session and cancels its calls.
struct Handle {
    uid: String,
    updates: watch::Sender<HookRun>,
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
    pub fn new(measurer: Measurer<ApiLedger>) -> Self {
        Self {
            measurer,
            sessions: HashMap::new(),
            tasks: JoinSet::new(),
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
                Some(ended) = self.tasks.join_next(), if !self.tasks.is_empty() => self.forget(ended),
            }
            self.measurer
                .metrics
                .active_runs
                .set(i64::try_from(self.sessions.len()).unwrap_or(i64::MAX));
        }
    }

    fn observe(&mut self, event: Observed<HookRun>) {
        match event {
            Event::Init => self.listed = Some(HashSet::new()),
            Event::InitApply(run) | Event::Apply(run) => match run.0 {
                Ok(run) => self.apply(run),
                Err(invalid) => self.refuse(invalid),
            },
            Event::Delete(run) => {
                let metadata = match &run.0 {
                    Ok(run) => &run.metadata,
                    Err(invalid) => &invalid.metadata,
                };
                self.sessions.remove(&key_of(metadata));
            }
            Event::InitDone => {
                // What was deleted while nobody watched is in no list.
                if let Some(listed) = self.listed.take() {
                    self.sessions.retain(|key, _| listed.contains(key));
                }
            }
        }
    }

    fn apply(&mut self, run: HookRun) {
        let key = key_of(&run.metadata);
        if let Some(listed) = &mut self.listed {
            listed.insert(key.clone());
        }
        let uid = run.metadata.uid.clone().unwrap_or_default();
        if run.metadata.deletion_timestamp.is_some() {
            self.sessions.remove(&key);
            return;
        }
        match self.sessions.get(&key) {
            Some(session) if session.uid == uid => {
                session.updates.send_replace(run);
            }
            _ if is_over(&run) => {
                self.sessions.remove(&key);
            }
            _ => {
                let session = self.open(key.clone(), uid, run);
                self.sessions.insert(key, session);
            }
        }
    }

    fn open(&mut self, key: Key, uid: String, run: HookRun) -> Handle {
        let (updates, receiver) = watch::channel(run);
        let session = Session::new(self.measurer.clone(), receiver);
        let identity = (key, uid.clone());
        let task = self.tasks.spawn(async move {
            session.drive().await;
            identity
        });
        Handle { uid, updates, task }
    }

    /// Drops what is left of a session that ended by itself.
    fn forget(&mut self, ended: Result<(Key, String), tokio::task::JoinError>) {
        match ended {
            Ok((key, uid)) => {
                if self.sessions.get(&key).is_some_and(|session| session.uid == uid) {
                    self.sessions.remove(&key);
                }
            }
            Err(error) if error.is_cancelled() => {}
            Err(error) => {
                // A defect: the session is opened again at the run's next event or the next list.
                tracing::error!(%error, "a session ended without a verdict");
                self.sessions.retain(|_, session| !session.task.is_finished());
            }
        }
    }

    fn refuse(&mut self, invalid: InvalidObject) {
        self.measurer.metrics.unreadable.inc();
        let key = key_of(&invalid.metadata);
        if let Some(listed) = &mut self.listed {
            listed.insert(key.clone());
        }
        self.sessions.remove(&key);
        let ledger: Arc<ApiLedger> = self.measurer.ledger.clone();
        tokio::spawn(async move {
            let name = invalid.metadata.name.clone().unwrap_or_default();
            tracing::warn!(name, error = invalid.error, "a HookRun cannot be read");
            if let Err(error) = ledger.refuse_unreadable(&invalid.metadata, &invalid.error).await {
                tracing::warn!(name, %error, "failed to record that a HookRun cannot be read");
            }
        });
    }
}

fn key_of(metadata: &kube::core::ObjectMeta) -> Key {
    (
        metadata.namespace.clone().unwrap_or_default(),
        metadata.name.clone().unwrap_or_default(),
    )
}

/// Whether there is nothing left to do for a run.
fn is_over(run: &HookRun) -> bool {
    let ended = run.status.as_ref().is_some_and(|status| status.phase.is_final());
    ended && run.spec.ttl_seconds_after_finished.is_none()
}
