//! Back-off for writes that the API server rejects or does not answer. Watch events do not shorten the
//! back-off.
//!
//! The key of a write is its kind and its object. A rejected write waits on its own while everything else
//! continues. If the same kind fails for several objects and succeeds for none, the objects are not the
//! cause: then only a few of them are retried at a time, those with the fewest attempts first. An edit of the
//! spec ends every back-off.
//!
//! A write that the API server accepted, but stored otherwise, backs off in the same way, and so does one that
//! sets again what another client has changed, so that the operator does not fight with it. Its back-off also
//! continues if the next plans do not contain the write: a HookRun that was not stored as written is deleted
//! first, and then created again. A change by another client is reported only if it recurs.
//!
//! Notices back off apart from other HookRuns, and each is tried at least once: their rejections delay no hook for
//! longer than [`NOTICE_WAIT`](crate::gate::NOTICE_WAIT). This time and the back-off of a rejected notice also continue
//! if the next plans do not contain it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::cluster::RejectedNotice;
use crate::gate::is_named_as_notice;
use crate::plan::{Action, Plan, WriteKind};
use crate::plural::form;
use crate::view::WriteErrors;

mod rejected_notices;

use rejected_notices::RejectedNotices;

/// First back-off; it doubles with every consecutive rejection.
pub const INITIAL_BACKOFF: Duration = Duration::from_millis(250);
/// Upper limit of the back-off.
const MAX_BACKOFF: Duration = Duration::from_secs(30);
/// Number of objects retried at a time when the same write is rejected for several.
const PROBES: usize = 2;
/// Time for which a write that was not stored as written is remembered after its back-off, and a rejected notice after
/// its last rejection.
const REMEMBERED: Duration = Duration::from_mins(1);

/// Outcome of one write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteResult {
    /// Kind of the write.
    pub kind: WriteKind,
    /// Name of the object.
    pub object: String,
    /// Whether the write concerns the number of pods.
    pub scales: bool,
    /// `None` on success.
    pub failure: Option<WriteFailure>,
}

impl WriteResult {
    fn class(&self) -> WriteClass {
        WriteClass::of(self.kind, &self.object)
    }
}

/// Failure of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriteFailure {
    /// The API server rejected the write, with its message.
    Rejected(String),
    /// The API server has not decided on the write: it answered with 429, or it did not answer or answered with a 5xx
    /// status, and the write may have taken effect. Contains the error.
    Unanswered(String),
    /// The API server stored something else, with a message.
    NotStored(String),
    /// The write was stored. It sets again what another client has changed, as the message says.
    Repeated(String),
}

/// Rejected writes of one workload. Times come from a clock that cannot be set back.
#[derive(Debug, Default)]
pub struct WriteBackoff {
    generation: Option<i64>,
    /// Number of consecutive names for a new revision that were already taken.
    collisions: i32,
    acts: BTreeMap<WriteClass, ActionBackoff>,
    rejected_notices: RejectedNotices,
}

/// Writes that are expected to fail together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct WriteClass {
    kind: WriteKind,
    /// Whether the writes create notices.
    is_notice: bool,
}

impl WriteClass {
    fn of(kind: WriteKind, object: &str) -> Self {
        Self {
            kind,
            is_notice: kind == WriteKind::CreateRun && is_named_as_notice(object),
        }
    }

    fn of_action(action: &Action) -> Self {
        Self::of(action.kind(), object(action))
    }

    /// Returns the class of a kind that is not divided.
    fn whole(kind: WriteKind) -> Self {
        Self::of(kind, "")
    }
}

/// Rejections of one class of writes, by object.
#[derive(Debug, Default)]
struct ActionBackoff {
    scales: bool,
    objects: BTreeMap<String, Rejection>,
    /// Number of consecutive failed attempts.
    consecutive_failures: u32,
    until: Duration,
}

#[derive(Debug)]
struct Rejection {
    failure: WriteFailure,
    times: u32,
    until: Duration,
    need: Need,
}

/// Whether a rejected write is still wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    /// The plan contains it.
    Planned,
    /// Its pod waits for a hook before the write is due again.
    Asks,
    /// No plan contains it now. It is not reported.
    Dormant,
}

impl Rejection {
    fn message(&self) -> &str {
        match &self.failure {
            WriteFailure::Rejected(message)
            | WriteFailure::Unanswered(message)
            | WriteFailure::NotStored(message)
            | WriteFailure::Repeated(message) => message,
        }
    }

    fn is_reported(&self) -> bool {
        let is_single = matches!(self.failure, WriteFailure::Repeated(_)) && self.times == 1;
        self.need != Need::Dormant && !is_single
    }

