//! What the watch shows of nodes, and for how long it has not shown one that pods are bound to.
//!
//! That a node is not shown may mean that it is gone, that the watch is late or broken, or that the node registers anew
//! just now. Only an absence that lasts, under a watch that was healthy all the time, counts as one.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use gamedeployment_core::cluster::Node;

use crate::news::{Event, NodeFacts};

/// Nodes.
#[derive(Debug, Default)]
pub struct Nodes {
    shown: HashMap<String, NodeFacts>,
    listed: Option<BTreeSet<String>>,
    known: bool,
    /// Since when nodes that pods are bound to have been absent.
    absent: HashMap<String, Duration>,
    /// Since when the watch has been healthy without a break.
    healthy: Option<Duration>,
}

impl Nodes {
    /// Whether they have been listed once.
    pub(super) fn is_synced(&self) -> bool {
        self.known
    }

    /// What deleting a pod on this node costs.
    pub(super) fn cost(&self, name: &str) -> Option<f64> {
        self.shown.get(name)?.cost
    }

    /// Names of those that the watch shows, in any order.
    pub fn shown(&self) -> impl Iterator<Item = &String> {
        self.shown.keys()
    }

    /// Since when the watch has been healthy without a break; none while it is broken.
    pub fn set_healthy(&mut self, since: Option<Duration>) {
        self.healthy = since;
    }

    /// A pod is bound to this node.
    pub(super) fn bound(&mut self, name: &str, now: Duration) {
        if self.known && !self.shown.contains_key(name) && !self.absent.contains_key(name) {
            self.absent.insert(name.to_owned(), now);
        }
    }

    /// The API server has not confirmed that this node is gone: its absence begins anew.
    pub fn restart_absence(&mut self, name: &str, now: Duration) {
        self.absent.insert(name.to_owned(), now);
    }

    /// What is known of a node.
    pub(super) fn state(&self, name: &str, now: Duration) -> Node {
        if !self.known || self.shown.contains_key(name) {
            return Node::There;
        }
        let (Some(absent), Some(healthy), None) = (self.absent.get(name), self.healthy, &self.listed) else {
            return Node::Unsure;
        };
        let elapsed = now.saturating_sub(healthy.max(*absent));
        jiff::SignedDuration::try_from(elapsed).map_or(Node::Unsure, Node::Absent)
    }

    /// Takes news in. Returns the names of nodes of which something has changed.
    pub(super) fn learn(&mut self, event: Event<NodeFacts>) -> Vec<String> {
        let mut changed = Vec::new();
        match event {
            Event::ListBegins => self.listed = Some(BTreeSet::new()),
            Event::Listed((_, name), facts) | Event::Applied((_, name), facts) => {
                if let Some(listed) = &mut self.listed {
                    listed.insert(name.clone());
                }
                self.absent.remove(&name);
                if self.shown.insert(name.clone(), facts.clone()) != Some(facts) {
                    changed.push(name);
                }
            }
            Event::Deleted((_, name), _) => {
                self.shown.remove(&name);
                changed.push(name);
            }
            Event::ListEnds => {
                let listed = self.listed.take().unwrap_or_default();
                changed.extend(self.shown.keys().filter(|name| !listed.contains(*name)).cloned());
                self.shown.retain(|name, _| listed.contains(name));
                self.known = true;
            }
        }
        changed
    }

    /// Pods are bound to these nodes and to no others.
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

    fn key(name: &str) -> crate::Key {
        (String::new(), name.to_owned())
    }

    fn applied(name: &str) -> Shown {
        Event::Applied(key(name), NodeFacts::default())
    }

    fn deleted(name: &str) -> Shown {
        Event::Deleted(key(name), String::new())
    }

    fn listed(names: &[&str]) -> Nodes {
        let mut nodes = Nodes::default();
        nodes.learn(Event::ListBegins);
        for name in names {
            nodes.learn(Event::Listed(key(name), NodeFacts::default()));
        }
        nodes.learn(Event::ListEnds);
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
        // A break begins the count anew.
        nodes.set_healthy(Some(at(85)));
        assert_eq!(nodes.state("late", at(90)), absent(5));
        // So does an answer of the API server that it is there, or no answer.
        nodes.restart_absence("late", at(88));
        assert_eq!(nodes.state("late", at(90)), absent(2));
        nodes.learn(applied("late"));
        assert_eq!(nodes.state("late", at(900)), Node::There);
        assert_eq!(nodes.state("old", at(900)), Node::There);
    }

    #[test]
    fn a_node_that_registers_anew_begins_anew() {
        let begin = Duration::ZERO;
        let at = |seconds: u64| begin + Duration::from_secs(seconds);
        let mut nodes = listed(&["one"]);
        nodes.set_healthy(Some(at(0)));
        assert_eq!(nodes.learn(deleted("one")), ["one"]);
        nodes.bound_to(["one"].into_iter(), at(100));
        assert_eq!(nodes.state("one", at(100)), Node::Absent(SignedDuration::ZERO));
        nodes.learn(applied("one"));
        nodes.learn(deleted("one"));
        nodes.bound_to(["one"].into_iter(), at(150));
        assert_eq!(
            nodes.state("one", at(170)),
            Node::Absent(SignedDuration::from_secs(20))
        );
        // While a list is being read, nobody knows.
        nodes.learn(Event::ListBegins);
        assert_eq!(nodes.state("one", at(900)), Node::Unsure);
        nodes.learn(Event::ListEnds);
        assert_eq!(
            nodes.state("one", at(210)),
            Node::Absent(SignedDuration::from_secs(60))
        );
        // What no pod is bound to is forgotten.
        nodes.bound_to(std::iter::empty(), at(210));
        assert_eq!(nodes.state("one", at(900)), Node::Unsure);
    }
}
