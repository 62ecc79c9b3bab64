//! The life of one run in this process: decide, record, measure, wait, and again.
//!
//! Every run has a session of its own, so no run waits for another's endpoint. All judgement is in
//! [`hook_core::decide`]; here is only the order of things: what is measured is kept until it is recorded, and
//! nothing is measured for a metric before its last measurement is recorded.
//!
//! | module | job |
//! | --- | --- |
//! | [`measure`] | one measurement: references, placeholders, the call, the verdict |
//! | `recording` | writing down what was measured, until it is written |
//! | `pace` | how often one run's status is written |
//! | `kept` | whether what was written is there |
//! | [`ledger`] | where a session reads arguments and records what it measured |
//! | [`observer`] | who is told how it goes: metrics, or nobody |
//!
//! The operator runs one for each run of the cluster, the kubectl plugin one for a run of its user's.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hook_core::decide::{self, Ended, Outcome, Plan, Slot, Start, View, decide};
use hook_core::resolve::{Problems, resolve_run, time_to_live};
use hook_core::verdict::Verdict;
use jiff::Timestamp;
use shared_api::names::TRACE_TARGET;
use shared_api::{HookRun, Phase};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinError, JoinSet};
use tracing::Instrument as _;
use tracing::field::Empty;

mod kept;
pub mod ledger;
pub mod measure;
pub mod observer;
mod pace;
mod recording;
mod version;

use ledger::Ledger;
use measure::{Measurer, NotAsked, SharedRun};
use observer::time_of;
use pace::Pace;
pub use version::Version;

/// The target of log lines: those who set levels for `hook_operator` see them as well.
const LOG: &str = "hook_operator::session";

/// The wall clock may jump while a session sleeps; no sleep is longer than this.
const LONGEST_SLEEP: Duration = Duration::from_secs(30);

/// One run being measured.
pub struct Session<L> {
    measurer: Measurer<L>,
    updates: watch::Receiver<Arc<HookRun>>,
    /// Shared with `updates`: of ten thousand runs that are waited for there is one copy each.
    run: Arc<HookRun>,
    resolved: SharedRun,
    /// Whether `resolved` is of another spec than the run has now.
    outdated: bool,
    taken_up_at: Timestamp,
    in_flight: HashMap<Slot, AbortHandle>,
    tasks: JoinSet<Result<Outcome, NotAsked>>,
    outcomes: Vec<Outcome>,
    /// Why a metric could not be asked, until that is recorded.
    held_up: Option<String>,
    pace: Pace,
    /// The time of the last measurement.
    last: Duration,
    failed_writes: u32,
}

/// Why a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The run has its final phase, recorded with this version.
    Concluded(Version),
    /// The run is gone.
    Gone,
}

impl End {
    /// Whether this state of the run is from before the end, and arrives late.
    #[must_use]
    pub fn is_news_of_before(&self, run: &HookRun) -> bool {
        match self {
            Self::Concluded(last) => Version::of(run).is_before(*last),
            // Its UID never comes back to life.
            Self::Gone => true,
        }
    }

    /// Whether this state came too late for the session to hear of it.
    #[must_use]
    pub fn is_before(&self, run: &HookRun) -> bool {
        match self {
            Self::Concluded(last) => last.is_before(Version::of(run)),
            Self::Gone => false,
        }
    }
}

impl<L: Ledger> Session<L> {
    /// A session for the run that `updates` holds.
    #[must_use]
    pub fn new(measurer: Measurer<L>, mut updates: watch::Receiver<Arc<HookRun>>) -> Self {
        let run = updates.borrow_and_update().clone();
        Self {
            measurer,
            updates,
            run,
            resolved: Arc::new(Err(Problems::default())),
            outdated: true,
            taken_up_at: Timestamp::now(),
            in_flight: HashMap::new(),
            tasks: JoinSet::new(),
            outcomes: Vec::new(),
            held_up: None,
            pace: Pace::default(),
            last: Duration::ZERO,
            failed_writes: 0,
        }
    }

    /// Measures until the run has its verdict or is gone. Dropping the future cancels all calls in flight.
    pub async fn drive(mut self) -> End {
        loop {
            if std::mem::take(&mut self.outdated) {
                Box::pin(self.resolve()).await;
            }
            let Plan {
                record,
                start,
                cancel,
                wake_at,
                ended,
            } = self.plan();
            self.cancel(&cancel);
            // Boxed, because these are large, and a session mostly waits: else each would keep room
            // for what it does not do.
            let step = match (record, ended) {
                (Some(status), _) => match self.pace.wait_for(&status, Instant::now()) {
                    Some(wait) => self.wait(wait).await,
                    None => Box::pin(self.record(&status)).await,
                },
                (None, Some(Ended::Keep)) => return End::Concluded(Version::of(&self.run)),
                (None, Some(Ended::Delete)) => Box::pin(self.delete()).await,
                (None, Some(Ended::DeleteLater) | None) => {
                    self.start(start);
                    let sleep = wake_at.map_or(LONGEST_SLEEP, |at| {
                        Duration::try_from(at.duration_since(Timestamp::now())).unwrap_or_default()
                    });
                    self.wait(sleep).await
                }
            };
            if let Err(end) = step {
                return end;
            }
        }
    }

    fn name(&self) -> &str {
        self.run.metadata.name.as_deref().unwrap_or_default()
    }

