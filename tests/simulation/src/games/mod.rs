//! One gamedeployment-operator at work: its controller's loop around the core, as the shell has it.
//!
//! `gamedeployment-operator/src/controller` and `act/mod.rs` cannot be had without a client; this keeps their order of
//! things: one plan at a time for a workload, pods in growing batches, the status last and only where nothing else was
//! written; an answer that was lost makes its object uncertain, and nothing is decided before it was read directly.

pub mod act;
pub mod index;
mod job;
mod patch;
mod reading;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use gamedeployment_core::decide::decide;
use gamedeployment_core::gate::Run;
use gamedeployment_core::plan::{Action, Plan};
use gamedeployment_core::pod::Pod;
use gamedeployment_core::refusals::Refusals;
use gamedeployment_core::revision::Revision;
use gamedeployment_core::view::View;
use jiff::{SignedDuration, Timestamp};
use shared_api::GameDeploymentStatus;

use crate::objects::{RevisionObject, WorkloadObject, key};
use crate::process::clock;
use crate::server::table::Watch;
use crate::store::Mark;
use crate::world::EPOCH;
use act::{Effect, Kind, Landed};
use index::{Index, Watches};
pub use job::Job;

const OVERTAKEN: SignedDuration = SignedDuration::from_millis(250);
const LATER: SignedDuration = SignedDuration::from_secs(1);

/// What a decision rested on, for the referee.
#[derive(Debug)]
pub struct Seen {
    pub object: Rc<WorkloadObject>,
    pub nodes: Rc<BTreeSet<String>>,
    pub revisions: Vec<Rc<RevisionObject>>,
    /// Whether everything was known as it is.
    pub fresh: bool,
    /// How much others had changed until then.
    pub foreign: u64,
    /// When that was.
    pub at: Timestamp,
}

/// A decision that is to be carried out.
pub struct Decision {
    pub object: Rc<WorkloadObject>,
    pub plan: Plan,
}

/// What is asked of the API server.
#[derive(Debug, Clone)]
pub enum Request {
    Act(Action),
    Status(Box<GameDeploymentStatus>),
    Read(Kind, String),
}

/// A request under way: its number, and the workload that it belongs to.
pub type Sent = (u64, Request);

#[derive(Debug, Default)]
struct Seat {
    refusals: Refusals,
}

/// One operator's memory.
#[derive(Debug, Default)]
pub struct Games {
    pub index: Index,
    pub watches: Watches,
    uncertain: BTreeMap<String, BTreeSet<(Kind, String)>>,
    dirty: BTreeSet<String>,
    jobs: BTreeMap<String, Job>,
    /// Direct reads under way, by number: for a workload, or of what is overdue.
    reads: BTreeMap<u64, (Option<String>, Kind, String, Mark)>,
    /// Workloads with a direct read that failed.
    read_failed: BTreeSet<String>,
    wakes: BTreeMap<String, Timestamp>,
    seats: BTreeMap<String, Seat>,
    accepted: BTreeMap<String, String>,
    /// Since when what was written is not confirmed by a watch.
    unconfirmed: BTreeMap<(Kind, String), Timestamp>,
    looked: Option<Timestamp>,
    rereading: bool,
    next: u64,
}

impl Games {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// The watch of a kind breaks, and begins with a list.
    pub fn lose_watch(&mut self, kind: usize) {
        let watches = &mut self.watches;
        match kind {
            0 => watches.workloads = Watch::Closed,
            1 => watches.pods = Watch::Closed,
            2 => watches.revisions = Watch::Closed,
            3 => watches.runs = Watch::Closed,
            4 => watches.templates = Watch::Closed,
            _ => {
                watches.nodes = Watch::Closed;
                self.index.lose_nodes();
            }
        }
    }

    /// Lets a watch show one thing.
    pub fn learn(&mut self, server: &crate::server::Server, kind: usize, now: Timestamp) -> index::Shown {
        self.index.now = now;
        self.index.learn(server, &mut self.watches, kind, &mut self.dirty)
    }

