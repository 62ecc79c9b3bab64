//! A gamedeployment-operator process: the operator's own driver between this world's watches and network.

mod calls;
mod nodes;
mod patch;
mod watches;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use gamedeployment_core::gate::Run;
use gamedeployment_core::guard_check;
use gamedeployment_core::plan::{Action, Plan};
use gamedeployment_core::revision::Revision;
use gamedeployment_core::workload::Workload;
use gamedeployment_driver::index::Index;
use gamedeployment_driver::request::{
    ApiCall, Decided, DriverOutput, Object, ReconcileTarget, Request, RequestError, RequestId, Response,
};
use gamedeployment_driver::watch_event::WatchEvent;
use gamedeployment_driver::{Driver, DriverInput, DriverLimits};
use jiff::Timestamp;
use runtime_core::clock::Now;
use shared_api::GameDeployment;

use crate::network::pod_of;
use crate::objects::key;
use crate::process::clock;
use crate::server::Server;

pub use calls::perform;
pub use nodes::{KnownNode, KnownNodes};
use watches::Watches;
pub use watches::{KINDS, Shown};

/// Inputs of a decision, for the referee.
#[derive(Debug)]
pub struct Seen {
    /// Process that decided, and its incarnation.
    pub by: (usize, u64),
    pub target: std::sync::Arc<ReconcileTarget>,
    pub revisions: Vec<Revision>,
    /// Runs of the workload that were known to be unsuccessful.
    pub refused: Vec<Run>,
    /// Number of the workload's active pods in the cache.
    pub active: usize,
    /// Nodes as the watch had shown them.
    pub nodes: Rc<KnownNodes>,
    /// Whether the caches were up to date.
    pub fresh: bool,
    /// Number of changes by anyone but the operators until then.
    pub foreign: u64,
    /// Time of the decision.
    pub at: Timestamp,
    /// Whether the workload had no active pod when the API server listed them for a write of the decision.
    pub found_none: Cell<bool>,
}

impl Seen {
    pub fn object(&self) -> &GameDeployment {
        &self.target.object
    }

    pub fn uid(&self) -> &str {
        self.target.uid()
    }
}

/// Memory of one operator.
#[derive(Debug)]
pub struct Games {
    driver: Driver,
    watches: Watches,
    /// Start of the current uninterrupted watch of nodes.
    nodes_watched: Option<Timestamp>,
    nodes: Rc<KnownNodes>,
    /// Inputs of the decision that is being carried out.
    seen: Option<Rc<Seen>>,
    /// Names of the pods written since the decision; the empty name stands for the workload.
    written: BTreeSet<String>,
    /// Whether any request was sent since then.
    asked: bool,
    /// Its calls in flight, and whether each writes.
    under_way: BTreeMap<RequestId, bool>,
    /// Whether one of its writes has succeeded, and whether one has failed.
    wrote: (bool, bool),
    limits: DriverLimits,
    pub watches_nodes: bool,
}

impl Games {
    pub fn new(limits: DriverLimits, watches_nodes: bool) -> Self {
        Self {
            driver: Driver::new(watches_nodes, limits),
            watches: Watches::default(),
            nodes_watched: None,
            nodes: Rc::default(),
            seen: None,
            written: BTreeSet::new(),
            asked: false,
            under_way: BTreeMap::new(),
            wrote: (false, false),
            limits,
            watches_nodes,
        }
    }
}

/// Returns the time as a process sees it.
pub fn now_of(now: Timestamp) -> Now {
    Now {
        wall: now,
        elapsed: clock(now),
        monotonic: clock(now),
    }
}

impl Games {
    pub fn index(&self) -> &Index {
        &self.driver.index
    }

    /// Breaks the watch of a kind; it restarts with a list.
    pub fn lose_watch(&mut self, kind: usize) {
        self.watches.lose(kind);
        if kind == watches::NODES {
            self.nodes_watched = None;
        }
    }

    /// Delivers one item of a watch.
    pub fn learn(&mut self, server: &Server, kind: usize, now: Timestamp) -> Shown {
        if kind == watches::NODES && !self.watches_nodes {
            return Shown::default();
        }
        let (news, shown) = self.watches.next(server, kind, now);
        if shown.expired {
            self.lose_watch(kind);
        }
        if kind == watches::NODES && shown.any && self.nodes_watched.is_none() && !news.is_empty() {
            self.nodes_watched = Some(now);
        }
        for news in news {
            if let WatchEvent::Node(event) = &news {
                Rc::make_mut(&mut self.nodes).learn(event, now);
            }
            self.driver.handle(DriverInput::Watch(news), now_of(now));
        }
        shown
    }

