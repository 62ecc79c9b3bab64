//! Life of one run in this process, around [`hook_driver::Session`]: carries out its outputs and feeds the
//! results back. Every run has its own task, so no run waits for another's endpoint.
//!
//! | module | job |
//! | --- | --- |
//! | [`measure`] | one measurement: references, placeholders, the call, the verdict |
//! | [`backend`] | where a session reads arguments and records what it measured |
//! | [`observer`] | receives what happens in sessions, for metrics |
//!
//! The operator runs a session for each run in the cluster; the kubectl plugin runs one for a run of its
//! user.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use hook_core::decide::{MeasurementKey, MeasurementOutcome};
use hook_driver::{End, MeasurementId, SessionInput, SessionOutput, SharedRun};
use hook_providers::Clock;
use jiff::Timestamp;
use runtime_core::clock::Now;
use shared_api::HookRun;
use shared_api::names::TRACE_TARGET;
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use tracing::Instrument as _;
use tracing::field::Empty;

pub mod backend;
pub mod measure;
pub mod observer;

use backend::Backend;
use measure::{Measurer, NotAsked};

/// Target of log lines, so that level filters for `hook_operator` include them.
const LOG: &str = "hook_operator::session";

/// Longest sleep before the clock is looked at again: timers stand still while the machine is suspended, and the clock
/// need not.
const MAX_SLEEP: Duration = Duration::from_secs(5);

/// Result of a measurement task.
type Measured = (MeasurementId, Result<MeasurementOutcome, NotAsked>);

/// Runner of the session that measures one run.
pub struct SessionRunner<B> {
    measurer: Measurer<B>,
    updates: watch::Receiver<Arc<HookRun>>,
    driver: hook_driver::Session,
    clock: SessionClock,
    /// Backend call or compilation under way. Boxed because it is large and a session mostly waits: unboxed,
    /// every idle session would reserve the space.
    call: Option<BoxFuture<'static, SessionInput>>,
    measurements: JoinSet<Measured>,
    in_flight: HashMap<MeasurementId, AbortHandle>,
    /// Reasons why Jobs have not ended.
    active: (mpsc::UnboundedSender<Active>, mpsc::UnboundedReceiver<Active>),
}

/// Reason why the Job of a measurement has not ended.
type Active = (MeasurementId, String);

impl<B: Backend> SessionRunner<B> {
    /// Creates a runner for the run that `updates` holds.
    pub fn new(measurer: Measurer<B>, mut updates: watch::Receiver<Arc<HookRun>>) -> Self {
        let run = updates.borrow_and_update().clone();
        let clock = SessionClock::begin(measurer.providers.clock());
        Self {
            measurer,
            updates,
            driver: hook_driver::Session::new(run, clock.now()),
            clock,
            call: None,
            measurements: JoinSet::new(),
            in_flight: HashMap::new(),
            active: mpsc::unbounded_channel(),
        }
    }

    /// Measures until the run has its verdict or is gone. Dropping the future cancels all calls in flight.
    pub async fn drive(mut self) -> End {
        loop {
            while let Some(output) = self.driver.poll(self.clock.now()) {
                if let SessionOutput::End(end) = output {
                    return end;
                }
                self.carry_out(output);
            }
            let pause = self.driver.deadline().map(|at| self.clock.pause_until(at));
            let sleep = async {
                match pause {
                    Some(pause) => tokio::time::sleep(pause).await,
                    None => std::future::pending().await,
                }
            };
            let call = async {
                match &mut self.call {
                    Some(call) => call.await,
                    None => std::future::pending().await,
                }
            };
            let input = tokio::select! {
                input = call => {
                    self.call = None;
                    Some(input)
                }
                Some(ended) = self.measurements.join_next_with_id(), if !self.measurements.is_empty() => {
                    self.collect(ended)
                }
                Some((id, why)) = self.active.1.recv() => Some(SessionInput::JobActive(id, why)),
                news = self.updates.changed() => match news {
                    Ok(()) => Some(SessionInput::Watch(self.updates.borrow_and_update().clone())),
                    Err(_) => return End::Gone,
                },
                () = sleep => None,
            };
            if let Some(input) = input {
                self.driver.handle(input, self.clock.now());
            }
            // Results that arrive together are recorded together.
            while let Some(ended) = self.measurements.try_join_next_with_id() {
                if let Some(input) = self.collect(ended) {
                    self.driver.handle(input, self.clock.now());
                }
            }
        }
    }

