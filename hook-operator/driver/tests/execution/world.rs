//! API server, pods, processes and a virtual clock.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use hook_core::execution::{FoundPod, Operation, TryOutcome};
use hook_core::request::ExecRequest;
use hook_driver::StoreError;
use hook_driver::execution::{Execution, ExecutionInput, ExecutionOutput, TryId};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use runtime_core::clock::Now;
use serde_json::{Value, json};
use shared_api::execution_hook::ContainerHookStatus;
use shared_api::reason::ContainerReason;
use shared_api::{ExecutionHook, ExecutionHookStatus, HookAction};

use crate::judge::{judge_start, judge_write};

pub(crate) fn seconds(number: u64) -> Duration {
    Duration::from_secs(number)
}

pub(crate) fn millis(number: u64) -> Duration {
    Duration::from_millis(number)
}

/// Pod of the namespace.
#[derive(Debug, Clone)]
pub(crate) struct Pod {
    pub(crate) uid: String,
    pub(crate) containers: Vec<String>,
}

/// Behaviour of the command in a container.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Script {
    /// Number of commands that fail before one succeeds.
    pub(crate) failures: usize,
    pub(crate) takes: Duration,
}

/// A command that never ends.
pub(crate) const HANGS: Script = Script {
    failures: 0,
    takes: Duration::MAX,
};

/// A command that always fails.
pub(crate) const FAILS: Script = Script {
    failures: usize::MAX,
    takes: Duration::from_millis(10),
};

/// Command that was started in a container.
#[derive(Debug, Clone)]
pub(crate) struct Command {
    /// Process that started it, and its try.
    pub(crate) process: usize,
    pub(crate) id: TryId,
    pub(crate) pod: String,
    pub(crate) uid: String,
    pub(crate) container: String,
    pub(crate) start: Duration,
    pub(crate) end: Duration,
    pub(crate) timeout: Duration,
    pub(crate) has_succeeded: bool,
    pub(crate) is_cancelled: bool,
}

/// Failure of a status write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing is written.
    Refused,
    /// It is written, and the answer is lost.
    Lost,
}

/// Calls that fail: the next ones, and a share of all if there is a seed.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    pub(crate) writes: VecDeque<Fault>,
    pub(crate) reads: usize,
    pub(crate) deletions: usize,
    pub(crate) actions: usize,
    pub(crate) lists: usize,
    pub(crate) percent: u8,
    /// Whether the share includes deletions.
    pub(crate) deletions_fail: bool,
}

/// Death of the process at an output, and the state from which the next process starts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Crash {
    pub(crate) output: usize,
    /// Whether the output is carried out.
    pub(crate) after: bool,
    /// Whether the next process starts from the oldest state.
    pub(crate) stale: bool,
}

enum Event {
    Input(ExecutionInput),
    Start(TryId, Box<ExecRequest>, String),
    /// Index of the command.
    Finish(usize),
}

/// Process of the operator with one execution.
pub(crate) struct Process {
    pub(crate) number: usize,
    pub(crate) execution: Execution,
    events: BTreeMap<(Duration, usize), Event>,
    pub(crate) last_write: Option<Duration>,
}

/// API server, pods, processes and clock.
#[derive(Default)]
pub(crate) struct World {
    pub(crate) now: Duration,
    pub(crate) hook: Option<ExecutionHook>,
    /// All states that were recorded.
    pub(crate) history: Vec<Arc<ExecutionHook>>,
    pub(crate) action: Option<HookAction>,
    pub(crate) pods: BTreeMap<String, Pod>,
    /// Behaviour by pod; a success after 10 ms if there is none.
    pub(crate) scripts: BTreeMap<String, Script>,
    pub(crate) faults: Faults,
    /// Delays and faults; without it, there are none.
    pub(crate) rng: Option<Rng>,
    pub(crate) processes: Vec<Process>,
    pub(crate) commands: Vec<Command>,
    /// Time of each request to write the status.
    pub(crate) writes: Vec<Duration>,
    /// Pods that were looked up, by time.
    pub(crate) finds: Vec<(Duration, String)>,
    /// Events and the end, in words.
    pub(crate) log: Vec<String>,
    pub(crate) outputs: usize,
    pub(crate) crash: Option<Crash>,
    /// Process whose watch lags.
    pub(crate) slow: Option<usize>,
    /// Additional time that a read of the HookAction takes.
    pub(crate) action_takes: Duration,
    /// Time that a look-up of a pod takes.
    pub(crate) find_takes: Duration,
    /// Whether two processes have run at once.
    pub(crate) has_overlapped: bool,
    /// `callTimeoutSeconds` of the HookAction at first.
    pub(crate) call_timeout: u64,
    started: usize,
    sequence: usize,
    version: u64,
    polls: (u64, usize),
}

