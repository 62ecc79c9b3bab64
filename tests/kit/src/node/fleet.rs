//! State shared by the test, the watch and the tasks of the pods.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{Api, Client};
use tokio::sync::{Notify, Semaphore, watch};

use super::Options;
use super::behaviour::{Behaviour, Images, PodSelector, Rules};
use super::game::Games;
use super::history::{GameEvent, History};
use super::kubelet::{Commands, Kubelet};
use super::machine::Order;
use super::view::PodView;
use crate::address::Address;
use crate::keeper::lock;

/// State of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Power {
    Up,
    /// Reports nothing and does nothing, but containers keep running.
    Silent,
    /// Runs nothing.
    Dead,
}

#[derive(Debug)]
pub(super) struct NodeState {
    pub(super) name: String,
    pub(super) address: Address,
    pub(super) power: Power,
    pub(super) kubelet: Option<Arc<Kubelet>>,
}

/// Place where the API server reaches a node.
#[derive(Debug)]
pub(super) struct Endpoint {
    pub(super) address: String,
    /// Port of the kubelet, if the node has one.
    pub(super) kubelet: Option<u16>,
}

/// Pod as last received from the API server.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) name: String,
    pub(super) uid: String,
    /// Number of pods seen before this one.
    pub(super) number: u64,
    newest: Mutex<Arc<Pod>>,
    gone: AtomicBool,
    pub(super) wake: Notify,
}

pub(super) struct Fleet {
    pub(super) namespace: String,
    pub(super) client: Client,
    pub(super) options: Options,
    /// Each call to the API server holds one permit.
    pub(super) calls: Semaphore,
    pub(super) nodes: Mutex<Vec<NodeState>>,
    pub(super) games: Games,
    pub(super) commands: Commands,
    pub(super) history: History,
    pub(super) images: Mutex<Images>,
    pub(super) views: Mutex<BTreeMap<String, PodView>>,
    /// Announces every change of `views`, of the commands and of the history.
    pub(super) changed: watch::Sender<()>,
    rules: Mutex<Rules>,
    orders: Mutex<HashMap<String, Vec<Order>>>,
    records: Mutex<HashMap<String, Arc<Record>>>,
    seen: AtomicU64,
    turn: AtomicUsize,
}

impl Fleet {
    pub(super) fn new(namespace: &str, client: Client, mut options: Options) -> Self {
        options.concurrent_calls = options.concurrent_calls.max(1);
        Self {
            namespace: namespace.to_owned(),
            client,
            calls: Semaphore::new(options.concurrent_calls),
            options,
            nodes: Mutex::default(),
            games: Games::new(),
            commands: Commands::default(),
            history: History::default(),
            images: Mutex::default(),
            views: Mutex::default(),
            changed: watch::Sender::new(()),
            rules: Mutex::default(),
            orders: Mutex::default(),
            records: Mutex::default(),
            seen: AtomicU64::new(0),
            turn: AtomicUsize::new(0),
        }
    }