    /// Whether there is something to decide now.
    #[must_use]
    pub fn has_work(&self, now: Timestamp) -> bool {
        let due = self.wakes.values().any(|at| *at <= now);
        let free = |name: &String| !self.is_busy(name);
        self.index.is_synced() && (due || self.dirty.iter().any(free))
    }

    /// The next time at which there is something to do though nothing happens.
    #[must_use]
    pub fn wakes_at(&self) -> Option<Timestamp> {
        self.wakes.values().min().copied()
    }

    fn is_busy(&self, name: &str) -> bool {
        self.jobs.contains_key(name) || self.reads.values().any(|(of, ..)| of.as_deref() == Some(name))
    }

    /// What it has in mind.
    #[must_use]
    pub fn describe(&self) -> String {
        let Self {
            uncertain,
            dirty,
            jobs,
            reads,
            wakes,
            seats,
            ..
        } = self;
        let jobs: Vec<_> = jobs.values().map(Job::describe).collect();
        let known: Vec<_> = self
            .index
            .workloads
            .iter()
            .map(|(_, object)| &object.id)
            .collect();
        format!("{uncertain:?} {dirty:?} {jobs:?} {reads:?} {wakes:?} {seats:?}\n{known:?}\n")
    }

    /// Looks at the next workload that something is known of. Returns a plan that is to be carried out, or direct
    /// reads that come before one.
    pub fn consider(&mut self, now: Timestamp, reads: &mut Vec<Sent>) -> Option<Decision> {
        self.index.now = now;
        let due: Vec<String> = self
            .wakes
            .iter()
            .filter(|(_, at)| **at <= now)
            .map(|(name, _)| name.clone())
            .collect();
        for name in due {
            self.wakes.remove(&name);
            self.dirty.insert(name);
        }
        if !self.index.is_synced() {
            return None;
        }
        self.reread_overdue(now, reads);
        let name = self.dirty.iter().find(|name| !self.is_busy(name)).cloned()?;
        self.dirty.remove(&name);
        if let Some(uncertain) = self.uncertain.get(&name).cloned() {
            for (kind, object) in uncertain {
                self.read(Some(name.clone()), kind, object, reads);
            }
            return None;
        }
        let Some(object) = self.index.workloads.get(&key(&name)).cloned() else {
            self.wakes.remove(&name);
            self.seats.remove(&name);
            return None;
        };
        let seat = self.seats.entry(name.clone()).or_default();
        seat.refusals.see(object.api.metadata.generation);
        let mut plan = self.decide(&object, now);
        let seat = self.seats.entry(name.clone()).or_default();
        if seat.refusals.forget_others(&plan) {
            plan = self.decide(&object, now);
        }
        let wake = plan.wake;
        let seat = self.seats.entry(name.clone()).or_default();
        seat.refusals.hold(&mut plan, clock(now));
        let again = seat
            .refusals
            .next()
            .map(|at| EPOCH + SignedDuration::try_from(at).unwrap());
        match wake.into_iter().chain(again).min() {
            Some(at) => drop(self.wakes.insert(name.clone(), at)),
            None => drop(self.wakes.remove(&name)),
        }
        Some(Decision { object, plan })
    }

    #[must_use]
    pub fn decide(&self, object: &Rc<WorkloadObject>, now: Timestamp) -> Plan {
        let index = &self.index;
        let uid = object.uid();
        let mut pods: Vec<&Pod> = index.pods.owned_by(uid).map(|pod| &pod.read).collect();
        pods.extend(
            index
                .pods
                .orphans_in(crate::objects::NAMESPACE)
                .map(|pod| &pod.read),
        );
        let runs: Vec<&Run> = index.runs.owned_by(uid).map(|run| &run.read).collect();
        let revisions: Vec<&Revision> = index
            .revisions
            .owned_by(uid)
            .chain(index.revisions.orphans_in(crate::objects::NAMESPACE))
            .map(|revision| &revision.read)
            .collect();
        let seat = self.seats.get(&object.id.name);
        let trouble = seat.and_then(|seat| seat.refusals.trouble());
        let view = View {
            object: &object.api,
            pods: &pods,
            revisions: &revisions,
            runs: &runs,
            accepted: self.accepted.get(&object.id.name).map(String::as_str),
            trouble: trouble.as_ref(),
            cluster: index,
        };
        let plan = decide(&view, now);
        assert!(
            plan.wake.is_none_or(|wake| wake > now),
            "a wake-up in the past: {plan:?}"
        );
        plan
    }

