//! HookRuns of a search for idle pods: the scouts of candidates and the own hooks of selected pods, as the API server
//! showed them.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::core::WatchEvent;
use operator_tests::Fleet;
use operator_tests::fleet::pod_of;
use serde_json::json;
use shared_api::names::hook_kind;
use shared_api::names::hook_run_label::{NAME_DIGEST, TYPE};
use shared_api::names::pod::{CHOSEN_FOR, DELETING};
use shared_api::{HookRun, Phase};
use test_kit::{Answer, ApiProxy};

use crate::seen::Seen;

/// Types of the HookRuns of one hook.
#[derive(Clone, Copy)]
pub(crate) struct RunTypes {
    /// Type of the scouts.
    pub(crate) scout: &'static str,
    /// Type of the runs that open the gate.
    pub(crate) own: &'static str,
}

/// Types of the HookRuns of the `PreDelete` hook.
pub(crate) const PRE_DELETE: RunTypes = RunTypes {
    scout: hook_kind::SCOUT,
    own: hook_kind::PRE_DELETE,
};

/// Types of the HookRuns of the `PreInplace` hook.
pub(crate) const PRE_INPLACE: RunTypes = RunTypes {
    scout: hook_kind::SCOUT_INPLACE,
    own: hook_kind::PRE_INPLACE,
};

/// Whether a HookRun is of this type.
pub(crate) fn is_kind(run: &HookRun, kind: &str) -> bool {
    run.labels().get(TYPE).is_some_and(|found| found == kind)
}

/// Returns the phase of a HookRun.
pub(crate) fn phase(run: &HookRun) -> Phase {
    run.status.as_ref().map(|status| status.phase).unwrap_or_default()
}

/// Returns the states of all HookRuns, in the order in which the API server stored them.
pub(crate) fn states(events: &[WatchEvent<HookRun>]) -> impl Iterator<Item = &HookRun> {
    events.iter().filter_map(|event| match event {
        WatchEvent::Added(run) | WatchEvent::Modified(run) => Some(run),
        WatchEvent::Deleted(_) | WatchEvent::Bookmark(_) | WatchEvent::Error(_) => None,
    })
}

/// Returns the UIDs of all HookRuns of a type that ever existed, by pod.
pub(crate) fn created(
    events: &[WatchEvent<HookRun>],
    kind: &str,
) -> BTreeMap<String, BTreeSet<Option<String>>> {
    let mut found: BTreeMap<String, BTreeSet<Option<String>>> = BTreeMap::new();
    for run in states(events).filter(|run| is_kind(run, kind)) {
        found.entry(pod_of(run)).or_default().insert(run.uid());
    }
    found
}

/// Returns the numbers of scouts and of own hooks that ever existed.
pub(crate) fn counts(events: &[WatchEvent<HookRun>], types: RunTypes) -> (usize, usize) {
    let count = |kind: &str| created(events, kind).values().map(BTreeSet::len).sum::<usize>();
    (count(types.scout), count(types.own))
}

/// Returns the pods for which a HookRun of a type ever existed.
pub(crate) fn pods_with(events: &[WatchEvent<HookRun>], kind: &str) -> BTreeSet<String> {
    created(events, kind).into_keys().collect()
}

/// Returns the pods for which a HookRun of a type ever succeeded.
pub(crate) fn successful(events: &[WatchEvent<HookRun>], kind: &str) -> BTreeSet<String> {
    let succeeded = states(events).filter(|run| is_kind(run, kind) && phase(run) == Phase::Successful);
    succeeded.map(pod_of).collect()
}

/// Returns the maximum number of HookRuns of a type that existed at once and had not ended.
pub(crate) fn most_running(events: &[WatchEvent<HookRun>], kind: &str) -> usize {
    let (mut running, mut most) = (BTreeSet::new(), 0);
    for event in events {
        match event {
            WatchEvent::Added(run) | WatchEvent::Modified(run)
                if is_kind(run, kind) && !phase(run).is_final() =>
            {
                running.insert(run.uid());
            }
            WatchEvent::Added(run) | WatchEvent::Modified(run) | WatchEvent::Deleted(run) => {
                running.remove(&run.uid());
            }
            WatchEvent::Bookmark(_) | WatchEvent::Error(_) => {}
        }
        most = most.max(running.len());
    }
    most
}

