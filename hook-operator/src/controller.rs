//! Opens a session for every run without a verdict and for no other: finished runs cost nothing. Runs for whose spec
//! there is no room wait.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::Stream;
use hook_driver::spec_budget::SpecLimits;
use hook_driver::{Change, End, Event, SessionId, Sessions};
use hook_session::SessionRunner;
use hook_session::measure::Measurer;
use kube::Resource as _;
use kube::runtime::watcher;
use operator_runtime::heartbeat::Heartbeats;
use operator_runtime::watch::{NamespacedName, Observed, key_of};
use shared_api::HookRun;
use shared_api::parsed::{InvalidObject, Parsed};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinError, JoinSet};

use crate::act::{ApiBackend, with_used_metadata};
use crate::latest_tasks::LatestTasks;
use crate::metadata;
use crate::metrics::Metrics;
use crate::unreadable;
use crate::waiting::WaitingRuns;

/// Pause before a session that panicked is opened again.
const REOPEN_DELAY: Duration = Duration::from_secs(10);

/// Keeps the sessions in sync with the watch.
pub struct Controller {
    measurer: Measurer<ApiBackend>,
    metrics: Metrics,
    sessions: Sessions,
    handles: HashMap<NamespacedName, Handle>,
    tasks: JoinSet<(NamespacedName, SessionId, End)>,
    /// Tasks that record which runs cannot be read.
    unreadable: LatestTasks,
    waiting: WaitingRuns,
}

/// Handle of a session. Dropping it ends the session and cancels its calls.
struct Handle {
    id: SessionId,
    updates: watch::Sender<Arc<HookRun>>,
    task: AbortHandle,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Controller {
    /// Creates a controller without sessions, whose specs will stay within these limits.
    pub fn new(measurer: Measurer<ApiBackend>, metrics: Metrics, limits: SpecLimits) -> Self {
        Self {
            waiting: WaitingRuns::new(measurer.backend.clone()),
            measurer,
            metrics,
            sessions: Sessions::new(limits),
            handles: HashMap::new(),
            tasks: JoinSet::new(),
            unreadable: LatestTasks::default(),
        }
    }

    /// Processes watch events until their stream ends.
    pub async fn drive(mut self, events: impl Stream<Item = Observed<HookRun>>, heartbeats: &Heartbeats) {
        let mut events = std::pin::pin!(events);
        let heartbeat = heartbeats.of("hookruns");
        loop {
            heartbeat.beat();
            tokio::select! {
                event = heartbeat.next(&mut events) => match event {
                    Some(event) => {
                        let event = self.read(event);
                        self.observe(event);
                    }
                    None => return,
                },
                Some(ended) = self.tasks.join_next(), if !self.tasks.is_empty() => self.leave(ended),
                Some(answer) = self.waiting.next() => self.observe(answer),
            }
            let gauge = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
            self.metrics.active_runs.set(gauge(self.tasks.len()));
            self.metrics.runs_waiting.set(gauge(self.sessions.waiting()));
        }
    }

    fn observe(&mut self, event: Event) {
        let changes = self.sessions.observe(event);
        self.change(changes, Duration::ZERO);
    }

    /// Converts a watch event. For a run that cannot be read, starts a task that records this.
    fn read(&mut self, event: Observed<HookRun>) -> Event {
        match event {
            watcher::Event::Init => Event::Init,
            watcher::Event::InitApply(Parsed(Ok(run))) => Event::InitApply(self.readable(run)),
            watcher::Event::Apply(Parsed(Ok(run))) => Event::Apply(self.readable(run)),
            watcher::Event::InitApply(Parsed(Err(invalid))) | watcher::Event::Apply(Parsed(Err(invalid))) => {
                self.refuse(invalid)
            }
            watcher::Event::Delete(run) => {
                let key = key_of(run.meta());
                self.unreadable.cancel(&key);
                Event::Delete(key)
            }
            watcher::Event::InitDone => {
                if let Some(listed) = self.sessions.listed() {
                    self.unreadable.retain(listed);
                }
                Event::InitDone
            }
        }
    }

    fn readable(&mut self, run: HookRun) -> Arc<HookRun> {
        self.unreadable.cancel(&key_of(&run.metadata));
        Arc::new(with_used_metadata(run))
    }

    fn refuse(&mut self, mut invalid: InvalidObject) -> Event {
        self.metrics.unreadable.inc();
        // Read again when the problem is recorded.
        invalid.status.take();
        invalid.metadata = metadata::used(invalid.metadata);
        let key = key_of(&invalid.metadata);
        let record = record_unreadable(invalid, self.measurer.backend.clone());
        self.unreadable.start(key.clone(), record);
        Event::Unreadable(key)
    }

    fn change(&mut self, changes: impl IntoIterator<Item = Change>, pause: Duration) {
        for change in changes {
            match change {
                Change::Open(key, id, run) => {
                    self.waiting.cancel(&key);
                    self.open(key, id, run, pause);
                }
                Change::Update(key, run) => {
                    if let Some(handle) = self.handles.get(&key) {
                        handle.updates.send_replace(run);
                    }
                }
                Change::Close(key) => {
                    self.waiting.cancel(&key);
                    self.handles.remove(&key);
                }
                Change::Wait(key, run) => self.waiting.record(key, run),
                Change::Read(key, id) => self.waiting.read(key, id),
            }
        }
    }

    fn open(&mut self, key: NamespacedName, id: SessionId, run: Arc<HookRun>, pause: Duration) {
        let (updates, receiver) = watch::channel(run);
        let measurer = self.measurer.clone();
        let of = key.clone();
        let task = self.tasks.spawn(async move {
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            (of, id, SessionRunner::new(measurer, receiver).drive().await)
        });
        self.handles.insert(key, Handle { id, updates, task });
    }

    /// Handles the end of a session.
    fn leave(&mut self, ended: Result<(NamespacedName, SessionId, End), JoinError>) {
        match ended {
            Ok((key, id, end)) => {
                if self.handles.get(&key).is_some_and(|handle| handle.id == id) {
                    self.handles.remove(&key);
                }
                let changes = self.sessions.ended(key, id, end);
                self.change(changes, Duration::ZERO);
            }
            Err(error) if error.is_cancelled() => {}
            Err(error) => {
                tracing::error!(%error, "a session ended without a verdict; restarting it");
                self.reopen();
            }
        }
    }

    /// Reopens the sessions whose task panicked.
    fn reopen(&mut self) {
        let broken = self
            .handles
            .iter()
            .filter(|(_, handle)| handle.task.is_finished());
        let broken: Vec<(NamespacedName, SessionId)> =
            broken.map(|(key, handle)| (key.clone(), handle.id)).collect();
        for (key, id) in broken {
            let again = self.sessions.broken(&key, id);
            self.change(again, REOPEN_DELAY);
        }
    }
}

/// Records that a run cannot be read.
async fn record_unreadable(invalid: InvalidObject, backend: Arc<ApiBackend>) {
    let attempt = || backend.refuse_unreadable(&invalid.metadata, &invalid.error);
    unreadable::record("a HookRun", &invalid, attempt).await;
}
