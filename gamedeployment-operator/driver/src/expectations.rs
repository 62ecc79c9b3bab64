//! Objects of which nobody knows what became of a write: its answer was lost. They are read directly before anything is
//! decided for their workload again.
//!
//! What a write returned is known at once, and nothing waits for the watch; but a write that the watch does not show
//! within [`DEADLINE`] is read directly, too, so that no expectation can outlive the truth.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::Key;
use crate::index::Index;
use crate::request::Kind;

/// How long a write may stay unseen by the watch before its object is read.
pub const DEADLINE: Duration = Duration::from_secs(10);

const KINDS: [Kind; 4] = [Kind::Pod, Kind::Run, Kind::Revision, Kind::Workload];

/// Objects of workloads whose state is not certain.
#[derive(Debug, Default)]
pub struct Expectations {
    uncertain: BTreeMap<Key, BTreeSet<(Kind, String)>>,
}

impl Expectations {
    /// Nobody knows what became of this object of this workload.
    pub fn mark_uncertain(&mut self, workload: &Key, kind: Kind, name: String) {
        let objects = self.uncertain.entry(workload.clone()).or_default();
        objects.insert((kind, name));
    }

    /// What is uncertain of a workload.
    pub fn of(&self, workload: &Key) -> impl Iterator<Item = &(Kind, String)> {
        self.uncertain.get(workload).into_iter().flatten()
    }

    /// An object is certain again.
    pub fn release(&mut self, workload: &Key, kind: Kind, name: &str) {
        if let Some(objects) = self.uncertain.get_mut(workload) {
            objects.remove(&(kind, name.to_owned()));
            if objects.is_empty() {
                self.uncertain.remove(workload);
            }
        }
    }

    /// The workload is gone.
    pub fn forget(&mut self, workload: &Key) {
        self.uncertain.remove(workload);
    }
}

/// Objects that were written and that the watch has not shown in time.
pub fn overdue(index: &Index, now: Duration) -> Vec<(Kind, Key)> {
    let of = |kind: Kind| index.shelf(kind).overdue(DEADLINE, now).into_iter();
    let all = KINDS.into_iter();
    all.flat_map(|kind| of(kind).map(move |key| (kind, key)))
        .collect()
}

/// When the next object is overdue.
pub fn next_overdue(index: &Index) -> Option<Duration> {
    let next = KINDS.map(|kind| index.shelf(kind).next_overdue(DEADLINE));
    next.into_iter().flatten().min()
}