impl World {
    /// Creates pods `p0`, `p1` and so on with a container `game`, and a hook that selects all of them by label.
    pub(crate) fn new(pods: usize, spec: Value, action: Value) -> Self {
        let merged = |mut base: Value, more: Value| {
            let more = more.as_object().unwrap().clone();
            base.as_object_mut().unwrap().extend(more);
            base
        };
        let labels =
            json!({ "podContainerSelector": { "podSelector": { "matchLabels": { "app": "game" } } } });
        let spec = merged(json!({ "actionName": "a", "podSelection": labels }), spec);
        let metadata = json!({ "name": "hook", "namespace": "games", "uid": "h", "generation": 1 });
        let hook = json!({ "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "ExecutionHook", "metadata": metadata,
            "spec": spec });
        let base = json!({ "metadata": { "name": "a", "uid": "a1", "generation": 1 },
            "action": { "exec": { "command": ["save"] } } });
        let mut world = Self {
            hook: Some(serde_json::from_value(hook).unwrap()),
            action: Some(serde_json::from_value(merged(base, action)).unwrap()),
            call_timeout: 30,
            version: 9,
            ..Self::default()
        };
        let fields = world.action.as_ref().map(|action| &action.fields);
        if let Some(timeout) = fields.and_then(|fields| fields.call_timeout_seconds) {
            world.call_timeout = timeout.unsigned_abs().into();
        }
        for pod in 0..pods {
            world.create_pod(&format!("p{pod}"), &["game"]);
        }
        world.edit(|_| {});
        world
    }

    /// Creates a pod, or replaces it by one with another UID.
    pub(crate) fn create_pod(&mut self, name: &str, containers: &[&str]) {
        self.sequence += 1;
        let pod = Pod {
            uid: format!("{name}-{}", self.sequence),
            containers: containers.iter().map(|name| (*name).to_owned()).collect(),
        };
        self.pods.insert(name.to_owned(), pod);
    }

    pub(crate) fn script(&mut self, pod: &str, script: Script) {
        self.scripts.insert(pod.to_owned(), script);
    }

    /// Changes the stored hook without an event of the watch.
    pub(crate) fn edit_unseen(&mut self, change: impl FnOnce(&mut ExecutionHook)) {
        let Some(hook) = &mut self.hook else { return };
        change(hook);
        self.version += 1;
        hook.metadata.resource_version = Some(self.version.to_string());
        self.history.push(Arc::new(hook.clone()));
    }

    /// Changes the stored hook, as the watch shows it.
    pub(crate) fn edit(&mut self, change: impl FnOnce(&mut ExecutionHook)) {
        self.edit_unseen(change);
        for process in 0..self.processes.len() {
            let hook = self.history.last().unwrap().clone();
            let lag = if self.slow == Some(process) {
                seconds(5)
            } else {
                self.delay()
            };
            self.schedule(process, lag, Event::Input(ExecutionInput::Watch(hook)));
        }
    }

    /// Deletes the hook, which a finalizer keeps.
    pub(crate) fn delete(&mut self) {
        let time: Option<Time> = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
        self.edit(|hook| hook.metadata.deletion_timestamp = time);
    }

    /// Starts a process from the newest or the oldest state of the hook.
    pub(crate) fn start(&mut self, is_enabled: bool, stale: bool) {
        let known = if stale {
            self.history.first()
        } else {
            self.history.last()
        };
        // The execution must own its state, as it does in the operator.
        let hook = Arc::new(ExecutionHook::clone(known.unwrap()));
        self.started += 1;
        self.processes.push(Process {
            number: self.started,
            execution: Execution::new(hook, is_enabled, self.clock()),
            events: BTreeMap::new(),
            last_write: None,
        });
        self.has_overlapped |= self.processes.len() > 1;
    }

    /// Ends the first process. Its commands run on.
    pub(crate) fn kill(&mut self) {
        self.processes.remove(0);
    }

    pub(crate) fn clock(&self) -> Now {
        Now {
            wall: Timestamp::UNIX_EPOCH + seconds(1_700_000_000) + self.now,
            elapsed: self.now,
            monotonic: self.now,
        }
    }

