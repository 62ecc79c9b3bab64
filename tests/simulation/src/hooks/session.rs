//! The life of one run in one process, as the shell's `session.rs` has it: decide, record, measure, wait, and again.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use hook_core::decide::{self, Ended, Outcome, Plan, Slot, Start, View, decide};
use hook_core::resolve::{Problems, ResolvedRun, resolve_run, time_to_live};
use hook_core::tally;
use jiff::{SignedDuration, Timestamp};
use shared_api::HookRunStatus;

use super::CallError;
use crate::objects::RunObject;

const FIRST_PAUSE: SignedDuration = SignedDuration::from_millis(100);
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_secs(5);
const LONGEST_SLEEP: SignedDuration = SignedDuration::from_secs(30);

/// Why a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Concluded(u64),
    Gone,
}

impl End {
    #[must_use]
    pub fn is_news_of_before(&self, run: &RunObject) -> bool {
        match self {
            Self::Concluded(last) => version(run) < *last,
            Self::Gone => true,
        }
    }

    #[must_use]
    pub fn is_before(&self, run: &RunObject) -> bool {
        match self {
            Self::Concluded(last) => *last < version(run),
            Self::Gone => false,
        }
    }
}

fn version(run: &RunObject) -> u64 {
    run.id.version.parse().unwrap()
}

/// What a session wants done.
#[derive(Debug)]
pub enum Wish {
    Record(Rc<RunObject>, Box<HookRunStatus>),
    Read(Rc<RunObject>),
    Delete(Rc<RunObject>),
    Measure {
        run: Rc<RunObject>,
        resolved: Rc<Result<ResolvedRun, Problems>>,
        slot: Slot,
        number: u64,
    },
}

#[derive(Debug)]
enum Waits {
    No,
    /// For news, outcomes, or this time.
    Until(Timestamp),
    Pauses(Timestamp),
    Record(Box<HookRunStatus>),
    Read {
        conflict: bool,
    },
    Delete,
}

/// One run being measured.
#[derive(Debug)]
pub struct Session {
    run: Rc<RunObject>,
    pub news: Option<Rc<RunObject>>,
    resolved: Rc<Result<ResolvedRun, Problems>>,
    taken_up_at: Timestamp,
    in_flight: BTreeMap<u64, Slot>,
    outcomes: Vec<Outcome>,
    collected: bool,
    failed_writes: u32,
    calls: u64,
    waits: Waits,
}

impl Session {
    #[must_use]
    pub fn new(run: Rc<RunObject>, now: Timestamp) -> Self {
        Self {
            resolved: Rc::new(resolve_run(&run.api.spec)),
            run,
            news: None,
            taken_up_at: now,
            in_flight: BTreeMap::new(),
            outcomes: Vec::new(),
            collected: false,
            failed_writes: 0,
            calls: 0,
            waits: Waits::No,
        }
    }

    #[must_use]
    pub fn uid(&self) -> &str {
        &self.run.id.uid
    }

    /// The newest that its channel holds.
    #[must_use]
    pub fn latest(&self) -> Rc<RunObject> {
        self.news.clone().unwrap_or_else(|| self.run.clone())
    }

    #[must_use]
    pub fn wakes_at(&self) -> Option<Timestamp> {
        match self.waits {
            Waits::Until(at) | Waits::Pauses(at) => Some(at),
            Waits::No => Some(Timestamp::MIN),
            Waits::Record(_) | Waits::Read { .. } | Waits::Delete => None,
        }
    }

    /// Goes on as far as it can without an answer.
    pub fn go_on(&mut self, now: Timestamp, wishes: &mut Vec<Wish>) -> Result<(), End> {
        match self.waits {
            Waits::Record(_) | Waits::Read { .. } | Waits::Delete => {
                self.ask_again(wishes);
                return Ok(());
            }
            Waits::Pauses(until) => {
                self.hear();
                if now < until {
                    return Ok(());
                }
            }
            Waits::Until(until) => {
                let news = self.hear();
                if now < until && !news && !self.collected {
                    return Ok(());
                }
            }
            Waits::No => {}
        }
        self.waits = Waits::No;
        self.collected = false;
        let Plan {
            record,
            start,
            cancel,
            wake_at,
            ended,
        } = self.plan(now);
        self.in_flight.retain(|_, slot| !cancel.contains(slot));
        match (record, ended) {
            (Some(status), _) => {
                let status = Box::new(status);
                wishes.push(Wish::Record(self.run.clone(), status.clone()));
                self.waits = Waits::Record(status);
            }
            (None, Some(Ended::Keep)) => return Err(End::Concluded(version(&self.run))),
            (None, Some(Ended::Delete)) => {
                wishes.push(Wish::Delete(self.run.clone()));
                self.waits = Waits::Delete;
            }
            (None, Some(Ended::DeleteLater) | None) => {
                self.start(start, wishes);
                let longest = now + LONGEST_SLEEP;
                self.waits = Waits::Until(wake_at.map_or(longest, |at| at.min(longest)));
            }
        }
        Ok(())
    }

