//! History of the pods, in order.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Instant;

use k8s_openapi::jiff::Timestamp;

use crate::keeper::lock;

/// Event in the life of a pod.
#[derive(Debug, Clone)]
pub struct Event {
    /// Monotonic time, for comparisons within the test.
    pub at: Instant,
    /// Wall-clock time.
    pub time: Timestamp,
    /// Pod name.
    pub pod: String,
    /// Pod UID.
    pub uid: String,
    /// Kind of event.
    pub what: GameEvent,
}

/// Kind of event in the life of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GameEvent {
    /// The pod was bound to a node.
    Scheduled {
        /// Node name.
        node: String,
    },
    /// A container started.
    Started {
        /// Container name.
        container: String,
        /// Image.
        image: String,
        /// Number of earlier starts.
        restarts: i32,
    },
    /// The pod's condition Ready became True.
    Ready,
    /// The pod's condition Ready stopped being True.
    NotReady,
    /// A running container ended, which cuts its players off.
    Terminated {
        /// Container name.
        container: String,
        /// Image that it ran.
        image: String,
        /// Reason.
        why: EndReason,
    },
    /// The pod is no longer in the API.
    Gone,
}

/// Reason for the end of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    /// The pod's spec names another image.
    ImageChanged,
    /// The pod was deleted, and its grace period is over.
    Deleted,
    /// The pod was removed from the API at once, without waiting for the node.
    Removed,
    /// It exited with an error: the test made it crash, or its game server could not start.
    Crashed,
    /// The test made it exit without an error.
    Completed,
    /// The test made the node evict it.
    Evicted,
    /// The test made the whole node die.
    NodeDied,
}

#[derive(Debug, Default)]
pub(super) struct History {
    log: Mutex<Log>,
}

#[derive(Debug, Default)]
struct Log {
    events: Vec<Event>,
    /// Containers that run, by UID of the pod and name: the place of their start in `events`.
    running: HashMap<(String, String), usize>,
}

impl History {
    pub(super) fn add(&self, pod: &str, uid: &str, what: GameEvent) {
        let mut log = lock(&self.log);
        let Log { events, running } = &mut *log;
        match &what {
            GameEvent::Started { container, .. } => {
                running.insert((uid.to_owned(), container.clone()), events.len());
            }
            GameEvent::Terminated { container, .. } => {
                running.remove(&(uid.to_owned(), container.clone()));
            }
            GameEvent::Scheduled { .. } | GameEvent::Ready | GameEvent::NotReady | GameEvent::Gone => {}
        }
        events.push(Event {
            at: Instant::now(),
            time: Timestamp::now(),
            pod: pod.to_owned(),
            uid: uid.to_owned(),
            what,
        });
    }

    pub(super) fn events(&self, wanted: impl Fn(&Event) -> bool) -> Vec<Event> {
        let log = lock(&self.log);
        log.events.iter().filter(|event| wanted(event)).cloned().collect()
    }

    /// Returns the number of a container's current run, by UID of the pod and name; `None` if it does not
    /// run. Each run has its own number.
    pub(super) fn run_of(&self, container: &(String, String)) -> Option<usize> {
        lock(&self.log).running.get(container).copied()
    }
}
