//! Life of one run in one process: a loop of decide, record, measure and wait.
//!
//! [`hook_core::decide`] makes all decisions. This module keeps the order: a measurement is kept until it is
//! recorded, a metric is not measured again before its last measurement is recorded, and only one API call is
//! under way at a time.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use hook_core::decide::{
    self, Cleanup, DecisionInput, Delay, DelayCause, MeasurementKey, MeasurementOutcome, RunPlan, Start,
    decide,
};
use hook_core::judge::MeasurementResult;
use hook_core::resolve::{FieldErrors, time_to_live};
use jiff::Timestamp;
use runtime_core::backoff::Backoff;
use runtime_core::clock::Now;
use shared_api::hook_run::lacks_owner;
use shared_api::{HookRun, HookRunStatus, Phase};

use self::jobs::StoppedJobs;
use crate::End;
use crate::version::Version;
use crate::write_retry::write_retry;
use crate::write_throttle::WriteThrottle;

mod exchange;
mod jobs;
mod recording;

pub use exchange::{MeasurementId, SessionInput, SessionOutput, SharedRun, StoreError};

/// Longest sleep of a session. It is limited because the wall clock may be set meanwhile.
const MAX_SLEEP: Duration = Duration::from_secs(30);

/// State of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SessionState {
    /// Must decide.
    Decides,
    /// Compiles the spec.
    Resolves,
    /// Waits for the watch, a measurement or this time.
    Waits(Duration),
    /// Backs off until this time after a failed write.
    Pauses(Duration),
    /// Records the status.
    Records,
    /// Reads the run, after a conflict or after a write reported it as gone.
    Reads { conflict: bool },
    /// Deletes the run.
    Deletes,
    /// Deletes Jobs.
    DeletesJobs,
    /// Ended.
    Ended,
}

/// Session that measures one run.
#[derive(Debug)]
pub struct Session {
    run: Arc<HookRun>,
    /// Newest state from the watch that is not processed yet.
    news: Option<Arc<HookRun>>,
    resolved: SharedRun,
    /// Whether `resolved` does not belong to the run's current spec.
    outdated: bool,
    taken_up_at: Timestamp,
    in_flight: BTreeMap<MeasurementId, MeasurementKey>,
    measurements: MeasurementId,
    outcomes: Vec<MeasurementOutcome>,
    /// Whether a measurement has ended since the last decision.
    collected: bool,
    /// Reason why a metric has no measurement, until it is recorded.
    held_up: Option<Delay>,
    stopped_jobs: StoppedJobs,
    throttle: WriteThrottle,
    /// Duration of the last measurement.
    last: Duration,
    /// Back-off for consecutive failed writes.
    retry: Backoff,
    /// Last status sent, until its outcome is known.
    sent: Option<Box<HookRunStatus>>,
    state: SessionState,
    output: VecDeque<SessionOutput>,
}

impl Session {
    /// Creates a session for a run.
    pub fn new(run: Arc<HookRun>, now: Now) -> Self {
        Self {
            run,
            news: None,
            resolved: Arc::new(Err(FieldErrors::default())),
            outdated: true,
            taken_up_at: now.wall,
            in_flight: BTreeMap::new(),
            measurements: 0,
            outcomes: Vec::new(),
            collected: false,
            held_up: None,
            stopped_jobs: StoppedJobs::default(),
            throttle: WriteThrottle::default(),
            last: Duration::ZERO,
            retry: write_retry(),
            sent: None,
            state: SessionState::Decides,
            output: VecDeque::new(),
        }
    }

    /// Returns the run as the session sees it.
    pub fn run(&self) -> &Arc<HookRun> {
        &self.run
    }

