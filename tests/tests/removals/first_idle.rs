//! Scale-down with the selection policy `FirstIdle`: idle pods go first, whatever the deletion order.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::core::WatchEvent;
use operator_tests::fleet::{Who, empty_now, game, hooked, pod_of, until_empty};
use operator_tests::{Fleet, SOON, assert_has, merge};
use serde_json::{Value, json};
use shared_api::game_deployment::FirstIdleStatus;
use shared_api::names::hook_kind::{PRE_DELETE, SCOUT};
use shared_api::names::hook_run_label::{NAME_DIGEST, TYPE};
use shared_api::names::pod::{CHOSEN_FOR, DELETING, DELETION_COST};
use shared_api::{HookRun, Phase};
use test_kit::{Answer, ApiProxy};

use crate::seen::{self, Seen};
use crate::{PROGRAMS, shared};

/// Launches a workload with this `PreDelete` hook and these options of `FirstIdle`.
async fn launch(name: &str, hook: Value, replicas: usize, options: Value) -> Fleet<'static> {
    let fleet = Fleet::on(shared().await, PROGRAMS, name).await;
    fleet.hook("empty", hook).await;
    let mut spec = hooked("empty");
    let strategy = json!({ "selectionPolicy": "FirstIdle", "firstIdle": options });
    merge(&mut spec, json!({ "scaleStrategy": strategy }));
    fleet.launch(&game(replicas, spec)).await;
    fleet
}

/// Whether a HookRun is of this kind.
fn is_kind(run: &HookRun, kind: &str) -> bool {
    run.labels().get(TYPE).is_some_and(|found| found == kind)
}

fn phase(run: &HookRun) -> Phase {
    run.status.as_ref().map(|status| status.phase).unwrap_or_default()
}

/// Returns the states of all HookRuns, in the order in which the API server stored them.
fn states(events: &[WatchEvent<HookRun>]) -> impl Iterator<Item = &HookRun> {
    events.iter().filter_map(|event| match event {
        WatchEvent::Added(run) | WatchEvent::Modified(run) => Some(run),
        WatchEvent::Deleted(_) | WatchEvent::Bookmark(_) | WatchEvent::Error(_) => None,
    })
}

/// Returns the UIDs of all HookRuns of a kind that ever existed, by pod.
fn created(events: &[WatchEvent<HookRun>], kind: &str) -> BTreeMap<String, BTreeSet<Option<String>>> {
    let mut found: BTreeMap<String, BTreeSet<Option<String>>> = BTreeMap::new();
    for run in states(events).filter(|run| is_kind(run, kind)) {
        found.entry(pod_of(run)).or_default().insert(run.uid());
    }
    found
}

/// Returns the number of HookRuns of a kind that ever existed.
fn count(events: &[WatchEvent<HookRun>], kind: &str) -> usize {
    created(events, kind).values().map(BTreeSet::len).sum()
}

/// Returns the pods for which a HookRun of a kind ever existed.
fn pods_with(events: &[WatchEvent<HookRun>], kind: &str) -> BTreeSet<String> {
    created(events, kind).into_keys().collect()
}