    pub(super) fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub(super) fn node_objects(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    /// Returns the next node that is up.
    pub(super) fn next_node(&self) -> Option<String> {
        let nodes = lock(&self.nodes);
        let up: Vec<_> = nodes.iter().filter(|node| node.power == Power::Up).collect();
        if up.is_empty() {
            return None;
        }
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        Some(up[turn % up.len()].name.clone())
    }

    /// Returns the state and the address of one of our nodes.
    pub(super) fn node(&self, name: &str) -> Option<(Power, String)> {
        let nodes = lock(&self.nodes);
        let node = nodes.iter().find(|node| node.name == name)?;
        Some((node.power, node.address.ip().to_string()))
    }

    /// Returns the endpoint of one of our nodes.
    pub(super) fn endpoint(&self, name: &str) -> Option<Endpoint> {
        let nodes = lock(&self.nodes);
        let node = nodes.iter().find(|node| node.name == name)?;
        Some(Endpoint {
            address: node.address.ip().to_string(),
            kubelet: node.kubelet.as_ref().map(|kubelet| kubelet.port()),
        })
    }

    /// Returns the kubelet of one of our nodes, if it has one.
    pub(super) fn kubelet(&self, name: &str) -> Option<Arc<Kubelet>> {
        let nodes = lock(&self.nodes);
        let node = nodes.iter().find(|node| node.name == name)?;
        node.kubelet.clone()
    }

    /// Runs an action that depends on a node's state, while the state cannot change.
    pub(super) fn by_power<T>(&self, name: &str, act: impl FnOnce(Power) -> Option<T>) -> Option<T> {
        let nodes = lock(&self.nodes);
        let node = nodes.iter().find(|node| node.name == name)?;
        act(node.power)
    }

    pub(super) fn behave(&self, which: PodSelector, behaviour: Behaviour) {
        lock(&self.rules).add(which, behaviour, self.seen.load(Ordering::Relaxed));
        self.wake_all();
    }

    pub(super) fn behaviour(&self, pod: &Pod, record: &Record, image: &str) -> Behaviour {
        lock(&self.rules).of(pod, record.number, image)
    }

    pub(super) fn order(&self, pod: &str, order: Order) {
        lock(&self.orders).entry(pod.to_owned()).or_default().push(order);
        self.wake_all();
    }

    pub(super) fn take_orders(&self, pod: &str) -> Vec<Order> {
        lock(&self.orders).remove(pod).unwrap_or_default()
    }

    pub(super) fn wake_all(&self) {
        for record in lock(&self.records).values() {
            record.wake.notify_one();
        }
    }

    pub(super) fn happened(&self, record: &Record, what: GameEvent) {
        self.history.add(&record.name, &record.uid, what);
        self.changed.send_replace(());
    }

    /// Records a pod received from the API server. Returns its record if it is new.
    pub(super) fn saw(&self, pod: Pod) -> Option<Arc<Record>> {
        let uid = pod.metadata.uid.clone()?;
        let mut records = lock(&self.records);
        if let Some(known) = records.get(&uid) {
            known.offer(pod);
            known.wake.notify_one();
            return None;
        }
        let record = Arc::new(Record {
            name: pod.metadata.name.clone()?,
            uid: uid.clone(),
            number: self.seen.fetch_add(1, Ordering::Relaxed),
            newest: Mutex::new(Arc::new(pod)),
            gone: AtomicBool::new(false),
            wake: Notify::new(),
        });
        records.insert(uid, Arc::clone(&record));
        Some(record)
    }

    /// Returns the newest pod with this name, if it is on this node.
    pub(super) fn pod_on(&self, node: &str, name: &str) -> Option<Arc<Record>> {
        let records = lock(&self.records);
        let named = records.values().filter(|record| record.name == name);
        let record = named.max_by_key(|record| record.number)?;
        let pod = record.newest();
        let bound = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
        (bound == Some(node)).then(|| Arc::clone(record))
    }

    /// Marks a pod as gone from the API.
    pub(super) fn lost(&self, uid: &str) {
        if let Some(record) = lock(&self.records).remove(uid) {
            record.gone.store(true, Ordering::Release);
            record.wake.notify_one();
        }
    }

    pub(super) fn known(&self) -> Vec<String> {
        lock(&self.records).keys().cloned().collect()
    }

    pub(super) fn publish(&self, view: PodView) {
        lock(&self.views).insert(view.name.clone(), view);
        self.changed.send_replace(());
    }

    pub(super) fn withdraw(&self, record: &Record) {
        let mut views = lock(&self.views);
        if views.get(&record.name).is_some_and(|view| view.uid == record.uid) {
            views.remove(&record.name);
            lock(&self.orders).remove(&record.name);
        }
        self.changed.send_replace(());
    }
}

impl Record {
    pub(super) fn newest(&self) -> Arc<Pod> {
        Arc::clone(&lock(&self.newest))
    }

    pub(super) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    /// Stores the pod if it is newer than the known version: responses and the watch may overtake each other.
    pub(super) fn offer(&self, pod: Pod) {
        let version = |pod: &Pod| {
            let text = pod.metadata.resource_version.as_deref();
            text.and_then(|text| text.parse::<u64>().ok())
        };
        let mut newest = lock(&self.newest);
        if version(&pod) >= version(&newest) {
            *newest = Arc::new(pod);
        }
    }
}
