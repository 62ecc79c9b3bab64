//! Nodes that request the removal of their pods: people and autoscalers cordon, drain and taint them; and a scenario in
//! which they cordon all nodes.

use std::rc::Rc;

use fastrand::Rng;
use jiff::SignedDuration;
use shared_api::GameDeploymentSpec;
use shared_api::game_deployment::Disruption;
use shared_api::removal_request::{RemovalType, TAINT_CONTROLLERS};

use super::{QUIET, REQUESTERS};
use crate::endpoint::Behaviour;
use crate::objects::{NodeObject, PodObject};
use crate::server::whole;
use crate::taints::{MAINTENANCE, RECLAIMED, Tolerance, tolerance, tolerates_all};
use crate::world::{FLEET, World};

/// Seconds for which a request is valid in the scenario: none expires in it.
const VALID_FOR: i32 = 300;
/// Seconds within which the operators follow a change in the scenario.
const SOON: usize = 60;
/// Time for which the webhook keeps a deletion by a taint controller, which is not repeated.
const KEPT_FOR: SignedDuration = SignedDuration::from_hours(24);

impl World {
    /// Performs a random action on a node: it is cordoned, drained or tainted, or that ends.
    pub(crate) fn touch_node(&mut self, dice: &mut Rng) {
        let (kind, is_timed, deletes) = (dice.u8(..10), dice.u8(..4) > 0, dice.bool());
        let Some(node) = self.server.nodes.nth(dice.usize(..16)).cloned() else {
            return;
        };
        let name = &node.id.name;
        match kind {
            0..=3 if node.cordoned => self.set_cordoned(name, false),
            0..=3 => {
                self.set_cordoned(name, true);
                if kind > 1 {
                    self.evict_pods(name);
                }
            }
            4 => {
                let is_doomed = !node.doomed;
                self.tell(|| format!("the autoscaler is about to remove node {name}: {is_doomed}"));
                self.change_node(name, |node| node.doomed = is_doomed);
            }
            5..=8 => {
                let key = if kind == 8 { RECLAIMED } else { MAINTENANCE };
                self.toggle_taint(&node, key, is_timed);
                if deletes {
                    self.delete_pods(name);
                }
            }
            _ => self.release_node(name),
        }
    }

    fn change_node(&mut self, name: &str, change: impl FnOnce(&mut NodeObject)) {
        self.foreign += u64::from(self.server.change_node(name, change));
    }

    fn set_cordoned(&mut self, name: &str, cordoned: bool) {
        self.tell(|| format!("somebody cordons node {name}: {cordoned}"));
        self.change_node(name, |node| node.cordoned = cordoned);
    }

    fn set_all_cordoned(&mut self, names: &[String], cordoned: bool) {
        for name in names {
            self.set_cordoned(name, cordoned);
        }
    }

    /// Taints a node, with the time or without it, or removes the taint.
    fn toggle_taint(&mut self, node: &NodeObject, key: &'static str, is_timed: bool) {
        let name = &node.id.name;
        let added = is_timed.then(|| whole(self.now));
        let is_tainted = node.taints.contains_key(key);
        self.tell(|| format!("somebody toggles taint {key} of node {name}, from {is_tainted}: {added:?}"));
        self.change_node(name, |node| {
            if node.taints.remove(key).is_none() {
                node.taints.insert(key, added);
            }
        });
    }

    /// Requests the removal of the pods of a node, as a drain does.
    fn evict_pods(&mut self, node: &str) {
        for pod in self.pods_on(node) {
            self.request_removal(&pod.id.name, REQUESTERS[1], RemovalType::Eviction);
        }
    }

    /// Requests the removal of the pods that do not tolerate a taint of their node without limit, as the taint
    /// controller does.
    fn delete_pods(&mut self, node: &str) {
        let Some(known) = self.server.nodes.get(node).cloned() else {
            return;
        };
        for pod in self.pods_on(node) {
            let mut keys = known.taints.keys();
            if keys.any(|key| tolerance(&pod.api, key) != Tolerance::Always) {
                self.request_until(&pod, TAINT_CONTROLLERS[1], RemovalType::Delete, KEPT_FOR);
            }
        }
    }

    /// Uncordons a node, and removes its taints.
    fn release_node(&mut self, name: &str) {
        self.tell(|| format!("somebody uncordons node {name}, and removes its taints"));
        self.change_node(name, |node| {
            (node.cordoned, node.doomed) = (false, false);
            node.taints.clear();
        });
    }

