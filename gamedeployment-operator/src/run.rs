//! Runs the driver: feeds inputs, handles outputs and measures time.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use futures::{FutureExt, Stream, StreamExt};
use gamedeployment_driver::request::{Decided, DriverOutput, Request, RequestError, RequestId, Response};
use gamedeployment_driver::watch_event::WatchEvent;
use gamedeployment_driver::{Driver, DriverInput, DriverLimits, NamespacedName};
use operator_runtime::health::Health;
use operator_runtime::heartbeat::{self, Heartbeat};
use operator_runtime::traces::TARGET;
use runtime_core::clock::Now;
use tokio::task::{Id, JoinError, JoinSet};
use tracing::{Instrument as _, Span};

use crate::act::Caller;
use crate::clock::Clock;
use crate::metrics::{Decision, Metrics};
use crate::observe::{NODES, OptionalWatches};

/// Time for decisions before new inputs are taken in: a decision on an old state is made in vain.
const MAX_DECIDING: Duration = Duration::from_millis(50);

/// Result of a request's task.
type Answered = (RequestId, Result<Response, RequestError>);

/// Driver with its I/O.
pub struct Loop {
    driver: Driver,
    caller: Caller,
    clock: Clock,
    metrics: Metrics,
    health: Health,
    heartbeat: Heartbeat,
    calls: JoinSet<Answered>,
    /// Request of each task, needed when a task panics and cannot return it.
    tasks: HashMap<Id, RequestId>,
    /// Tracing spans of decisions that are being carried out.
    spans: HashMap<NamespacedName, Span>,
}

impl Loop {
    /// Creates a loop with an empty cache.
    pub fn new(
        watched: OptionalWatches,
        caller: Caller,
        clock: Clock,
        metrics: Metrics,
        health: Health,
        heartbeat: Heartbeat,
    ) -> Self {
        let driver = Driver::new(watched.nodes, DriverLimits::default());
        let driver = if watched.evictions {
            driver.awaiting_evictions()
        } else {
            driver
        };
        Self {
            driver,
            caller,
            clock,
            metrics,
            health,
            heartbeat,
            calls: JoinSet::new(),
            tasks: HashMap::new(),
            spans: HashMap::new(),
        }
    }

    /// Processes watch events until their stream ends.
    pub async fn run(mut self, events: impl Stream<Item = WatchEvent>) {
        let mut events = std::pin::pin!(events);
        loop {
            self.heartbeat.beat();
            let sleep = self.sleep();
            tokio::select! {
                item = events.next() => match item {
                    Some(item) => self.handle(DriverInput::Watch(item)),
                    None => return,
                },
                Some(answered) = self.calls.join_next_with_id(), if !self.calls.is_empty() => {
                    self.answered(answered);
                }
                () = pause(sleep) => {}
            }
            // Take in all available inputs before the next decision.
            while let Some(Some(item)) = events.next().now_or_never() {
                self.handle(DriverInput::Watch(item));
            }
            while let Some(answered) = self.calls.try_join_next_with_id() {
                self.answered(answered);
            }
            let nodes = self
                .health
                .passes_since(NODES)
                .map(|at| self.clock.monotonic_at(at));
            self.handle(DriverInput::NodesWatched(nodes));
            if !self.process_outputs() {
                // Shutdown ends the loop only where it yields.
                tokio::task::yield_now().await;
            }
        }
    }

    /// Returns the time until work is due without an input, at most the interval of heartbeats.
    fn sleep(&self) -> Duration {
        let now = self.clock.now().elapsed;
        match self.driver.deadline() {
            Some(due) if due <= now => Duration::ZERO,
            // Timers have millisecond resolution.
            Some(due) => (due.saturating_sub(now) + Duration::from_millis(1)).min(heartbeat::INTERVAL),
            None => heartbeat::INTERVAL,
        }
    }

    fn handle(&mut self, input: DriverInput) {
        self.heartbeat.beat();
        self.driver.handle(input, self.clock.now());
    }