    /// Applies an input. Ignores an answer that the session does not wait for.
    pub fn handle(&mut self, input: SessionInput, now: Now) {
        match (input, self.state) {
            (SessionInput::Watch(run), _) => self.news = Some(run),
            (SessionInput::Resolved(resolved), SessionState::Resolves) => {
                self.resolved = resolved;
                self.state = SessionState::Decides;
                self.forget_recorded();
            }
            (SessionInput::Recorded(answer), SessionState::Records) => self.recorded(answer, now),
            (SessionInput::Read(answer), SessionState::Reads { conflict }) => {
                self.read(answer, conflict, now);
            }
            (SessionInput::Deleted(answer), SessionState::Deletes) => match answer {
                Ok(()) => self.end(End::Gone),
                Err(error) => self.recover(error, now),
            },
            (SessionInput::Measured(id, outcome), _) => {
                if self.in_flight.remove(&id).is_some() {
                    let took = outcome.finished_at.duration_since(outcome.started_at);
                    self.last = Duration::try_from(took).unwrap_or_default();
                    self.outcomes.push(outcome);
                    self.collected = true;
                }
            }
            (SessionInput::NotAsked(id, why), _) => {
                // The measurement is still due and is started again.
                if self.in_flight.remove(&id).is_some() {
                    self.held_up = Some(Delay::new(DelayCause::NotAsked, &why));
                    self.collected = true;
                }
            }
            (SessionInput::JobActive(id, why), _) => {
                if self.in_flight.contains_key(&id) {
                    self.held_up = Some(Delay::new(DelayCause::JobActive, &why));
                    self.collected = true;
                }
            }
            (SessionInput::JobsDeleted(answer), SessionState::DeletesJobs) => self.jobs_deleted(answer, now),
            (SessionInput::Broken(id), _) => self.broken(id, now),
            (
                SessionInput::Resolved(_)
                | SessionInput::Recorded(_)
                | SessionInput::Read(_)
                | SessionInput::Deleted(_)
                | SessionInput::JobsDeleted(_),
                _,
            ) => {}
        }
    }

    /// Returns the next output, or `None` if nothing is due before the next input or [`Session::deadline`].
    pub fn poll(&mut self, now: Now) -> Option<SessionOutput> {
        if self.output.is_empty() {
            self.go_on(now);
        }
        self.output.pop_front()
    }

    /// Time at which work is due without an input; `None` if there is none. A time in the past means now.
    pub fn deadline(&self) -> Option<Duration> {
        if !self.output.is_empty() {
            return Some(Duration::ZERO);
        }
        match self.state {
            SessionState::Decides => Some(Duration::ZERO),
            SessionState::Waits(_) if self.collected || self.news.is_some() => Some(Duration::ZERO),
            SessionState::Waits(until) | SessionState::Pauses(until) => Some(until),
            SessionState::Resolves
            | SessionState::Records
            | SessionState::Reads { .. }
            | SessionState::Deletes
            | SessionState::DeletesJobs
            | SessionState::Ended => None,
        }
    }

    /// Advances until the session needs an answer.
    fn go_on(&mut self, now: Now) {
        match self.state {
            SessionState::Waits(until) => {
                let news = self.hear();
                if now.elapsed < until && !news && !self.collected {
                    return;
                }
                self.state = SessionState::Decides;
            }
            SessionState::Pauses(until) => {
                self.hear();
                if now.elapsed < until {
                    return;
                }
                self.go_on_after_write();
            }
            SessionState::Decides => {}
            SessionState::Resolves
            | SessionState::Records
            | SessionState::Reads { .. }
            | SessionState::Deletes
            | SessionState::DeletesJobs
            | SessionState::Ended => return,
        }
        if std::mem::take(&mut self.outdated) {
            self.state = SessionState::Resolves;
            self.output.push_back(SessionOutput::Resolve(self.run.clone()));
        } else {
            self.decide(now);
        }
    }

