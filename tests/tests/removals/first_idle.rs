//! Scale-down with the selection policy `FirstIdle`: idle pods go first, whatever the deletion order.

use std::collections::BTreeSet;

use kube::ResourceExt;
use operator_tests::fleet::{Who, empty_now, finish, game, hooked, noticed, pod_of, until_empty};
use operator_tests::{Fleet, SOON, assert_has, merge};
use serde_json::{Value, json};
use shared_api::Phase;
use shared_api::game_deployment::{FirstIdleStatus, IdleSearchStatus};
use shared_api::names::hook_kind::NOTICE;
use shared_api::names::pod::DELETION_COST;
use test_kit::ApiProxy;

use crate::scouts::{
    PRE_DELETE, assert_confirmed, assert_two_writes, await_found, counts, ever_selected, is_kind,
    is_selected, join_in_between, most_running, phase, pods_with, states, successful,
};
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
    let (scouts, own) = counts(&events, PRE_DELETE);
    assert!(scouts <= 10 && own == 3, "{scouts} scouts, {own} own hooks");
    assert_eq!(pods_with(&events, PRE_DELETE.own), idle);
    for pod in &idle {
        assert_confirmed(&events, PRE_DELETE, pod);
    }
}

/// A candidate stays in service, so nobody may ask it to finish its match.
#[tokio::test]
async fn only_selected_pods_get_notices() {
    let fleet = launch("first-idle-notices", until_empty(), 5, json!({})).await;
    fleet.hook("finish", finish()).await;
    fleet.set(noticed("empty", "finish")).await;
    fleet.says("HooksResolved", "HooksResolved").await;
    let names: Vec<String> = fleet.names().await.into_iter().collect();
    for pod in &names[1..] {
        fleet.nodes.pod(pod).set_players(1);
    }
    let runs = Seen::of(fleet.runs()).await;
    fleet.scale(3);
    fleet.until_pods(|pods| pods.len() == 4).await;
    let candidates = fleet.asked(4).await;
    let is_scout = |run: &String| run.starts_with("scout-hook-");
    assert!(candidates.keys().all(is_scout), "{candidates:?}");
    fleet.quiet().await;
    let notices = || -> Vec<usize> { names.iter().map(|pod| fleet.notices(pod)).collect() };
    assert_eq!(notices(), [1, 0, 0, 0, 0]);

    fleet.nodes.pod(&names[2]).set_players(0);
    await_found(&fleet, 3).await;
    let gone = BTreeSet::from([names[0].clone(), names[2].clone()]);
    assert_eq!(fleet.nodes.terminated_pods(), gone);
    assert_eq!(notices(), [1, 0, 1, 0, 0]);
    let events = runs.up_to_now().await;
    assert_eq!(pods_with(&events, NOTICE), gone);
    for pod in &gone {
        assert_confirmed(&events, PRE_DELETE, pod);
        let position = |kind: &str, is_wanted: fn(Phase) -> bool| {
            states(&events).position(|run| is_kind(run, kind) && pod_of(run) == *pod && is_wanted(phase(run)))
        };
        let ended = position(NOTICE, Phase::is_final);
        assert!(
            ended.is_some() && ended < position(PRE_DELETE.own, |_| true),
            "{pod}: {events:#?}"
        );
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
    join_in_between(&fleet, &joined).await;
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
    assert_confirmed(&events, PRE_DELETE, &idle);
    assert_eq!(successful(&events, PRE_DELETE.own), BTreeSet::from([idle]));
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
    let search = IdleSearchStatus {
        candidates: 10,
        selected: 0,
        needed: 5,
    };
    let searched = FirstIdleStatus {
        scale: Some(search),
        update: None,
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
    assert_eq!(counts(&events, PRE_DELETE), (10, 0));
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
    assert_eq!(most_running(&events, PRE_DELETE.scout), 3);
    assert_confirmed(&events, PRE_DELETE, &candidates[1]);
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
    assert_eq!(pods_with(&events, PRE_DELETE.scout), names);
    assert_eq!(pods_with(&events, PRE_DELETE.own), selected);

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
    assert_confirmed(&runs.up_to_now().await, PRE_DELETE, gone.first().unwrap());
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
    assert_eq!(counts(&events, PRE_DELETE), (4, 2));
    for pod in &idle {
        assert_confirmed(&events, PRE_DELETE, pod);
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
    for scout in &scouts {
        assert_two_writes(&proxy, scout);
    }
}
