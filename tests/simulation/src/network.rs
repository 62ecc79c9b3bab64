//! Requests under way between the operators and the API server: each arrives some time, in any order; or it is refused,
//! its answer is lost, or it is given up and takes effect after that.

use std::rc::Rc;

use fastrand::Rng;
use gamedeployment_core::plan::Action;
use jiff::{SignedDuration, Timestamp};
use shared_api::{HookRunStatus, Phase};

use crate::games::act::{self, CallError, Effect, Landed};
use crate::games::{Request, Seen};
use crate::objects::{PodObject, RunObject};
use crate::process::Answer;
use crate::referee::{Acted, Room};
use crate::weather::Fate;
use crate::world::World;

/// Time that a call may take, by the operators' flag.
const CALL: SignedDuration = SignedDuration::from_secs(30);
/// How long after it was given up a request may still take effect.
const LIMBO: SignedDuration = SignedDuration::from_secs(60);

/// What is asked.
#[derive(Debug, Clone)]
pub enum What {
    Games(u64, Request, Option<Rc<Seen>>),
    Record(Rc<RunObject>, Box<HookRunStatus>),
    ReadRun(Rc<RunObject>),
    DeleteRun(Rc<RunObject>),
}

impl What {
    fn writes(&self) -> bool {
        !matches!(self, Self::ReadRun(_) | Self::Games(_, Request::Read(..), _))
    }
}

/// A request under way.
#[derive(Debug)]
pub struct Flight {
    process: usize,
    incarnation: u64,
    what: What,
    deadline: Timestamp,
    given_up: bool,
}

impl World {
    /// A process sends a request; a write only while its fence is open.
    pub fn send(&mut self, process: usize, what: What) {
        let now = self.now;
        let sender = &self.processes[process];
        let mut limit = CALL;
        if what.writes() {
            if let Some(left) = sender.left(now) {
                limit = limit.min(SignedDuration::try_from(left).unwrap());
            } else {
                self.totals.fenced += 1;
                self.fail(process, &what, CallError::Unknown);
                return;
            }
        }
        self.flights.push(Flight {
            process,
            incarnation: sender.incarnation,
            what,
            deadline: now + limit,
            given_up: false,
        });
    }

    fn fail(&mut self, process: usize, what: &What, error: CallError) {
        let answer = match what {
            What::Games(id, request, seen) => {
                Answer::Games(*id, act::failed(request, seen.as_deref(), error))
            }
            What::Record(run, _) | What::ReadRun(run) | What::DeleteRun(run) => Answer::Run {
                name: run.id.name.clone(),
                uid: run.id.uid.clone(),
                answer: Err(error),
            },
        };
        self.processes[process].inbox.push_back(answer);
    }

    /// Whoever waits for an answer gives up when its time is over.
    pub fn give_up(&mut self) {
        let now = self.now;
        let mut failed = Vec::new();
        for flight in &mut self.flights {
            let alive = self.processes[flight.process].incarnation == flight.incarnation;
            if !alive {
                flight.given_up = true;
            } else if !flight.given_up && now > flight.deadline {
                flight.given_up = true;
                failed.push((flight.process, flight.what.clone()));
            }
        }
        for (process, what) in failed {
            self.fail(process, &what, CallError::Unknown);
        }
        let limbo = self.weather.limbo;
        self.flights.retain(|flight| {
            !flight.given_up || (limbo && flight.what.writes() && now < flight.deadline + LIMBO)
        });
    }

