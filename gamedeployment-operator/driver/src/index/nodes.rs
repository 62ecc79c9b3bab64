//! Nodes that the watch shows, and how long it has not shown a node that pods are bound to.
//!
//! A node may be missing because it is gone, because the watch is late or broken, or because the node is
//! registering again. Only an absence that lasts under a continuously healthy watch counts.
//!
//! A node counts as Ready once it has been Ready for [`NODE_SETTLE_TIME`], counted from when this process saw
//! its transition. Only a node that the watch shows for the first time is believed the time in its condition,
//! which comes from the node's clock.
//!
//! These times are monotonic: a wait that seems to be over because the wall clock was set would open gates. Only the
//! end of a cordon is in wall time, because it is compared with the times of removal requests.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use gamedeployment_core::cluster::{Node, NodeDisruption};
use gamedeployment_core::gate::NODE_SETTLE_TIME;
use jiff::{SignedDuration, Timestamp};
use runtime_core::clock::Now;

use crate::watch_event::{Event, NodeFacts};

/// How far a node's clock may lag behind the one of this process.
const CLOCK_SKEW: SignedDuration = SignedDuration::from_secs(60);

/// Nodes.
#[derive(Debug, Default)]
pub struct Nodes {
    shown: HashMap<String, ShownNode>,
    listed: Option<BTreeSet<String>>,
    known: bool,
    /// Times since which nodes with bound pods have been absent.
    absent: HashMap<String, Duration>,
    /// Time since which the watch has been healthy without a break.
    healthy: Option<Duration>,
}

/// Node that the watch shows.
#[derive(Debug)]
struct ShownNode {
    facts: NodeFacts,
    /// Time since which its transition to Ready is known; `None` if that was long ago.
    ready_known: Option<Duration>,
    /// Time at which this process saw that it was no longer cordoned or about to be removed. `None` if it is, or if
    /// this process has not seen that change.
    schedulable_since: Option<Timestamp>,
}

impl Nodes {
    /// Whether nodes have been listed once.
    pub(super) fn is_synced(&self) -> bool {
        self.known
    }

    /// Deletion cost of pods on this node.
    pub(super) fn cost(&self, name: &str) -> Option<f64> {
        self.shown.get(name)?.facts.cost
    }

    /// Returns the state of a node that decides whether its pods must leave it; `None` if the watch does not show it.
    pub(super) fn disruption(&self, name: &str) -> Option<NodeDisruption<'_>> {
        let node = self.shown.get(name)?;
        Some(NodeDisruption {
            is_cordoned: node.facts.is_cordoned,
            schedulable_since: node.schedulable_since,
            taints: &node.facts.taints,
        })
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

    /// Time of the node's transition to Ready, by the clock of its kubelet.
    pub(super) fn ready_since(&self, name: &str) -> Option<Timestamp> {
        self.shown.get(name)?.facts.ready_since
    }

    /// Takes a node as not Ready until the watch shows it again, after a direct read found it not Ready or Ready
    /// since another time. Nothing changes if the watch has shown that time meanwhile.
    pub fn set_not_ready(&mut self, name: &str, found: Option<Timestamp>) {
        if let Some(node) = self.shown.get_mut(name)
            && node.facts.ready_since != found
        {
            node.facts.ready_since = None;
        }
    }

    /// Returns the state of a node.
    pub(super) fn state(&self, name: &str, now: Duration) -> Node {
        if !self.known {
            return Node::Unwatched;
        }
        if let Some(node) = self.shown.get(name) {
            return match (self.healthy, node.facts.ready_since) {
                (None, _) => Node::Unsure,
                (Some(_), None) => Node::NotReady,
                (Some(_), Some(_)) => node.settled(now),
            };
        }
        let (Some(absent), Some(healthy), None) = (self.absent.get(name), self.healthy, &self.listed) else {
            return Node::Unsure;
        };
        let elapsed = now.saturating_sub(healthy.max(*absent));
        jiff::SignedDuration::try_from(elapsed).map_or(Node::Unsure, Node::Absent)
    }

