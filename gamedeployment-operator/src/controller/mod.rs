//! Decides for every workload that news is about, one decision at a time for each, and has it carried out.
//!
//! One task owns everything that is known, so nothing is locked: it takes news in, decides, and hands plans to tasks
//! that write; what they learned comes back as news.

mod reading;
mod rest;
mod wakes;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::{FutureExt, Stream, StreamExt};
use gamedeployment_core::decide::decide;
use gamedeployment_core::gate::Run;
use gamedeployment_core::plan::Plan;
use gamedeployment_core::pod::Pod;
use gamedeployment_core::refusals::{FIRST_PAUSE, Refusals};
use gamedeployment_core::revision::Revision;
use gamedeployment_core::view::View;
use jiff::Timestamp;
use kube::Client;
use kube::core::error_boundary::InvalidObject;
use operator_runtime::calls::Calls;
use operator_runtime::health::Health;
use operator_runtime::traces::TARGET;
use operator_runtime::watch::Key;
use tokio::task::JoinSet;
use tracing::Instrument as _;

use crate::act::{Effect, Hands, Kind, Moment, Outcome, Subject};
use crate::expectations::{self, Expectations};
use crate::index::{Index, Surroundings};
use crate::metrics::{Decision, Metrics};
use crate::observe::{NODES, News, RUNS};
use crate::store::Mark;
use rest::Rest;
use wakes::Wakes;

/// Changes of pods for one workload before it is decided on anew: the user may change their mind meanwhile.
const CHANGES: usize = 128;
/// Removals of runs that nobody needs, which wait for one another.
const REMOVALS: usize = 200;
/// Creations, likewise: those that are ready wait to be put into service.
const CREATIONS: usize = 512;
/// Pause before something is tried again that no decision rests on.
const LATER: Duration = Duration::from_secs(1);

/// What a task brings back.
enum Done {
    /// A plan was carried out.
    Plan(Key, Outcome),
    /// Objects were read directly.
    Read(Option<Key>, Vec<(Kind, Key, Mark, Option<Effect>)>, bool),
    /// It was said, or not, that an object cannot be read.
    Refused(Key, bool),
}

/// Decides.
pub struct Controller {
    client: Client,
    calls: Arc<Calls>,
    hands: Hands,
    metrics: Metrics,
    health: Health,
    with_nodes: bool,
    index: Index,
    expectations: Expectations,
    dirty: BTreeSet<Key>,
    /// Workloads that are being written for.
    busy: HashSet<Key>,
    /// When workloads are to be decided anew though nothing happens.
    wakes: Wakes,
    /// Large workloads that were decided on just now.
    rest: Rest,
    seats: HashMap<Key, Seat>,
    /// The revision of each workload of which the API server has accepted a pod in a dry run last.
    accepted: HashMap<Key, String>,
    /// When it began: times of refusals are counted from here.
    began: Instant,
    tasks: JoinSet<Done>,
    rereading: bool,
}

/// What is remembered of a workload between decisions: only what saves work or tells people.
#[derive(Debug, Default)]
struct Seat {
    refusals: Refusals,
    /// Of an object that cannot be read: what was said of it.
    unreadable: Option<String>,
}

impl Controller {
    /// A controller that knows nothing yet.
    #[must_use]
    pub fn new(
        client: Client,
        calls: Arc<Calls>,
        hands: Hands,
        metrics: Metrics,
        health: Health,
        with_nodes: bool,
    ) -> Self {
        Self {
            client,
            calls,
            hands,
            metrics,
            health,
            with_nodes,
            index: Index::default(),
            expectations: Expectations::default(),
            dirty: BTreeSet::new(),
            busy: HashSet::new(),
            wakes: Wakes::default(),
            rest: Rest::default(),
            seats: HashMap::new(),
            accepted: HashMap::new(),
            began: Instant::now(),
            tasks: JoinSet::new(),
            rereading: false,
        }
    }

    /// Follows the news until they end.
    pub async fn drive(mut self, news: impl Stream<Item = News>) {
        let mut news = std::pin::pin!(news);
        loop {
            let sleep = self.until_next_look();
            tokio::select! {
                item = news.next() => match item {
                    Some(item) => self.learn(item),
                    None => return,
                },
                Some(done) = self.tasks.join_next(), if !self.tasks.is_empty() => self.take_back(done),
                () = tokio::time::sleep(sleep) => {}
            }
            // Everything that is there already is taken in before anything is decided on.
            while let Some(Some(item)) = news.next().now_or_never() {
                self.learn(item);
            }
            while let Some(done) = self.tasks.try_join_next() {
                self.take_back(done);
            }
            self.dirty.extend(self.wakes.due(Instant::now()));
            self.index.nodes.set_healthy(self.health.passes_since(NODES));
            if self.index.is_synced(self.with_nodes) {
                self.reread_overdue();
                for key in std::mem::take(&mut self.dirty) {
                    self.consider(key);
                }
            }
        }
    }

