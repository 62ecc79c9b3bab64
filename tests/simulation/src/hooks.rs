//! A hook-operator process: the operator's own driver between this world's watch and network.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hook_core::decide::{MeasurementKey, MeasurementOutcome};
use hook_core::resolve::resolve_run;
use hook_driver::{
    Change, Event, MeasurementId, Session, SessionId, SessionInput, SessionOutput, Sessions, SharedRun,
    StoreError,
};
use jiff::Timestamp;
use shared_api::{HookRun, HookRunStatus};

use crate::games::now_of;
use crate::objects::RunObject;
use crate::process::clock;
use crate::server::table::{Watch, WatchEvent};
use crate::server::{Refusal, Server};
use crate::world::EPOCH;

/// Recipient of a response: a session of a run.
pub type Of = (String, SessionId);

/// Request of a session to the world.
#[derive(Debug)]
pub enum SessionRequest {
    Record(Of, Arc<HookRun>, Box<HookRunStatus>),
    Read(Of, Arc<HookRun>),
    Delete(Of, Arc<HookRun>),
    Measure {
        of: Of,
        run: Arc<HookRun>,
        resolved: SharedRun,
        key: MeasurementKey,
        number: MeasurementId,
    },
    /// Reports that a status could not be recorded.
    Tell(String),
}

/// Memory of one operator.
#[derive(Debug, Default)]
pub struct Hooks {
    watch: Watch<RunObject>,
    sessions: Sessions,
    open: BTreeMap<String, (SessionId, Session)>,
    /// Sessions with work now.
    stirred: BTreeSet<String>,
}

/// Translates a refusal for a session.
pub fn refused(refusal: Refusal) -> StoreError {
    match refusal {
        Refusal::Gone => StoreError::Gone,
        Refusal::Conflict => StoreError::Conflict,
        Refusal::Forbidden => failed("forbidden (403)"),
        Refusal::Invalid => failed("invalid (422)"),
    }
}

/// Builds the error of a call that was refused or got no response.
pub fn failed(message: &str) -> StoreError {
    StoreError::Failed {
        step: "write the status",
        message: message.to_owned(),
    }
}

impl Hooks {
    /// Breaks the watch; it restarts with a list.
    pub fn lose_watch(&mut self) {
        self.watch = Watch::Closed;
    }

    /// Delivers one item of the watch. Returns whether there was an item, and whether the watch had expired.
    pub fn learn(&mut self, server: &Server, now: Timestamp) -> (bool, bool) {
        let any = server.runs.has_events(&self.watch);
        let (news, expired) = server.runs.next(&mut self.watch);
        let events = match news {
            None => Vec::new(),
            Some(WatchEvent::List(all)) => {
                let listed = all.iter().map(|run| Event::InitApply(run.api.clone()));
                let begins = std::iter::once(Event::Init);
                begins.chain(listed).chain([Event::InitDone]).collect()
            }
            Some(WatchEvent::Apply(run)) => vec![Event::Apply(run.api.clone())],
            Some(WatchEvent::Delete(run)) => vec![Event::Delete(crate::objects::key(&run.id.name))],
        };
        for event in events {
            let changes = self.sessions.observe(event);
            self.change(changes, now);
        }
        (any, expired)
    }

    fn change(&mut self, changes: Vec<Change>, now: Timestamp) {
        for change in changes {
            match change {
                Change::Open((_, name), id, run) => {
                    self.stirred.insert(name.clone());
                    self.open
                        .insert(name, (id, Session::new(run, now_of(EPOCH, now))));
                }
                Change::Update((_, name), run) => self.handle(&name, None, SessionInput::Watch(run), now),
                Change::Close((_, name)) => drop(self.open.remove(&name)),
                Change::Wait(..) | Change::Read(..) => {
                    unreachable!("the specs of the simulation take up little memory")
                }
            }
        }
    }

    fn handle(&mut self, name: &str, id: Option<SessionId>, input: SessionInput, now: Timestamp) {
        if let Some((known, session)) = self.open.get_mut(name)
            && id.is_none_or(|id| id == *known)
        {
            session.handle(input, now_of(EPOCH, now));
            self.stirred.insert(name.to_owned());
        }
    }

    /// Whether a session has work now.
    pub fn has_work(&self, now: Timestamp) -> bool {
        !self.stirred.is_empty() || self.due(now).is_some()
    }

    fn due(&self, now: Timestamp) -> Option<String> {
        let due = |session: &Session| session.deadline().is_some_and(|at| at <= clock(now));
        let mut open = self.open.iter();
        open.find_map(|(name, (_, session))| due(session).then(|| name.clone()))
    }

    /// Lets one session with work proceed, and returns its requests.
    pub fn work(&mut self, now: Timestamp) -> Vec<SessionRequest> {
        let mut wishes = Vec::new();
        let Some(name) = self.stirred.pop_first().or_else(|| self.due(now)) else {
            return wishes;
        };
        while let Some((id, session)) = self.open.get_mut(&name)
            && let Some(output) = session.poll(now_of(EPOCH, now))
        {
            let of = (name.clone(), *id);
            match output {
                SessionOutput::Resolve(run) => {
                    let resolved = Arc::new(resolve_run(&run.spec));
                    session.handle(SessionInput::Resolved(resolved), now_of(EPOCH, now));
                }
                SessionOutput::Record(run, status) => wishes.push(SessionRequest::Record(of, run, status)),
                SessionOutput::Read(run) => wishes.push(SessionRequest::Read(of, run)),
                SessionOutput::Delete(run) => wishes.push(SessionRequest::Delete(of, run)),
                SessionOutput::Measure(number, key, _, resolved) => wishes.push(SessionRequest::Measure {
                    of,
                    run: session.run().clone(),
                    resolved,
                    key,
                    number,
                }),
                SessionOutput::NotRecorded { why, tries, .. } => {
                    wishes.push(SessionRequest::Tell(format!(
                        "{name} is not recorded after {tries} tries: {why}"
                    )));
                }
                SessionOutput::Cancel(_)
                | SessionOutput::StatusWritten(_)
                | SessionOutput::Verdict(..)
                | SessionOutput::HeldUp(..) => {}
                SessionOutput::DeleteJobs(..) | SessionOutput::JobsLeft { .. } => {
                    unreachable!("no hook of the simulation runs Jobs")
                }
                SessionOutput::End(end) => {
                    self.open.remove(&name);
                    let key = crate::objects::key(&name);
                    let changes = self.sessions.ended(key, of.1, end);
                    self.change(changes, now);
                    break;
                }
            }
        }
        wishes
    }

    /// Handles the response to a call.
    pub fn answered(&mut self, (name, id): &Of, input: SessionInput, now: Timestamp) {
        self.handle(name, Some(*id), input, now);
    }

    /// Handles the outcome of a measurement.
    pub fn measured(
        &mut self,
        (name, id): &Of,
        number: MeasurementId,
        outcome: MeasurementOutcome,
        now: Timestamp,
    ) {
        self.handle(name, Some(*id), SessionInput::Measured(number, outcome), now);
    }
}