/// Returns the maximum number of scouts that existed at once and had not ended.
fn most_running(events: &[WatchEvent<HookRun>]) -> usize {
    let (mut running, mut most) = (BTreeSet::new(), 0);
    for event in events {
        match event {
            WatchEvent::Added(run) | WatchEvent::Modified(run)
                if is_kind(run, SCOUT) && !phase(run).is_final() =>
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

/// Checks that the `PreDelete` hook of a pod ran only after its scout had succeeded, and succeeded too.
#[track_caller]
fn assert_confirmed(events: &[WatchEvent<HookRun>], pod: &str) {
    let position = |kind: &str, is_wanted: fn(&HookRun) -> bool| {
        states(events).position(|run| is_kind(run, kind) && pod_of(run) == pod && is_wanted(run))
    };
    let is_successful = |run: &HookRun| phase(run) == Phase::Successful;
    let scout = position(SCOUT, is_successful);
    let begin = position(PRE_DELETE, |_| true);
    let end = position(PRE_DELETE, is_successful);
    assert!(
        scout.is_some() && scout < begin && begin < end,
        "{pod}: {scout:?} {begin:?} {end:?}"
    );
}

fn is_selected(pod: &Pod) -> bool {
    let annotations = pod.annotations();
    annotations.contains_key(DELETING) || annotations.contains_key(CHOSEN_FOR)
}

/// Returns the pods that were ever selected for deletion.
async fn ever_selected(pods: &Seen<Pod>) -> BTreeSet<String> {
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
async fn await_found(fleet: &Fleet<'_>, replicas: usize) {
    fleet.settled(replicas).await;
    assert_eq!(fleet.status().await.first_idle, None);
}

#[tokio::test]
async fn the_idle_pods_go_first() {
    let fleet = launch("first-idle", until_empty(), 10, json!({})).await;
    let names: Vec<String> = fleet.names().await.into_iter().collect();
    let (busy, idle) = names.split_at(7);
    // In deletion order, the busy pods come before the idle ones.
    for pod in busy {
        fleet.nodes.pod(pod).set_players(1);
        fleet.annotate(pod, json!({ DELETION_COST: "-1" })).await;
    }
    let pods = seen::pods(&fleet).await;
    let runs = Seen::of(fleet.runs()).await;
    fleet.scale(7);
    await_found(&fleet, 7).await;
    let idle: BTreeSet<String> = idle.iter().cloned().collect();
    assert_eq!(fleet.nodes.terminated_pods(), idle);
    assert_eq!(fleet.names().await, busy.iter().cloned().collect());
    assert_eq!(ever_selected(&pods).await, idle);
    let events = runs.up_to_now().await;
    assert!(count(&events, SCOUT) <= 10, "{:?}", created(&events, SCOUT));
    assert_eq!(pods_with(&events, PRE_DELETE), idle);
    assert_eq!(count(&events, PRE_DELETE), 3);
    for pod in &idle {
        assert_confirmed(&events, pod);
    }
}

#[tokio::test]
async fn a_pod_that_a_player_joins_in_between_stays() {
    let fleet = launch("first-idle-joined", until_empty(), 3, json!({})).await;
    fleet.nodes.every_pod().set_players(1);
    let before = fleet.uids().await;
    let mut names = before.keys().cloned();
    let (joined, idle) = (names.next().unwrap(), names.next().unwrap());
    let runs = Seen::of(fleet.runs()).await;
    fleet.scale(2);
    fleet.asked(3).await;
    // The next measurement, by the scout, finds no players. A scout ends with its first success.
    let players = |count: u64| Answer::json(json!({ "players": count }));
    let script = players(0).then(players(1));
    fleet.nodes.pod(&joined).otherwise(script);
    let is_measured = |run: &HookRun| {
        let results = run.status.iter().flat_map(|status| &status.metric_results);
        phase(run) == Phase::Running && { results }.any(|result| result.count > 0)
    };
    fleet
        .until_runs(|runs| {
            let is_again = |run: &HookRun| is_kind(run, PRE_DELETE) && pod_of(run) == joined;
            runs.iter().any(|run| is_again(run) && is_measured(run))
        })
        .await;
    fleet.until_marked(&BTreeSet::from([joined.clone()])).await;
    fleet.quiet().await;
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::new());

    fleet.nodes.pod(&idle).set_players(0);
    await_found(&fleet, 2).await;
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::from([idle.clone()]));
    let pod = fleet.pods().get(&joined).await.unwrap();
    assert_eq!(pod.uid(), before[&joined]);
    assert!(!is_selected(&pod), "{:?}", pod.annotations());
    let events = runs.up_to_now().await;
    assert_confirmed(&events, &idle);
    let is_allowed = |run: &HookRun| is_kind(run, PRE_DELETE) && phase(run) == Phase::Successful;
    let allowed: BTreeSet<String> = states(&events)
        .filter(|run| is_allowed(run))
        .map(pod_of)
        .collect();
    assert_eq!(allowed, BTreeSet::from([idle]));
}

#[tokio::test]
async fn raising_replicas_ends_the_search() {
    let fleet = launch("first-idle-raised", until_empty(), 10, json!({})).await;
    fleet.nodes.every_pod().set_players(1);
    let before = fleet.uids().await;
    let pods = seen::pods(&fleet).await;
    let runs = Seen::of(fleet.runs()).await;
    fleet.scale(5);
    fleet.asked(10).await;
    let searched = FirstIdleStatus {
        candidates: 10,
        selected: 0,
        needed: 5,
    };
    fleet.until(|status| status.first_idle == Some(searched)).await;
    fleet.scale(10);
    await_found(&fleet, 10).await;
    // No trace of the search remains.
    fleet.nodes.every_pod().set_players(0);
    await_found(&fleet, 10).await;
    assert_eq!(fleet.uids().await, before);
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::new());
    assert_eq!(ever_selected(&pods).await, BTreeSet::new());
    let events = runs.up_to_now().await;
    assert_eq!((count(&events, SCOUT), count(&events, PRE_DELETE)), (10, 0));
}

#[tokio::test]
async fn candidates_limits_the_number_of_scouts() {
    let options = json!({ "candidates": 3 });
    let fleet = launch("first-idle-candidates", until_empty(), 10, options).await;
    fleet.nodes.every_pod().set_players(1);
    let names: Vec<String> = fleet.names().await.into_iter().collect();
    // A pod without a cost is the last in deletion order.
    let (last, ordered) = names.split_last().unwrap();
    for (cost, pod) in ordered.iter().enumerate() {
        let cost = cost.to_string();
        fleet.annotate(pod, json!({ DELETION_COST: cost })).await;
    }
    let runs = Seen::of(fleet.runs()).await;
    fleet.scale(9);
    let scouts = fleet.asked(3).await;
    let candidates = &ordered[..3];
    let found: BTreeSet<&String> = scouts.values().collect();
    assert_eq!(found, candidates.iter().collect());

    // An idle pod that is no candidate is not found, while the hooks of the candidates go on.
    fleet.nodes.pod(last).set_players(0);
    for pod in candidates {
        let game = fleet.nodes.pod(pod);
        let further = game.counts("/").received + 3;
        game.await_requests("/", further, SOON).await.unwrap();
    }
    fleet.quiet().await;
    assert_eq!(fleet.asked(3).await, scouts);
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::new());

    fleet.nodes.pod(&candidates[1]).set_players(0);
    await_found(&fleet, 9).await;
    let gone = BTreeSet::from([candidates[1].clone()]);
    assert_eq!(fleet.nodes.terminated_pods(), gone);
    assert_eq!(fleet.nodes.pod(last).counts("/").received, 0);
    let events = runs.up_to_now().await;
    assert_eq!(most_running(&events), 3);
    assert_confirmed(&events, &candidates[1]);
}