    /// Begins to carry a plan out. Returns the first requests.
    pub fn begin(&mut self, decision: Decision, seen: Rc<Seen>) -> Vec<Sent> {
        let name = decision.object.id.name.clone();
        let mut job = Job::new(decision.plan, seen);
        let requests = job.advance(&mut self.next);
        self.jobs.insert(name.clone(), job);
        self.finish(&name);
        requests
    }

    /// What the request of this number was decided on.
    #[must_use]
    pub fn seen(&self, id: u64) -> Option<Rc<Seen>> {
        let job = self.jobs.values().find(|job| job.waits_for(id))?;
        Some(job.seen.clone())
    }

    /// A request has been answered. Returns those that follow.
    pub fn answered(&mut self, id: u64, landed: Landed, now: Timestamp) -> Vec<Sent> {
        if self.reads.contains_key(&id) {
            self.found(id, landed, now);
            return Vec::new();
        }
        let Some((name, job)) = self.jobs.iter_mut().find(|(_, job)| job.waits_for(id)) else {
            return Vec::new();
        };
        let name = name.clone();
        job.take(id, landed);
        let requests = job.advance(&mut self.next);
        self.finish_at(&name, now);
        requests
    }

    fn finish(&mut self, name: &str) {
        if self.jobs.get(name).is_some_and(Job::is_done) {
            self.jobs.remove(name);
        }
    }

    /// Takes in what was learned by writing, and decides when to go on.
    fn finish_at(&mut self, name: &str, now: Timestamp) {
        if !self.jobs.get(name).is_some_and(Job::is_done) {
            return;
        }
        let Some(job) = self.jobs.remove(name) else { return };
        for effect in job.effects {
            self.apply(name, effect);
        }
        let generation = self
            .index
            .workloads
            .get(&key(name))
            .and_then(|object| object.api.metadata.generation);
        let seat = self.seats.entry(name.to_owned()).or_default();
        seat.refusals.see(generation);
        seat.refusals.learn(job.tried, clock(now));
        seat.refusals.collide(job.collision);
        if job.overtaken {
            self.dirty.remove(name);
            self.wakes.insert(name.to_owned(), now + OVERTAKEN);
        } else {
            self.dirty.insert(name.to_owned());
        }
    }

    fn apply(&mut self, workload: &str, effect: Effect) {
        match effect {
            Effect::Workload(object) => self.index.workloads.wrote(key(&object.id.name), object),
            Effect::Pod(pod) => self.index.pods.wrote(key(&pod.id.name), pod),
            Effect::Revision(object) => self.index.revisions.wrote(key(&object.id.name), object),
            Effect::Run(run) => self.index.runs.wrote(key(&run.id.name), run),
            Effect::Gone(kind, name, uid) => match kind {
                Kind::Workload => {}
                Kind::Pod => self.index.pods.removed(&key(&name), &uid),
                Kind::Revision => self.index.revisions.removed(&key(&name), &uid),
                Kind::Run => self.index.runs.removed(&key(&name), &uid),
            },
            Effect::Accepted(revision) => drop(self.accepted.insert(workload.to_owned(), revision)),
            Effect::NodeNotGone(node) => self.index.doubt(&node),
            Effect::Uncertain(kind, name) => {
                self.uncertain
                    .entry(workload.to_owned())
                    .or_default()
                    .insert((kind, name));
            }
        }
    }
}