/// Returns the positions at which the scout of a pod succeeded, its own hook began, and its own hook succeeded.
fn positions(events: &[WatchEvent<HookRun>], types: RunTypes, pod: &str) -> [Option<usize>; 3] {
    let position = |kind: &str, is_wanted: fn(&HookRun) -> bool| {
        states(events).position(|run| is_kind(run, kind) && pod_of(run) == pod && is_wanted(run))
    };
    let is_successful = |run: &HookRun| phase(run) == Phase::Successful;
    [
        position(types.scout, is_successful),
        position(types.own, |_| true),
        position(types.own, is_successful),
    ]
}

/// Whether the own hook of a pod ran only after its scout had succeeded, and succeeded too.
pub(crate) fn is_confirmed(events: &[WatchEvent<HookRun>], types: RunTypes, pod: &str) -> bool {
    let [scout, begin, end] = positions(events, types, pod);
    scout.is_some() && scout < begin && begin < end
}

/// Checks that the own hook of a pod ran only after its scout had succeeded, and succeeded too.
#[track_caller]
pub(crate) fn assert_confirmed(events: &[WatchEvent<HookRun>], types: RunTypes, pod: &str) {
    let found = positions(events, types, pod);
    assert!(is_confirmed(events, types, pod), "{pod}: {found:?}");
}

/// Whether a pod is selected, for its deletion or for its recreation.
pub(crate) fn is_selected(pod: &Pod) -> bool {
    let annotations = pod.annotations();
    annotations.contains_key(DELETING) || annotations.contains_key(CHOSEN_FOR)
}

/// Returns the pods that were ever selected.
pub(crate) async fn ever_selected(pods: &Seen<Pod>) -> BTreeSet<String> {
    let events = pods.up_to_now().await;
    let pods = events.iter().filter_map(|event| match event {
        WatchEvent::Added(pod) | WatchEvent::Modified(pod) | WatchEvent::Deleted(pod) => Some(pod),
        WatchEvent::Bookmark(_) | WatchEvent::Error(_) => None,
    });
    pods.filter(|pod| is_selected(pod))
        .map(ResourceExt::name_any)
        .collect()
}

/// Waits until nothing is in progress with this many pods, and checks that no search is reported.
pub(crate) async fn await_found(fleet: &Fleet<'_>, replicas: usize) {
    fleet.settled(replicas).await;
    assert_eq!(fleet.status().await.first_idle, None);
}

/// Lets a player join a pod between the success of its scout and its own `PreDelete` hook. Waits until that hook has
/// found the pod busy.
pub(crate) async fn join_in_between(fleet: &Fleet<'_>, pod: &str) {
    // The next measurement, by the scout, finds no players. A scout ends with its first success.
    let players = |count: u64| Answer::json(json!({ "players": count }));
    fleet.nodes.pod(pod).otherwise(players(0).then(players(1)));
    let is_measured = |run: &HookRun| {
        let results = run.status.iter().flat_map(|status| &status.metric_results);
        phase(run) == Phase::Running && { results }.any(|result| result.count > 0)
    };
    let is_own = |run: &HookRun| is_kind(run, hook_kind::PRE_DELETE) && pod_of(run) == pod;
    fleet
        .until_runs(|runs| runs.iter().any(|run| is_own(run) && is_measured(run)))
        .await;
}

/// Checks that the operator sent nothing about a pod, and nothing about its scout after the scout's creation but one
/// deletion.
#[track_caller]
pub(crate) fn assert_two_writes(proxy: &ApiProxy, scout: &HookRun) {
    let calls: Vec<_> = proxy.requests().into_iter().map(|entry| entry.call).collect();
    let (name, pod, digest) = (scout.name_any(), pod_of(scout), &scout.labels()[NAME_DIGEST]);
    let of_run = calls.iter().filter(|call| {
        call.resource.starts_with("hookruns") && (call.name == name || call.query.contains(digest))
    });
    let verbs: Vec<&str> = of_run.map(|call| call.verb).collect();
    assert!(
        matches!(verbs[..], ["delete" | "deletecollection"]),
        "{name}: {verbs:?}"
    );
    let of_pod = calls
        .iter()
        .filter(|call| call.resource.starts_with("pods") && call.name == pod);
    let verbs: Vec<&str> = of_pod.map(|call| call.verb).collect();
    assert!(verbs.is_empty(), "{pod}: {verbs:?}");
}
