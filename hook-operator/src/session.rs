//! The life of one run in this process: decide, record, measure, wait, and again.
//!
//! Every run has a session of its own, so no run waits for another's endpoint. All judgement is in
//! [`hook_core::decide`]; here is only the order of things: what is measured is kept until it is recorded, and
//! nothing is measured for a metric before its last measurement is recorded.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hook_core::decide::{self, Ended, Outcome, Plan, Slot, Start, View, decide};
use hook_core::resolve::{Problems, ResolvedRun, resolve_run, time_to_live};
use jiff::Timestamp;
use shared_api::{HookRun, HookRunStatus};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

use crate::ledger::{Ledger, LedgerError};
use crate::measure::Measurer;

/// First pause before a failed write is tried again; doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Longest pause between two tries of a write.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// The wall clock may jump while a session sleeps; no sleep is longer than this.
const LONGEST_SLEEP: Duration = Duration::from_secs(30);

/// One run being measured.
pub struct Session<L> {
    measurer: Measurer<L>,
    updates: watch::Receiver<HookRun>,
    run: HookRun,
    resolved: Arc<Result<ResolvedRun, Problems>>,
    taken_up_at: Timestamp,
    in_flight: HashMap<Slot, AbortHandle>,
    tasks: JoinSet<Outcome>,
    outcomes: Vec<Outcome>,
    failed_writes: u32,
    /// A final status was written, or may have been; its end is not announced yet.
    concluding: bool,
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
}

impl<L: Ledger> Session<L> {
    /// A session for the run that `updates` holds.
    #[must_use]
    pub fn new(measurer: Measurer<L>, mut updates: watch::Receiver<HookRun>) -> Self {
        let run = updates.borrow_and_update().clone();
        let resolved = Arc::new(resolve_run(&run.spec));
        Self {
            measurer,
            updates,
            run,
            resolved,
            taken_up_at: Timestamp::now(),
            in_flight: HashMap::new(),
            tasks: JoinSet::new(),
            outcomes: Vec::new(),
            failed_writes: 0,
            concluding: false,
        }
    }