    /// Returns whether the write is still wanted; `None` if it need not be remembered.
    fn need(&self, planned: bool, granted: bool, now: Duration) -> Option<Need> {
        let is_recent = now < self.until.saturating_add(REMEMBERED);
        let (recurs, waits) = match &self.failure {
            WriteFailure::Rejected(_) | WriteFailure::Unanswered(_) => (false, granted),
            WriteFailure::NotStored(_) => (is_recent, granted),
            // It has taken effect, so no hook runs for it.
            WriteFailure::Repeated(_) => (is_recent, false),
        };
        match (planned, waits) {
            (true, _) => Some(Need::Planned),
            (false, true) => Some(Need::Asks),
            (false, false) => recurs.then_some(Need::Dormant),
        }
    }
}

impl ActionBackoff {
    /// Whether this kind of write is rejected regardless of the object.
    fn is_general(&self) -> bool {
        self.consecutive_failures > 0 && self.reported().nth(1).is_some()
    }

    fn reported(&self) -> impl Iterator<Item = &Rejection> {
        self.objects.values().filter(|rejection| rejection.is_reported())
    }

    fn holds(&self, object: &str, now: Duration) -> bool {
        let refusal = self.objects.get(object);
        refusal.is_some_and(|refusal| now < refusal.until) || self.is_general() && now < self.until
    }

    fn times(&self, object: &str) -> u32 {
        self.objects.get(object).map_or(0, |refusal| refusal.times)
    }

    /// Whether the write creates a notice that has not been tried yet.
    fn is_new_notice(&self, class: WriteClass, object: &str) -> bool {
        class.is_notice && self.times(object) == 0
    }

    fn message(&self) -> Option<String> {
        first_of(self.reported().map(|rejection| rejection.message().to_owned()))
    }
}

fn backoff(times: u32) -> Duration {
    INITIAL_BACKOFF
        .saturating_mul(1 << times.saturating_sub(1).min(10))
        .min(MAX_BACKOFF)
}

/// Returns the first message and the number of the others; `None` if there is none.
pub fn first_of(mut messages: impl Iterator<Item = String>) -> Option<String> {
    let first = messages.next()?;
    Some(match messages.count() {
        0 => first,
        more => {
            let failures = form(more, "failure", "failures");
            format!("{first}; and {more} more {failures} of this kind")
        }
    })
}

/// Key of the object of an action. All new pods share one key.
fn object(action: &Action) -> &str {
    if matches!(action, Action::CreatePod(_)) {
        return "";
    }
    action.object().unwrap_or_default()
}

impl WriteBackoff {
    /// Updates the spec's generation. A new generation clears every back-off, but not the time for which hooks wait for
    /// rejected notices.
    pub fn observe_generation(&mut self, generation: Option<i64>) {
        if self.generation != generation {
            self.generation = generation;
            self.acts.clear();
        }
    }

    /// Drops failures of writes that the plan no longer contains. Returns whether the reported failures have
    /// changed. A write whose verdict expired in the meantime is kept while its hook runs again, and a notice that was
    /// rejected a short time ago is kept without a report.
    pub fn retain_planned(&mut self, plan: &Plan, now: Duration) -> bool {
        self.rejected_notices.forget_old(now);
        let before = self.count();
        let rejected_notices = &self.rejected_notices;
        self.acts.retain(|class, act| {
            if class.kind == WriteKind::Status {
                return plan.status.is_some();
            }
            let wanted: Vec<&str> = plan
                .actions
                .iter()
                .filter(|action| WriteClass::of_action(action) == *class)
                .map(object)
                .collect();
            act.objects.retain(|known, rejection| {
                let (planned, granted) = (wanted.contains(&known.as_str()), plan.granted.contains(known));
                let is_remembered = class.is_notice && rejected_notices.contains(known);
                let need = rejection.need(planned, granted, now);
                let need = need.or(is_remembered.then_some(Need::Dormant));
                rejection.need = need.unwrap_or(rejection.need);
                need.is_some()
            });
            !act.objects.is_empty()
        });
        self.count() != before
    }

    /// Number of reported failures.
    fn count(&self) -> usize {
        self.acts.values().map(|act| act.reported().count()).sum()
    }

    /// Removes actions in back-off from a plan.
    pub fn remove_backed_off(&self, plan: &mut Plan, now: Duration) {
        if self.acts.is_empty() {
            return;
        }
        plan.actions.retain(|action| {
            let class = WriteClass::of_action(action);
            let act = self.acts.get(&class);
            act.is_none_or(|act| act.is_new_notice(class, object(action)) || !act.holds(object(action), now))
        });
        for (class, act) in self.acts.iter().filter(|(_, act)| act.is_general()) {
            let of_these = |action: &Action| {
                WriteClass::of_action(action) == *class && !act.is_new_notice(*class, object(action))
            };
            let objects = plan.actions.iter().filter(|action| of_these(action)).map(object);
            let mut objects: Vec<String> = objects.map(str::to_owned).collect();
            objects.sort_by_key(|object| act.times(object));
            objects.truncate(PROBES);
            plan.actions
                .retain(|action| !of_these(action) || objects.iter().any(|one| one == object(action)));
        }
        if self
            .acts
            .get(&WriteClass::whole(WriteKind::Status))
            .is_some_and(|act| act.holds("", now))
        {
            plan.status = None;
            plan.warnings.clear();
        }
    }

