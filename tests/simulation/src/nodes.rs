//! Kubelets that fall silent while their containers live on, and the node controller that marks their nodes.

use std::collections::BTreeMap;
use std::rc::Rc;

use jiff::{SignedDuration, Timestamp};

use crate::kubelet::set_condition;
use crate::objects::PodObject;
use crate::world::World;

/// Silence after which the node controller marks a node as not Ready. Until then nobody can know of it.
pub const UNNOTICED: SignedDuration = SignedDuration::from_secs(40);

/// Time within which a kubelet that is back has reported all its pods. It reports its node first.
const LATEST_REPORT: SignedDuration = SignedDuration::from_secs(20);

/// Silence of a kubelet, which is cut off from the API server.
#[derive(Debug)]
pub struct Silence {
    since: Timestamp,
    until: Timestamp,
    /// Its pods as it last saw them, by UID. It goes on with these, and learns of no change.
    pub pods: BTreeMap<String, Rc<PodObject>>,
}

/// Silence about a pod: of its kubelet, or of a kubelet that is back and has not reported the pod yet.
#[derive(Debug, Clone, Copy)]
pub struct Unreported {
    pub since: Timestamp,
    /// Whether the node was marked, or will be after [`UNNOTICED`].
    pub noticed: bool,
    /// Time when the kubelet must have reported the pod.
    until: Timestamp,
}

impl World {
    /// Returns the silence about a pod.
    pub fn unreported(&self, uid: &str, node: Option<&str>) -> Option<Unreported> {
        let silence = node.and_then(|node| self.silences.get(node));
        let silent = silence.map(|silence| Unreported {
            since: silence.since,
            noticed: true,
            until: silence.until,
        });
        silent.or_else(|| self.unreported.get(uid).copied())
    }

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
            if since + UNNOTICED <= until.min(self.now) && self.server.set_node_ready(&node, false, self.now)
            {
                self.tell(|| format!("node {node} is not Ready"));
                self.totals.not_ready += 1;
                self.foreign += 1;
                self.mark_pods(&node);
            }
            if until <= self.now {
                self.end_silence(&node);
            }
        }
        let late = |(_, unreported): &(&String, &Unreported)| unreported.until <= self.now;
        let late = self.unreported.iter().filter(late).map(|(uid, _)| uid.clone());
        for uid in late.collect::<Vec<_>>() {
            self.unreported.remove(&uid);
            let pod = self.server.pods.iter().find(|pod| pod.id.uid == uid).cloned();
            if let Some(pod) = pod.filter(|pod| !self.is_silent(pod)) {
                self.report(&pod);
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

    /// Lets a kubelet report that its node is Ready. It reports its pods soon after.
    pub fn end_silence(&mut self, node: &str) {
        let Some(silence) = self.silences.remove(node) else {
            return;
        };
        self.tell(|| format!("the kubelet of {node} reports again"));
        let known = self.server.nodes.get(node);
        let unreported = Unreported {
            since: silence.since,
            noticed: known.is_none_or(|known| !known.ready || known.since > silence.since),
            until: self.now + LATEST_REPORT,
        };
        let pods = self.pods_on(node).into_iter();
        self.unreported
            .extend(pods.map(|pod| (pod.id.uid.clone(), unreported)));
        self.server.set_node_ready(node, true, self.now);
        self.foreign += 1;
    }

    pub(crate) fn pods_on(&self, node: &str) -> Vec<Rc<PodObject>> {
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
