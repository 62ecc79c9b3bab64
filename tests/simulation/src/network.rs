//! Requests in flight between the operators and the API server. Each arrives at some time, in any order; or
//! it is refused, its response is lost, or it takes effect after its sender has abandoned it.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use gamedeployment_core::gate::RolloutRun;
use gamedeployment_driver::request::{self, ApiCall, Request};
use hook_driver::{SessionInput, StoreError};
use jiff::{SignedDuration, Timestamp};
use shared_api::{HookRun, HookRunStatus, Phase};

use crate::fault_profile::Handling;
use crate::games::Seen;
use crate::hooks::{Of, failed, refused};
use crate::objects::RunObject;
use crate::process::{Answer, clock};
use crate::referee::{is_notice, is_scout};
use crate::world::World;

mod games;

pub use games::{pod_of, version_of};

/// Timeout of a call, as set by the operators' flag.
const CALL: SignedDuration = SignedDuration::from_secs(30);
/// Time for which an abandoned request may still take effect.
const LIMBO: SignedDuration = SignedDuration::from_secs(60);

/// Request.
#[derive(Debug)]
pub enum InFlightRequest {
    Games(Request, Option<Rc<Seen>>),
    Record(Of, Arc<HookRun>, Box<HookRunStatus>),
    ReadRun(Of, Arc<HookRun>),
    DeleteRun(Of, Arc<HookRun>),
}

impl InFlightRequest {
    fn writes(&self) -> bool {
        match self {
            Self::ReadRun(..) => false,
            Self::Games(request, _) => !matches!(
                request.call,
                ApiCall::Read(..) | ApiCall::ReadNode(_) | ApiCall::FindPod(_) | ApiCall::CheckGuard(..)
            ),
            Self::Record(..) | Self::DeleteRun(..) => true,
        }
    }

    /// Whether the call is a report to an Eviction. Reports are repeated while nothing else happens.
    fn is_report(&self) -> bool {
        match self {
            Self::Games(request, _) => matches!(request.call, ApiCall::ReportEviction(..)),
            Self::Record(..) | Self::ReadRun(..) | Self::DeleteRun(..) => false,
        }
    }

    /// Returns the time after which an unsent call is dropped.
    fn until(&self) -> Option<Duration> {
        match self {
            Self::Games(request, _) => request.until,
            _ => None,
        }
    }

    /// Returns the sender's error.
    fn failed(&self, error: Failed) -> Answer {
        match self {
            Self::Games(request, _) => Answer::Games(
                request.id,
                Err(match error {
                    Failed::Refused => request::RequestError::Refused("failed: refused (429)".to_owned()),
                    Failed::Lapsed => request::RequestError::Lapsed,
                    Failed::Unknown => request::RequestError::Unknown("failed: no answer".to_owned()),
                }),
            ),
            Self::Record(of, ..) => Answer::Run(of.clone(), SessionInput::Recorded(Err(error.told()))),
            Self::ReadRun(of, _) => Answer::Run(of.clone(), SessionInput::Read(Err(error.told()))),
            Self::DeleteRun(of, _) => Answer::Run(of.clone(), SessionInput::Deleted(Err(error.told()))),
        }
    }
}

impl Failed {
    fn told(self) -> StoreError {
        failed(match self {
            Self::Refused => "refused (429)",
            Self::Lapsed | Self::Unknown => "no answer",
        })
    }
}

/// Cause of a failure that the network or the sender produces, not the API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failed {
    Refused,
    Lapsed,
    Unknown,
}

/// Request in flight.
#[derive(Debug)]
pub struct Flight {
    pub process: usize,
    incarnation: u64,
    pub what: InFlightRequest,
    /// Deadline for the response; `None` while it is queued.
    deadline: Option<Timestamp>,
    /// Time when it was sent.
    sent: Timestamp,
    given_up: bool,
}

impl World {
    /// Queues a request of a process.
    pub fn send(&mut self, process: usize, what: InFlightRequest) {
        self.flights.push(Flight {
            process,
            incarnation: self.processes[process].incarnation,
            what,
            deadline: None,
            sent: self.now,
            given_up: false,
        });
    }

    /// Sends a queued request: a write only while the fence is open, and nothing that has expired.
    fn take_turn(&mut self, at: usize) {
        let now = self.now;
        let flight = &mut self.flights[at];
        let sender = &self.processes[flight.process];
        let mut limit = CALL;
        let mut error = None;
        if flight.what.until().is_some_and(|until| clock(now) >= until) {
            error = Some(Failed::Lapsed);
            self.totals.lapsed += 1;
        } else if flight.what.writes() {
            if let Some(left) = sender.left(now) {
                limit = limit.min(SignedDuration::try_from(left).unwrap());
            } else {
                self.totals.fenced += 1;
                error = Some(Failed::Unknown);
            }
        }
        match error {
            None => {
                flight.deadline = Some(now + limit);
                flight.sent = now;
            }
            Some(error) => {
                let flight = self.flights.swap_remove(at);
                self.answer_failed(&flight, error);
            }
        }
    }

    /// Passes on to the sender of a request that it has failed on the network.
    fn answer_failed(&mut self, flight: &Flight, error: Failed) {
        let process = &mut self.processes[flight.process];
        process.inbox.push_back(flight.what.failed(error));
        process.undisturbed = self.now;
    }

