//! One gamedeployment-operator at work: its own driver, between this world's watches and this world's network.

mod calls;
mod patch;
mod watches;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use gamedeployment_core::gate::Run;
use gamedeployment_core::plan::{Action, Plan};
use gamedeployment_core::revision::Revision;
use gamedeployment_driver::index::Index;
use gamedeployment_driver::request::{Answer, Call, CallError, Decided, Output, Request, RequestId, Subject};
use gamedeployment_driver::{Driver, Input, Limits};
use jiff::Timestamp;
use runtime_core::clock::Now;
use shared_api::GameDeployment;

use crate::network::pod_of;
use crate::objects::key;
use crate::process::clock;
use crate::server::Server;

pub use calls::perform;
use watches::Watches;
pub use watches::{KINDS, Shown};

/// What a decision rested on, for the referee.
#[derive(Debug)]
pub struct Seen {
    /// The process that decided, and its life.
    pub by: (usize, u64),
    pub subject: std::sync::Arc<Subject>,
    pub revisions: Vec<Revision>,
    /// Runs of the workload that had said no.
    pub refused: Vec<Run>,
    /// Whether everything was known as it is.
    pub fresh: bool,
    /// How much others had changed until then.
    pub foreign: u64,
    /// When that was.
    pub at: Timestamp,
}

impl Seen {
    pub fn object(&self) -> &GameDeployment {
        &self.subject.object
    }

    pub fn uid(&self) -> &str {
        self.subject.uid()
    }
}

/// One operator's memory.
#[derive(Debug)]
pub struct Games {
    driver: Driver,
    watches: Watches,
    /// Since when the watch of nodes has had no break.
    nodes_watched: Option<Timestamp>,
    /// What the decision rested on that is being carried out.
    seen: Option<Rc<Seen>>,
    /// Names of pods and, empty, of the workload that were written to in the version that was decided on.
    written: BTreeSet<String>,
    /// Whether anything was asked since then.
    asked: bool,
    /// Calls for it that are under way, and whether each writes.
    under_way: BTreeMap<RequestId, bool>,
    /// Whether a write of it was done, and whether one has failed.
    wrote: (bool, bool),
    limits: Limits,
}

impl Games {
    pub fn new(limits: Limits) -> Self {
        Self {
            driver: Driver::new(true, limits),
            watches: Watches::default(),
            nodes_watched: None,
            seen: None,
            written: BTreeSet::new(),
            asked: false,
            under_way: BTreeMap::new(),
            wrote: (false, false),
            limits,
        }
    }
}

/// The time as a process has it.
pub fn now_of(now: Timestamp) -> Now {
    Now {
        wall: now,
        mono: clock(now),
    }
}

impl Games {
    pub fn index(&self) -> &Index {
        &self.driver.index
    }

    /// The watch of a kind breaks, and begins with a list.
    pub fn lose_watch(&mut self, kind: usize) {
        self.watches.lose(kind);
        if kind == watches::NODES {
            self.nodes_watched = None;
        }
    }

    /// Lets a watch show one thing.
    pub fn learn(&mut self, server: &Server, kind: usize, now: Timestamp) -> Shown {
        let (news, shown) = self.watches.next(server, kind, now);
        if shown.expired {
            self.lose_watch(kind);
        }
        if kind == watches::NODES && shown.any && self.nodes_watched.is_none() && !news.is_empty() {
            self.nodes_watched = Some(now);
        }
        for news in news {
            self.driver.handle(Input::News(news), now_of(now));
        }
        shown
    }

    /// A request was answered.
    pub fn answered(&mut self, id: RequestId, answer: Result<Answer, CallError>, now: Timestamp) {
        if let Some(writes) = self.under_way.remove(&id) {
            self.wrote.0 |= answer.is_ok() && writes;
            // What a read was needed for may have failed by its answer.
            self.wrote.1 |= answer.is_err() || !writes;
        }
        self.driver.handle(Input::Answered(id, answer), now_of(now));
    }

    /// What it does next.
    pub fn poll(&mut self, now: Timestamp) -> Option<Output> {
        let watched = self.nodes_watched.map(clock);
        self.driver.handle(Input::NodesWatched(watched), now_of(now));
        self.driver.poll(now_of(now))
    }

    /// How long a decision took.
    pub fn took(&mut self, decided: &Decided, took: Duration) {
        let begun = decided.subject.decided.mono;
        self.driver.took(&decided.subject.key, begun, took);
    }

    /// Whether there is something to do now.
    pub fn has_work(&self, now: Timestamp) -> bool {
        self.driver.deadline().is_some_and(|at| at <= clock(now))
    }

    pub fn is_synced(&self) -> bool {
        self.driver.is_synced()
    }

    /// Whether there is something to do some time though nothing happens.
    pub fn wakes(&self) -> bool {
        self.driver.deadline().is_some()
    }

    /// What would be decided.
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

    /// A decision follows.
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

    /// Everything that a decision led to has been done.
    pub fn concluded(&mut self) {
        let seen = self.seen.take();
        assert!(self.asked, "warns and writes nothing, for ever: {seen:#?}");
    }

    /// A request is sent: what it rests on.
    pub fn sent(&mut self, request: &Request) -> Option<Rc<Seen>> {
        request.subject.as_ref()?;
        self.asked = true;
        let writes = !matches!(request.call, Call::Read(..) | Call::ReadNode(_));
        self.under_way.insert(request.id, writes);
        assert!(
            self.under_way.len() <= self.limits.calls.at_once,
            "{} writes at a time: {:?}",
            self.under_way.len(),
            self.limits
        );
        if let Call::WriteStatus(_) = request.call {
            let (done, failed) = self.wrote;
            assert!(!done || failed, "a status of how it was before: {request:#?}");
        }
        let versioned = match &request.call {
            Call::Act(Action::ResetRetry(_) | Action::Pause) => Some(""),
            Call::Act(action) => pod_of(action),
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

    /// What it has in mind.
    pub fn describe(&self) -> String {
        format!("{}\n", self.driver.describe())
    }
}
