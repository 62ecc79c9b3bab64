//! Objects in an uncertain state after a write, usually because its answer was lost or it conflicted. A
//! direct read must show their state before the next decision on their workload.
//!
//! The cache applies the result of a write at once, without waiting for the watch. A write that the watch
//! does not show within [`DEADLINE`] causes a direct read too, so a wrong expectation cannot last.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::NamespacedName;
use crate::index::Index;
use crate::request::ObjectKind;

/// Longest time a write may stay unseen by the watch before its object is read.
pub const DEADLINE: Duration = Duration::from_secs(10);

const KINDS: [ObjectKind; 4] = [
    ObjectKind::Pod,
    ObjectKind::Run,
    ObjectKind::Revision,
    ObjectKind::Workload,
];

/// Objects in an uncertain state, by workload.
#[derive(Debug, Default)]
pub struct Expectations {
    uncertain: BTreeMap<NamespacedName, BTreeSet<(ObjectKind, String)>>,
}

impl Expectations {
    /// Marks an object of this workload as uncertain.
    pub fn mark_uncertain(&mut self, workload: &NamespacedName, kind: ObjectKind, name: String) {
        let objects = self.uncertain.entry(workload.clone()).or_default();
        objects.insert((kind, name));
    }

    /// Uncertain objects of a workload.
    pub fn of(&self, workload: &NamespacedName) -> impl Iterator<Item = &(ObjectKind, String)> {
        self.uncertain.get(workload).into_iter().flatten()
    }

    /// Clears the mark of an object.
    pub fn release(&mut self, workload: &NamespacedName, kind: ObjectKind, name: &str) {
        if let Some(objects) = self.uncertain.get_mut(workload) {
            objects.remove(&(kind, name.to_owned()));
            if objects.is_empty() {
                self.uncertain.remove(workload);
            }
        }
    }

    /// Drops the marks of a deleted workload.
    pub fn forget(&mut self, workload: &NamespacedName) {
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