    /// Records the outcomes of a plan.
    pub fn record(&mut self, tried: Vec<WriteResult>, now: Duration) {
        self.rejected_notices.forget_old(now);
        for one in &tried {
            self.rejected_notices.record(one, now);
        }
        let (refused, done): (Vec<_>, Vec<_>) = tried.into_iter().partition(|one| one.failure.is_some());
        let of = |tried: &WriteResult| {
            if tried.kind == WriteKind::CreatePod {
                String::new()
            } else {
                tried.object.clone()
            }
        };
        let is_repeated = |one: &&WriteResult| matches!(one.failure, Some(WriteFailure::Repeated(_)));
        let stored = done.iter().chain(refused.iter().filter(is_repeated));
        let stored: BTreeSet<WriteClass> = stored.map(WriteResult::class).collect();
        for one in &done {
            if let Some(act) = self.acts.get_mut(&one.class()) {
                act.objects.remove(&of(one));
            }
        }
        for (_, act) in self.acts.iter_mut().filter(|(class, _)| stored.contains(class)) {
            act.consecutive_failures = 0;
        }
        self.acts.retain(|_, act| !act.objects.is_empty());
        let classes: BTreeSet<WriteClass> = refused.iter().map(WriteResult::class).collect();
        for one in refused {
            let object = of(&one);
            let act = self.acts.entry(one.class()).or_default();
            act.scales = one.scales;
            let times = act.times(&object).saturating_add(1);
            let Some(failure) = one.failure else { continue };
            let rejection = Rejection {
                failure,
                times,
                until: now.saturating_add(backoff(times)),
                need: Need::Planned,
            };
            act.objects.insert(object, rejection);
        }
        for class in classes.difference(&stored) {
            if let Some(act) = self.acts.get_mut(class) {
                act.consecutive_failures = act.consecutive_failures.saturating_add(1);
                act.until = now.saturating_add(backoff(act.consecutive_failures));
            }
        }
    }

    /// Records whether the name of a new revision was already taken. If so, the next attempt uses another
    /// name.
    pub fn record_collision(&mut self, taken: bool) {
        self.collisions = if taken {
            self.collisions.saturating_add(1)
        } else {
            0
        };
    }

    /// Returns the errors to report. They stay the same while the same writes are rejected.
    pub fn write_errors(&self) -> Option<WriteErrors> {
        let first = |scales: bool| {
            let mut acts = self.acts.iter();
            acts.find_map(|(class, act)| {
                let has_own_field = [WriteKind::CreateRevision, WriteKind::DryRunPod].contains(&class.kind);
                let others = act.scales == scales && !has_own_field;
                others.then(|| act.message())?
            })
        };
        let act = |kind| self.acts.get(&WriteClass::whole(kind));
        let write_errors = WriteErrors {
            scaling: first(true),
            revision: act(WriteKind::CreateRevision).and_then(ActionBackoff::message),
            updating: first(false),
            creating: act(WriteKind::CreatePod).is_some(),
            pod: act(WriteKind::DryRunPod).and_then(ActionBackoff::message),
            collisions: self.collisions,
            unread_pods: BTreeSet::new(),
        };
        (write_errors != WriteErrors::default()).then_some(write_errors)
    }

    /// Returns the rejection of the notice of this name; `None` if the API server has not rejected its creation lately.
    pub fn rejected_notice(&self, name: &str, now: Duration) -> Option<RejectedNotice<'_>> {
        self.rejected_notices.get(name, now)
    }

    /// Returns the next time at which a hook stops waiting for a rejected notice, or at which such a notice is
    /// forgotten.
    pub fn next_end_of_wait(&self, now: Duration) -> Option<Duration> {
        self.rejected_notices.next_end(now)
    }

    /// Returns when the next retry is due.
    pub fn next_retry(&self) -> Option<Duration> {
        let due = |act: &ActionBackoff| {
            let due = act
                .objects
                .values()
                .filter(|rejection| rejection.need == Need::Planned);
            let first = due.map(|refusal| refusal.until).min()?;
            Some(if act.is_general() {
                first.max(act.until)
            } else {
                first
            })
        };
        self.acts.values().filter_map(due).min()
    }

    /// Whether any rejected write is recorded.
    pub fn has_failures(&self) -> bool {
        !self.acts.is_empty() || !self.rejected_notices.is_empty()
    }

    /// Whether nothing is rejected and no name collided.
    pub fn is_empty(&self) -> bool {
        !self.has_failures() && self.collisions == 0
    }
}

#[cfg(test)]
mod tests;
