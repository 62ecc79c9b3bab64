//! Nodes as the watch of one process has shown them, which is all that its decisions know of them.

use std::collections::{BTreeMap, BTreeSet};

use gamedeployment_driver::watch_event::{Event, NodeFacts};
use jiff::Timestamp;

/// Node that the watch shows.
#[derive(Debug, Clone)]
pub struct KnownNode {
    pub facts: NodeFacts,
    /// Time at which the process saw the end of its last cordon, or of an autoscaler's taint. `None` while it has one, and
    /// if the process has not seen such an end.
    pub released: Option<Timestamp>,
}

/// Nodes that the watch shows, by name. A process that starts anew knows none, and remembers nothing.
#[derive(Debug, Clone, Default)]
pub struct KnownNodes {
    shown: BTreeMap<String, KnownNode>,
    /// Names in the list that is being read.
    listed: BTreeSet<String>,
}

impl KnownNodes {
    pub fn get(&self, name: &str) -> Option<&KnownNode> {
        self.shown.get(name)
    }

    /// Applies an event of the watch.
    pub(super) fn learn(&mut self, event: &Event<NodeFacts>, now: Timestamp) {
        match event {
            Event::Init => self.listed.clear(),
            Event::InitApply((_, name), facts) | Event::Apply((_, name), facts) => {
                self.listed.insert(name.clone());
                let before = self.shown.get(name);
                let released = match before {
                    _ if facts.is_cordoned => None,
                    Some(before) if before.facts.is_cordoned => Some(now),
                    Some(before) => before.released,
                    None => None,
                };
                let facts = facts.clone();
                self.shown.insert(name.clone(), KnownNode { facts, released });
            }
            Event::Delete((_, name), _) => drop(self.shown.remove(name)),
            Event::InitDone => self.shown.retain(|name, _| self.listed.contains(name)),
        }
    }
}
