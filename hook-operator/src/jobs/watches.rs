//! One watch for each namespace in which a Job is awaited. It closes when no Job is.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use futures::StreamExt as _;
use hook_core::answer::JobEnd;
use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt as _;
use kube::runtime::watcher::Event;
use operator_runtime::watch::watch_selected;
use shared_api::names::job::RUN_UID;
use shared_api::parsed::Parsed;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::calls::JobCalls;

/// Watches of Jobs.
pub(super) struct JobWatches {
    calls: JobCalls,
    open: Mutex<HashMap<String, Weak<NamespaceWatch>>>,
}

/// State of a Job that no longer changes.
#[derive(Debug, Clone)]
pub(super) enum Seen {
    /// The Job has ended.
    Ended(Box<Job>, JobEnd),
    /// The Job was deleted before it ended.
    Deleted,
}

/// States by UID.
type States = HashMap<String, Seen>;

/// Watch of one namespace. Dropping it closes the watch.
struct NamespaceWatch {
    states: watch::Receiver<States>,
    task: AbortHandle,
}

impl Drop for NamespaceWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Use of a watch. The watch stays open while there is one.
pub(super) struct Watched {
    _watch: Arc<NamespaceWatch>,
    states: watch::Receiver<States>,
}

impl Watched {
    /// Waits until the Job of this UID has ended or is deleted.
    pub(super) async fn ended(&mut self, uid: &str) -> Seen {
        let seen = self.states.wait_for(|states| states.contains_key(uid)).await;
        let seen = seen.ok().and_then(|states| states.get(uid).cloned());
        match seen {
            Some(seen) => seen,
            // The watch has ended; direct reads go on.
            None => std::future::pending().await,
        }
    }
}

impl JobWatches {
    pub(super) fn new(calls: JobCalls) -> Self {
        Self {
            calls,
            open: Mutex::default(),
        }
    }

    /// Opens the watch of a namespace, or shares the open one.
    pub(super) fn open(&self, namespace: &str) -> Watched {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, watch| watch.strong_count() > 0);
        let shared = open.get(namespace).and_then(Weak::upgrade);
        let watch = shared.unwrap_or_else(|| {
            let (sender, states) = watch::channel(States::new());
            let task = tokio::spawn(follow(self.calls.clone(), namespace.to_owned(), sender)).abort_handle();
            Arc::new(NamespaceWatch { states, task })
        });
        open.insert(namespace.to_owned(), Arc::downgrade(&watch));
        Watched {
            states: watch.states.clone(),
            _watch: watch,
        }
    }
}

/// Collects the ends of the Jobs of a namespace.
async fn follow(calls: JobCalls, namespace: String, states: watch::Sender<States>) {
    let mut events = std::pin::pin!(watch_selected::<Job>(calls.jobs(&namespace), RUN_UID, "jobs"));
    while let Some(event) = events.next().await {
        match event {
            Event::Init => states.send_modify(States::clear),
            Event::Apply(Parsed(job)) | Event::InitApply(Parsed(job)) => {
                let job = job.inspect_err(|invalid| {
                    let name = invalid.metadata.name.as_deref();
                    tracing::warn!(namespace, name, error = invalid.error, "a Job cannot be parsed");
                });
                if let Ok(job) = job
                    && let Some(end) = JobEnd::of(&job)
                {
                    let uid = job.uid().unwrap_or_default();
                    let ended = Seen::Ended(Box::new(slim(job)), end);
                    states.send_modify(|states| drop(states.insert(uid, ended)));
                }
            }
            Event::Delete(job) => {
                let uid = job.uid().unwrap_or_default();
                states.send_modify(|states| {
                    if states.remove(&uid).is_none() {
                        states.insert(uid, Seen::Deleted);
                    }
                });
            }
            Event::InitDone => {}
        }
    }
}

/// Keeps the parts of a Job that its verdict needs.
fn slim(mut job: Job) -> Job {
    job.spec = None;
    job
}