    fn carry_out(&mut self, output: SessionOutput) {
        let (observer, backend) = (&self.measurer.observer, self.measurer.backend.clone());
        match output {
            SessionOutput::Resolve(run) => self.call = Some(Box::pin(resolve(self.measurer.clone(), run))),
            SessionOutput::Record(run, status) => {
                let (name, namespace) = (name_of(&run).to_owned(), namespace_of(&run).to_owned());
                let phase = status.phase.as_str();
                let span = tracing::info_span!(target: TRACE_TARGET, "record", namespace, run = name, phase);
                let observer = observer.clone();
                let call = async move {
                    let begun = Instant::now();
                    let recorded = backend.record(&run, &status).instrument(span).await;
                    observer.recorded(&run, recorded.is_ok(), begun.elapsed());
                    SessionInput::Recorded(recorded.map(Arc::new))
                };
                self.call = Some(Box::pin(call));
            }
            SessionOutput::Read(run) => {
                let call = async move { SessionInput::Read(backend.read(&run).await.map(Arc::new)) };
                self.call = Some(Box::pin(call));
            }
            SessionOutput::Delete(run) => {
                self.call = Some(Box::pin(async move {
                    SessionInput::Deleted(backend.delete(&run).await)
                }));
            }
            SessionOutput::Measure(id, key, due, resolved) => self.measure(id, key, due, resolved),
            SessionOutput::Cancel(id) => {
                if let Some(call) = self.in_flight.remove(&id) {
                    call.abort();
                }
            }
            SessionOutput::StatusWritten(outcome) => observer.wrote(outcome),
            SessionOutput::NotRecorded {
                why,
                tries,
                pause,
                tell,
            } => {
                let run = self.driver.run();
                let name = name_of(run);
                tracing::warn!(target: LOG, error = %why, name, tries, ?pause, "failed to write the status; retrying");
                if tell {
                    backend.unwritable(run, &why.to_string());
                }
            }
            SessionOutput::Verdict(run, last) => {
                if let Some(status) = &run.status {
                    let reason = status.reason.as_deref().unwrap_or_default();
                    observer.ended(&run, status.phase, reason, last);
                }
                backend.concluded(&run);
            }
            SessionOutput::HeldUp(run, delay) => backend.held_up(&run, &delay),
            SessionOutput::DeleteJobs(run, names) => {
                self.call = Some(Box::pin(async move {
                    SessionInput::JobsDeleted(backend.delete_jobs(&run, &names).await)
                }));
            }
            SessionOutput::JobsLeft { run, jobs, why } => {
                tracing::warn!(target: LOG, error = %why, name = name_of(&run), ?jobs, "failed to delete Jobs");
                backend.jobs_left(&run, &jobs, &why);
            }
            SessionOutput::End(_) => {}
        }
    }

    fn measure(&mut self, id: MeasurementId, key: MeasurementKey, due: Timestamp, resolved: SharedRun) {
        let lag = Timestamp::now().duration_since(due);
        let observer = &self.measurer.observer;
        observer.started(Duration::try_from(lag).unwrap_or_default());
        let run = self.driver.run().clone();
        let namespace = namespace_of(&run).to_owned();
        let span = tracing::info_span!(
            target: TRACE_TARGET, "measurement", namespace, run = name_of(&run), metric = key.metric,
            provider = Empty, phase = Empty, failure = Empty
        );
        let measurer = self.measurer.clone();
        let (sender, metric) = (self.active.0.clone(), key.metric.clone());
        let measurement = async move {
            // Fails only if the session has ended.
            let active = move |why: String| drop(sender.send((id, format!("metric {metric}: {why}"))));
            (id, measurer.measure(&run, key, &resolved, &active).await)
        };
        let call = self.measurements.spawn(measurement.instrument(span));
        self.in_flight.insert(id, call);
    }

    /// Converts the result of a measurement task; `None` if it was cancelled.
    fn collect(&mut self, ended: Result<(Id, Measured), JoinError>) -> Option<SessionInput> {
        match ended {
            Ok((_, (id, measured))) => {
                self.in_flight.remove(&id)?;
                Some(match measured {
                    Ok(outcome) => {
                        self.measurer
                            .observer
                            .measurement_finished(self.driver.run(), &outcome);
                        SessionInput::Measured(id, outcome)
                    }
                    Err(NotAsked { why, .. }) => SessionInput::NotAsked(id, why),
                })
            }
            Err(error) if error.is_cancelled() => None,
            Err(error) => {
                tracing::error!(target: LOG, %error, "a measurement ended without an outcome");
                let mut calls = self.in_flight.iter();
                let id = calls.find_map(|(id, call)| (call.id() == error.id()).then_some(*id))?;
                self.in_flight.remove(&id);
                Some(SessionInput::Broken(id))
            }
        }
    }
}

/// Compiles the spec on another thread, because it may take a while and must not block other sessions.
async fn resolve<B: Backend>(measurer: Measurer<B>, run: Arc<HookRun>) -> SessionInput {
    let namespace = namespace_of(&run).to_owned();
    let enabled = measurer.backend.providers();
    let compile = move || enabled.resolve_run(&run.spec);
    let compute = measurer.providers.compute().clone();
    SessionInput::Resolved(Arc::new(compute.run(&namespace, compile).await))
}

/// Clock that starts with the session.
#[derive(Clone, Copy)]
struct SessionClock {
    clock: Clock,
    began: Duration,
    begun: Instant,
}

impl SessionClock {
    fn begin(clock: Clock) -> Self {
        Self {
            clock,
            began: clock(),
            begun: Instant::now(),
        }
    }

    fn now(self) -> Now {
        // Read first: if the machine is suspended in between, what is left of a wall-clock time comes out shorter.
        let elapsed = (self.clock)().saturating_sub(self.began);
        Now {
            wall: Timestamp::now(),
            elapsed,
            monotonic: self.begun.elapsed(),
        }
    }

    /// Time to sleep on the way to a time of this clock.
    fn pause_until(self, at: Duration) -> Duration {
        at.saturating_sub(self.now().elapsed).min(MAX_SLEEP)
    }
}

fn name_of(run: &HookRun) -> &str {
    run.metadata.name.as_deref().unwrap_or_default()
}

fn namespace_of(run: &HookRun) -> &str {
    run.metadata.namespace.as_deref().unwrap_or_default()
}