    /// Measures until the run has its verdict or is gone. Dropping the future cancels all calls in flight.
    pub async fn drive(mut self) -> End {
        loop {
            let Plan {
                record,
                start,
                cancel,
                wake_at,
                ended,
            } = self.plan();
            self.cancel(&cancel);
            if ended.is_some() {
                self.announce();
            }
            let step = match (record, ended) {
                (Some(status), _) => self.record(&status).await,
                (None, Some(Ended::Keep)) => return End::Concluded(Version::of(&self.run)),
                (None, Some(Ended::Delete)) => self.delete().await,
                (None, Some(Ended::DeleteLater) | None) => {
                    self.start(start);
                    self.wait(wake_at).await
                }
            };
            if let Err(end) = step {
                return end;
            }
        }
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
                .metrics
                .started(Duration::try_from(lag).unwrap_or_default());
            let (measurer, resolved) = (self.measurer.clone(), self.resolved.clone());
            let namespace = self.run.metadata.namespace.clone().unwrap_or_default();
            let place = slot.clone();
            let call = self.tasks.spawn(async move {
                let Ok(run) = resolved.as_ref() else {
                    return std::future::pending().await;
                };
                let Some(metric) = run.metric(&place.metric) else {
                    return std::future::pending().await;
                };
                measurer
                    .measure(&namespace, place.clone(), metric, &run.arguments)
                    .await
            });
            self.in_flight.insert(slot, call);
        }
    }

    /// Waits for the first of: a measurement's end, news of the run, the time to wake.
    async fn wait(&mut self, wake_at: Option<Timestamp>) -> Result<(), End> {
        let sleep = wake_at.map_or(LONGEST_SLEEP, |at| {
            Duration::try_from(at.duration_since(Timestamp::now()))
                .unwrap_or_default()
                .min(LONGEST_SLEEP)
        });
        tokio::select! {
            Some(ended) = self.tasks.join_next(), if !self.tasks.is_empty() => {
                self.collect(ended);
                while let Some(ended) = self.tasks.try_join_next() {
                    self.collect(ended);
                }
                Ok(())
            }
            news = self.updates.changed() => self.hear(news.is_ok()),
            () = tokio::time::sleep(sleep) => Ok(()),
        }
    }

    /// Keeps a measurement's outcome until it is recorded. One that was cancelled has none.
    fn collect(&mut self, ended: Result<Outcome, tokio::task::JoinError>) {
        match ended {
            Ok(outcome) => {
                self.in_flight.remove(&outcome.slot);
                self.outcomes.push(outcome);
            }
            Err(error) if error.is_cancelled() => {}
            Err(error) => {
                // A defect in a provider: the slot is measured again.
                tracing::error!(%error, "a measurement ended without an outcome");
                self.in_flight.retain(|_, call| !call.is_finished());
            }
        }
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

    fn adopt(&mut self, run: HookRun) {
        if run.spec != self.run.spec {
            self.resolved = Arc::new(resolve_run(&run.spec));
        }
        if (&run.spec.metrics, &run.spec.args) != (&self.run.spec.metrics, &self.run.spec.args) {
            self.forget_unrecorded();
        }
        self.run = run;
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
    }

    /// Says once that the run has ended, when that is recorded; also where the answer to that write was lost.
    fn announce(&mut self) {
        let Some(status) = self.run.status.as_ref().filter(|_| self.concluding) else {
            return;
        };
        self.concluding = false;
        let reason = status.reason.as_deref().unwrap_or_default();
        self.measurer.metrics.completed(status.phase, reason);
        self.measurer.ledger.concluded(&self.run);
    }

    async fn record(&mut self, status: &HookRunStatus) -> Result<(), End> {
        self.concluding = status.phase.is_final();
        let ledger = self.measurer.ledger.clone();
        match ledger.record(&self.run, status).await {
            Ok(run) => {
                self.failed_writes = 0;
                self.measurer.metrics.wrote("written");
                self.adopt(run);
                Ok(())
            }
            Err(error) => self.recover(error).await,
        }
    }

    async fn delete(&mut self) -> Result<(), End> {
        match self.measurer.ledger.clone().delete(&self.run).await {
            Ok(()) => Err(End::Gone),
            Err(error) => self.recover(error).await,
        }
    }

    /// After a write that did not succeed: on a conflict the run is read again, else tried again after a pause.
    /// Nothing that was measured is dropped unless it turns out to be recorded.
    async fn recover(&mut self, error: LedgerError) -> Result<(), End> {
        let error = match error {
            LedgerError::Conflict => {
                self.measurer.metrics.wrote("conflict");
                match self.measurer.ledger.clone().read(&self.run).await {
                    Ok(run) => {
                        self.adopt(run);
                        return Ok(());
                    }
                    Err(error) => error,
                }
            }
            error => error,
        };
        if matches!(error, LedgerError::Gone) {
            self.measurer.metrics.wrote("gone");
            return Err(End::Gone);
        }
        self.measurer.metrics.wrote("failed");
        self.failed_writes = self.failed_writes.saturating_add(1);
        let pause = FIRST_PAUSE
            .saturating_mul(1 << self.failed_writes.min(8))
            .min(LONGEST_PAUSE);
        let name = self.run.metadata.name.as_deref().unwrap_or_default();
        tracing::warn!(%error, name, tries = self.failed_writes, ?pause, "the status is not recorded yet");
        self.pause(pause).await
    }

    /// Waits out a pause; only the end of the run cuts it short.
    async fn pause(&mut self, pause: Duration) -> Result<(), End> {
        let mut sleep = pin!(tokio::time::sleep(pause));
        loop {
            tokio::select! {
                () = &mut sleep => return Ok(()),
                news = self.updates.changed() => self.hear(news.is_ok())?,
            }
        }
    }
}

/// A run's resourceVersion. Older API servers promise clients no order of these; where one is not a number nothing
/// counts as old, and the precondition of the next write settles it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version(Option<u64>);

impl Version {
    fn of(run: &HookRun) -> Self {
        Self(
            run.metadata
                .resource_version
                .as_deref()
                .and_then(|text| text.parse().ok()),
        )
    }

    fn is_before(self, other: Self) -> bool {
        matches!((self.0, other.0), (Some(this), Some(other)) if this < other)
    }
}
