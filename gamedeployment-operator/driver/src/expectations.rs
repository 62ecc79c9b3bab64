//! Objects in an uncertain state after a write, usually because its answer was lost or it conflicted. A
//! direct read must show their state before the next decision on their workload. If reads of an object keep
//! failing, the workload is decided without it: see [`crate::unread`].
//!
//! The cache applies the result of a write at once, without waiting for the watch. A write that the watch
//! does not show within [`DEADLINE`] causes a direct read too, so a wrong expectation cannot last.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::NamespacedName;
use crate::index::Index;
use crate::request::ObjectKind;
use crate::store::SeenVersion;

/// Longest time a write may stay unseen by the watch before its object is read.
pub const DEADLINE: Duration = Duration::from_secs(10);

/// Number of failed reads after which a decision no longer waits for the object.
const TRIES: u32 = 3;
/// Pause before the retry of a failed direct read; it doubles with every consecutive failure.
pub(crate) const RETRY_DELAY: Duration = Duration::from_secs(1);
/// Upper limit of that pause.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(30);

const KINDS: [ObjectKind; 4] = [
    ObjectKind::Pod,
    ObjectKind::Run,
    ObjectKind::Revision,
    ObjectKind::Workload,
];

/// Returns the pause after this many consecutive failures of a read.
fn retry_delay(failures: u32) -> Duration {
    let doubled = 1 << failures.saturating_sub(1).min(5);
    RETRY_DELAY.saturating_mul(doubled).min(MAX_RETRY_DELAY)
}

/// Object whose state is uncertain after a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UncertainObject {
    pub(crate) kind: ObjectKind,
    pub(crate) name: String,
    /// Whether the write concerned the number of pods.
    pub(crate) scales: bool,
}

/// Reads of an uncertain object.
#[derive(Debug)]
pub(crate) struct Uncertain {
    pub(crate) scales: bool,
    /// Cached version when the object became uncertain.
    seen: SeenVersion,
    /// Number of consecutive failures, and the last error.
    failures: u32,
    pub(crate) error: String,
    /// Time of the next read; `None` while one is under way.
    read_at: Option<Duration>,
}

impl Uncertain {
    fn is_unread(&self) -> bool {
        self.failures >= TRIES
    }
}

/// Objects in an uncertain state, by workload.
#[derive(Debug, Default)]
pub struct Expectations {
    uncertain: BTreeMap<NamespacedName, BTreeMap<(ObjectKind, String), Uncertain>>,
}

impl Expectations {
    /// Marks an object of this workload as uncertain. `seen` is its cached version.
    pub(crate) fn mark_uncertain(
        &mut self,
        workload: &NamespacedName,
        object: UncertainObject,
        seen: SeenVersion,
    ) {
        let UncertainObject { kind, name, scales } = object;
        let uncertain = Uncertain {
            scales,
            seen,
            failures: 0,
            error: String::new(),
            read_at: Some(Duration::ZERO),
        };
        let objects = self.uncertain.entry(workload.clone()).or_default();
        objects.insert((kind, name), uncertain);
    }

    fn of(&self, workload: &NamespacedName) -> impl Iterator<Item = (&(ObjectKind, String), &Uncertain)> {
        self.uncertain.get(workload).into_iter().flatten()
    }

    /// Returns the objects whose read is due, and counts their reads as under way.
    pub(crate) fn begin_reads(
        &mut self,
        workload: &NamespacedName,
        now: Duration,
    ) -> Vec<(ObjectKind, String)> {
        let objects = self.uncertain.get_mut(workload).into_iter().flatten();
        let due = objects.filter_map(|(key, uncertain)| {
            uncertain.read_at.take_if(|at| *at <= now)?;
            Some(key.clone())
        });
        due.collect()
    }

    /// Whether a decision on the workload must wait for a read.
    pub(crate) fn must_wait(&self, workload: &NamespacedName) -> bool {
        self.of(workload).any(|(_, uncertain)| !uncertain.is_unread())
    }

    /// Time of the workload's next read.
    pub(crate) fn next_read(&self, workload: &NamespacedName) -> Option<Duration> {
        self.of(workload)
            .filter_map(|(_, uncertain)| uncertain.read_at)
            .min()
    }

    /// Objects that so many reads have failed to show that decisions no longer wait for them.
    pub(crate) fn unread(
        &self,
        workload: &NamespacedName,
    ) -> impl Iterator<Item = (&(ObjectKind, String), &Uncertain)> {
        self.of(workload).filter(|(_, uncertain)| uncertain.is_unread())
    }

    /// Records the end of a read that did not resolve the object. Returns whether decisions stop waiting for
    /// it now.
    pub(crate) fn read_ended(
        &mut self,
        workload: &NamespacedName,
        object: (ObjectKind, String),
        error: Option<String>,
        now: Duration,
    ) -> bool {
        let objects = self.uncertain.get_mut(workload);
        let Some(uncertain) = objects.and_then(|objects| objects.get_mut(&object)) else {
            return false;
        };
        let Some(error) = error else {
            uncertain.read_at = Some(now);
            return false;
        };
        uncertain.failures = uncertain.failures.saturating_add(1);
        uncertain.error = error;
        uncertain.read_at = Some(now + retry_delay(uncertain.failures));
        uncertain.failures == TRIES
    }

    /// Clears the mark of an object.
    pub(crate) fn release(&mut self, workload: &NamespacedName, kind: ObjectKind, name: &str) {
        if let Some(objects) = self.uncertain.get_mut(workload) {
            objects.remove(&(kind, name.to_owned()));
            if objects.is_empty() {
                self.uncertain.remove(workload);
            }
        }
    }

    /// Clears the marks of unread objects that the watch has shown since. A watch may be behind a write, so a
    /// direct read is preferred as long as it may succeed.
    pub(crate) fn release_shown(&mut self, workload: &NamespacedName, index: &Index) {
        let shown = |((kind, name), uncertain): (&(ObjectKind, String), &Uncertain)| {
            let key = (workload.0.clone(), name.clone());
            let is_new = index.object_store(*kind).seen_version(&key) != uncertain.seen;
            is_new.then(|| (*kind, name.clone()))
        };
        let shown: Vec<_> = self.unread(workload).filter_map(shown).collect();
        for (kind, name) in shown {
            self.release(workload, kind, &name);
        }
    }

    /// Drops the marks of a deleted workload.
    pub(crate) fn forget(&mut self, workload: &NamespacedName) {
        self.uncertain.remove(workload);
    }
}

/// Returns written objects that the watch has not shown in time.
pub fn overdue(index: &Index, now: Duration) -> Vec<(ObjectKind, NamespacedName)> {
    let of = |kind: ObjectKind| index.object_store(kind).overdue(DEADLINE, now).into_iter();
    let all = KINDS.into_iter();
    all.flat_map(|kind| of(kind).map(move |key| (kind, key)))
        .collect()
}

/// Time at which the next object is overdue.
pub fn next_overdue(index: &Index) -> Option<Duration> {
    let next = KINDS.map(|kind| index.object_store(kind).next_overdue(DEADLINE));
    next.into_iter().flatten().min()
}