    /// Lets time pass.
    pub(crate) fn run_for(&mut self, span: Duration) {
        let until = self.now + span;
        loop {
            let mut index = 0;
            while index < self.processes.len() {
                // A process that crashes is followed by another in its place.
                if self.settle(index) {
                    index += 1;
                }
            }
            let next = self.processes.iter().filter_map(|process| {
                let event = process.events.keys().next().map(|(at, _)| *at);
                event.into_iter().chain(process.execution.deadline()).min()
            });
            let Some(next) = next.min().filter(|next| *next <= until) else {
                self.now = until;
                return;
            };
            self.now = self.now.max(next);
            self.deliver();
        }
    }

    /// Carries out the outputs of a process. Returns false if it crashed.
    fn settle(&mut self, index: usize) -> bool {
        let mut idle = 0;
        loop {
            self.count_poll();
            let now = self.clock();
            let Some(output) = self.processes[index].execution.poll(now) else {
                let deadline = self.processes[index].execution.deadline();
                if deadline.is_none_or(|deadline| deadline > self.now) {
                    return true;
                }
                idle += 1;
                assert!(
                    idle < 5,
                    "nothing follows, but it is due: {:?}",
                    self.processes[index].execution
                );
                continue;
            };
            idle = 0;
            self.outputs += 1;
            let crash = self.crash.filter(|crash| crash.output == self.outputs);
            if crash.is_none_or(|crash| crash.after) {
                self.carry_out(index, output);
            }
            if let Some(crash) = crash {
                self.processes.remove(index);
                self.start(true, crash.stale);
                return false;
            }
        }
    }

    /// Rejects hot loops.
    fn count_poll(&mut self) {
        let second = self.now.as_secs();
        if self.polls.0 != second {
            self.polls = (second, 0);
        }
        self.polls.1 += 1;
        let containers: usize = self.pods.values().map(|pod| pod.containers.len()).sum();
        let limit = (100 + 20 * containers) * self.processes.len();
        assert!(self.polls.1 <= limit, "{} polls in second {second}", self.polls.1);
    }

    /// Delivers the first event that is due.
    fn deliver(&mut self) {
        let due = self.processes.iter().enumerate().filter_map(|(index, process)| {
            let key = *process.events.keys().next()?;
            (key.0 <= self.now).then_some((key, index))
        });
        let Some((key, index)) = due.min() else { return };
        match self.processes[index].events.remove(&key).unwrap() {
            Event::Input(input) => self.input(index, input),
            Event::Start(id, request, uid) => self.start_command(index, id, &request, uid),
            Event::Finish(command) => self.finish(index, command),
        }
    }

    fn input(&mut self, process: usize, input: ExecutionInput) {
        let now = self.clock();
        self.processes[process].execution.handle(input, now);
    }

    fn schedule(&mut self, process: usize, after: Duration, event: Event) {
        self.sequence += 1;
        let key = (self.now.saturating_add(after), self.sequence);
        self.processes[process].events.insert(key, event);
    }

    fn send(&mut self, process: usize, input: ExecutionInput) {
        let delay = self.delay();
        self.schedule(process, delay, Event::Input(input));
    }

    fn delay(&mut self) -> Duration {
        let Some(rng) = &mut self.rng else {
            return Duration::ZERO;
        };
        let most = [0, 5, 5, 300, 3000][rng.usize(..5)];
        millis(rng.u64(..=most))
    }

    fn fails(&mut self) -> bool {
        let percent = self.faults.percent;
        self.rng.as_mut().is_some_and(|rng| rng.u8(..100) < percent)
    }

    /// Returns the next failure of a kind of call, if there is one.
    fn fault(&mut self, of: fn(&mut Faults) -> &mut usize) -> Result<(), StoreError> {
        let left = of(&mut self.faults);
        let fails = *left > 0;
        *left = left.saturating_sub(1);
        if fails || self.fails() {
            return Err(unavailable());
        }
        Ok(())
    }

