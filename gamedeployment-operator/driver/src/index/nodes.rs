//! Nodes that the watch shows, and how long it has not shown a node that pods are bound to.
//!
//! A node may be missing because it is gone, because the watch is late or broken, or because the node is
//! registering again. Only an absence that lasts under a continuously healthy watch counts.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use gamedeployment_core::cluster::Node;

use crate::watch_event::{Event, NodeFacts};

/// Nodes.
#[derive(Debug, Default)]
pub struct Nodes {
    shown: HashMap<String, NodeFacts>,
    listed: Option<BTreeSet<String>>,
    known: bool,
    /// Times since which nodes with bound pods have been absent.
    absent: HashMap<String, Duration>,
    /// Time since which the watch has been healthy without a break.
    healthy: Option<Duration>,
}

impl Nodes {
    /// Whether nodes have been listed once.
    pub(super) fn is_synced(&self) -> bool {
        self.known
    }

    /// Deletion cost of pods on this node.
    pub(super) fn cost(&self, name: &str) -> Option<f64> {
        self.shown.get(name)?.cost
    }

    /// Names of the nodes that the watch shows, in any order.
    pub fn shown(&self) -> impl Iterator<Item = &String> {
        self.shown.keys()
    }

    /// Sets the time since which the watch has been healthy without a break; `None` while it is broken.
    pub fn set_healthy(&mut self, since: Option<Duration>) {
        self.healthy = since;
    }

    /// Starts the absence of a node that a pod is bound to, if the watch does not show the node.
    pub(super) fn bound(&mut self, name: &str, now: Duration) {
        if self.known && !self.shown.contains_key(name) && !self.absent.contains_key(name) {
            self.absent.insert(name.to_owned(), now);
        }
    }

    /// Restarts the absence of a node that the API server did not confirm as gone.
    pub fn restart_absence(&mut self, name: &str, now: Duration) {
        self.absent.insert(name.to_owned(), now);
    }

    /// Takes a node as not Ready, as a direct read found it, until the watch shows it again.
    pub fn set_not_ready(&mut self, name: &str) {
        if let Some(facts) = self.shown.get_mut(name) {
            facts.ready = false;
        }
    }

    /// Returns the state of a node.
    pub(super) fn state(&self, name: &str, now: Duration) -> Node {
        if !self.known {
            return Node::Unwatched;
        }
        if let Some(facts) = self.shown.get(name) {
            return match self.healthy {
                Some(_) if facts.ready => Node::Ready,
                Some(_) => Node::NotReady,
                None => Node::Unsure,
            };
        }
        let (Some(absent), Some(healthy), None) = (self.absent.get(name), self.healthy, &self.listed) else {
            return Node::Unsure;
        };
        let elapsed = now.saturating_sub(healthy.max(*absent));
        jiff::SignedDuration::try_from(elapsed).map_or(Node::Unsure, Node::Absent)
    }

    /// Applies a watch event. Returns the names of changed nodes.
    pub(super) fn apply_event(&mut self, event: Event<NodeFacts>) -> Vec<String> {
        let mut changed = Vec::new();
        match event {
            Event::Init => self.listed = Some(BTreeSet::new()),
            Event::InitApply((_, name), facts) | Event::Apply((_, name), facts) => {
                if let Some(listed) = &mut self.listed {
                    listed.insert(name.clone());
                }
                self.absent.remove(&name);
                if self.shown.insert(name.clone(), facts.clone()) != Some(facts) {
                    changed.push(name);
                }
            }
            Event::Delete((_, name), _) => {
                self.shown.remove(&name);
                changed.push(name);
            }
            Event::InitDone => {
                let listed = self.listed.take().unwrap_or_default();
                changed.extend(self.shown.keys().filter(|name| !listed.contains(*name)).cloned());
                self.shown.retain(|name, _| listed.contains(name));
                self.known = true;
            }
        }
        changed
    }

