//! Index of a workload's runs. There may be as many runs as pods, and each pod looks up its own.

use std::collections::BTreeMap;

use super::Run;
use crate::hook_kind::HookKind;

/// Runs of a workload by name and by pod.
pub(super) struct Runs<'a> {
    by_name: BTreeMap<&'a str, &'a Run>,
    by_pod: BTreeMap<(HookKind, &'a str), &'a Run>,
}

impl<'a> Runs<'a> {
    /// Builds the index. The first of several runs with the same key wins.
    pub(super) fn new(runs: &[&'a Run]) -> Self {
        let mut index = Self {
            by_name: BTreeMap::new(),
            by_pod: BTreeMap::new(),
        };
        for run in runs {
            index.by_name.entry(&run.name).or_insert(run);
            if let (Some(kind), Some(pod)) = (run.kind, &run.pod_uid) {
                index.by_pod.entry((kind, pod)).or_insert(run);
            }
        }
        index
    }

    /// Finds the run of this name, or else one of this kind for this pod. A run of this name for another pod
    /// is the last resort.
    pub(super) fn find(&self, name: &str, kind: HookKind, pod_uid: &str) -> Option<&'a Run> {
        let named = self.by_name.get(name);
        let same = named.filter(|run| run.pod_uid.as_deref() == Some(pod_uid));
        let about = || self.by_pod.get(&(kind, pod_uid));
        same.or_else(about).or(named).copied()
    }
}
