//! The operators' processes: each waits for its Lease, works while it leads, and ends when it loses the
//! Lease. Any of them may crash, pause, receive a request to end, or see an old state.
//!
//! The candidate is the real one; the fence follows its rule: a write is sent only while `leads_until` is in
//! the future, and its response is awaited no longer than that.

use std::collections::VecDeque;
use std::time::Duration;

use fastrand::Rng;
use gamedeployment_driver::request::{self, RequestId, Response as Answered};
use hook_core::decide::MeasurementOutcome;
use hook_driver::{MeasurementId, SessionInput};
use jiff::{SignedDuration, Timestamp};

use crate::fault_profile::Handling;
use crate::games::{Games, KINDS};
use crate::hooks::{Hooks, Of};
use crate::world::{EPOCH, World};
use runtime_core::candidate::{Candidate, LeaseCall, Timing, WriteOutcome};

/// Default of the operators' flag.
pub const TIMING: Timing = Timing {
    lease_duration: Duration::from_secs(15),
};

/// Response for a process.
#[derive(Debug)]
pub enum Answer {
    Games(RequestId, Result<Answered, request::RequestError>),
    Run(Of, SessionInput),
    Outcome(Of, MeasurementId, Box<MeasurementOutcome>),
}

/// Work of a leader.
#[derive(Debug, Default)]
pub enum Work {
    #[default]
    None,
    Hooks(Box<Hooks>),
    Games(Box<Games>),
}

/// Operators, by the index of their Lease.
pub const HOOKS: usize = 0;
pub const GAMES: usize = 1;

/// One process.
#[derive(Debug)]
pub struct Process {
    pub operator: usize,
    pub number: usize,
    /// Counts its incarnations.
    pub incarnation: u64,
    /// Time of its next start, if it does not run.
    pub starts_at: Option<Timestamp>,
    /// End of its pause.
    pub paused_until: Timestamp,
    /// Time until which each watch delivers nothing.
    pub frozen: [Timestamp; KINDS],
    /// Time since which nothing has disturbed it: neither a fault of the process or of a watch, nor a request that failed
    /// on the network.
    pub undisturbed: Timestamp,
    candidate: Candidate,
    looks_at: Timestamp,
    pending: Option<(LeaseCall, Duration, WriteOutcome)>,
    /// Value of the fence.
    pub fence: Option<Duration>,
    pub inbox: VecDeque<Answer>,
    pub work: Work,
}

impl Process {
    pub fn new(operator: usize, number: usize, now: Timestamp) -> Self {
        Self {
            operator,
            number,
            incarnation: 0,
            starts_at: None,
            paused_until: now,
            frozen: [now; KINDS],
            undisturbed: now,
            candidate: candidate(operator, number, 0),
            looks_at: now,
            pending: None,
            fence: None,
            inbox: VecDeque::new(),
            work: Work::None,
        }
    }

    pub fn name(&self) -> String {
        let operator = ["hook-operator", "gamedeployment-operator"][self.operator];
        format!("{operator} {}", self.number)
    }

    pub fn runs(&self, now: Timestamp) -> bool {
        self.starts_at.is_none() && now >= self.paused_until
    }

    pub fn works(&self) -> bool {
        !matches!(self.work, Work::None)
    }

    /// Returns the time that a write starting now may take, by the rule of the fence.
    pub fn left(&self, now: Timestamp) -> Option<Duration> {
        let left = self.fence?.checked_sub(clock(now))?;
        (!left.is_zero()).then_some(left)
    }

    /// Ends the process; it loses everything that it knew.
    pub fn end(&mut self, now: Timestamp, again: SignedDuration) {
        self.incarnation += 1;
        self.starts_at = Some(now + again);
        self.paused_until = now;
        self.frozen = [now; KINDS];
        self.candidate = candidate(self.operator, self.number, self.incarnation);
        self.pending = None;
        self.fence = None;
        self.inbox.clear();
        self.work = Work::None;
    }
}

fn candidate(operator: usize, number: usize, incarnation: u64) -> Candidate {
    Candidate::new(format!("{operator}-{number}-{incarnation}"), TIMING)
}

/// Returns the monotonic clock of processes, which clock changes do not affect.
pub fn clock(now: Timestamp) -> Duration {
    elapsed(EPOCH, now)
}

/// Returns the time that has passed since another time.
pub fn elapsed(since: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(since)).unwrap()
}

impl World {
    /// Starts the processes whose time has come, and lets every process that is due check its Lease.
    pub fn elect(&mut self, dice: &mut Rng) {
        for at in 0..self.processes.len() {
            let process = &mut self.processes[at];
            if process.starts_at.is_some_and(|start| start <= self.now) {
                process.starts_at = None;
                process.looks_at = self.now;
            }
            if process.runs(self.now) && process.looks_at <= self.now {
                self.look(at, dice);
            }
        }
    }