    fn answered(&mut self, answered: Result<(Id, Answered), JoinError>) {
        match answered {
            Ok((task, (id, answer))) => {
                self.tasks.remove(&task);
                self.handle(DriverInput::Response(id, answer));
            }
            Err(error) => {
                tracing::error!(%error, "a task failed unexpectedly");
                if let Some(id) = self.tasks.remove(&error.id()) {
                    let unknown = Err(RequestError::Unknown(error.to_string()));
                    self.handle(DriverInput::Response(id, unknown));
                }
            }
        }
    }

    /// Handles outputs that are due, as long as there is time for decisions. Returns whether none is left.
    fn process_outputs(&mut self) -> bool {
        let until = Instant::now() + MAX_DECIDING;
        loop {
            self.heartbeat.beat();
            let begun = self.clock.now();
            let Some(output) = self.driver.poll(begun) else {
                return true;
            };
            self.process(output, begun);
            if Instant::now() >= until {
                return false;
            }
        }
    }

    fn process(&mut self, output: DriverOutput, begun: Now) {
        match output {
            DriverOutput::Send(request) => self.send(request),
            DriverOutput::Decided(decided) => {
                let took = self.clock.now().elapsed.saturating_sub(begun.elapsed);
                self.driver
                    .record_duration(&decided.target.key, begun.elapsed, took);
                self.decided(decided, took);
            }
            DriverOutput::Concluded { key, decided, failed } => {
                self.spans.remove(&key);
                let took = begun.elapsed.saturating_sub(decided);
                self.metrics.reconciled(&key, !failed, took);
            }
            DriverOutput::WriteFinished(kind, outcome) => self.metrics.acted(kind.as_str(), outcome),
            DriverOutput::EmitWarnings(target, warnings) => self.caller.warn(&target, warnings),
            DriverOutput::PodLost(target, warning) => {
                self.metrics.lost_ungated.inc();
                self.caller.warn(&target, vec![warning]);
            }
            DriverOutput::EmitEvents(target, done) => self.caller.emit_events(&target, done),
            DriverOutput::HookUnsuccessful(hook) => self.metrics.gate(hook, Decision::Refused),
            DriverOutput::Overdue(objects) => tracing::warn!(
                objects,
                "writes did not show up in the watch in time; reading the objects directly"
            ),
            DriverOutput::Unreadable((namespace, name), unreadable) => {
                self.metrics.unreadable.inc();
                let error = &unreadable.error;
                tracing::warn!(namespace, name, error, "a GameDeployment cannot be parsed");
            }
            DriverOutput::Unread { kind, key, error } => {
                let (namespace, name) = key;
                tracing::warn!(
                    namespace,
                    name,
                    kind = kind.as_str(),
                    error,
                    "the outcome of a write is unknown and the object cannot be read; deciding without it"
                );
            }
            DriverOutput::WorkloadDeleted(key) => self.metrics.forget(&key),
        }
    }

    fn send(&mut self, request: Request) {
        if request.is_reread() {
            self.metrics.direct_reads.inc();
        }
        let (id, caller) = (request.id, self.caller.clone());
        let span = request
            .target
            .as_ref()
            .and_then(|target| self.spans.get(&target.key));
        let span = span.cloned().unwrap_or_else(Span::none);
        let work = async move { (id, caller.call(request).await) };
        let task = self.calls.spawn(work.instrument(span));
        self.tasks.insert(task.id(), id);
    }

    fn decided(&mut self, decided: Decided, took: Duration) {
        self.metrics.decided(took);
        let key = &decided.target.key;
        if let Some(report) = &decided.report {
            self.metrics
                .report(key, report.wanted, &report.status, &report.gauges);
        }
        if decided.is_empty() {
            self.metrics.reconciled(key, decided.at_rest, took);
            return;
        }
        let (namespace, gamedeployment) = key;
        let span = tracing::info_span!(
            target: TARGET, "decision", namespace, gamedeployment, actions = decided.actions,
            status = decided.status
        );
        self.spans.insert(key.clone(), span);
    }
}

/// Waits for this long; not at all if it is zero, unlike a timer.
async fn pause(time: Duration) {
    if !time.is_zero() {
        tokio::time::sleep(time).await;
    }
}