    /// Replaces the set of nodes that pods are bound to.
    pub(super) fn bound_to<'a>(&mut self, names: impl Iterator<Item = &'a str>, now: Duration) {
        let in_use: BTreeSet<&str> = names.collect();
        self.absent.retain(|name, _| in_use.contains(name.as_str()));
        for name in in_use {
            self.bound(name, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    type Shown = Event<NodeFacts>;

    fn key(name: &str) -> crate::NamespacedName {
        (String::new(), name.to_owned())
    }

    fn applied(name: &str) -> Shown {
        Event::Apply(key(name), ready())
    }

    fn ready() -> NodeFacts {
        NodeFacts {
            ready: true,
            cost: None,
        }
    }

    fn deleted(name: &str) -> Shown {
        Event::Delete(key(name), String::new())
    }

    fn listed(names: &[&str]) -> Nodes {
        let mut nodes = Nodes::default();
        nodes.apply_event(Event::Init);
        for name in names {
            nodes.apply_event(Event::InitApply(key(name), ready()));
        }
        nodes.apply_event(Event::InitDone);
        nodes
    }

    #[test]
    fn an_absence_counts_from_when_it_began_and_only_under_a_healthy_watch() {
        let begin = Duration::ZERO;
        let at = |seconds: u64| begin + Duration::from_secs(seconds);
        let absent = |seconds| Node::Absent(SignedDuration::from_secs(seconds));
        let mut nodes = listed(&["old"]);
        assert_eq!(nodes.state("late", at(0)), Node::Unsure, "no pod of it is known");
        nodes.bound("late", at(0));
        assert_eq!(
            nodes.state("late", at(90)),
            Node::Unsure,
            "the watch is not healthy"
        );
        nodes.set_healthy(Some(at(10)));
        assert_eq!(nodes.state("late", at(90)), absent(80));
        // A break restarts the count.
        nodes.set_healthy(Some(at(85)));
        assert_eq!(nodes.state("late", at(90)), absent(5));
        // An answer that the node exists, or no answer, restarts it too.
        nodes.restart_absence("late", at(88));
        assert_eq!(nodes.state("late", at(90)), absent(2));
        nodes.apply_event(applied("late"));
        assert_eq!(nodes.state("late", at(900)), Node::Ready);
        assert_eq!(nodes.state("old", at(900)), Node::Ready);
    }

    #[test]
    fn a_node_is_ready_while_a_healthy_watch_shows_it_so() {
        let now = Duration::from_secs(9);
        assert_eq!(Nodes::default().state("one", now), Node::Unwatched);
        let mut nodes = listed(&["one"]);
        assert_eq!(nodes.state("one", now), Node::Unsure, "the watch is not healthy");
        nodes.set_healthy(Some(now));
        assert_eq!(nodes.state("one", now), Node::Ready);
        let silent = Event::Apply(key("one"), NodeFacts::default());
        assert_eq!(nodes.apply_event(silent), ["one"], "its pods are decided on anew");
        assert_eq!(nodes.state("one", now), Node::NotReady);
        nodes.apply_event(applied("one"));
        assert_eq!(nodes.state("one", now), Node::Ready);
        // A direct read knows better until the watch shows the node again.
        nodes.set_not_ready("one");
        nodes.set_not_ready("another");
        assert_eq!(nodes.state("one", now), Node::NotReady);
        assert_eq!(nodes.apply_event(applied("one")), ["one"]);
        assert_eq!(nodes.state("one", now), Node::Ready);
        nodes.set_healthy(None);
        assert_eq!(nodes.state("one", now), Node::Unsure);
    }

    #[test]
    fn a_node_that_registers_anew_begins_anew() {
        let begin = Duration::ZERO;
        let at = |seconds: u64| begin + Duration::from_secs(seconds);
        let mut nodes = listed(&["one"]);
        nodes.set_healthy(Some(at(0)));
        assert_eq!(nodes.apply_event(deleted("one")), ["one"]);
        nodes.bound_to(["one"].into_iter(), at(100));
        assert_eq!(nodes.state("one", at(100)), Node::Absent(SignedDuration::ZERO));
        nodes.apply_event(applied("one"));
        nodes.apply_event(deleted("one"));
        nodes.bound_to(["one"].into_iter(), at(150));
        assert_eq!(
            nodes.state("one", at(170)),
            Node::Absent(SignedDuration::from_secs(20))
        );
        // The state is unknown while a list is being read.
        nodes.apply_event(Event::Init);
        assert_eq!(nodes.state("one", at(900)), Node::Unsure);
        nodes.apply_event(Event::InitDone);
        assert_eq!(
            nodes.state("one", at(210)),
            Node::Absent(SignedDuration::from_secs(60))
        );
        // Nodes without bound pods are dropped.
        nodes.bound_to(std::iter::empty(), at(210));
        assert_eq!(nodes.state("one", at(900)), Node::Unsure);
    }
}