    /// A request arrives.
    pub fn land(&mut self, at: usize, dice: &mut Rng) {
        let flight = self.flights.swap_remove(at);
        let writes = flight.what.writes();
        let fate = self.weather.fate(dice, writes);
        let alive = self.processes[flight.process].incarnation == flight.incarnation;
        if matches!(fate, Fate::Refused | Fate::Stumbles) {
            if alive && !flight.given_up {
                self.totals.refused += 1;
                let error = if fate == Fate::Refused {
                    CallError::Refused
                } else {
                    CallError::Unknown
                };
                self.fail(flight.process, &flight.what, error);
            }
            return;
        }
        self.totals.writes += u64::from(writes);
        self.totals.late += u64::from(flight.given_up);
        let answer = self.perform(&flight);
        if !alive || flight.given_up {
            return;
        }
        if fate == Fate::Lost {
            self.totals.lost += 1;
            self.fail(flight.process, &flight.what, CallError::Unknown);
            return;
        }
        let conflict = match &answer {
            Answer::Games(_, landed) => landed.error == Some(CallError::Conflict),
            Answer::Run { answer, .. } => matches!(answer, Err(CallError::Conflict)),
            Answer::Outcome { .. } => false,
        };
        self.totals.conflicts += u64::from(conflict);
        self.processes[flight.process].inbox.push_back(answer);
    }