#[tokio::test]
async fn scouts_that_fail_are_reported_and_retried() {
    let fleet = launch("first-idle-failed", empty_now(), 3, json!({})).await;
    fleet.nodes.every_pod().set_players(7);
    let names = fleet.names().await;
    let runs = Seen::of(fleet.runs()).await;
    fleet.scale(2);
    let message = fleet.says("ScaleBlocked", "HookUnsuccessful").await;
    assert_has(&message, "\"7\" does not satisfy asInt(result) == 0");
    assert_has(&message, "retry to true");
    fleet.quiet().await;
    let selected = fleet.marked().await;
    assert_eq!(selected.len(), 1);
    assert_has(&message, selected.first().unwrap());
    let events = runs.up_to_now().await;
    assert_eq!(pods_with(&events, SCOUT), names);
    assert_eq!(pods_with(&events, PRE_DELETE), selected);

    // All others become idle. Only a scout that runs again can find them.
    for pod in names.difference(&selected) {
        fleet.nodes.pod(pod).set_players(0);
    }
    fleet.quiet().await;
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::new());
    fleet.retry("preDeleteUpdateStrategy");
    await_found(&fleet, 2).await;
    let gone = fleet.nodes.terminated_pods();
    assert_eq!((gone.len(), gone.is_disjoint(&selected)), (1, true), "{gone:?}");
    fleet.cleared("ScaleBlocked").await;
    assert_confirmed(&runs.up_to_now().await, gone.first().unwrap());
    let strategy = fleet.game().await.spec.pre_delete_update_strategy.unwrap();
    assert_eq!(strategy.retry, Some(false));
}

#[tokio::test]
async fn a_restarted_operator_goes_on() {
    let mut fleet = launch("first-idle-restarted", until_empty(), 4, json!({})).await;
    fleet.nodes.every_pod().set_players(1);
    let idle: BTreeSet<String> = fleet.names().await.into_iter().skip(2).collect();
    let runs = Seen::of(fleet.runs()).await;
    fleet.scale(2);
    let scouts = fleet.asked(4).await;
    fleet.kill_workloads();
    fleet.start_workloads().await;
    fleet.quiet().await;
    assert_eq!(fleet.asked(4).await, scouts);
    for pod in &idle {
        fleet.nodes.pod(pod).set_players(0);
    }
    await_found(&fleet, 2).await;
    assert_eq!(fleet.nodes.terminated_pods(), idle);
    let events = runs.up_to_now().await;
    assert_eq!((count(&events, SCOUT), count(&events, PRE_DELETE)), (4, 2));
    for pod in &idle {
        assert_confirmed(&events, pod);
    }
}

#[tokio::test]
async fn a_candidate_that_stays_costs_two_writes() {
    let mut fleet = launch("first-idle-writes", until_empty(), 4, json!({})).await;
    let proxy = ApiProxy::start(fleet.control_plane).unwrap();
    fleet.start_behind(&proxy, Who::Workloads).await;
    fleet.nodes.every_pod().set_players(1);
    fleet.scale(3);
    fleet.asked(4).await;
    let mut scouts = fleet.until_runs(|runs| runs.len() == 4).await;
    let idle = pod_of(&scouts.remove(0));
    fleet.nodes.pod(&idle).set_players(0);
    await_found(&fleet, 3).await;
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::from([idle]));
    // One for each pod, and the `PreDelete` hook of the pod that was deleted.
    assert_eq!(proxy.count("create", "hookruns"), 4 + 1);
    let calls: Vec<_> = proxy.requests().into_iter().map(|entry| entry.call).collect();
    for scout in &scouts {
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
}
