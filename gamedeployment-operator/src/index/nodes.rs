//! What the watch shows of nodes, and for how long it has not shown one that pods are bound to.
//!
//! That a node is not shown may mean that it is gone, that the watch is late or broken, or that the node registers anew
//! just now. Only an absence that lasts, under a watch that was healthy all the time, counts as one.

use std::collections::{BTreeSet, HashMap};
use std::time::Instant;

use gamedeployment_core::cluster::Node;
use k8s_openapi::api::core::v1 as api;
use kube::core::DeserializeGuard;
use kube::core::error_boundary::InvalidObject;
use kube::runtime::watcher::Event;
use operator_runtime::watch::Observed;
use shared_api::names;

/// What is known of a node.
#[derive(Debug, Clone, PartialEq, Default)]
struct Facts {
    cost: Option<f64>,
}

/// Nodes.
#[derive(Debug, Default)]
pub struct Nodes {
    shown: HashMap<String, Facts>,
    listed: Option<BTreeSet<String>>,
    known: bool,
    /// Since when nodes that pods are bound to have been absent.
    absent: HashMap<String, Instant>,
    /// Since when the watch has been healthy without a break.
    healthy: Option<Instant>,
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

    /// Since when the watch has been healthy without a break; none while it is broken.
    pub fn set_healthy(&mut self, since: Option<Instant>) {
        self.healthy = since;
    }

    /// A pod is bound to this node.
    pub(super) fn bound(&mut self, name: &str, now: Instant) {
        if self.known && !self.shown.contains_key(name) && !self.absent.contains_key(name) {
            self.absent.insert(name.to_owned(), now);
        }
    }

    /// The API server has not confirmed that this node is gone: its absence begins anew.
    pub fn doubt(&mut self, name: &str, now: Instant) {
        self.absent.insert(name.to_owned(), now);
    }

    /// What is known of a node.
    pub(super) fn state(&self, name: &str, now: Instant) -> Node {
        if !self.known || self.shown.contains_key(name) {
            return Node::There;
        }
        let (Some(absent), Some(healthy), None) = (self.absent.get(name), self.healthy, &self.listed) else {
            return Node::Unsure;
        };
        let elapsed = now.saturating_duration_since(healthy.max(*absent));
        jiff::SignedDuration::try_from(elapsed).map_or(Node::Unsure, Node::Absent)
    }

    /// Takes news in. Returns the names of nodes of which something has changed.
    pub(super) fn learn(&mut self, event: Observed<api::Node>) -> Vec<String> {
        let mut changed = Vec::new();
        match event {
            Event::Init => self.listed = Some(BTreeSet::new()),
            Event::InitApply(DeserializeGuard(read)) | Event::Apply(DeserializeGuard(read)) => {
                let (name, facts) = read_node(read);
                if let Some(listed) = &mut self.listed {
                    listed.insert(name.clone());
                }
                self.absent.remove(&name);
                if self.shown.insert(name.clone(), facts.clone()) != Some(facts) {
                    changed.push(name);
                }
            }
            Event::Delete(DeserializeGuard(read)) => {
                let (name, _) = read_node(read);
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

    /// Pods are bound to these nodes and to no others.
    pub(super) fn bound_to<'a>(&mut self, names: impl Iterator<Item = &'a str>, now: Instant) {
        let in_use: BTreeSet<&str> = names.collect();
        self.absent.retain(|name, _| in_use.contains(name.as_str()));
        for name in in_use {
            self.bound(name, now);
        }
    }
}

fn read_node(read: Result<api::Node, InvalidObject>) -> (String, Facts) {
    let metadata = match read {
        Ok(node) => node.metadata,
        Err(invalid) => invalid.metadata,
    };
    let cost = metadata
        .annotations
        .as_ref()
        .and_then(|notes| notes.get(names::NODE_DELETION_COST));
    let cost = cost.and_then(|text| text.trim().parse().ok());
    (metadata.name.unwrap_or_default(), Facts { cost })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::SignedDuration;
    use serde_json::json;

    use super::*;

    fn node(name: &str) -> DeserializeGuard<api::Node> {
        let node = json!({ "metadata": { "name": name } });
        DeserializeGuard(Ok(serde_json::from_value(node).unwrap()))
    }

    fn listed(names: &[&str]) -> Nodes {
        let mut nodes = Nodes::default();
        nodes.learn(Event::Init);
        for name in names {
            nodes.learn(Event::InitApply(node(name)));
        }
        nodes.learn(Event::InitDone);
        nodes
    }

    #[test]
    fn an_absence_counts_from_when_it_began_and_only_under_a_healthy_watch() {
        let begin = Instant::now();
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
        nodes.doubt("late", at(88));
        assert_eq!(nodes.state("late", at(90)), absent(2));
        nodes.learn(Event::Apply(node("late")));
        assert_eq!(nodes.state("late", at(900)), Node::There);
        assert_eq!(nodes.state("old", at(900)), Node::There);
    }

    #[test]
    fn a_node_that_registers_anew_begins_anew() {
        let begin = Instant::now();
        let at = |seconds: u64| begin + Duration::from_secs(seconds);
        let mut nodes = listed(&["one"]);
        nodes.set_healthy(Some(at(0)));
        assert_eq!(nodes.learn(Event::Delete(node("one"))), ["one"]);
        nodes.bound_to(["one"].into_iter(), at(100));
        assert_eq!(nodes.state("one", at(100)), Node::Absent(SignedDuration::ZERO));
        nodes.learn(Event::Apply(node("one")));
        nodes.learn(Event::Delete(node("one")));
        nodes.bound_to(["one"].into_iter(), at(150));
        assert_eq!(
            nodes.state("one", at(170)),
            Node::Absent(SignedDuration::from_secs(20))
        );
        // While a list is being read, nobody knows.
        nodes.learn(Event::Init);
        assert_eq!(nodes.state("one", at(900)), Node::Unsure);
        nodes.learn(Event::InitDone);
        assert_eq!(
            nodes.state("one", at(210)),
            Node::Absent(SignedDuration::from_secs(60))
        );
        // What no pod is bound to is forgotten.
        nodes.bound_to(std::iter::empty(), at(210));
        assert_eq!(nodes.state("one", at(900)), Node::Unsure);
    }
}
