//! One hook-operator at work: a session for every run without a verdict, as the shell's controller keeps them.
//!
//! `hook-operator/src/controller.rs` cannot be had without a runtime; this keeps its rules: who gets a session, what is
//! remembered of one that has ended, and which news come too late.

pub mod session;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use hook_core::decide::Outcome;
use jiff::Timestamp;

use crate::objects::RunObject;
use crate::server::table::{News, Watch};
use crate::server::{Refusal, Server};
use session::{End, Session, Wish};

/// What came of a call that did not succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallError {
    Gone,
    Conflict,
    Refused,
    Unknown,
}

impl From<Refusal> for CallError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Gone => Self::Gone,
            Refusal::Conflict => Self::Conflict,
            Refusal::Forbidden => Self::Refused,
        }
    }
}

/// What is known of a run besides what the watch says.
#[derive(Debug)]
enum Seat {
    Taken(Box<Session>),
    /// Its session has ended, and the watch has not shown that yet.
    Left {
        uid: String,
        end: End,
    },
}

/// One operator's memory.
#[derive(Debug, Default)]
pub struct Hooks {
    watch: Watch<RunObject>,
    seats: BTreeMap<String, Seat>,
    /// Sessions that have something to do now.
    stirred: BTreeSet<String>,
}

impl Hooks {
    /// The watch breaks, and begins with a list.
    pub fn lose_watch(&mut self) {
        self.watch = Watch::Closed;
    }

    /// Lets the watch show one thing. Says whether there was something, and whether the watch was too old.
    pub fn learn(&mut self, server: &Server, now: Timestamp) -> (bool, bool) {
        let any = server.runs.has_news(&self.watch);
        let (news, expired) = server.runs.next(&mut self.watch);
        match news {
            None => {}
            Some(News::List(all)) => {
                let listed: BTreeSet<String> = all.iter().map(|run| run.id.name.clone()).collect();
                for run in all {
                    self.apply(run, now);
                }
                self.seats.retain(|name, _| listed.contains(name));
            }
            Some(News::Apply(run)) => self.apply(run, now),
            Some(News::Delete(run)) => drop(self.seats.remove(&run.id.name)),
        }
        (any, expired)
    }

    fn apply(&mut self, run: Rc<RunObject>, now: Timestamp) {
        let name = run.id.name.clone();
        if run.api.metadata.deletion_timestamp.is_some() {
            self.seats.remove(&name);
            return;
        }
        match self.seats.get_mut(&name) {
            Some(Seat::Taken(session)) if session.uid() == run.id.uid => {
                session.news = Some(run);
                self.stirred.insert(name);
            }
            Some(Seat::Left { uid, end }) if *uid == run.id.uid && end.is_news_of_before(&run) => {}
            _ if is_over(&run) => drop(self.seats.remove(&name)),
            _ => {
                self.seats
                    .insert(name.clone(), Seat::Taken(Box::new(Session::new(run, now))));
                self.stirred.insert(name);
            }
        }
    }

    /// Whether a session has something to do now.
    #[must_use]
    pub fn has_work(&self, now: Timestamp) -> bool {
        !self.stirred.is_empty() || self.wakes_at().is_some_and(|at| at <= now)
    }

    /// The next time at which there is something to do though nothing happens.
    #[must_use]
    pub fn wakes_at(&self) -> Option<Timestamp> {
        let sessions = self.seats.values().filter_map(|seat| match seat {
            Seat::Taken(session) => session.wakes_at(),
            Seat::Left { .. } => None,
        });
        sessions.min()
    }

    /// Lets one session go on that has something to do. Returns what it wishes.
    pub fn work(&mut self, now: Timestamp) -> Vec<Wish> {
        let due = self.seats.iter().find_map(|(name, seat)| match seat {
            Seat::Taken(session) if session.wakes_at().is_some_and(|at| at <= now) => Some(name.clone()),
            _ => None,
        });
        let Some(name) = self.stirred.pop_first().or(due) else {
            return Vec::new();
        };
        let Some(Seat::Taken(session)) = self.seats.get_mut(&name) else {
            return Vec::new();
        };
        let mut wishes = Vec::new();
        if let Err(end) = session.go_on(now, &mut wishes) {
            self.leave(&name, end, now);
        }
        wishes
    }

    /// Remembers how a session ended until the watch shows it.
    fn leave(&mut self, name: &str, end: End, now: Timestamp) {
        let Some(Seat::Taken(session)) = self.seats.get(name) else {
            return;
        };
        let latest = session.latest();
        let uid = session.uid().to_owned();
        if end.is_news_of_before(&latest) {
            self.seats.insert(name.to_owned(), Seat::Left { uid, end });
            return;
        }
        self.seats.remove(name);
        if end.is_before(&latest) {
            self.apply(latest, now);
        }
    }

    /// A write or a read has been answered.
    pub fn answered(
        &mut self,
        name: &str,
        uid: &str,
        answer: Result<Option<Rc<RunObject>>, CallError>,
        now: Timestamp,
    ) {
        let Some(Seat::Taken(session)) = self.seats.get_mut(name) else {
            return;
        };
        if session.uid() != uid {
            return;
        }
        self.stirred.insert(name.to_owned());
        if let Err(end) = session.answered(answer, now) {
            self.stirred.remove(name);
            self.leave(name, end, now);
        }
    }

    /// A measurement has ended.
    pub fn measured(&mut self, name: &str, uid: &str, call: u64, outcome: Outcome) {
        if let Some(Seat::Taken(session)) = self.seats.get_mut(name)
            && session.uid() == uid
            && session.collect(call, outcome)
        {
            self.stirred.insert(name.to_owned());
        }
    }
}

/// Whether there is nothing left to do for a run.
fn is_over(run: &RunObject) -> bool {
    run.read.phase.is_final() && run.api.spec.ttl_seconds_after_finished.is_none()
}
