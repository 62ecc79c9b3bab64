//! The life of one run in this process: decide, record, measure, wait, and again.
//!
//! Every run has a session of its own, so no run waits for another's endpoint. All judgement is in
//! [`hook_core::decide`]; here is only the order of things: what is measured is kept until it is recorded, and
//! nothing is measured for a metric before its last measurement is recorded.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hook_core::decide::{self, Ended, Outcome, Plan, Slot, Start, View, decide};
use hook_core::resolve::{Problems, ResolvedRun, resolve_run, time_to_live};
use hook_core::verdict::Verdict;
use jiff::Timestamp;
use operator_runtime::traces::TARGET;
use shared_api::{HookRun, HookRunStatus, Phase};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinError, JoinSet};
use tracing::Instrument as _;
use tracing::field::Empty;

use crate::ledger::{Ledger, LedgerError};
use crate::measure::Measurer;
use crate::metrics::time_of;

mod kept;
mod version;

use kept::keeps;
pub use version::Version;

/// First pause before a failed write is tried again; doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Longest pause between two tries of a write.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// The try after which a write that does not succeed is complained of, and again after so many more.
const FIRST_COMPLAINT: u32 = 5;
const COMPLAIN_EVERY: u32 = 100;
/// The wall clock may jump while a session sleeps; no sleep is longer than this.
const LONGEST_SLEEP: Duration = Duration::from_secs(30);

/// One run being measured.
pub struct Session<L> {
    measurer: Measurer<L>,
    updates: watch::Receiver<Arc<HookRun>>,
    /// Shared with `updates`: of ten thousand runs that are waited for there is one copy each.
    run: Arc<HookRun>,
    resolved: Arc<Result<ResolvedRun, Problems>>,
    taken_up_at: Timestamp,
    in_flight: HashMap<Slot, AbortHandle>,
    tasks: JoinSet<Outcome>,
    outcomes: Vec<Outcome>,
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
            last: Duration::ZERO,
            failed_writes: 0,
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
            // Boxed, because these are large, and a session mostly waits: else each would keep room
            // for what it does not do.
            let step = match (record, ended) {
                (Some(status), _) => Box::pin(self.record(&status)).await,
                (None, Some(Ended::Keep)) => return End::Concluded(Version::of(&self.run)),
                (None, Some(Ended::Delete)) => Box::pin(self.delete()).await,
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

    fn name(&self) -> &str {
        self.run.metadata.name.as_deref().unwrap_or_default()
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
            let span = tracing::info_span!(
                target: TARGET, "measurement", namespace, run = self.name(), metric = slot.metric,
                provider = Empty, phase = Empty, failure = Empty
            );
            let measurement = async move {
                let Ok(run) = resolved.as_ref() else {
                    return std::future::pending().await;
                };
                let Some(metric) = run.metric(&place.metric) else {
                    return std::future::pending().await;
                };
                measurer
                    .measure(&namespace, place.clone(), metric, &run.arguments)
                    .await
            };
            let call = self.tasks.spawn(measurement.instrument(span));
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
                self.last = time_of(&outcome);
                self.measurer.metrics.came(&self.run, &outcome);
                self.outcomes.push(outcome);
            }
            Err(error) if error.is_cancelled() => {}
            Err(error) => self.fail(&error),
        }
    }

    /// A measurement that ended in a defect of ours is an error like any other: it is recorded, counted, and tried
    /// again when its time comes.
    fn fail(&mut self, error: &JoinError) {
        tracing::error!(%error, "a measurement ended without an outcome");
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

    async fn record(&mut self, status: &HookRunStatus) -> Result<(), End> {
        let namespace = self.run.metadata.namespace.as_deref();
        let phase = status.phase.as_str();
        let span = tracing::info_span!(target: TARGET, "record", namespace, run = self.name(), phase);
        let ledger = self.measurer.ledger.clone();
        let begun = Instant::now();
        let recorded = ledger.record(&self.run, status).instrument(span).await;
        self.measurer
            .metrics
            .recorded(&self.run, recorded.is_ok(), begun.elapsed());
        match recorded {
            Ok(run) if keeps(&run, status) => {
                self.failed_writes = 0;
                self.measurer.metrics.wrote("written");
                self.adopt(Arc::new(run));
            }
            Ok(run) => {
                self.adopt(Arc::new(run));
                let message = "the API server answered without what was written".to_owned();
                let step = "write a status";
                self.try_again(&LedgerError::Failed { step, message }).await?;
            }
            Err(error) => self.recover(error).await?,
        }
        // Also after a write whose answer was lost: then it is the reading again that shows it. The tries differ in
        // the time of their end.
        let ours = |kept: &HookRunStatus| {
            (kept.phase, &kept.metric_results) == (status.phase, &status.metric_results)
        };
        if status.phase.is_final() && self.run.status.as_ref().is_some_and(ours) {
            let reason = status.reason.as_deref().unwrap_or_default();
            self.measurer
                .metrics
                .ended(&self.run, status.phase, reason, self.last);
            self.measurer.ledger.concluded(&self.run);
        }
        Ok(())
    }

    async fn delete(&mut self) -> Result<(), End> {
        match self.measurer.ledger.clone().delete(&self.run).await {
            Ok(()) => Err(End::Gone),
            Err(error) => self.recover(error).await,
        }
    }

    /// After a write that did not succeed: where the run may have changed it is read again, else the write is tried
    /// again after a pause. Nothing that was measured is dropped unless it turns out to be recorded.
    async fn recover(&mut self, error: LedgerError) -> Result<(), End> {
        let conflict = match error {
            LedgerError::Conflict => true,
            LedgerError::Gone => false,
            LedgerError::Failed { .. } => return self.try_again(&error).await,
        };
        match self.measurer.ledger.clone().read(&self.run).await {
            Ok(run) if conflict => {
                self.measurer.metrics.wrote("conflict");
                self.adopt(Arc::new(run));
                self.failed_writes = self.failed_writes.saturating_add(1);
                // One conflict is daily life; where they do not end, somebody else writes as eagerly.
                if self.failed_writes > 1 {
                    self.pause(pause_after(self.failed_writes)).await?;
                }
                Ok(())
            }
            Ok(run) => {
                self.adopt(Arc::new(run));
                let message = "the API server shows the run and knows no status of it to write".to_owned();
                let step = "write a status";
                self.try_again(&LedgerError::Failed { step, message }).await
            }
            Err(LedgerError::Gone) => {
                self.measurer.metrics.wrote("gone");
                Err(End::Gone)
            }
            Err(error) => self.try_again(&error).await,
        }
    }

    async fn try_again(&mut self, error: &LedgerError) -> Result<(), End> {
        self.measurer.metrics.wrote("failed");
        self.failed_writes = self.failed_writes.saturating_add(1);
        let pause = pause_after(self.failed_writes);
        let name = self.name();
        tracing::warn!(%error, name, tries = self.failed_writes, ?pause, "the status is not recorded yet");
        if self.failed_writes % COMPLAIN_EVERY == FIRST_COMPLAINT {
            self.measurer.ledger.unwritable(&self.run, &error.to_string());
        }
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

fn pause_after(failed_writes: u32) -> Duration {
    FIRST_PAUSE
        .saturating_mul(1 << failed_writes.min(8))
        .min(LONGEST_PAUSE)
}