    fn learn(&mut self, news: News) {
        if let Some(hook) = self.index.refusal(&news) {
            self.metrics.gate(hook, Decision::Refused);
        }
        if let News::Run(event) = &news {
            self.index.see_verdict(event, self.health.passes_since(RUNS));
        }
        self.index.learn(news, &mut self.dirty);
    }

    /// The time until something is to be done though nothing happens.
    fn until_next_look(&self) -> Duration {
        let wake = { self.wakes.next() }.map(|at| at.saturating_duration_since(Instant::now()));
        let overdue = expectations::next_overdue(&self.index).filter(|_| !self.rereading);
        let overdue = overdue.map(|at| at.saturating_duration_since(Instant::now()));
        let waits = |key: &Key| self.dirty.contains(key) && !self.busy.contains(key);
        let rested = self.rest.next(waits);
        let rested = rested.map(|at| at.saturating_duration_since(Instant::now()));
        wake.into_iter()
            .chain(overdue)
            .chain(rested)
            .min()
            .unwrap_or(Duration::from_mins(10))
            + Duration::from_millis(1)
    }

    /// Decides for one workload, unless it is being written for: then it comes again when that is done.
    fn consider(&mut self, key: Key) {
        if self.busy.contains(&key) || self.rest.rests(&key, Instant::now()) {
            self.dirty.insert(key);
            return;
        }
        let uncertain = self.expectations.of(&key);
        if !uncertain.is_empty() {
            self.read(
                Some(key.clone()),
                uncertain
                    .into_iter()
                    .map(|(kind, name)| (kind, (key.0.clone(), name)))
                    .collect(),
            );
            self.busy.insert(key);
            return;
        }
        let Some(workload) = self.index.workloads.get(&key) else {
            self.forget(&key);
            return;
        };
        let object = match &workload.object {
            Ok(object) => object,
            Err(invalid) => {
                let invalid = invalid.clone();
                self.refuse(key, invalid);
                return;
            }
        };
        let decided = Moment::now();
        let started = decided.instant;
        let uid = object.metadata.uid.clone().unwrap_or_default();
        if let Some(seat) = self.seats.get_mut(&key) {
            seat.refusals.see(object.metadata.generation);
        }
        let mut plan = self.decide(&key, object, &uid, decided.time);
        if let Some(seat) = self.seats.get_mut(&key)
            && seat.refusals.forget_others(&plan)
        {
            // What was told of it is not so any more.
            plan = self.decide(&key, object, &uid, decided.time);
        }
        let took = started.elapsed();
        self.metrics.decided(took);
        self.rest.decided(&key, started, took);
        let wake = plan.wake.map(|at| decided.at(at));
        let status = plan.status.as_deref().or(object.status.as_ref());
        if let (Some(status), Some(gauges)) = (status, &plan.gauges) {
            let wanted = object.spec.replicas.unwrap_or(1);
            self.metrics.report(&key, wanted, status, gauges);
        }
        let (again, remembers) = self.seats.get(&key).map_or((None, false), |seat| {
            seat.refusals
                .hold(&mut plan, started.saturating_duration_since(self.began));
            let next = seat.refusals.next().map(|next| self.began + next);
            (next, seat.refusals.remembers())
        });
        self.wakes.set(&key, wake.into_iter().chain(again).min());
        if plan.is_empty() {
            self.metrics.reconciled(&key, again.is_none(), started.elapsed());
            if !remembers {
                self.seats.remove(&key);
            }
            return;
        }
        plan.postpone_removals(REMOVALS);
        plan.shorten(CREATIONS, CHANGES);
        let subject = Subject {
            key: key.clone(),
            object: Arc::new((**object).clone()),
            runs_here: self.index.runs.count_in(&key.0),
            decided,
        };
        self.carry_out(subject, plan, started);
        self.busy.insert(key);
    }