    /// Handles the response to a request.
    pub fn answered(&mut self, id: RequestId, answer: Result<Response, RequestError>, now: Timestamp) {
        if let Some(writes) = self.under_way.remove(&id) {
            self.wrote.0 |= answer.is_ok() && writes;
            // So does a read, whose response may show that what it was for has failed, and a HookRun that was
            // stored otherwise.
            let altered = matches!(&answer, Ok(Response::Object(Object::Run(_, run)))
                if run.noted_digest != Some(run.spec_digest));
            self.wrote.1 |= answer.is_err() || !writes || altered;
        }
        self.driver.handle(DriverInput::Response(id, answer), now_of(now));
    }

    /// Returns the next output of the driver.
    pub fn poll(&mut self, now: Timestamp) -> Option<DriverOutput> {
        let watched = self.nodes_watched.map(clock);
        self.driver
            .handle(DriverInput::NodesWatched(watched), now_of(now));
        self.driver.poll(now_of(now))
    }

    /// Records the duration of a decision.
    pub fn took(&mut self, decided: &Decided, took: Duration) {
        let begun = decided.target.decided.elapsed;
        self.driver.record_duration(&decided.target.key, begun, took);
    }

    /// Whether there is work now.
    pub fn has_work(&self, now: Timestamp) -> bool {
        self.driver.deadline().is_some_and(|at| at <= clock(now))
    }

    pub fn is_synced(&self) -> bool {
        self.driver.is_synced()
    }

    /// Whether there will be work at some time without further input. Checks of the removal guard do not count, because
    /// there is always another one.
    pub fn wakes(&self, object: Option<&GameDeployment>, now: Timestamp) -> bool {
        let checked = object.filter(|object| guard_check::is_expected(&Workload::examine(object).0));
        self.driver.deadline().is_some()
            && checked.is_none_or(|object| self.decide(object, now).wake.is_some())
    }

    /// Returns the nodes as the watch has shown them.
    pub fn nodes(&self) -> &Rc<KnownNodes> {
        &self.nodes
    }

    /// Returns the plan for the current state.
    #[must_use]
    pub fn decide(&self, object: &GameDeployment, now: Timestamp) -> Plan {
        let name = object.metadata.name.as_deref().unwrap_or_default();
        let plan = self.driver.decide(&key(name), object, now_of(now));
        assert!(
            plan.wake.is_none_or(|wake| wake > now),
            "a wake-up in the past: {plan:?}"
        );
        plan
    }

    /// Starts carrying out a decision.
    pub fn decided(&mut self, seen: Rc<Seen>) {
        self.seen = Some(seen);
        self.written.clear();
        self.asked = false;
        self.wrote = (false, false);
        assert!(
            self.under_way.is_empty(),
            "decides while it writes: {:?}",
            self.under_way
        );
    }

    /// Ends a decision whose work is done. Panics if it sent no request.
    pub fn concluded(&mut self) {
        let seen = self.seen.take();
        assert!(self.asked, "warns and writes nothing, for ever: {seen:#?}");
    }

    /// Records a sent request and returns the inputs of its decision.
    pub fn sent(&mut self, request: &Request) -> Option<Rc<Seen>> {
        request.target.as_ref()?;
        self.asked = true;
        let writes = !matches!(
            request.call,
            ApiCall::Read(..) | ApiCall::ReadNode(_) | ApiCall::FindPod(_) | ApiCall::CheckGuard(..)
        );
        self.under_way.insert(request.id, writes);
        assert!(
            self.under_way.len() <= self.limits.calls.at_once,
            "{} writes at a time: {:?}",
            self.under_way.len(),
            self.limits
        );
        if let ApiCall::WriteStatus(_) = request.call {
            let (done, failed) = self.wrote;
            assert!(!done || failed, "a status of how it was before: {request:#?}");
        }
        let versioned = match &request.call {
            ApiCall::Act(
                Action::ResetRetry(_) | Action::Pause | Action::AddFinalizer | Action::RemoveFinalizer(_),
            ) => Some(""),
            ApiCall::Act(action) => pod_of(action),
            _ => None,
        };
        if let Some(name) = versioned {
            assert!(
                self.written.insert(name.to_owned()),
                "of two writes to {name} in one version one must fail: {request:#?}"
            );
        }
        self.seen.clone()
    }

    /// Describes the driver's state.
    pub fn describe(&self) -> String {
        format!("{}\n", self.driver.describe())
    }
}