    /// Applies a watch event. Returns the names of changed nodes.
    pub(super) fn apply_event(&mut self, event: Event<NodeFacts>, now: Now) -> Vec<String> {
        let mut changed = Vec::new();
        match event {
            Event::Init => self.listed = Some(BTreeSet::new()),
            Event::InitApply((_, name), facts) | Event::Apply((_, name), facts) => {
                if let Some(listed) = &mut self.listed {
                    listed.insert(name.clone());
                }
                self.absent.remove(&name);
                let known = self.shown.get(&name);
                if known.is_none_or(|known| known.differs(&facts)) {
                    changed.push(name.clone());
                }
                let node = ShownNode::new(facts, known, now);
                self.shown.insert(name, node);
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

impl ShownNode {
    /// Takes over from the node as shown before when its transition to Ready became known, and when its cordon ended.
    fn new(mut facts: NodeFacts, known: Option<&Self>, now: Now) -> Self {
        if let Some(known) = known.filter(|_| facts.is_unreadable) {
            facts.is_cordoned = known.facts.is_cordoned;
            facts.taints.clone_from(&known.facts.taints);
        }
        let ready_known = match known {
            Some(known) if known.facts.ready_since == facts.ready_since => known.ready_known,
            // This process sees the transition, whatever the node's clock says.
            Some(_) => Some(now.monotonic),
            None => {
                let long_ago = |since| now.wall.duration_since(since) >= NODE_SETTLE_TIME + CLOCK_SKEW;
                (!facts.ready_since.is_some_and(long_ago)).then_some(now.monotonic)
            }
        };
        let schedulable_since = match known {
            Some(known) if known.facts.is_cordoned => Some(now.wall),
            Some(known) => known.schedulable_since,
            None => None,
        };
        Self {
            schedulable_since: schedulable_since.filter(|_| !facts.is_cordoned),
            facts,
            ready_known,
        }
    }

    /// Whether the change of its facts concerns the pods on it. A later transition to Ready only takes time.
    fn differs(&self, new: &NodeFacts) -> bool {
        let known = &self.facts;
        known.ready_since.is_some() != new.ready_since.is_some()
            || known.cost != new.cost
            || !new.is_unreadable && (known.is_cordoned, &known.taints) != (new.is_cordoned, &new.taints)
    }

    /// Returns the state of a node whose condition Ready is True.
    fn settled(&self, now: Duration) -> Node {
        let Some(known) = self.ready_known else {
            return Node::Ready;
        };
        let elapsed = SignedDuration::try_from(now.saturating_sub(known)).unwrap_or(SignedDuration::MAX);
        if elapsed < NODE_SETTLE_TIME {
            Node::JustReady(elapsed)
        } else {
            Node::Ready
        }
    }
}

#[cfg(test)]
mod tests {
    use gamedeployment_core::cluster::Taint;
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
        ready_since(-3600)
    }

    /// Facts about a node that became Ready this many seconds after the process started, by its own clock.
    fn ready_since(second: i64) -> NodeFacts {
        NodeFacts {
            ready_since: Some(start() + SignedDuration::from_secs(second)),
            ..NodeFacts::default()
        }
    }

    fn start() -> Timestamp {
        Timestamp::from_second(1_700_000_000).unwrap()
    }

    fn time(second: u64) -> Now {
        let monotonic = Duration::from_secs(second);
        Now {
            wall: start() + monotonic,
            // Time may seem to run faster than it does, for example when the wall clock is set.
            elapsed: 1000 * monotonic,
            monotonic,
        }
    }

    fn deleted(name: &str) -> Shown {
        Event::Delete(key(name), String::new())
    }

    fn listed(names: &[&str]) -> Nodes {
        let mut nodes = Nodes::default();
        nodes.apply_event(Event::Init, time(0));
        for name in names {
            nodes.apply_event(Event::InitApply(key(name), ready()), time(0));
        }
        nodes.apply_event(Event::InitDone, time(0));
        nodes
    }

    #[test]
    fn an_absence_counts_from_when_it_began_and_only_under_a_healthy_watch() {
        let at = Duration::from_secs;
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
        nodes.apply_event(applied("late"), time(90));
        assert_eq!(nodes.state("late", at(900)), Node::Ready);
        assert_eq!(nodes.state("old", at(900)), Node::Ready);
    }

    #[test]
    fn a_node_is_ready_while_a_healthy_watch_shows_it_so() {
        let now = Duration::from_secs(9);
        let later = now + Duration::from_mins(1);
        assert_eq!(Nodes::default().state("one", now), Node::Unwatched);
        let mut nodes = listed(&["one"]);
        assert_eq!(nodes.state("one", now), Node::Unsure, "the watch is not healthy");
        nodes.set_healthy(Some(now));
        assert_eq!(nodes.state("one", now), Node::Ready);
        let silent = Event::Apply(key("one"), NodeFacts::default());
        let changed = nodes.apply_event(silent, time(9));
        assert_eq!(changed, ["one"], "its pods are decided on anew");
        assert_eq!(nodes.state("one", now), Node::NotReady);
        nodes.apply_event(applied("one"), time(9));
        assert_eq!(nodes.state("one", later), Node::Ready);
        // A direct read knows better until the watch shows the node again.
        nodes.set_not_ready("one", ready().ready_since);
        assert_eq!(nodes.state("one", later), Node::Ready, "the watch shows the same");
        nodes.set_not_ready("one", ready_since(8).ready_since);
        nodes.set_not_ready("another", None);
        assert_eq!(nodes.state("one", later), Node::NotReady);
        assert_eq!(nodes.apply_event(applied("one"), time(9)), ["one"]);
        assert_eq!(nodes.state("one", later), Node::Ready);
        nodes.set_healthy(None);
        assert_eq!(nodes.state("one", later), Node::Unsure);
    }

    /// A kubelet that was silent reports its node first, and its pods some seconds later.
    #[test]
    fn a_node_that_became_ready_counts_as_ready_a_minute_later() {
        let just = |seconds| Node::JustReady(SignedDuration::from_secs(seconds));
        let mut nodes = listed(&["one"]);
        nodes.set_healthy(Some(Duration::ZERO));
        let state = |nodes: &Nodes, second| nodes.state("one", Duration::from_secs(second));
        let show = |nodes: &mut Nodes, facts: NodeFacts, second| {
            nodes.apply_event(Event::Apply(key("one"), facts), time(second))
        };
        assert_eq!(state(&nodes, 0), Node::Ready, "it has been Ready for an hour");
        // Heartbeats change nothing.
        assert!(show(&mut nodes, ready(), 5).is_empty());
        assert_eq!(state(&nodes, 5), Node::Ready);
        show(&mut nodes, NodeFacts::default(), 10);
        // Its clock is far behind, or ahead: this process saw the transition.
        for since in [-3000, 3000] {
            show(&mut nodes, ready_since(since), 20);
            assert_eq!((state(&nodes, 20), state(&nodes, 79)), (just(0), just(59)));
            assert_eq!(state(&nodes, 80), Node::Ready);
            show(&mut nodes, ready_since(since), 70);
            assert_eq!(state(&nodes, 80), Node::Ready);
        }
        // The watch may not show that it was not Ready meanwhile.
        assert!(show(&mut nodes, ready_since(90), 100).is_empty());
        assert_eq!((state(&nodes, 159), state(&nodes, 160)), (just(59), Node::Ready));
        assert_eq!(nodes.ready_since("one"), ready_since(90).ready_since);
    }

    #[test]
    fn a_node_shown_for_the_first_time_is_believed_an_old_transition_only() {
        let just = |seconds| Node::JustReady(SignedDuration::from_secs(seconds));
        for (since, wanted) in [
            (-3600, Node::Ready),
            (-110, Node::Ready),
            // Its clock may lag by a minute.
            (-109, just(0)),
            (0, just(0)),
            (3600, just(0)),
        ] {
            let mut nodes = listed(&[]);
            nodes.set_healthy(Some(Duration::ZERO));
            nodes.apply_event(Event::Apply(key("one"), ready_since(since)), time(10));
            let state = |second| nodes.state("one", Duration::from_secs(second));
            assert_eq!((state(10), state(70)), (wanted, Node::Ready), "{since}");
        }
    }

    #[test]
    fn a_node_that_registers_anew_begins_anew() {
        let now = time(0);
        let at = Duration::from_secs;
        let mut nodes = listed(&["one"]);
        nodes.set_healthy(Some(at(0)));
        assert_eq!(nodes.apply_event(deleted("one"), now), ["one"]);
        nodes.bound_to(["one"].into_iter(), at(100));
        assert_eq!(nodes.state("one", at(100)), Node::Absent(SignedDuration::ZERO));
        nodes.apply_event(applied("one"), now);
        nodes.apply_event(deleted("one"), now);
        nodes.bound_to(["one"].into_iter(), at(150));
        assert_eq!(
            nodes.state("one", at(170)),
            Node::Absent(SignedDuration::from_secs(20))
        );
        // The state is unknown while a list is being read.
        nodes.apply_event(Event::Init, now);
        assert_eq!(nodes.state("one", at(900)), Node::Unsure);
        nodes.apply_event(Event::InitDone, now);
        assert_eq!(
            nodes.state("one", at(210)),
            Node::Absent(SignedDuration::from_secs(60))
        );
        // Nodes without bound pods are dropped.
        nodes.bound_to(std::iter::empty(), at(210));
        assert_eq!(nodes.state("one", at(900)), Node::Unsure);
    }

    fn cordoned() -> NodeFacts {
        NodeFacts {
            is_cordoned: true,
            ..ready()
        }
    }

    /// Shows the node `one` at this second. Returns whether its pods are decided on anew.
    fn show(nodes: &mut Nodes, facts: NodeFacts, second: u64) -> bool {
        let changed = nodes.apply_event(Event::Apply(key("one"), facts), time(second));
        changed == ["one"]
    }

    /// Returns whether the node `one` is cordoned, and the second since which it no longer is.
    fn cordon(nodes: &Nodes) -> (bool, Option<i64>) {
        let disruption = nodes.disruption("one").unwrap();
        let since = disruption.schedulable_since;
        let second = since.map(|since| since.duration_since(start()).as_secs());
        (disruption.is_cordoned, second)
    }

    #[test]
    fn the_end_of_a_cordon_is_known_until_the_next_one() {
        let mut nodes = listed(&["one"]);
        assert_eq!(nodes.disruption("another"), None);
        assert_eq!(cordon(&nodes), (false, None));
        assert!(show(&mut nodes, cordoned(), 10));
        assert_eq!(cordon(&nodes), (true, None));
        assert!(!show(&mut nodes, cordoned(), 15));
        assert!(show(&mut nodes, ready(), 20));
        assert_eq!(cordon(&nodes), (false, Some(20)));
        // Neither a heartbeat nor a new list is an uncordon.
        assert!(!show(&mut nodes, ready(), 30));
        nodes.apply_event(Event::Init, time(40));
        nodes.apply_event(Event::InitApply(key("one"), ready()), time(40));
        nodes.apply_event(Event::InitDone, time(40));
        assert_eq!(cordon(&nodes), (false, Some(20)));
        assert!(show(&mut nodes, cordoned(), 50));
        assert_eq!(cordon(&nodes), (true, None));
        assert!(show(&mut nodes, ready(), 60));
        assert_eq!(cordon(&nodes), (false, Some(60)));
    }

    #[test]
    fn a_node_that_registers_anew_was_not_uncordoned() {
        let mut nodes = listed(&[]);
        assert!(show(&mut nodes, cordoned(), 10));
        nodes.apply_event(deleted("one"), time(20));
        assert_eq!(nodes.disruption("one"), None);
        assert!(show(&mut nodes, ready(), 30));
        assert_eq!(cordon(&nodes), (false, None));
    }

    #[test]
    fn an_uncordon_while_the_watch_is_interrupted_is_seen_afterwards() {
        let mut nodes = listed(&["one"]);
        show(&mut nodes, cordoned(), 10);
        nodes.apply_event(Event::Init, time(40));
        let changed = nodes.apply_event(Event::InitApply(key("one"), ready()), time(40));
        assert_eq!(changed, ["one"]);
        assert_eq!(cordon(&nodes), (false, Some(40)));
    }

    #[test]
    fn pods_are_decided_on_anew_when_a_taint_of_their_node_changes() {
        let mut nodes = listed(&["one"]);
        let taint = Taint {
            key: "maintenance".to_owned(),
            value: String::new(),
            added: None,
        };
        let tainted = || NodeFacts {
            taints: vec![taint.clone()],
            ..ready()
        };
        assert!(show(&mut nodes, tainted(), 10));
        assert!(!show(&mut nodes, tainted(), 20));
        assert_eq!(
            nodes.disruption("one").unwrap().taints,
            std::slice::from_ref(&taint)
        );
        assert!(show(&mut nodes, ready(), 30));
    }
}