    /// Performs one check or renewal, as `Election::step` does.
    fn look(&mut self, at: usize, dice: &mut Rng) {
        let now = self.now;
        let operator = self.processes[at].operator;
        let led = self.processes[at].works();
        let process = &mut self.processes[at];
        let pause = SignedDuration::try_from(TIMING.retry_period()).unwrap() * dice.i32(80..=120) / 100;
        process.looks_at = now + pause;
        if let Some((call, began, written)) = process.pending.take() {
            process.candidate.wrote(&call, began, written);
            self.publish(at);
            return self.take_office(at, led);
        }
        let mut call = process.candidate.next();
        if call == LeaseCall::Read {
            if self.profile.handling(dice, false) != Handling::Done {
                return self.take_office(at, led);
            }
            let found = self.server.lease(operator);
            let follows = self.processes[at].candidate.read(found, clock(now));
            self.publish(at);
            match follows {
                Some(follows) => call = follows,
                None => return self.take_office(at, led),
            }
        }
        let began = clock(now);
        let name = self.processes[at].candidate.name().to_owned();
        let handling = self.profile.handling(dice, true);
        let done = matches!(handling, Handling::Done | Handling::Lost);
        let written = if done {
            self.server
                .write_lease(operator, &name, &call, TIMING.lease_duration)
        } else {
            WriteOutcome::Unknown
        };
        let written = if handling == Handling::Lost {
            WriteOutcome::Unknown
        } else {
            written
        };
        let process = &mut self.processes[at];
        if self.profile.lag && dice.u8(..4) == 0 {
            // The response takes time, and the process may pause meanwhile.
            process.pending = Some((call, began, written));
            process.looks_at = now + SignedDuration::from_millis(dice.i64(100..4000));
            return self.take_office(at, led);
        }
        process.candidate.wrote(&call, began, written);
        self.publish(at);
        self.take_office(at, led);
    }

    fn publish(&mut self, at: usize) {
        let now = clock(self.now);
        let process = &mut self.processes[at];
        process.fence = process.candidate.leads_until(now);
    }

    /// Starts or ends the work of a process when it gains or loses the lead.
    fn take_office(&mut self, at: usize, led: bool) {
        let now = self.now;
        let process = &mut self.processes[at];
        let leads = process.candidate.leads_until(clock(now)).is_some();
        if leads && !led {
            process.work = if process.operator == HOOKS {
                Work::Hooks(Box::default())
            } else {
                let serves_evictions = self.server.serves_evictions;
                let games = Games::new(self.limits, self.watches_nodes, serves_evictions, now);
                Work::Games(Box::new(games))
            };
            process.undisturbed = now;
            self.totals.leaders += 1;
            let name = self.processes[at].name();
            self.tell(|| format!("{name} leads"));
        } else if led && !leads {
            process.end(now, SignedDuration::from_secs(1));
            let name = self.processes[at].name();
            self.tell(|| format!("{name} has lost its lease and ends"));
        }
    }

    /// Asks a process to end: it drops its work, then releases its Lease.
    pub fn ask_to_end(&mut self, at: usize) {
        let now = self.now;
        let process = &mut self.processes[at];
        let held = process.left(now).is_some().then(|| process.candidate.next());
        process.end(now, SignedDuration::from_secs(2));
        let operator = process.operator;
        if let Some(call @ LeaseCall::Renew { .. }) = held {
            let _ = self
                .server
                .write_lease(operator, "", &call, Duration::from_secs(1));
        }
    }

    /// Crashes, pauses or ends a random process, or disturbs its watches or its Lease.
    pub fn strike(&mut self, dice: &mut Rng) {
        let at = dice.usize(..self.processes.len());
        let (now, name) = (self.now, self.processes[at].name());
        let operator = self.processes[at].operator;
        self.processes[at].undisturbed = now;
        match dice.u8(..16) {
            0..=3 => {
                let again = SignedDuration::from_millis(dice.i64(200..20_000));
                self.processes[at].end(now, again);
                self.totals.crashes += 1;
                self.tell(|| format!("{name} crashes"));
            }
            4..=6 => {
                let pause = SignedDuration::from_millis(dice.i64(500..45_000));
                self.processes[at].paused_until = now + pause;
                self.totals.pauses += 1;
                self.tell(|| format!("{name} stands still for {pause:#}"));
            }
            7 | 8 => {
                self.ask_to_end(at);
                self.totals.crashes += 1;
                self.tell(|| format!("{name} is asked to end"));
            }
            9..=12 => {
                let kind = dice.usize(..KINDS);
                let until = now + SignedDuration::from_millis(dice.i64(500..60_000));
                self.processes[at].frozen[kind] = until;
                self.tell(|| format!("watch {kind} of {name} freezes"));
            }
            13 | 14 => {
                let kind = dice.usize(..KINDS);
                self.totals.relists += 1;
                match &mut self.processes[at].work {
                    Work::None => {}
                    Work::Hooks(hooks) => hooks.lose_watch(),
                    Work::Games(games) => games.lose_watch(kind),
                }
                self.tell(|| format!("watch {kind} of {name} is lost, and lists anew"));
            }
            _ => {
                self.server.drop_lease(operator);
                self.tell(|| format!("somebody deletes the Lease of {name}"));
            }
        }
    }

    /// Delivers a measurement's outcome to the process that requested it, if that still lives.
    pub fn deliver_outcome(
        &mut self,
        (process, life): (usize, u64),
        of: Of,
        call: u64,
        outcome: MeasurementOutcome,
    ) {
        let process = &mut self.processes[process];
        if process.incarnation == life {
            process
                .inbox
                .push_back(Answer::Outcome(of, call, Box::new(outcome)));
        }
    }
}