    fn decide(&mut self, now: Now) {
        self.collected = false;
        let RunPlan {
            record,
            start,
            cancel,
            stop_jobs,
            wake_at,
            ended,
        } = self.plan(now.wall);
        self.cancel(&cancel);
        self.stop_jobs(&stop_jobs);
        if self.delete_jobs() {
            return;
        }
        match (record, ended) {
            // A verdict never waits.
            (Some(status), _) => match self
                .throttle
                .wait(now.elapsed)
                .filter(|_| !status.phase.is_final())
            {
                Some(wait) => self.state = SessionState::Waits(now.elapsed + wait.min(MAX_SLEEP)),
                None => self.record(status, now),
            },
            (None, Some(Cleanup::Keep)) => self.end(End::Concluded(Version::of(&self.run))),
            (None, Some(Cleanup::Delete)) => {
                self.state = SessionState::Deletes;
                self.output.push_back(SessionOutput::Delete(self.run.clone()));
            }
            (None, Some(Cleanup::DeleteLater) | None) => {
                self.start(start);
                let longest = now.elapsed + MAX_SLEEP;
                let until = wake_at.map_or(longest, |at| now.at(at).min(longest));
                self.state = SessionState::Waits(until);
            }
        }
    }

    fn plan(&mut self, now: Timestamp) -> RunPlan {
        self.taken_up_at = self.taken_up_at.min(now);
        let status = self.run.status.clone().unwrap_or_default();
        let in_flight: Vec<MeasurementKey> = self.in_flight.values().cloned().collect();
        let view = DecisionInput {
            spec: self.resolved.as_ref().as_ref(),
            time_to_live: time_to_live(&self.run.spec),
            generation: self.run.metadata.generation,
            status: &status,
            taken_up_at: self.taken_up_at,
            in_flight: &in_flight,
            outcomes: &self.outcomes,
            held_up: self.held_up.as_ref(),
        };
        if lacks_owner(&self.run.metadata) {
            return decide::abandon(&view, now);
        }
        decide(&view, now)
    }

    fn end(&mut self, end: End) {
        self.state = SessionState::Ended;
        self.output.push_back(SessionOutput::End(end));
    }

    fn cancel(&mut self, keys: &[MeasurementKey]) {
        let output = &mut self.output;
        self.in_flight.retain(|id, key| {
            let stays = !keys.contains(key);
            if !stays {
                output.push_back(SessionOutput::Cancel(*id));
            }
            stays
        });
    }

    fn start(&mut self, starts: Vec<Start>) {
        for Start { key, due } in starts {
            self.measurements += 1;
            let id = self.measurements;
            self.in_flight.insert(id, key.clone());
            self.stopped_jobs.reopen(&self.run, &key);
            let resolved = self.resolved.clone();
            self.output
                .push_back(SessionOutput::Measure(id, key, due, resolved));
        }
    }

    /// Treats a measurement whose task panicked as an Error like any other: it is recorded and counted, and
    /// the next one follows as scheduled.
    fn broken(&mut self, id: MeasurementId, now: Now) {
        let Some(key) = self.in_flight.remove(&id) else {
            return;
        };
        self.collected = true;
        self.outcomes.push(MeasurementOutcome {
            key,
            started_at: now.wall,
            finished_at: now.wall,
            verdict: MeasurementResult {
                phase: Phase::Error,
                reason: None,
                value: None,
                message: Some("internal error in hook-operator during the measurement; see its log".into()),
            },
        });
    }

    /// Applies the newest state from the watch. Returns whether there was one.
    fn hear(&mut self) -> bool {
        let Some(news) = self.news.take() else {
            return false;
        };
        if !Version::of(&news).is_older_than(Version::of(&self.run)) {
            self.accept_newer(news);
        }
        true
    }

    fn accept_newer(&mut self, run: Arc<HookRun>) {
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

    /// Drops outcomes that can no longer be recorded, for example because the measurement already is.
    fn forget_recorded(&mut self) {
        if let (Ok(resolved), Some(status)) = (self.resolved.as_ref(), &self.run.status) {
            self.outcomes
                .retain(|outcome| decide::is_open(resolved, status, &outcome.key));
        }
    }

    /// Cancels and drops measurements of metrics that were replaced; they say nothing about the new metrics.
    fn forget_unrecorded(&mut self) {
        self.stop_jobs_in_flight();
        let cancelled = std::mem::take(&mut self.in_flight).into_keys();
        self.output.extend(cancelled.map(SessionOutput::Cancel));
        self.outcomes.clear();
        self.held_up = None;
    }
}