    fn carry_out(&mut self, process: usize, output: ExecutionOutput) {
        match output {
            ExecutionOutput::ReadAction(name) => {
                let found = self
                    .action
                    .clone()
                    .filter(|found| found.metadata.name.as_ref() == Some(&name));
                let found = found.map(Box::new).ok_or(StoreError::Gone);
                let answer = self.fault(|faults| &mut faults.actions).and(found);
                let takes = self.delay() + self.action_takes;
                self.schedule(process, takes, Event::Input(ExecutionInput::ActionRead(answer)));
            }
            ExecutionOutput::List(_) => {
                let pods = self.pods.keys().filter_map(|name| self.found(name)).collect();
                let answer = self.fault(|faults| &mut faults.lists).map(|()| pods);
                let answer = answer.map_err(|error| error.to_string());
                self.send(process, ExecutionInput::Listed(answer));
            }
            ExecutionOutput::Record(base, status) => {
                let answer = self.write(process, &base, *status);
                self.send(process, ExecutionInput::Recorded(answer));
            }
            ExecutionOutput::Read(_) => {
                let stored = self.hook.clone().map(Arc::new).ok_or(StoreError::Gone);
                let answer = self.fault(|faults| &mut faults.reads).and(stored);
                self.send(process, ExecutionInput::Read(answer));
            }
            ExecutionOutput::Delete(base) => {
                let fails = self.faults.deletions > 0 || self.faults.deletions_fail && self.fails();
                self.faults.deletions = self.faults.deletions.saturating_sub(1);
                let answer = if fails {
                    Err(unavailable())
                } else {
                    self.check(&base)
                };
                if answer.is_ok() {
                    self.hook = None;
                    self.log.push(format!("deleted at {}s", self.now.as_secs()));
                }
                self.send(process, ExecutionInput::Deleted(answer));
            }
            ExecutionOutput::Find(id, pod) => {
                let outcome = self.found(&pod).map_or_else(
                    || TryOutcome::Failed(ContainerReason::NoSuchContainer, format!("there is no pod {pod}")),
                    TryOutcome::Found,
                );
                self.finds.push((self.now, pod));
                self.send(process, ExecutionInput::Started(id));
                let ended = ExecutionInput::Ended(id, outcome);
                if self.find_takes.is_zero() {
                    self.send(process, ended);
                } else {
                    self.schedule(process, self.find_takes, Event::Input(ended));
                }
            }
            ExecutionOutput::Run { id, attempt } => {
                let delay = self.delay();
                let Operation::Exec(command) = &attempt.action.operation else {
                    panic!("the world has only commands")
                };
                let (request, uid) = (Box::new(attempt.exec(command)), attempt.pod_uid.clone());
                self.schedule(process, delay, Event::Start(id, request, uid));
            }
            ExecutionOutput::Cancel(id) => self.cancel(process, id),
            ExecutionOutput::StatusWritten(_) => {}
            ExecutionOutput::CallFailed { tell, .. } => {
                self.log.extend(tell.then(|| "not recorded".to_owned()));
            }
            ExecutionOutput::Waits(_, reason, message) => self.log.push(format!("waits {reason}: {message}")),
            ExecutionOutput::Completed(_) => self.log.push("completed".to_owned()),
            ExecutionOutput::End => self.log.push("end".to_owned()),
        }
    }

    fn found(&self, name: &str) -> Option<FoundPod> {
        let pod = self.pods.get(name)?;
        Some(FoundPod {
            name: name.to_owned(),
            uid: pod.uid.clone(),
            containers: pod.containers.clone(),
            others: Vec::new(),
            has_ended: false,
        })
    }

    fn check(&self, base: &ExecutionHook) -> Result<(), StoreError> {
        let stored = self.hook.as_ref().ok_or(StoreError::Gone)?;
        if stored.metadata.resource_version == base.metadata.resource_version {
            Ok(())
        } else {
            Err(StoreError::Conflict)
        }
    }

    fn write(
        &mut self,
        process: usize,
        base: &ExecutionHook,
        status: ExecutionHookStatus,
    ) -> Result<Arc<ExecutionHook>, StoreError> {
        self.check(base).inspect_err(|_| self.writes.push(self.now))?;
        judge_write(self, process, &status);
        self.writes.push(self.now);
        self.processes[process].last_write = Some(self.now);
        let mut fault = self.faults.writes.pop_front();
        if fault.is_none() && self.fails() {
            fault = [Some(Fault::Refused), Some(Fault::Lost)][self.sequence % 2];
        }
        if fault == Some(Fault::Refused) {
            return Err(unavailable());
        }
        // The API server stores JSON.
        let text = serde_json::to_string(&status).unwrap_or_default();
        self.edit(|hook| hook.status = serde_json::from_str(&text).ok());
        let answer = self.history.last().cloned().ok_or(StoreError::Gone);
        fault.map_or(answer, |_| Err(unavailable()))
    }

