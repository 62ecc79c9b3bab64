//! Kubelets that fall silent while their containers live on, and the node controller that marks their nodes.

use std::collections::BTreeMap;
use std::rc::Rc;

use jiff::{SignedDuration, Timestamp};

use crate::kubelet::set_condition;
use crate::objects::PodObject;
use crate::world::World;

/// Silence after which the node controller marks a node as not Ready. Until then nobody can know of it.
pub const UNNOTICED: SignedDuration = SignedDuration::from_secs(40);

/// Silence of a kubelet, which is cut off from the API server.
#[derive(Debug)]
pub struct Silence {
    pub since: Timestamp,
    until: Timestamp,
    /// Its pods as it last saw them, by UID. It goes on with these, and learns of no change.
    pub pods: BTreeMap<String, Rc<PodObject>>,
}

impl World {
    /// Whether the kubelet of a pod's node reports nothing.
    pub fn is_silent(&self, pod: &PodObject) -> bool {
        let node = pod.read.node.as_ref();
        node.is_some_and(|node| self.silences.contains_key(node))
    }

    /// Lets the kubelet of a node report nothing for some time.
    pub fn silence(&mut self, node: &str, time: SignedDuration) {
        if self.server.nodes.get(node).is_none() || self.silences.contains_key(node) {
            return;
        }
        let pods = self.pods_on(node).into_iter();
        let silence = Silence {
            since: self.now,
            until: self.now + time,
            pods: pods.map(|pod| (pod.id.uid.clone(), pod)).collect(),
        };
        self.silences.insert(node.to_owned(), silence);
        self.totals.silences += 1;
        self.tell(|| format!("the kubelet of {node} falls silent for {time:#}"));
    }

    /// Lets the node controller mark the nodes of silent kubelets, and lets kubelets report again whose silence
    /// is over. A kubelet without a node reports once it has registered again.
    pub fn tend_nodes(&mut self) {
        let times = |(node, silence): (&String, &Silence)| (node.clone(), silence.since, silence.until);
        for (node, since, until) in self.silences.iter().map(times).collect::<Vec<_>>() {
            if self.server.nodes.get(&node).is_none() {
                continue;
            }
            if until <= self.now {
                self.end_silence(&node);
            } else if since + UNNOTICED <= self.now && self.server.set_node_ready(&node, false) {
                self.tell(|| format!("node {node} is not Ready"));
                self.totals.not_ready += 1;
                self.foreign += 1;
                self.mark_pods(&node);
            }
        }
    }

    /// Marks the pods of a node as not ready, although they may well be.
    fn mark_pods(&mut self, node: &str) {
        let now = self.now;
        for pod in self.pods_on(node) {
            let ready = pod.read.is_ready();
            self.write_status(&pod, |pod| {
                if let Some(status) = pod.status.as_mut().filter(|_| ready) {
                    set_condition(status, "Ready", false, None, now);
                }
            });
        }
    }

    /// Lets a kubelet report the state of its pods, and that its node is Ready.
    pub fn end_silence(&mut self, node: &str) {
        if self.silences.remove(node).is_none() {
            return;
        }
        self.tell(|| format!("the kubelet of {node} reports again"));
        for pod in self.pods_on(node) {
            self.report(&pod);
        }
        self.server.set_node_ready(node, true);
        self.foreign += 1;
    }

    fn pods_on(&self, node: &str) -> Vec<Rc<PodObject>> {
        let pods = self.server.pods.iter();
        pods.filter(|pod| pod.read.node.as_deref() == Some(node))
            .cloned()
            .collect()
    }

    /// Ends every silence. Pods of nodes that are gone are collected.
    pub fn end_silences(&mut self) {
        for node in self.silences.keys().cloned().collect::<Vec<_>>() {
            self.end_silence(&node);
        }
    }
}
