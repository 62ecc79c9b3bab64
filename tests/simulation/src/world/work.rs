//! Work of the processes: each takes in its responses and performs one step.

use std::cell::Cell;
use std::rc::Rc;

use fastrand::Rng;
use gamedeployment_core::plan::Action;
use jiff::Timestamp;

use gamedeployment_driver::request::{ApiCall, Decided, DriverOutput, ObjectKind, Request};

use super::{FLEET, World, is_fresh};
use crate::games::Seen;
use crate::hooks::SessionRequest;
use crate::network::InFlightRequest;
use crate::process::{Answer, Process, Work};
use crate::referee::Referee;

impl World {
    /// Lets a process take in its responses and perform one step.
    pub(super) fn let_work(&mut self, dice: &mut Rng) -> bool {
        let busy = |process: &Process, now: Timestamp| {
            !process.inbox.is_empty()
                || match &process.work {
                    Work::None => false,
                    Work::Hooks(hooks) => hooks.has_work(now),
                    Work::Games(games) => games.has_work(now),
                }
        };
        let Some(at) = self.pick(dice, busy) else {
            return false;
        };
        self.work(at);
        true
    }

    /// Takes in the responses of a process and performs one step.
    pub fn work(&mut self, at: usize) {
        if let Work::Games(games) = &mut self.processes[at].work {
            games.begin_step();
        }
        while let Some(answer) = self.processes[at].inbox.pop_front() {
            self.take(at, answer);
        }
        let now = self.now;
        match &mut self.processes[at].work {
            Work::None => {}
            Work::Hooks(hooks) => {
                for wish in hooks.work(now) {
                    match wish {
                        SessionRequest::Record(of, run, status) => {
                            self.send(at, InFlightRequest::Record(of, run, status));
                        }
                        SessionRequest::Read(of, run) => self.send(at, InFlightRequest::ReadRun(of, run)),
                        SessionRequest::Delete(of, run) => self.send(at, InFlightRequest::DeleteRun(of, run)),
                        SessionRequest::Tell(words) => self.tell(|| words),
                        measure @ SessionRequest::Measure { .. } => self.ask(at, measure),
                    }
                }
            }
            Work::Games(_) => self.drive(at),
        }
    }

    fn take(&mut self, at: usize, answer: Answer) {
        let now = self.now;
        match (&mut self.processes[at].work, answer) {
            (Work::Games(games), Answer::Games(id, answer)) => games.answered(id, answer, now),
            (Work::Hooks(hooks), Answer::Run(of, answer)) => hooks.answered(&of, answer, now),
            (Work::Hooks(hooks), Answer::Outcome(of, call, outcome)) => {
                hooks.measured(&of, call, *outcome, now);
            }
            _ => {}
        }
    }

    /// Drains the driver's outputs. Panics at the 100th decision without time passing: a wake-up in the past
    /// would be a hot loop.
    fn drive(&mut self, at: usize) {
        let now = self.now;
        let mut decisions = 0;
        while let Work::Games(games) = &mut self.processes[at].work
            && let Some(output) = games.poll(now)
        {
            match output {
                DriverOutput::Send(request) => self.asked(at, request),
                DriverOutput::Decided(decided) => {
                    decisions += 1;
                    assert!(decisions < 100, "it decides again and again, and nothing happens");
                    self.decided(at, &decided);
                }
                DriverOutput::Concluded { .. } => games.concluded(),
                DriverOutput::EmitWarnings(_, warnings) => self.tell(|| {
                    let words: Vec<_> = warnings.iter().map(|warning| warning.message.as_str()).collect();
                    format!("people are warned: {}", words.join("; "))
                }),
                DriverOutput::Overdue(_) => self.totals.overdue += 1,
                DriverOutput::PodLost(_, warning) => self.tell(|| warning.message),
                DriverOutput::EmitEvents(..)
                | DriverOutput::WriteFinished(..)
                | DriverOutput::HookUnsuccessful(_)
                | DriverOutput::Unread { .. }
                | DriverOutput::WorkloadDeleted(_) => {}
                DriverOutput::Unreadable(..) => panic!("everything can be read here"),
            }
        }
    }

    fn asked(&mut self, at: usize, mut request: Request) {
        let now = self.now;
        let by = (at, self.processes[at].incarnation);
        let Work::Games(games) = &mut self.processes[at].work else {
            return;
        };
        let seen = games.sent(&mut request);
        if let ApiCall::ReportEviction((_, eviction), report) = &request.call {
            games.reports(request.id, eviction, report, now);
            if report.completion.is_some() {
                let confirmed = games.confirmed_no_hook(eviction);
                self.referee.completes(by, request.id, confirmed);
            }
        }
        if let ApiCall::Read(ObjectKind::Workload, _) = &request.call {
            games.reads_workload(request.id, now);
        }
        if let (ApiCall::Act(Action::ResetRetry(kinds)), Some(seen)) = (&request.call, &seen) {
            Referee::resets_retry(kinds, seen);
        }
        self.send(at, InFlightRequest::Games(request, seen));
    }

    /// Judges a decision.
    fn decided(&mut self, at: usize, decided: &Decided) {
        self.totals.decisions += 1;
        let took = self.profile.decision;
        let by = (at, self.processes[at].incarnation);
        let Work::Games(games) = &mut self.processes[at].work else {
            return;
        };
        games.took(decided, took);
        if decided.is_empty() {
            return;
        }
        let fresh = is_fresh(games, &self.server);
        self.totals.stale += u64::from(!fresh);
        if decided.actions > 0 {
            let uid = decided.target.uid();
            self.referee.decided(games.index(), &self.server, uid, by);
        }
        assert_eq!(decided.target.key.1, FLEET);
        let known = games.index().revisions.iter();
        let revisions = known.map(|(_, owned)| owned.revision.clone()).collect();
        let runs = games.index().runs.owned_by(decided.target.uid());
        let refused = runs.filter(|run| run.is_unsuccessful() && !run.terminating);
        let refused = refused.cloned().collect();
        let pods = games.index().pods.owned_by(decided.target.uid());
        let active = pods.filter(|pod| pod.is_active()).count();
        games.decided(Rc::new(Seen {
            by,
            target: decided.target.clone(),
            revisions,
            refused,
            active,
            known: games.known().clone(),
            fresh,
            foreign: self.foreign,
            at: self.now,
            found_none: Cell::new(false),
        }));
    }
}
