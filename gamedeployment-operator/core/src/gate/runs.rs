//! Index of a workload's runs. There may be as many runs as pods, and each pod looks up its own.

use std::collections::{BTreeMap, BTreeSet};

use super::Run;
use crate::hook_kind::HookKind;

/// Runs of a workload. A run is found by its name alone: anyone can write its labels and annotations.
pub(super) struct Runs<'a> {
    by_name: BTreeMap<&'a str, &'a Run>,
    pods: BTreeSet<(HookKind, &'a str)>,
    scouted: BTreeSet<&'a str>,
}

impl<'a> Runs<'a> {
    /// Builds the index.
    pub(super) fn new(runs: &[&'a Run]) -> Self {
        let pods = runs
            .iter()
            .filter_map(|run| Some((run.kind?, run.pod_uid.as_deref()?)));
        let scouts = runs.iter().filter(|run| run.scout.is_some());
        Self {
            by_name: runs.iter().map(|run| (run.name.as_str(), *run)).collect(),
            pods: pods.collect(),
            scouted: scouts.filter_map(|run| run.pod_uid.as_deref()).collect(),
        }
    }

    /// Returns the run of this name.
    pub(super) fn named(&self, name: &str) -> Option<&'a Run> {
        self.by_name.get(name).copied()
    }

    /// Whether any run of this kind, under any name, claims to be for this pod.
    pub(super) fn mention(&self, kind: HookKind, pod_uid: &str) -> bool {
        self.pods.contains(&(kind, pod_uid))
    }

    /// Whether any scout, under any name, claims to be for this pod.
    pub(super) fn has_scout(&self, pod_uid: &str) -> bool {
        self.scouted.contains(pod_uid)
    }
}