    /// Compiles the spec: aside, because it may take a while, and what holds the Lease must not
    /// wait for it.
    async fn resolve(&mut self) {
        let run = self.run.clone();
        let compute = self.measurer.providers.compute().clone();
        let compile = move || resolve_run(&run.spec);
        self.resolved = Arc::new(compute.run(self.namespace(), compile).await);
        self.forget_recorded();
    }

    fn namespace(&self) -> &str {
        self.run.metadata.namespace.as_deref().unwrap_or_default()
    }

    fn plan(&mut self) -> Plan {
        let now = Timestamp::now();
        self.taken_up_at = self.taken_up_at.min(now);
        let status = self.run.status.clone().unwrap_or_default();
        let in_flight: Vec<Slot> = self.in_flight.keys().cloned().collect();
        let view = View {
            spec: self.resolved.as_ref().as_ref(),
            time_to_live: time_to_live(&self.run.spec),
            generation: self.run.metadata.generation,
            status: &status,
            taken_up_at: self.taken_up_at,
            in_flight: &in_flight,
            outcomes: &self.outcomes,
            held_up: self.held_up.as_deref(),
        };
        decide(&view, now)
    }

    fn cancel(&mut self, slots: &[Slot]) {
        for slot in slots {
            if let Some(call) = self.in_flight.remove(slot) {
                call.abort();
            }
        }
    }

    fn start(&mut self, starts: Vec<Start>) {
        for Start { slot, due } in starts {
            let lag = Timestamp::now().duration_since(due);
            self.measurer
                .observer
                .started(Duration::try_from(lag).unwrap_or_default());
            let (measurer, resolved) = (self.measurer.clone(), self.resolved.clone());
            let namespace = self.namespace().to_owned();
            let place = slot.clone();
            let span = tracing::info_span!(
                target: TRACE_TARGET, "measurement", namespace, run = self.name(), metric = slot.metric,
                provider = Empty, phase = Empty, failure = Empty
            );
            let measurement = async move { measurer.measure(&namespace, place, &resolved).await };
            let call = self.tasks.spawn(measurement.instrument(span));
            self.in_flight.insert(slot, call);
        }
    }

    /// Waits for the first of: a measurement's end, news of the run, the time to wake.
    async fn wait(&mut self, sleep: Duration) -> Result<(), End> {
        tokio::select! {
            Some(ended) = self.tasks.join_next(), if !self.tasks.is_empty() => {
                self.collect(ended);
                while let Some(ended) = self.tasks.try_join_next() {
                    self.collect(ended);
                }
                Ok(())
            }
            news = self.updates.changed() => self.hear(news.is_ok()),
            () = tokio::time::sleep(sleep.min(LONGEST_SLEEP)) => Ok(()),
        }
    }

    /// Keeps a measurement's outcome until it is recorded. One that was cancelled has none.
    fn collect(&mut self, ended: Result<Result<Outcome, NotAsked>, JoinError>) {
        match ended {
            Ok(Err(NotAsked { slot, why })) => {
                // Still due, so it is started again.
                self.in_flight.remove(&slot);
                self.held_up = Some(why);
            }
            Ok(Ok(outcome)) => {
                self.in_flight.remove(&outcome.slot);
                self.last = time_of(&outcome);
                self.measurer.observer.came(&self.run, &outcome);
                self.outcomes.push(outcome);
            }
            Err(error) if error.is_cancelled() => {}
            Err(error) => self.fail(&error),
        }
    }

    /// A measurement that ended in a defect of ours is an error like any other: it is recorded, counted, and tried
    /// again when its time comes.
    fn fail(&mut self, error: &JoinError) {
        tracing::error!(target: LOG, %error, "a measurement ended without an outcome");
        let slots = self.in_flight.iter();
        let failed = slots.filter(|(_, call)| call.id() == error.id());
        let Some(slot) = failed.map(|(slot, _)| slot.clone()).next() else {
            return;
        };
        self.in_flight.remove(&slot);
        let now = Timestamp::now();
        self.outcomes.push(Outcome {
            slot,
            started_at: now,
            finished_at: now,
            verdict: Verdict {
                phase: Phase::Error,
                value: None,
                message: Some("the measurement ended in a defect of hook-operator; its log says more".into()),
            },
        });
    }

    /// Takes in what the watch brought; without a sender the run is gone.
    fn hear(&mut self, alive: bool) -> Result<(), End> {
        if !alive {
            return Err(End::Gone);
        }
        let news = self.updates.borrow_and_update().clone();
        if !Version::of(&news).is_before(Version::of(&self.run)) {
            self.adopt(news);
        }
        Ok(())
    }

    fn adopt(&mut self, run: Arc<HookRun>) {
        if run.spec != self.run.spec {
            self.outdated = true;
        }
        if (&run.spec.metrics, &run.spec.args) != (&self.run.spec.metrics, &self.run.spec.args) {
            self.forget_unrecorded();
        }
        self.run = run;
        if !self.outdated {
            self.forget_recorded();
        }
    }

    /// What somebody has recorded for the same slot is dropped.
    fn forget_recorded(&mut self) {
        if let (Ok(resolved), Some(status)) = (self.resolved.as_ref(), &self.run.status) {
            self.outcomes
                .retain(|outcome| decide::is_open(resolved, status, &outcome.slot));
        }
    }

    /// What was asked or judged by metrics that have been replaced says nothing about those that stand there now.
    fn forget_unrecorded(&mut self) {
        // A new set, because a call that has just ended would still be handed out by the old one.
        self.tasks = JoinSet::new();
        self.in_flight.clear();
        self.outcomes.clear();
        self.held_up = None;
    }
}