    fn cancel(&mut self, process: usize, id: TryId) {
        let number = self.processes[process].number;
        let is_it = |command: &&mut Command| (command.process, command.id) == (number, id);
        if let Some(command) = self.commands.iter_mut().find(is_it) {
            command.is_cancelled = true;
        }
        let events = &mut self.processes[process].events;
        events.retain(|_, event| !matches!(event, Event::Start(other, ..) if *other == id));
    }

    fn start_command(&mut self, process: usize, id: TryId, request: &ExecRequest, uid: String) {
        self.input(process, ExecutionInput::Started(id));
        let (pod, container) = (request.pod.name.clone(), request.container.clone());
        let found = self.pods.get(&pod).filter(|found| found.uid == uid);
        let refusal = match found {
            None => Some(TryOutcome::Gone(format!("pod {pod} is gone"))),
            Some(found) if !found.containers.contains(&container) => {
                let message = format!("there is no container {container}");
                Some(TryOutcome::Failed(ContainerReason::NoSuchContainer, message))
            }
            Some(_) => None,
        };
        if let Some(outcome) = refusal {
            return self.send(process, ExecutionInput::Ended(id, outcome));
        }
        let script = self.scripts.get(&pod);
        let takes = script
            .map_or(millis(10), |script| script.takes)
            .min(request.timeout);
        let command = Command {
            process: self.processes[process].number,
            id,
            pod,
            uid,
            container,
            start: self.now,
            end: self.now + takes,
            timeout: request.timeout,
            has_succeeded: false,
            is_cancelled: false,
        };
        judge_start(self, process, &command);
        self.commands.push(command);
        self.schedule(process, takes, Event::Finish(self.commands.len() - 1));
    }

    fn finish(&mut self, process: usize, index: usize) {
        let command = &self.commands[index];
        let same = |other: &&Command| (&other.uid, &other.container) == (&command.uid, &command.container);
        let earlier = self.commands[..index].iter().filter(same).count();
        let script = self.scripts.get(&command.pod);
        let failures = script.map_or(0, |script| script.failures);
        let failed = |reason, message: &str| TryOutcome::Failed(reason, message.to_owned());
        let outcome = if self
            .pods
            .get(&command.pod)
            .is_none_or(|pod| pod.uid != command.uid)
        {
            failed(ContainerReason::CommandLost, "the container ended")
        } else if command.end == command.start + command.timeout {
            failed(ContainerReason::CallTimedOut, "the command did not end")
        } else if earlier < failures {
            failed(ContainerReason::ExitCode, "exit code 1")
        } else {
            TryOutcome::Succeeded
        };
        let id = command.id;
        self.commands[index].has_succeeded = outcome == TryOutcome::Succeeded;
        self.input(process, ExecutionInput::Ended(id, outcome));
    }

    /// Returns the newest status of the hook; the last one if it is deleted.
    pub(crate) fn status(&self) -> ExecutionHookStatus {
        let last = self.history.last().and_then(|hook| hook.status.clone());
        last.unwrap_or_default()
    }

    /// Returns the recorded state of a container.
    #[track_caller]
    pub(crate) fn recorded(&self, pod: &str, container: &str) -> ContainerHookStatus {
        let entries = self.status().hook_statuses.into_iter();
        let mut entries = entries.filter(|entry| entry.pod_name == pod && entry.container_name == container);
        entries.next().unwrap_or_else(|| panic!("no {pod}/{container}"))
    }

    /// Returns the reason and the message of the condition `Complete`.
    pub(crate) fn condition(&self) -> (String, String) {
        let conditions = self.status().conditions.into_iter();
        let mut conditions = conditions.filter(|condition| condition.type_ == "Complete");
        let found = conditions
            .next()
            .map(|condition| (condition.reason, condition.message));
        found.unwrap_or_default()
    }

    pub(crate) fn commands_in(&self, pod: &str) -> Vec<Command> {
        let commands = self.commands.iter();
        commands.filter(|command| command.pod == pod).cloned().collect()
    }

    /// Asserts that the hook has ended for this reason, and that every container has succeeded or failed.
    #[track_caller]
    pub(crate) fn ended(&self, reason: &str) {
        let status = self.status();
        assert!(status.completion_time.is_some(), "{status:#?}");
        assert_eq!(self.condition().0, reason, "{status:#?}");
        assert!(status.hook_statuses.iter().all(|entry| entry.succeed.is_some()));
    }
}

fn unavailable() -> StoreError {
    StoreError::Failed {
        step: "call",
        message: "503".to_owned(),
    }
}
