//! Runs that wait for memory: records that they wait, and reads those for which there is room.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use fair_share::semaphore::FairSemaphore;
use hook_driver::{Event, ReadRun, SessionId, WaitingRun};
use operator_runtime::watch::NamespacedName;
use runtime_core::backoff::Backoff;
use tokio::task::{AbortHandle, Id, JoinSet};

use crate::act::ApiBackend;
use crate::latest_tasks::LatestTasks;
use crate::recording::until_recorded;

/// Calls of each sort at a time: their answers are whole objects, and those to records have no room.
const MAX_CALLS: usize = 4;
/// Pauses between attempts to read a run.
const RETRY: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_mins(1));
/// Pause after a read that panicked.
const PANIC_PAUSE: Duration = Duration::from_secs(10);

/// Tasks for runs without a session. Dropping it aborts them all.
pub(crate) struct WaitingRuns {
    calls: Calls,
    records: LatestTasks,
    reads: HashMap<NamespacedName, Read>,
    tasks: JoinSet<(NamespacedName, SessionId, ReadRun)>,
}

/// Task that reads a run.
struct Read {
    id: SessionId,
    task: AbortHandle,
}

/// Calls in turns between namespaces.
#[derive(Clone)]
struct Calls {
    backend: Arc<ApiBackend>,
    records: FairSemaphore,
    reads: FairSemaphore,
}

impl WaitingRuns {
    pub(crate) fn new(backend: Arc<ApiBackend>) -> Self {
        Self {
            calls: Calls {
                backend,
                records: FairSemaphore::new(MAX_CALLS),
                reads: FairSemaphore::new(MAX_CALLS),
            },
            records: LatestTasks::default(),
            reads: HashMap::new(),
            tasks: JoinSet::new(),
        }
    }

    /// Starts to record that a run waits.
    pub(crate) fn record(&mut self, key: NamespacedName, run: WaitingRun) {
        let calls = self.calls.clone();
        self.records.start(key.clone(), calls.record(key, run));
    }

    /// Starts to read a run, which waits no more.
    pub(crate) fn read(&mut self, key: NamespacedName, id: SessionId) {
        self.cancel(&key);
        self.start(key, id, Duration::ZERO);
    }

    /// Aborts what is done for a run.
    pub(crate) fn cancel(&mut self, key: &NamespacedName) {
        self.records.cancel(key);
        if let Some(read) = self.reads.remove(key) {
            read.task.abort();
        }
    }

    fn start(&mut self, key: NamespacedName, id: SessionId, pause: Duration) {
        let calls = self.calls.clone();
        let of = key.clone();
        let task = self.tasks.spawn(async move {
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            let run = calls.read(&of).await;
            (of, id, run)
        });
        self.reads.insert(key, Read { id, task });
    }

    /// Returns the next answer to a read; `None` if none is under way. Dropping the future loses no answer.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            match self.tasks.join_next().await? {
                Ok((key, id, run)) => {
                    if self.reads.get(&key).is_some_and(|read| read.id == id) {
                        self.reads.remove(&key);
                    }
                    return Some(Event::Read(key, id, run));
                }
                Err(error) if error.is_cancelled() => {}
                Err(error) => {
                    tracing::error!(%error, "a read of a HookRun panicked; retrying");
                    self.repeat(error.id());
                }
            }
        }
    }

    /// Repeats the read whose task panicked.
    fn repeat(&mut self, panicked: Id) {
        let mut reads = self.reads.iter();
        let broken = reads.find(|(_, read)| read.task.id() == panicked);
        if let Some((key, id)) = broken.map(|(key, read)| (key.clone(), read.id)) {
            self.start(key, id, PANIC_PAUSE);
        }
    }
}

impl Calls {
    async fn record(self, key: NamespacedName, run: WaitingRun) {
        let attempt = || async {
            let _turn = self.records.take(&key.0).await;
            // Boxed because it is large, and many wait for their turn.
            Box::pin(self.backend.record_waiting(&key, &run)).await
        };
        until_recorded(&key.0, &key.1, "a HookRun is waiting for memory", attempt).await;
    }

    /// Reads a run, as often as it takes.
    async fn read(&self, key: &NamespacedName) -> ReadRun {
        let (namespace, name) = key;
        let mut retry = RETRY;
        loop {
            let read = {
                let _turn = self.reads.take(namespace).await;
                Box::pin(self.backend.read_waiting(namespace, name)).await
            };
            match read {
                Ok(run) => return run,
                Err(error) => {
                    tracing::warn!(namespace, name, %error, "failed to read a waiting HookRun; retrying");
                    tokio::time::sleep(retry.fail()).await;
                }
            }
        }
    }
}