    fn perform(&mut self, flight: &Flight) -> Answer {
        let late = flight.given_up;
        match &flight.what {
            What::Games(id, request, seen) => {
                Answer::Games(*id, self.perform_games(request, seen.as_deref(), late))
            }
            What::Record(base, status) => {
                let id = &base.id;
                let before = self.server.runs.get(&id.name).cloned();
                let written = self.server.write_run_status(
                    &id.name,
                    Some(&id.uid),
                    Some(&id.version),
                    (**status).clone(),
                );
                if let (Ok(_), Some(before)) = (&written, &before) {
                    self.recorded(before, status);
                }
                answer_about(base, written.map(Some).map_err(CallError::from))
            }
            What::ReadRun(base) => {
                let found = self
                    .server
                    .runs
                    .get(&base.id.name)
                    .filter(|found| found.id.uid == base.id.uid);
                answer_about(base, found.cloned().map(Some).ok_or(CallError::Gone))
            }
            What::DeleteRun(base) => {
                let id = &base.id;
                let deleted = self.server.delete_run(&id.name, Some(&id.uid), Some(&id.version));
                answer_about(base, deleted.map(|()| None).map_err(CallError::from))
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
        self.referee.recorded(before, status);
    }

    fn perform_games(&mut self, request: &Request, seen: Option<&Seen>, late: bool) -> Landed {
        let Request::Act(action) = request else {
            let landed = act::perform(&mut self.server, request, seen, self.now);
            if let (Request::Status(_), None) = (request, landed.error) {
                self.tell(|| "the status of the workload is written".to_owned());
            }
            return landed;
        };
        let seen = seen.unwrap();
        let name = pod_of(action);
        let before = name.and_then(|name| self.server.pods.get(name).cloned());
        let room = self.room(before.as_deref(), seen, late);
        let version = self.server.version();
        let landed = act::perform(&mut self.server, request, Some(seen), self.now);
        let changed = self.server.version() > version;
        if landed.error.is_none() && changed {
            self.note(action, before, room, seen, late, &landed);
        }
        landed
    }

    fn room(&self, pod: Option<&PodObject>, seen: &Seen, late: bool) -> Room {
        let wait = seen.object.api.spec.min_ready_seconds.unwrap_or(0);
        let own = |pod: &PodObject| is_own(pod, seen);
        Room {
            active: 0,
            available: self
                .server
                .pods
                .iter()
                .filter(|pod| own(pod) && self.serves(pod, wait, seen.at))
                .count(),
            serves: pod.is_some_and(|pod| own(pod) && self.serves(pod, wait, seen.at)),
            serving: {
                let pods = self.server.pods.iter();
                pods.filter(|pod| own(pod) && self.may_serve(pod)).count()
            },
            may_serve: pod.is_some_and(|pod| {
                let node = pod.read.node.as_ref();
                let node_exists = node.is_some_and(|node| self.server.nodes.get(node).is_some());
                own(pod) && node_exists && self.may_serve(pod)
            }),
            calm: seen.fresh && seen.foreign == self.foreign && !late,
        }
    }

    /// A write of gamedeployment-operator took effect: it is counted, told, and judged.
    fn note(
        &mut self,
        action: &Action,
        before: Option<Rc<PodObject>>,
        mut room: Room,
        seen: &Seen,
        late: bool,
        landed: &Landed,
    ) {
        let pods = self.server.pods.iter();
        room.active = pods
            .filter(|pod| is_own(pod, seen) && pod.read.is_active())
            .count();
        if late {
            self.foreign += 1;
        }
        let uid = before.as_ref().map(|pod| pod.id.uid.clone());
        let machine = uid
            .and_then(|uid| self.machines.get(&uid))
            .cloned()
            .unwrap_or_default();
        self.tell(|| format!("done{}: {}", if late { " late" } else { "" }, brief(action)));
        let version = self.server.version();
        match action {
            Action::CreatePod(_) => {
                self.totals.created += 1;
                if let Some(Effect::Pod(pod)) = &landed.effect {
                    self.referee.made(&pod.id.uid, version, late);
                }
            }
            Action::DeletePod(_) => self.totals.deletions += 1,
            Action::WriteUpdate(..) => self.totals.in_place += 1,
            Action::Confirm(_) => self.totals.confirmations += 1,
            Action::ResetRetry(_) => self.totals.retries += 1,
            Action::CreateRun(_) => {
                if let Some(Effect::Run(run)) = &landed.effect {
                    let mut pods = self.server.pods.iter();
                    let pod = pods.find(|pod| run.read.pod_uid.as_ref() == Some(&pod.id.uid));
                    let machine = pod.and_then(|pod| self.machines.get(&pod.id.uid));
                    self.referee.asked(run, machine, version);
                }
            }
            _ => {}
        }
        let node_exists = { machine.node.as_ref() }.is_some_and(|node| self.server.nodes.get(node).is_some());
        let acted = Acted {
            seen,
            before,
            machine,
            version,
            late,
            room,
            node_exists,
        };
        self.totals.approvals += u64::from(self.referee.acted(action, &acted));
    }
}

/// Whether a pod belongs to the workload: by its controller, and by its labels, without which it is released.
fn is_own(pod: &PodObject, seen: &Seen) -> bool {
    pod.id.owner.as_deref() == Some(seen.object.uid()) && pod.read.labels.contains_key("app")
}

fn answer_about(run: &RunObject, answer: Result<Option<Rc<RunObject>>, CallError>) -> Answer {
    Answer::Run {
        name: run.id.name.clone(),
        uid: run.id.uid.clone(),
        answer,
    }
}

/// The existing pod that an action is about.
#[must_use]
pub fn pod_of(action: &Action) -> Option<&str> {
    match action {
        Action::Adopt(at)
        | Action::Release(at)
        | Action::Mark(at, _)
        | Action::Unmark(at)
        | Action::PutIn(at, _) => Some(&at.name),
        Action::DeletePod(delete) => Some(&delete.pod().name),
        Action::TakeOut(update, _) | Action::WriteUpdate(update, _) => Some(&update.pod().name),
        Action::Confirm(confirmed) => Some(&confirmed.pod().name),
        _ => None,
    }
}

/// An action in a few words.
fn brief(action: &Action) -> String {
    match action {
        Action::CreatePod(new) => format!("create pod {}", new.name),
        Action::DeletePod(delete) => format!("delete pod {} ({})", delete.pod().name, delete.grounds()),
        Action::TakeOut(update, _) => {
            format!(
                "take {} out for {} ({})",
                update.pod().name,
                update.to(),
                update.grounds()
            )
        }
        Action::WriteUpdate(update, change) => {
            let images: Vec<_> = change.images.values().collect();
            format!("write {} {images:?} ({})", update.pod().name, update.grounds())
        }
        Action::CreateRun(new) => format!(
            "create run {}",
            new.run.metadata.name.as_deref().unwrap_or_default()
        ),
        Action::DeleteRun(at) => format!("delete run {}", at.name),
        Action::CreateRevision(new) => format!("create revision {}", new.name),
        Action::Mark(at, text) => format!("mark {} {text}", at.name),
        Action::Unmark(at) => format!("unmark {}", at.name),
        other => format!("{other:?}").chars().take(90).collect(),
    }
}
