//! A gamedeployment-operator process: the operator's own driver between this world's watches and network.

mod calls;
mod evictions;
mod nodes;
mod patch;
mod templates;
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
use jiff::{SignedDuration, Timestamp};
use runtime_core::clock::Now;
use shared_api::GameDeployment;

use crate::network::pod_of;
use crate::objects::key;
use crate::process::elapsed;
use crate::server::Server;
use crate::world::EPOCH;

pub use calls::perform;
pub use evictions::KnownEvictions;
use evictions::{SentReports, WorkloadReads};
pub use nodes::{KnownNode, KnownNodes};
pub use templates::KnownTemplates;
use watches::Watches;
pub use watches::{KINDS, Shown};

/// Longest time for which decisions wait for the list of Evictions, as documented.
const EVICTIONS_AWAITED: SignedDuration = SignedDuration::from_secs(10);

/// Nodes, Evictions and HookTemplates as the watches of one process have shown them, which is all that its decisions
/// know of them.
#[derive(Debug, Clone, Default)]
pub struct Known {
    pub nodes: Rc<KnownNodes>,
    pub evictions: Rc<KnownEvictions>,
    pub templates: Rc<KnownTemplates>,
}

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
    /// Nodes, Evictions and HookTemplates as the watches had shown them.
    pub known: Known,
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
    /// Time of its start: its clocks show zero then.
    started: Timestamp,
    watches: Watches,
    /// Time at which decisions no longer wait for the list of Evictions, while that is in the future.
    awaits_evictions_until: Option<Timestamp>,
    /// Start of the current uninterrupted watch of nodes, on the clock of the process.
    nodes_watched: Option<Duration>,
    known: Known,
    reports: SentReports,
    workload_reads: WorkloadReads,
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
    pub fn new(limits: DriverLimits, watches_nodes: bool, serves_evictions: bool, now: Timestamp) -> Self {
        // At once if the API server does not serve Evictions.
        let awaited = if serves_evictions {
            EVICTIONS_AWAITED
        } else {
            SignedDuration::ZERO
        };
        Self {
            driver: Driver::new(watches_nodes, limits).awaiting_evictions(),
            started: now,
            watches: Watches::default(),
            awaits_evictions_until: Some(now + awaited),
            nodes_watched: None,
            known: Known::default(),
            reports: SentReports::default(),
            workload_reads: WorkloadReads::default(),
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

/// Returns the time as a process sees it that started at another time.
pub fn now_of(started: Timestamp, now: Timestamp) -> Now {
    Now {
        wall: now,
        elapsed: elapsed(started, now),
        monotonic: elapsed(started, now),
    }
}

impl Games {
    fn now(&self, now: Timestamp) -> Now {
        now_of(self.started, now)
    }

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
        let is_watched = match kind {
            watches::NODES => self.watches_nodes,
            watches::EVICTIONS => server.serves_evictions,
            _ => true,
        };
        if !is_watched {
            return Shown::default();
        }
        let since_start = elapsed(self.started, now);
        let (news, shown) = self.watches.next(server, kind, since_start);
        if shown.expired {
            self.lose_watch(kind);
        }
        if kind == watches::NODES && shown.any && self.nodes_watched.is_none() && !news.is_empty() {
            self.nodes_watched = Some(since_start);
        }
        for news in news {
            if let WatchEvent::Node(event) = &news {
                Rc::make_mut(&mut self.known.nodes).learn(event, now);
            }
            if let WatchEvent::Eviction(event) = &news {
                self.learn_eviction(event);
            }
            if let WatchEvent::Template(event) = &news {
                Rc::make_mut(&mut self.known.templates).learn(event);
            }
            self.watched(news, now);
        }
        shown
    }

    fn watched(&mut self, news: WatchEvent, now: Timestamp) {
        let now = self.now(now);
        self.driver.handle(DriverInput::Watch(news), now);
    }

    /// Whether decisions have waited for the list of Evictions for long enough.
    fn is_list_overdue(&self, now: Timestamp) -> bool {
        self.awaits_evictions_until.is_some_and(|until| until <= now)
    }

    /// Handles the response to a request.
    pub fn answered(&mut self, id: RequestId, answer: Result<Response, RequestError>, now: Timestamp) {
        self.read_workload(id, &answer);
        self.report_answered(id, &answer);
        if let Some(writes) = self.under_way.remove(&id) {
            self.wrote.0 |= answer.is_ok() && writes;
            // So does a read, whose response may show that what it was for has failed, and a HookRun that was
            // stored otherwise.
            let altered = matches!(&answer, Ok(Response::Object(Object::Run(_, run)))
                if run.noted_digest != Some(run.spec_digest));
            self.wrote.1 |= answer.is_err() || !writes || altered;
        }
        let now = self.now(now);
        self.driver.handle(DriverInput::Response(id, answer), now);
    }

    /// Returns the next output of the driver.
    pub fn poll(&mut self, now: Timestamp) -> Option<DriverOutput> {
        if self.is_list_overdue(now) {
            self.awaits_evictions_until = None;
            self.watched(WatchEvent::EvictionsUnavailable, now);
        }
        let now = self.now(now);
        self.driver
            .handle(DriverInput::NodesWatched(self.nodes_watched), now);
        self.driver.poll(now)
    }

    /// Records the duration of a decision.
    pub fn took(&mut self, decided: &Decided, took: Duration) {
        let begun = decided.target.decided.elapsed;
        self.driver.record_duration(&decided.target.key, begun, took);
    }

    /// Whether there is work now.
    pub fn has_work(&self, now: Timestamp) -> bool {
        let since_start = elapsed(self.started, now);
        let is_due = self.driver.deadline().is_some_and(|at| at <= since_start);
        is_due || self.is_list_overdue(now)
    }

    pub fn is_synced(&self) -> bool {
        self.driver.is_synced()
    }

    /// Whether there will be work at some time without further input. Checks of the removal guard and reports to active
    /// Evictions do not count, because there is always another one.
    pub fn wakes(&self, object: Option<&GameDeployment>, now: Timestamp) -> bool {
        let is_checked = |object: &GameDeployment| guard_check::is_expected(&Workload::examine(object).0);
        let repeats = self.known.evictions.any_active() || object.is_some_and(is_checked);
        let decides_again = || object.is_some_and(|object| self.decide(object, now).wake.is_some());
        self.driver.deadline().is_some() && (!repeats || decides_again())
    }

    /// Returns the nodes, Evictions and HookTemplates as the watches have shown them.
    pub fn known(&self) -> &Known {
        &self.known
    }

    /// Returns the plan for the current state.
    #[must_use]
    pub fn decide(&self, object: &GameDeployment, now: Timestamp) -> Plan {
        let name = object.metadata.name.as_deref().unwrap_or_default();
        let plan = self.driver.decide(&key(name), object, self.now(now));
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

    /// Records a sent request and returns the inputs of its decision. Its time limit becomes that of the clock that all
    /// processes share.
    pub fn sent(&mut self, request: &mut Request) -> Option<Rc<Seen>> {
        let shared = elapsed(EPOCH, self.started);
        request.until = request.until.map(|until| until + shared);
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
