//! Index of a workload's runs. There may be as many runs as pods, and each pod looks up its own.

use std::collections::{BTreeMap, BTreeSet};

use super::notice::selection_of;
use super::{Run, is_scout_before_in_place_update};
use crate::hook_kind::HookKind;

/// Runs of a workload. A run is found by its name alone: anyone can write its labels and annotations.
pub(super) struct Runs<'a> {
    by_name: BTreeMap<&'a str, &'a Run>,
    pods: BTreeSet<(HookKind, &'a str)>,
    /// Whether a scout is for an update in place, and the UID of its pod.
    with_scout: BTreeSet<(bool, &'a str)>,
    /// Notices by the digest of their selection.
    notices: BTreeMap<&'a str, &'a Run>,
}

impl<'a> Runs<'a> {
    /// Builds the index.
    pub(super) fn new(runs: &[&'a Run]) -> Self {
        let pods = runs
            .iter()
            .filter_map(|run| Some((run.kind?, run.pod_uid.as_deref()?)));
        let scouts = runs.iter().filter(|run| run.scout.is_some());
        let with_scout = scouts.filter_map(|run| {
            Some((
                is_scout_before_in_place_update(&run.name),
                run.pod_uid.as_deref()?,
            ))
        });
        let notices = runs.iter().filter(|run| run.notice.is_some());
        let notices = notices.filter_map(|run| Some((selection_of(&run.name)?, *run)));
        Self {
            by_name: runs.iter().map(|run| (run.name.as_str(), *run)).collect(),
            pods: pods.collect(),
            with_scout: with_scout.collect(),
            notices: notices.collect(),
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

    /// Whether any scout, under any name, claims to be for this pod; a scout for an update in place, or for any other
    /// operation.
    pub(super) fn has_scout(&self, is_in_place: bool, pod_uid: &str) -> bool {
        self.with_scout.contains(&(is_in_place, pod_uid))
    }

    /// Returns the notice about the selection with this digest, of any HookTemplate.
    pub(super) fn notice(&self, selection: &str) -> Option<&'a Run> {
        self.notices.get(selection).copied()
    }
}