    /// Abandons requests past their deadline, and those of ended processes. Queued requests end with their
    /// process.
    pub fn give_up(&mut self) {
        let now = self.now;
        for flight in &mut self.flights {
            let process = &mut self.processes[flight.process];
            if process.incarnation != flight.incarnation {
                flight.given_up = true;
            } else if !flight.given_up && flight.deadline.is_some_and(|deadline| now > deadline) {
                flight.given_up = true;
                process.inbox.push_back(flight.what.failed(Failed::Unknown));
                process.undisturbed = now;
            }
        }
        let limbo = self.profile.limbo;
        self.flights.retain(|flight| {
            let may_land = |deadline: Timestamp| limbo && flight.what.writes() && now < deadline + LIMBO;
            !flight.given_up || flight.deadline.is_some_and(may_land)
        });
    }

    /// Sends or delivers a request. Returns whether it did: a paused process sends nothing.
    pub fn land(&mut self, at: usize, dice: &mut Rng) -> bool {
        let flight = &self.flights[at];
        let sender = &self.processes[flight.process];
        if flight.deadline.is_none() {
            if sender.incarnation == flight.incarnation && !sender.runs(self.now) {
                return false;
            }
            if sender.incarnation == flight.incarnation {
                self.take_turn(at);
            } else {
                self.flights.swap_remove(at);
            }
            return true;
        }
        let flight = self.flights.swap_remove(at);
        let writes = flight.what.writes();
        let handling = self.profile.handling(dice, writes);
        let alive = self.processes[flight.process].incarnation == flight.incarnation;
        let waits = alive && !flight.given_up;
        if matches!(handling, Handling::Refused | Handling::Stumbles) {
            if waits {
                self.totals.refused += 1;
                let error = if handling == Handling::Refused {
                    Failed::Refused
                } else {
                    Failed::Unknown
                };
                self.answer_failed(&flight, error);
            }
            return true;
        }
        self.totals.writes += u64::from(writes && !flight.what.is_report());
        self.totals.late += u64::from(flight.given_up);
        let answer = self.perform(&flight);
        if !waits {
            return true;
        }
        if handling == Handling::Lost {
            self.totals.lost += 1;
            self.answer_failed(&flight, Failed::Unknown);
            return true;
        }
        let conflict = match &answer {
            Answer::Games(_, answer) => matches!(answer, Err(request::RequestError::Conflict)),
            Answer::Run(_, SessionInput::Recorded(answer)) => matches!(answer, Err(StoreError::Conflict)),
            Answer::Run(..) | Answer::Outcome(..) => false,
        };
        self.totals.conflicts += u64::from(conflict);
        self.processes[flight.process].inbox.push_back(answer);
        true
    }

    fn perform(&mut self, flight: &Flight) -> Answer {
        let late = flight.given_up;
        match &flight.what {
            InFlightRequest::Games(request, seen) => {
                let seen = seen.as_deref();
                let answer = self.perform_games(&request.call, seen, late, flight.sent);
                if answer.is_ok() {
                    let by = (flight.process, flight.incarnation);
                    self.follow_report(by, request, flight.sent);
                }
                Answer::Games(request.id, answer)
            }
            InFlightRequest::Record(of, base, status) => {
                let (name, uid, version) = id_of(base);
                let before = self.server.runs.get(name).cloned();
                let written =
                    self.server
                        .write_run_status(name, Some(uid), Some(version), (**status).clone());
                if let (Ok(_), Some(before)) = (&written, &before) {
                    self.recorded(before, status);
                }
                let written = written.map(|run| run.api.clone()).map_err(refused);
                Answer::Run(of.clone(), SessionInput::Recorded(written))
            }
            InFlightRequest::ReadRun(of, base) => {
                let (name, uid, _) = id_of(base);
                let found = self.server.runs.get(name).filter(|found| found.id.uid == uid);
                let found = found.map(|found| found.api.clone()).ok_or(StoreError::Gone);
                Answer::Run(of.clone(), SessionInput::Read(found))
            }
            InFlightRequest::DeleteRun(of, base) => {
                let (name, uid, version) = id_of(base);
                let deleted = self.server.delete_run(name, Some(uid), Some(version));
                Answer::Run(of.clone(), SessionInput::Deleted(deleted.map_err(refused)))
            }
        }
    }

    fn recorded(&mut self, before: &Rc<RunObject>, status: &HookRunStatus) {
        self.tell(|| {
            let words = status.message.as_deref().unwrap_or("");
            format!("recorded: {} {} {words}", before.id.name, status.phase)
        });
        let count = |status: &HookRunStatus| -> i64 {
            let results = status.metric_results.iter();
            results
                .map(|result| result.successful + result.failed + result.inconclusive + result.error)
                .sum()
        };
        let known = before.api.status.as_ref().map_or(0, count);
        self.totals.recorded += u64::try_from(count(status) - known).unwrap_or(0);
        self.totals.verdicts += u64::from(status.phase.is_final());
        self.totals.successes += u64::from(status.phase == Phase::Successful);
        let is_lifecycle = matches!(before.read.rollout, Some(RolloutRun::Lifecycle(_)));
        self.totals.lifecycle += u64::from(is_lifecycle && status.phase.is_final());
        self.totals.idle += u64::from(is_scout(before) && status.phase == Phase::Successful);
        let has_failed = status.phase.is_final() && status.phase != Phase::Successful;
        self.totals.failed_notices += u64::from(is_notice(&before.api.metadata) && has_failed);
        self.referee.recorded(before, status);
        if status.phase.is_final() {
            self.restore_spec(before);
        }
    }
}

/// Returns name, UID and version.
fn id_of(run: &HookRun) -> (&str, &str, &str) {
    let metadata = &run.metadata;
    (
        metadata.name.as_deref().unwrap_or_default(),
        metadata.uid.as_deref().unwrap_or_default(),
        metadata.resource_version.as_deref().unwrap_or_default(),
    )
}