    /// After a conflict the run is read; the wish is made here because an answer makes none.
    fn ask_again(&mut self, wishes: &mut Vec<Wish>) {
        if let Waits::Read { .. } = self.waits
            && self.collected
        {
            self.collected = false;
            wishes.push(Wish::Read(self.run.clone()));
        }
    }

    fn plan(&mut self, now: Timestamp) -> Plan {
        self.taken_up_at = self.taken_up_at.min(now);
        let status = self.run.api.status.clone().unwrap_or_default();
        let in_flight: Vec<Slot> = self.in_flight.values().cloned().collect();
        let view = View {
            spec: self.resolved.as_ref().as_ref(),
            time_to_live: time_to_live(&self.run.api.spec),
            generation: self.run.api.metadata.generation,
            status: &status,
            taken_up_at: self.taken_up_at,
            in_flight: &in_flight,
            outcomes: &self.outcomes,
            held_up: None,
        };
        let plan = decide(&view, now);
        assert!(
            plan.record.is_none() || plan.start.is_empty(),
            "measures again before it has recorded: {plan:?}"
        );
        plan
    }

    fn start(&mut self, starts: Vec<Start>, wishes: &mut Vec<Wish>) {
        for Start { slot, .. } in starts {
            self.calls += 1;
            self.in_flight.insert(self.calls, slot.clone());
            wishes.push(Wish::Measure {
                run: self.run.clone(),
                resolved: self.resolved.clone(),
                slot,
                number: self.calls,
            });
        }
    }

    /// Keeps a measurement's outcome until it is recorded. One that was cancelled has none.
    pub fn collect(&mut self, call: u64, outcome: Outcome) -> bool {
        if self.in_flight.remove(&call).is_none() {
            return false;
        }
        self.outcomes.push(outcome);
        let waits = matches!(self.waits, Waits::Until(_) | Waits::No);
        self.collected |= waits;
        waits
    }

    fn hear(&mut self) -> bool {
        let Some(news) = self.news.take() else {
            return false;
        };
        if version(&news) >= version(&self.run) {
            self.adopt(news);
        }
        true
    }

    fn adopt(&mut self, run: Rc<RunObject>) {
        let (new, old) = (&run.api.spec, &self.run.api.spec);
        let other_metrics = (&new.metrics, &new.args) != (&old.metrics, &old.args);
        if new != old {
            self.resolved = Rc::new(resolve_run(new));
        }
        if other_metrics {
            self.in_flight.clear();
            self.outcomes.clear();
        }
        self.run = run;
        if let (Ok(resolved), Some(status)) = (self.resolved.as_ref(), &self.run.api.status) {
            self.outcomes
                .retain(|outcome| decide::is_open(resolved, status, &outcome.slot));
        }
    }

    /// A write or a read has been answered.
    pub fn answered(
        &mut self,
        answer: Result<Option<Rc<RunObject>>, CallError>,
        now: Timestamp,
    ) -> Result<(), End> {
        match std::mem::replace(&mut self.waits, Waits::No) {
            Waits::Record(status) => match answer {
                Ok(Some(run)) if keeps(&run, &status) => {
                    self.failed_writes = 0;
                    self.adopt(run);
                }
                Ok(run) => {
                    if let Some(run) = run {
                        self.adopt(run);
                    }
                    self.try_again(now);
                }
                Err(error) => self.recover(error, now),
            },
            Waits::Delete => match answer {
                Ok(_) => return Err(End::Gone),
                Err(error) => self.recover(error, now),
            },
            Waits::Read { conflict } => match answer {
                Ok(Some(run)) => {
                    self.adopt(run);
                    self.failed_writes = self.failed_writes.saturating_add(1);
                    if !conflict || self.failed_writes > 1 {
                        self.waits = Waits::Pauses(now + pause_after(self.failed_writes));
                    }
                }
                Ok(None) | Err(CallError::Gone) => return Err(End::Gone),
                Err(_) => self.try_again(now),
            },
            other => self.waits = other,
        }
        Ok(())
    }

    fn recover(&mut self, error: CallError, now: Timestamp) {
        match error {
            CallError::Conflict | CallError::Gone => {
                self.waits = Waits::Read {
                    conflict: error == CallError::Conflict,
                };
                // The wish follows.
                self.collected = true;
            }
            CallError::Refused | CallError::Unknown => self.try_again(now),
        }
    }

    fn try_again(&mut self, now: Timestamp) {
        self.failed_writes = self.failed_writes.saturating_add(1);
        self.waits = Waits::Pauses(now + pause_after(self.failed_writes));
    }
}

fn pause_after(failed_writes: u32) -> SignedDuration {
    (FIRST_PAUSE * (1 << failed_writes.min(8))).min(LONGEST_PAUSE)
}

/// Whether a run as it was answered holds the status that was written.
fn keeps(run: &RunObject, written: &HookRunStatus) -> bool {
    let counted = |status: &HookRunStatus| -> Vec<_> {
        let results = status.metric_results.iter();
        results
            .map(|result| (result.name.clone(), result.phase, tally::taken(result)))
            .collect()
    };
    run.api.status.as_ref().is_some_and(|kept| {
        (kept.phase, kept.started_at) == (written.phase, written.started_at)
            && counted(kept) == counted(written)
    })
}

/// The whole exchange, where a metric says nothing else.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(10);