    /// Has a plan carried out, which was begun to be made at `started`.
    fn carry_out(&mut self, subject: Subject, plan: Plan, started: Instant) {
        let (namespace, gamedeployment) = &subject.key;
        let span = tracing::info_span!(
            target: TARGET, "decision", namespace, gamedeployment, actions = plan.actions.len(),
            status = plan.status.is_some()
        );
        let (hands, metrics) = (self.hands.clone(), self.metrics.clone());
        let work = async move {
            let outcome = hands.carry_out(&subject, plan).await;
            metrics.reconciled(&subject.key, !outcome.failed, started.elapsed());
            Done::Plan(subject.key, outcome)
        };
        self.tasks.spawn(work.instrument(span));
    }

    /// Says of an object that cannot be read what is wrong with it, once.
    fn refuse(&mut self, key: Key, invalid: InvalidObject) {
        let seat = self.seats.entry(key.clone()).or_default();
        if seat.unreadable.as_ref() == Some(&invalid.error) {
            return;
        }
        seat.unreadable = Some(invalid.error.clone());
        self.metrics.unreadable.inc();
        let (namespace, name, error) = (&key.0, &key.1, &invalid.error);
        tracing::warn!(namespace, name, error, "a GameDeployment cannot be read");
        let hands = self.hands.clone();
        self.tasks.spawn(async move {
            let refused = hands.refuse_unreadable(&key, &invalid).await;
            Done::Refused(key, refused.is_ok())
        });
    }

    fn decide(&self, key: &Key, object: &shared_api::GameDeployment, uid: &str, now: Timestamp) -> Plan {
        let surroundings = Surroundings {
            index: &self.index,
            namespace: &key.0,
        };
        let mut pods: Vec<&Pod> = self.index.pods.owned_by(uid).collect();
        pods.extend(self.index.pods.orphans_in(&key.0));
        let runs: Vec<&Run> = self.index.runs.owned_by(uid).collect();
        let revisions = &self.index.revisions;
        let revisions: Vec<&Revision> = revisions
            .owned_by(uid)
            .chain(revisions.orphans_in(&key.0))
            .map(|owned| &owned.revision)
            .collect();
        let seat = self.seats.get(key);
        let trouble = seat.and_then(|seat| seat.refusals.trouble());
        let view = View {
            object,
            pods: &pods,
            revisions: &revisions,
            runs: &runs,
            accepted: self.accepted.get(key).map(String::as_str),
            trouble: trouble.as_ref(),
            cluster: &surroundings,
        };
        decide(&view, now)
    }

    /// A workload is gone.
    fn forget(&mut self, key: &Key) {
        self.metrics.forget(key);
        self.expectations.forget(key);
        self.wakes.set(key, None);
        self.rest.forget(key);
        self.accepted.remove(key);
        self.seats.remove(key);
    }

    fn take_back(&mut self, done: Result<Done, tokio::task::JoinError>) {
        match done {
            Ok(Done::Plan(key, outcome)) => {
                self.busy.remove(&key);
                self.conclude(key, outcome);
            }
            Ok(Done::Read(workload, found, all)) => self.found(workload, found, all),
            Ok(Done::Refused(_, true)) => {}
            Ok(Done::Refused(key, false)) => {
                self.seats.remove(&key);
                self.wakes.set(&key, Some(Instant::now() + LATER));
            }
            Err(error) => {
                tracing::error!(%error, "a task ended in a defect");
                // Whose it was is not known; every workload is looked at again.
                self.busy.clear();
                self.rereading = false;
                self.dirty
                    .extend(self.index.workloads.iter().map(|(key, _)| key.clone()));
            }
        }
    }

    /// Takes in what was learned by writing, and decides when to go on.
    fn conclude(&mut self, key: Key, outcome: Outcome) {
        let Outcome {
            effects,
            tried,
            failed,
            overtaken,
            collision,
            done: _,
        } = outcome;
        for effect in effects {
            self.apply(&key, effect);
        }
        if failed || self.seats.contains_key(&key) {
            let generation = self.index.workloads.get(&key).and_then(|workload| {
                let object = workload.object.as_ref().ok()?;
                object.metadata.generation
            });
            let seat = self.seats.entry(key.clone()).or_default();
            seat.refusals.see(generation);
            seat.refusals.learn(tried, self.began.elapsed());
            seat.refusals.collide(collision);
            if seat.refusals.is_empty() {
                self.seats.remove(&key);
            }
        }
        if overtaken {
            // A conflict is settled by reading; only refusals and silence are waited out.
            self.dirty.remove(&key);
            self.wakes.set(&key, Some(Instant::now() + FIRST_PAUSE));
        } else {
            self.dirty.insert(key);
        }
    }
}
