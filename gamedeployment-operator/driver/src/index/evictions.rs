//! Evictions (`lifecycle.k8s.io`) whose active responder is this operator, and the removal requests of their pods.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use gamedeployment_core::cluster::EvictionRequests;

use crate::NamespacedName;
use crate::watch_event::{Event, Eviction};

/// Evictions.
#[derive(Debug, Default)]
pub(crate) struct Evictions {
    active: BTreeMap<NamespacedName, Eviction>,
    /// Pods with an active Eviction, by namespace and UID.
    pods: HashMap<String, HashMap<String, EvictedPod>>,
    listed: Option<BTreeSet<NamespacedName>>,
    is_served: bool,
    is_unavailable: bool,
}

/// Pod with at least one active Eviction. The API activates only one at a time.
#[derive(Debug, Default)]
struct EvictedPod {
    evictions: BTreeSet<NamespacedName>,
    requests: Option<EvictionRequests>,
}

impl Evictions {
    /// Whether Evictions have been listed once: the API server serves them.
    pub(super) fn is_served(&self) -> bool {
        self.is_served
    }

    /// Whether Evictions have been listed once, or decisions need not wait for that.
    pub(crate) fn is_settled(&self) -> bool {
        self.is_served || self.is_unavailable
    }

    /// Ends the wait for the first list.
    pub(super) fn set_unavailable(&mut self) {
        self.is_unavailable = true;
    }

    /// Returns the requests for a pod.
    pub(super) fn requests(&self, namespace: &str, pod_uid: &str) -> Option<&EvictionRequests> {
        self.pods.get(namespace)?.get(pod_uid)?.requests.as_ref()
    }

    /// Returns an active Eviction.
    pub(crate) fn get(&self, key: &NamespacedName) -> Option<&Eviction> {
        self.active.get(key)
    }

    /// Returns the keys of the active Evictions of a pod.
    pub(crate) fn keys_of(&self, namespace: &str, pod_uid: &str) -> Vec<NamespacedName> {
        let pod = self.pods.get(namespace).and_then(|pods| pods.get(pod_uid));
        pod.into_iter().flat_map(|pod| &pod.evictions).cloned().collect()
    }

    /// Applies a watch event. Returns the keys of the pods whose requests have changed.
    pub(super) fn apply_event(&mut self, event: Event<Eviction>) -> Vec<NamespacedName> {
        match event {
            Event::Init => {
                self.listed = Some(BTreeSet::new());
                Vec::new()
            }
            Event::InitApply(key, eviction) | Event::Apply(key, eviction) => {
                if let Some(listed) = &mut self.listed {
                    listed.insert(key.clone());
                }
                self.replace(&key, Some(eviction).filter(|eviction| eviction.is_active))
            }
            Event::Delete(key, _) => self.replace(&key, None),
            Event::InitDone => {
                self.is_served = true;
                let listed = self.listed.take().unwrap_or_default();
                let unlisted = self.active.keys().filter(|key| !listed.contains(*key));
                let unlisted: Vec<NamespacedName> = unlisted.cloned().collect();
                let changed = unlisted.iter().flat_map(|key| self.replace(key, None));
                changed.collect()
            }
        }
    }

    /// Replaces an active Eviction. Returns the keys of the pods whose requests have changed.
    fn replace(&mut self, key: &NamespacedName, new: Option<Eviction>) -> Vec<NamespacedName> {
        let pods = self.pods.entry(key.0.clone()).or_default();
        let known = match new.clone() {
            Some(eviction) => self.active.insert(key.clone(), eviction),
            None => self.active.remove(key),
        };
        if let Some(known) = &known
            && let Some(pod) = pods.get_mut(&known.pod_uid)
        {
            pod.evictions.remove(key);
        }
        if let Some(new) = &new {
            let pod = pods.entry(new.pod_uid.clone()).or_default();
            pod.evictions.insert(key.clone());
        }
        let mut changed = Vec::new();
        for eviction in known.into_iter().chain(new) {
            let Some(pod) = pods.get_mut(&eviction.pod_uid) else {
                continue;
            };
            let requests = requests_of(pod.evictions.iter().filter_map(|key| self.active.get(key)));
            if pod.requests != requests {
                pod.requests = requests;
                changed.push((key.0.clone(), eviction.pod_name));
            }
            if pod.evictions.is_empty() {
                pods.remove(&eviction.pod_uid);
            }
        }
        if pods.is_empty() {
            self.pods.remove(&key.0);
        }
        changed
    }
}

/// Returns the requests of the Evictions of one pod.
fn requests_of<'e>(evictions: impl Iterator<Item = &'e Eviction>) -> Option<EvictionRequests> {
    let requested = evictions.filter(|eviction| !eviction.requesters.is_empty());
    requested.fold(None, |known: Option<EvictionRequests>, eviction| {
        let mut requests = known.unwrap_or(EvictionRequests {
            requesters: Vec::new(),
            since: eviction.started,
        });
        requests.requesters.extend(eviction.requesters.iter().cloned());
        Some(requests)
    })
}
