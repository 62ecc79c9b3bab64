//! Leases of the API server, and processes of two layouts whose calls are late, lost, or done without an
//! answer, and whose machines are suspended.

use proptest::prelude::*;

use super::*;
use crate::candidate::{Candidate, LeaseCall, WriteOutcome};

/// Event whose time the process does not notice.
const SUSPENSION: u8 = 10;

/// Returns lists of events: their kind, their process, and the seconds before them.
fn events(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<(u8, usize, u64)>> {
    proptest::collection::vec((0..=SUSPENSION, 0..3_usize, 0..10_u64), count)
}

/// Call under way. A read returns the state at the time of its arrival.
#[derive(Debug, Clone)]
enum Sent {
    Look {
        then: Option<LeaseCall>,
        began: Duration,
        answer: Option<Vec<(String, LeaseRecord)>>,
    },
    Write {
        call: LeaseCall,
        began: Duration,
        monotonic: Duration,
        until: Option<Duration>,
        answer: Option<WriteOutcome>,
    },
}

#[derive(Debug)]
struct Process {
    candidate: Candidate,
    layouts: Layouts,
    lease: String,
    sent: Option<Sent>,
    /// Time for which its machine was suspended: its monotonic clock is behind by that.
    suspended: Duration,
    /// End of the last renewal's time.
    held_until: Option<Duration>,
}

#[derive(Debug, Default)]
struct Server {
    leases: BTreeMap<String, LeaseRecord>,
    version: u32,
}

impl Server {
    fn write(&mut self, lease: &str, by: &str, call: &LeaseCall) -> WriteOutcome {
        let (precondition, transitions) = match call {
            LeaseCall::Read => return WriteOutcome::Unknown,
            LeaseCall::Create => (None, 0),
            LeaseCall::Take { version, transitions } | LeaseCall::Renew { version, transitions } => {
                (Some(version.clone()), *transitions)
            }
        };
        if self.leases.get(lease).map(|found| found.version.clone()) != precondition {
            return WriteOutcome::Conflict;
        }
        self.version += 1;
        let version = self.version.to_string();
        let found = LeaseRecord {
            transitions,
            ..found(&version, by)
        };
        self.leases.insert(lease.to_owned(), found);
        WriteOutcome::Done(version)
    }

    fn list(&self) -> Vec<(String, LeaseRecord)> {
        let all = self.leases.iter();
        all.map(|(lease, found)| (lease.clone(), found.clone())).collect()
    }
}

impl Process {
    fn new(name: &str, own: &str) -> Self {
        let shard: Option<Shard> = own.parse().ok();
        Self {
            candidate: Candidate::new(name.to_owned(), TIMING),
            layouts: layouts(own),
            lease: shard.map_or("hook-operator".to_owned(), |shard| shard.lease("hook-operator")),
            sent: None,
            suspended: Duration::ZERO,
            held_until: None,
        }
    }

    fn monotonic(&self, now: Duration) -> Duration {
        now.saturating_sub(self.suspended)
    }

    /// Time until which it holds its Lease, if it does.
    fn until(&self, now: Duration) -> Option<Duration> {
        self.candidate.leads_until(self.monotonic(now))?;
        self.held_until.filter(|until| now < *until)
    }

    fn leads(&self, now: Duration) -> bool {
        self.layouts.alone() && self.until(now).is_some()
    }

    /// Begins a step.
    fn begin(&mut self, server: &Server, now: Duration) {
        self.layouts.check_lapse(now, self.until(now));
        let monotonic = self.monotonic(now);
        let call = match self.candidate.next() {
            LeaseCall::Read => self
                .candidate
                .read(server.leases.get(&self.lease).cloned(), monotonic),
            call => Some(call),
        };
        match call {
            None => self.layouts.not_leading(),
            Some(call) if self.layouts.alone() => self.write(call, now),
            Some(call) => self.look(Some(call), now),
        }
    }

    fn look(&mut self, then: Option<LeaseCall>, now: Duration) {
        self.sent = Some(Sent::Look {
            then,
            began: self.monotonic(now),
            answer: None,
        });
    }

    fn write(&mut self, call: LeaseCall, now: Duration) {
        let until = self.until(now);
        self.sent = Some(Sent::Write {
            until: until.filter(|_| matches!(call, LeaseCall::Renew { .. })),
            call,
            began: now,
            monotonic: self.monotonic(now),
            answer: None,
        });
    }

    /// Delivers its call.
    fn arrive(&mut self, server: &mut Server) {
        match &mut self.sent {
            Some(Sent::Look { answer, .. }) if answer.is_none() => *answer = Some(server.list()),
            Some(Sent::Write { call, answer, .. }) if answer.is_none() => {
                *answer = Some(server.write(&self.lease, self.candidate.name(), call));
            }
            _ => {}
        }
    }

    /// Delivers the answer, or loses it.
    fn end(&mut self, server: &mut Server, now: Duration, lost: bool) {
        match self.sent.take() {
            Some(Sent::Look {
                then,
                began,
                answer: Some(answer),
            }) if !lost => {
                self.layouts
                    .read(answer, began, self.monotonic(now), then.is_none());
                match (self.layouts.wait(), then) {
                    (None, Some(call)) => self.write(call, now),
                    (Some(_), None) => self.give_back(server, now),
                    _ => {}
                }
            }
            Some(Sent::Write {
                call,
                began,
                monotonic,
                until,
                answer,
            }) => {
                let written = answer.filter(|_| !lost).unwrap_or(WriteOutcome::Unknown);
                if matches!(written, WriteOutcome::Done(_)) {
                    self.held_until = Some(began + TIMING.renew_deadline());
                }
                self.candidate.wrote(&call, monotonic, written);
                self.layouts.check_lapse(now, until);
                if self.until(now).is_some() && !self.layouts.alone() {
                    self.look(None, now);
                }
            }
            _ => {}
        }
    }

    fn give_back(&mut self, server: &mut Server, now: Duration) {
        if let (LeaseCall::Renew { version, .. }, Some(_)) = (self.candidate.next(), self.until(now)) {
            let lease = server.leases.get_mut(&self.lease);
            if let Some(lease) = lease.filter(|lease| lease.version == version) {
                server.version += 1;
                lease.version = server.version.to_string();
                lease.holder = String::new();
            }
            self.candidate.release();
        }
    }

    /// Lets time pass, for which the machine of this process is suspended if the event is a suspension.
    fn pass(&mut self, now: &mut Duration, seconds: u64, kind: u8) {
        let time = Duration::from_secs(seconds);
        *now += time;
        if kind == SUSPENSION {
            self.suspended += time;
        }
    }

    /// Advances the process by one event.
    fn goes_on(&mut self, server: &mut Server, now: Duration, kind: u8) {
        match kind {
            0 if self.sent.is_none() => self.begin(server, now),
            0 | 1 => self.arrive(server),
            2 => self.end(server, now, true),
            3 | 4 => self.end(server, now, false),
            SUSPENSION => {}
            _ => self.turn(server, now),
        }
    }

    /// Runs a step whose calls are answered at once.
    fn turn(&mut self, server: &mut Server, now: Duration) {
        if self.sent.is_none() {
            self.begin(server, now);
        }
        while self.sent.is_some() {
            self.arrive(server);
            self.end(server, now, false);
        }
    }
}

fn everybody() -> Vec<Process> {
    let all = [("one", ""), ("two", "0/2"), ("three", "1/2")];
    all.map(|(name, own)| Process::new(name, own)).into()
}

fn leading(all: &[Process], now: Duration) -> Vec<&Process> {
    all.iter().filter(|one| one.leads(now)).collect()
}

/// Returns the layout's number of shards.
fn layout_of(process: &Process) -> Option<u16> {
    process.layouts.own.map(Shard::count)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// No two layouts work at the same time, and no two processes of one shard, even if calls are late or
    /// lost, or machines are suspended.
    #[test]
    fn at_most_one_layout_leads(events in events(1..120)) {
        let mut server = Server::default();
        let mut all = everybody();
        let mut now = Duration::ZERO;
        for (kind, who, time) in events {
            all[who].pass(&mut now, time, kind);
            all[who].goes_on(&mut server, now, kind);
            let leading = leading(&all, now);
            for (number, one) in leading.iter().enumerate() {
                for other in &leading[..number] {
                    prop_assert!(
                        layout_of(one) == layout_of(other) && one.lease != other.lease,
                        "{one:#?} and {other:#?} lead at {now:?}"
                    );
                }
            }
        }
    }

    /// Once calls are answered again, all shards of one layout get a leader.
    #[test]
    fn one_layout_leads_in_the_end(events in events(0..60)) {
        let mut server = Server::default();
        let mut all = everybody();
        let mut now = Duration::ZERO;
        for (kind, who, time) in events {
            all[who].pass(&mut now, time, kind);
            all[who].goes_on(&mut server, now, kind);
        }
        for _ in 0..24 {
            now += TIMING.retry_period();
            for one in &mut all {
                one.turn(&mut server, now);
            }
        }
        let leading = leading(&all, now);
        prop_assert!(!leading.is_empty(), "{all:#?}");
        let expected = if layout_of(leading[0]).is_some() { 2 } else { 1 };
        prop_assert_eq!(leading.len(), expected);
    }
}
