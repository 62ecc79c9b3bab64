//! Life of one execution in this process: carries out its outputs and feeds the results back.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use hook_core::execution::TryOutcome;
use hook_driver::execution::{Execution, ExecutionInput, ExecutionOutput, TryId};
use operator_runtime::clock::{self, Reading};
use shared_api::ExecutionHook;
use shared_api::reason::ContainerReason;
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};

use super::calls::Calls;

/// Longest sleep before the clock is looked at again: timers stand still while the machine is suspended.
const MAX_SLEEP: Duration = Duration::from_secs(5);

/// Runner of the execution of one hook.
pub(super) struct Runner {
    calls: Arc<Calls>,
    updates: watch::Receiver<Arc<ExecutionHook>>,
    driver: Execution,
    /// Start, on the scale of [`clock::elapsed`].
    began: Reading,
    /// Call of the API server under way. Boxed because an idle execution would reserve its space.
    call: Option<BoxFuture<'static, ExecutionInput>>,
    /// Read of the HookAction under way.
    action: Option<BoxFuture<'static, ExecutionInput>>,
    tries: JoinSet<(TryId, TryOutcome)>,
    in_flight: HashMap<TryId, AbortHandle>,
    /// Commands that are about to be sent.
    started: (mpsc::UnboundedSender<TryId>, mpsc::UnboundedReceiver<TryId>),
}

impl Runner {
    /// Creates a runner for the hook that `updates` holds.
    pub(super) fn new(calls: Arc<Calls>, mut updates: watch::Receiver<Arc<ExecutionHook>>) -> Self {
        let hook = updates.borrow_and_update().clone();
        let began = clock::read();
        Self {
            driver: Execution::new(hook, calls.is_enabled, clock::now_since(began)),
            calls,
            updates,
            began,
            call: None,
            action: None,
            tries: JoinSet::new(),
            in_flight: HashMap::new(),
            started: mpsc::unbounded_channel(),
        }
    }

    /// Runs until the hook is gone. Dropping the future cancels all calls; commands may run on.
    pub(super) async fn drive(mut self) {
        loop {
            while let Some(output) = self.driver.poll(clock::now_since(self.began)) {
                if matches!(output, ExecutionOutput::End) {
                    return;
                }
                self.carry_out(output);
            }
            let pause = self.driver.deadline().map(|at| {
                let left = at.saturating_sub(clock::now_since(self.began).elapsed);
                left.min(MAX_SLEEP)
            });
            let sleep = async {
                match pause {
                    Some(pause) => tokio::time::sleep(pause).await,
                    None => std::future::pending().await,
                }
            };
            let input = tokio::select! {
                // The start of a try comes before its end.
                biased;
                input = answer(&mut self.call) => {
                    self.call = None;
                    Some(input)
                }
                input = answer(&mut self.action) => {
                    self.action = None;
                    Some(input)
                }
                Some(id) = self.started.1.recv() => Some(ExecutionInput::Started(id)),
                Some(ended) = self.tries.join_next_with_id(), if !self.tries.is_empty() => self.collect(ended),
                news = self.updates.changed() => match news {
                    Ok(()) => Some(ExecutionInput::Watch(self.updates.borrow_and_update().clone())),
                    Err(_) => return,
                },
                () = sleep => None,
            };
            if let Some(input) = input {
                self.driver.handle(input, clock::now_since(self.began));
            }
            // Results that arrive together are recorded together.
            while let Ok(id) = self.started.1.try_recv() {
                self.driver
                    .handle(ExecutionInput::Started(id), clock::now_since(self.began));
            }
            while let Some(ended) = self.tries.try_join_next_with_id() {
                if let Some(input) = self.collect(ended) {
                    self.driver.handle(input, clock::now_since(self.began));
                }
            }
        }
    }

    fn carry_out(&mut self, output: ExecutionOutput) {
        let calls = self.calls.clone();
        match output {
            ExecutionOutput::ReadAction(name) => {
                let hook = self.driver.hook().clone();
                self.action = Some(Box::pin(async move {
                    ExecutionInput::ActionRead(calls.action(&hook, &name).await.map(Box::new))
                }));
            }
            ExecutionOutput::List(labels) => {
                let hook = self.driver.hook().clone();
                self.call = Some(Box::pin(async move {
                    ExecutionInput::Listed(calls.list(&hook, labels).await)
                }));
            }
            ExecutionOutput::Record(hook, status) => {
                self.call = Some(Box::pin(async move {
                    ExecutionInput::Recorded(calls.record(&hook, &status).await.map(Arc::new))
                }));
            }
            ExecutionOutput::Read(hook) => {
                self.call = Some(Box::pin(async move {
                    ExecutionInput::Read(calls.read(&hook).await.map(Arc::new))
                }));
            }
            ExecutionOutput::Delete(hook) => {
                self.call = Some(Box::pin(async move {
                    ExecutionInput::Deleted(calls.delete(&hook).await)
                }));
            }
            ExecutionOutput::Find(id, pod) => {
                let hook = self.driver.hook().clone();
                let started = self.report_start(id);
                let find = async move { (id, calls.find(&hook, &pod, started).await) };
                self.in_flight.insert(id, self.tries.spawn(find));
            }
            ExecutionOutput::Run { id, attempt } => {
                let hook = self.driver.hook().clone();
                let started = self.report_start(id);
                let run = async move { (id, calls.run(&hook, &attempt, started).await) };
                self.in_flight.insert(id, self.tries.spawn(run));
            }
            ExecutionOutput::Cancel(id) => {
                if let Some(task) = self.in_flight.remove(&id) {
                    task.abort();
                }
            }
            ExecutionOutput::StatusWritten(outcome) => self.calls.metrics.wrote(outcome),
            ExecutionOutput::CallFailed {
                hook,
                reason,
                why,
                pause,
                tell,
            } => {
                let name = hook.metadata.name.as_deref();
                tracing::warn!(error = %why, name, ?pause, "a call for an ExecutionHook failed; retrying");
                if tell {
                    self.calls.failed(&hook, reason, &why.to_string());
                }
            }
            ExecutionOutput::Waits(hook, reason, message) => self.calls.waits(&hook, reason, &message),
            ExecutionOutput::Completed(hook) => self.calls.completed(&hook),
            ExecutionOutput::End => {}
        }
    }

    /// Returns a function that reports the start of a try.
    fn report_start(&self, id: TryId) -> impl FnOnce() + Send + use<> {
        let started = self.started.0.clone();
        move || {
            // Fails only if the execution has ended.
            let _ = started.send(id);
        }
    }

    /// Converts the result of a try; `None` if it was cancelled.
    fn collect(&mut self, ended: Result<(Id, (TryId, TryOutcome)), JoinError>) -> Option<ExecutionInput> {
        let (id, outcome) = match ended {
            Ok((_, ended)) => ended,
            Err(error) if error.is_cancelled() => return None,
            Err(error) => {
                let mut tries = self.in_flight.iter();
                let (id, _) = tries.find(|(_, task)| task.id() == error.id())?;
                tracing::error!(%error, "an attempt of an ExecutionHook panicked");
                let message = "internal error in hook-operator during the attempt; see its log".to_owned();
                (*id, TryOutcome::Failed(ContainerReason::TryFailed, message))
            }
        };
        self.in_flight.remove(&id)?;
        self.calls.metrics.tried(&outcome);
        Some(ExecutionInput::Ended(id, outcome))
    }
}

async fn answer(call: &mut Option<BoxFuture<'static, ExecutionInput>>) -> ExecutionInput {
    match call {
        Some(call) => call.await,
        None => std::future::pending().await,
    }
}
