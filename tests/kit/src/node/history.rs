//! What happened to pods, in order.

use std::sync::Mutex;
use std::time::Instant;

use k8s_openapi::jiff::Timestamp;

use crate::keeper::lock;

/// One thing that happened to a pod.
#[derive(Debug, Clone)]
pub struct Event {
    /// When, for comparisons within the test.
    pub at: Instant,
    /// When, by the clock on the wall.
    pub time: Timestamp,
    /// The pod's name.
    pub pod: String,
    /// The pod's UID.
    pub uid: String,
    /// What.
    pub what: What,
}

/// What can happen to a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// It was bound to a node.
    Scheduled {
        /// The node's name.
        node: String,
    },
    /// A container began to run.
    Started {
        /// The container's name.
        container: String,
        /// Its image.
        image: String,
        /// How often it had been started before.
        restarts: i32,
    },
    /// The pod's condition Ready became True.
    Ready,
    /// The pod's condition Ready was True, and is no longer.
    NotReady,
    /// A running container ended: players on it are cut off.
    Terminated {
        /// The container's name.
        container: String,
        /// The image it ran.
        image: String,
        /// Why it ended.
        why: Why,
    },
    /// The pod is no longer in the API.
    Gone,
}

/// Why a container ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The pod's specification names another image.
    ImageChanged,
    /// The pod was deleted, and its grace was over.
    Deleted,
    /// The pod was removed from the API at once, without asking the node.
    Removed,
    /// It ended with an error, as the test wanted.
    Crashed,
    /// It ended without an error, as the test wanted.
    Completed,
    /// The node put it out, as the test wanted.
    Evicted,
    /// The whole node died, as the test wanted.
    NodeDied,
}

#[derive(Debug, Default)]
pub(super) struct History {
    events: Mutex<Vec<Event>>,
}

impl History {
    pub(super) fn add(&self, pod: &str, uid: &str, what: What) {
        lock(&self.events).push(Event {
            at: Instant::now(),
            time: Timestamp::now(),
            pod: pod.to_owned(),
            uid: uid.to_owned(),
            what,
        });
    }

    pub(super) fn events(&self, wanted: impl Fn(&Event) -> bool) -> Vec<Event> {
        let events = lock(&self.events);
        events.iter().filter(|event| wanted(event)).cloned().collect()
    }
}
