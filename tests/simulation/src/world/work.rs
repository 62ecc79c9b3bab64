//! Processes at work: each takes in what it was answered, and does one thing.

use std::rc::Rc;

use fastrand::Rng;
use jiff::Timestamp;

use super::{World, is_fresh};
use crate::games::{Decision, Request, Seen, Sent};
use crate::hooks::session::Wish;
use crate::network::What;
use crate::process::{Answer, Process, Work};
use crate::store::Stored;

impl World {
    /// A process takes in what it was answered, and does one thing.
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

    /// A process takes in what it was answered, and does one thing.
    pub fn work(&mut self, at: usize) {
        while let Some(answer) = self.processes[at].inbox.pop_front() {
            self.take(at, answer);
        }
        let now = self.now;
        match &mut self.processes[at].work {
            Work::None => {}
            Work::Hooks(hooks) => {
                for wish in hooks.work(now) {
                    match wish {
                        Wish::Record(run, status) => self.send(at, What::Record(run, status)),
                        Wish::Read(run) => self.send(at, What::ReadRun(run)),
                        Wish::Delete(run) => self.send(at, What::DeleteRun(run)),
                        measure @ Wish::Measure { .. } => self.ask(at, measure),
                    }
                }
            }
            Work::Games(games) => {
                let mut reads = Vec::new();
                let decision = games.consider(now, &mut reads);
                self.send_all(at, reads, None);
                if let Some(decision) = decision {
                    self.decided(at, decision);
                }
            }
        }
    }

    fn take(&mut self, at: usize, answer: Answer) {
        let now = self.now;
        match (&mut self.processes[at].work, answer) {
            (Work::Games(games), Answer::Games(id, landed)) => {
                let seen = games.seen(id);
                let follow = games.answered(id, landed, now);
                self.send_all(at, follow, seen);
            }
            (Work::Hooks(hooks), Answer::Run { name, uid, answer }) => {
                hooks.answered(&name, &uid, answer, now);
            }
            (
                Work::Hooks(hooks),
                Answer::Outcome {
                    name,
                    uid,
                    call,
                    outcome,
                },
            ) => hooks.measured(&name, &uid, call, *outcome),
            _ => {}
        }
    }

    fn send_all(&mut self, at: usize, requests: Vec<Sent>, seen: Option<Rc<Seen>>) {
        for (id, request) in requests {
            let seen = seen.clone().filter(|_| !matches!(request, Request::Read(..)));
            self.send(at, What::Games(id, request, seen));
        }
    }

    /// A decision is judged, and its first writes are sent.
    fn decided(&mut self, at: usize, decision: Decision) {
        self.totals.decisions += 1;
        if decision.plan.is_empty() {
            return;
        }
        let writes = !decision.plan.actions.is_empty() || decision.plan.status.is_some();
        assert!(writes, "warns and writes nothing, for ever: {:#?}", decision.plan);
        let Work::Games(games) = &mut self.processes[at].work else {
            return;
        };
        let fresh = is_fresh(games, &self.server);
        self.totals.stale += u64::from(!fresh);
        let uid = decision.object.uid();
        if !decision.plan.actions.is_empty() {
            self.referee
                .decided(&decision.plan, &games.index, &self.server, uid);
        }
        let seen = Rc::new(Seen {
            object: decision.object.clone(),
            nodes: games.index.nodes.clone(),
            revisions: games
                .index
                .revisions
                .iter()
                .map(|(_, known)| known.clone())
                .collect(),
            fresh,
            foreign: self.foreign,
            at: self.now,
        });
        let requests = games.begin(decision, seen.clone());
        self.send_all(at, requests, Some(seen));
    }
}