    /// Uncordons all nodes, and removes their taints.
    pub(crate) fn release_nodes(&mut self) {
        let disrupted = self.server.nodes.iter().filter(|node| !node.is_free());
        let names: Vec<_> = disrupted.map(|node| node.id.name.clone()).collect();
        for name in names {
            self.release_node(&name);
        }
    }

    /// Cordons or taints the node of a pod in three of four worlds, for good: the scheduler uses it no more.
    pub(crate) fn give_up_a_node(&mut self) {
        let server = &self.server;
        let bound = server
            .pods
            .iter()
            .find_map(|pod| server.nodes.get(pod.read.node.as_ref()?).cloned());
        let Some(node) = bound else { return };
        match self.code[2] / 64 {
            0 => {}
            1 => self.set_cordoned(&node.id.name, true),
            timed => self.toggle_taint(&node, MAINTENANCE, timed == 2),
        }
    }

    /// Cordons all nodes of a workload with `onCordon: Ask`, which leaves only the pods that are not empty: here, one.
    /// An uncordon withdraws the request of its node, and the eviction of a drain, also for the next cordon.
    pub(crate) fn live_on_while_nodes_are_cordoned(&mut self, dice: &mut Rng) {
        let asks = |spec: &mut GameDeploymentSpec| {
            spec.replicas = Some(spec.replicas.unwrap_or(1).max(3));
            spec.disruption = Some(Disruption {
                policy: Some("Ask".to_owned()),
                request_expiration_seconds: Some(VALID_FOR),
                on_cordon: Some("Ask".to_owned()),
                autoscaler_annotations: Some("Managed".to_owned()),
            });
        };
        self.edit(asks, || {
            "at least three pods that leave cordoned nodes".to_owned()
        });
        self.come_to_rest(dice, true);
        let owner = self.server.workloads.get(FLEET).unwrap().uid().to_owned();
        let own = |pod: &&Rc<PodObject>| pod.id.owner.as_ref() == Some(&owner) && pod.read.is_active();
        let pods: Vec<_> = self.server.pods.iter().filter(own).cloned().collect();
        let busy = pods.first().unwrap().clone();
        self.behaviours.insert(busy.id.uid.clone(), Behaviour::NO);
        let names: Vec<_> = self
            .server
            .nodes
            .iter()
            .map(|node| node.id.name.clone())
            .collect();
        self.server.add_node(self.now);
        self.foreign += 1;
        self.set_all_cordoned(&names, true);
        self.come_to_rest(dice, false);
        self.check_words();
        for pod in &pods {
            let is_kept = tolerates_all(&pod.api) || pod.id.uid == busy.id.uid && self.is_asked(pod);
            assert_eq!(
                self.is_left(pod),
                is_kept,
                "{} on a cordoned node: {}",
                pod.id.name,
                self.describe()
            );
        }
        if self.is_asked(&busy) && !tolerates_all(&busy.api) {
            self.check_waiting(&busy);
            self.request_removal(&busy.id.name, REQUESTERS[1], RemovalType::Eviction);
            self.follow(dice, &busy, &["Cordon", "Eviction"]);
            self.set_all_cordoned(&names, false);
            self.follow(dice, &busy, &[]);
            // The eviction stays withdrawn.
            self.set_all_cordoned(&names, true);
            self.follow(dice, &busy, &["Cordon"]);
        }
        self.set_all_cordoned(&names, false);
        // Its successor may exist already, so that it is surplus now.
        self.behaviours.insert(busy.id.uid.clone(), Behaviour::YES);
    }

    /// Lets everything work until nothing is written any more. Then the status lists requests of these types for a pod
    /// that is not empty.
    fn follow(&mut self, dice: &mut Rng, pod: &PodObject, types: &[&str]) {
        let mut quiet = 0;
        for second in 0.. {
            assert!(second < SOON, "no rest: {}", self.describe());
            quiet = self.round_after(quiet, dice);
            if quiet >= QUIET {
                break;
            }
        }
        self.check_removals();
        assert!(
            self.is_left(pod),
            "{} was not empty: {}",
            pod.id.name,
            self.describe()
        );
        let object = self.server.workloads.get(FLEET).unwrap();
        let status = object.api.status.iter();
        let entries = status.flat_map(|status| &status.removal_requests);
        let entries = entries.filter(|entry| entry.pod_uid == pod.id.uid);
        let mut listed: Vec<_> = entries.map(|entry| entry.type_.as_str()).collect();
        listed.sort_unstable();
        // An eviction from before the scenario may be valid again.
        listed.dedup();
        assert_eq!(listed, types, "{}", self.describe());
    }
}
