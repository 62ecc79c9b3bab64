//! Keeps one execution for every ExecutionHook of the watch.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures::Stream;
use kube::Resource as _;
use kube::runtime::watcher;
use operator_runtime::heartbeat::Heartbeats;
use operator_runtime::watch::{NamespacedName, Observed, key_of};
use shared_api::ExecutionHook;
use shared_api::parsed::{InvalidObject, Parsed};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

use super::calls::Calls;
use super::runner::Runner;
use crate::latest_tasks::LatestTasks;
use crate::unreadable;

/// Pause before an execution that has ended is opened again.
const REOPEN_DELAY: Duration = Duration::from_secs(10);

/// Executions of this process.
pub(super) struct Controller {
    calls: Arc<Calls>,
    handles: HashMap<NamespacedName, Handle>,
    /// Hooks seen so far in the list that is being read.
    listed: HashSet<NamespacedName>,
    tasks: JoinSet<()>,
    /// Tasks that record which hooks cannot be read.
    unreadable: LatestTasks,
}

/// Handle of an execution. Dropping it ends the execution and cancels its calls.
struct Handle {
    updates: watch::Sender<Arc<ExecutionHook>>,
    task: AbortHandle,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Controller {
    pub(super) fn new(calls: Arc<Calls>) -> Self {
        Self {
            calls,
            handles: HashMap::new(),
            listed: HashSet::new(),
            tasks: JoinSet::new(),
            unreadable: LatestTasks::default(),
        }
    }

    /// Processes watch events until their stream ends.
    pub(super) async fn drive(
        mut self,
        events: impl Stream<Item = Observed<ExecutionHook>>,
        heartbeats: &Heartbeats,
    ) {
        let mut events = std::pin::pin!(events);
        let heartbeat = heartbeats.of("executionhooks");
        loop {
            heartbeat.beat();
            tokio::select! {
                event = heartbeat.next(&mut events) => match event {
                    Some(event) => self.observe(event),
                    None => return,
                },
                Some(ended) = self.tasks.join_next(), if !self.tasks.is_empty() => {
                    self.leave(ended.is_err_and(|error| error.is_panic()));
                }
            }
            let active = i64::try_from(self.handles.len()).unwrap_or(i64::MAX);
            self.calls.metrics.active.set(active);
        }
    }

    fn observe(&mut self, event: Observed<ExecutionHook>) {
        match event {
            watcher::Event::Init => self.listed.clear(),
            watcher::Event::InitApply(hook) => {
                self.listed.insert(key_of(hook.meta()));
                self.apply(hook);
            }
            watcher::Event::Apply(hook) => self.apply(hook),
            watcher::Event::Delete(hook) => {
                let key = key_of(hook.meta());
                self.unreadable.cancel(&key);
                self.handles.remove(&key);
            }
            // A hook that was deleted while the watch was interrupted is missing from the list.
            watcher::Event::InitDone => {
                let listed = std::mem::take(&mut self.listed);
                self.unreadable.retain(&listed);
                self.handles.retain(|key, _| listed.contains(key));
            }
        }
    }

    fn apply(&mut self, Parsed(hook): Parsed<ExecutionHook>) {
        match hook {
            Ok(mut hook) => {
                let key = key_of(&hook.metadata);
                self.unreadable.cancel(&key);
                if hook.is_complete() {
                    // Only its time to live matters.
                    hook.status
                        .iter_mut()
                        .for_each(|status| status.hook_statuses.clear());
                }
                let open = self.handles.get(&key);
                let open = open.filter(|handle| handle.updates.borrow().metadata.uid == hook.metadata.uid);
                match open {
                    Some(handle) => {
                        handle.updates.send_replace(Arc::new(hook));
                    }
                    None => self.open(key, Arc::new(hook), Duration::ZERO),
                }
            }
            Err(mut invalid) => {
                // Read again when the problem is recorded.
                invalid.status.take();
                self.calls.metrics.unreadable.inc();
                let key = key_of(&invalid.metadata);
                self.handles.remove(&key);
                self.unreadable
                    .start(key, record_unreadable(invalid, self.calls.clone()));
            }
        }
    }

    fn open(&mut self, key: NamespacedName, hook: Arc<ExecutionHook>, pause: Duration) {
        let (updates, receiver) = watch::channel(hook);
        let calls = self.calls.clone();
        let task = self.tasks.spawn(async move {
            tokio::time::sleep(pause).await;
            Runner::new(calls, receiver).drive().await;
        });
        self.handles.insert(key, Handle { updates, task });
    }

    /// Opens the executions that have ended again, after a pause: as long as the watch shows their hooks, these may exist.
    fn leave(&mut self, panicked: bool) {
        let ended = self.handles.extract_if(|_, handle| handle.task.is_finished());
        let ended: Vec<_> = ended
            .map(|(key, handle)| (key, handle.updates.borrow().clone()))
            .collect();
        if panicked {
            tracing::error!("an execution panicked; restarting it");
        }
        for (key, hook) in ended {
            self.open(key, hook, REOPEN_DELAY);
        }
    }
}

/// Records that a hook cannot be read.
async fn record_unreadable(invalid: InvalidObject, calls: Arc<Calls>) {
    unreadable::record("an ExecutionHook", &invalid, || calls.refuse_unreadable(&invalid)).await;
}
