//! Updates with the selection policy `FirstIdle`: idle pods are updated first, whatever the deletion order.

use std::collections::BTreeSet;

use kube::ResourceExt;
use operator_tests::fleet::{Who, empty_now, game, pod_of, until_empty};
use operator_tests::{Fleet, assert_has, merge};
use serde_json::{Value, json};
use shared_api::game_deployment::{FirstIdleStatus, IdleSearchStatus};
use shared_api::names::pod::DELETION_COST;
use shared_api::{HookRun, Phase};
use test_kit::{Answer, ApiProxy};

use crate::scouts::{
    PRE_DELETE, PRE_INPLACE, RunTypes, assert_confirmed, assert_two_writes, await_found, counts, created,
    ever_selected, is_confirmed, is_kind, is_selected, join_in_between, most_running, phase, pods_with,
    states, successful,
};
use crate::seen::{self, Seen};
use crate::{PROGRAMS, shared};

/// Way of updating pods.
#[derive(Clone, Copy)]
struct Way {
    /// Type of the update strategy.
    update: &'static str,
    /// Field of the spec that names the hook.
    hook: &'static str,
    /// Prefix of the names of the scouts.
    prefix: &'static str,
    /// Types of the HookRuns.
    types: RunTypes,
}

const ROLLING: Way = Way {
    update: "RollingUpdate",
    hook: "preDeleteUpdateStrategy",
    prefix: "scout-hook-",
    types: PRE_DELETE,
};

const IN_PLACE: Way = Way {
    update: "InplaceUpdate",
    hook: "preInplaceUpdateStrategy",
    prefix: "scout-inplace-hook-",
    types: PRE_INPLACE,
};

/// Launches a workload whose pods are updated one at a time, unless these changes to its strategy say otherwise.
async fn launch(name: &str, way: Way, hook: Value, replicas: usize, changes: Value) -> Fleet<'static> {
    let fleet = Fleet::on(shared().await, PROGRAMS, name).await;
    fleet.hook("empty", hook).await;
    let mut strategy = json!({ "type": way.update, "maxUnavailable": 1, "selectionPolicy": "FirstIdle" });
    merge(&mut strategy, changes);
    let mut spec = json!({ "updateStrategy": strategy });
    spec[way.hook] = json!({ "hook": { "templateName": "empty" } });
    fleet.launch(&game(replicas, spec)).await;
    fleet
}

/// Returns the pods in the order of their names.
async fn names(fleet: &Fleet<'_>) -> Vec<String> {
    fleet.names().await.into_iter().collect()
}

fn set_of(pods: &[String]) -> BTreeSet<String> {
    pods.iter().cloned().collect()
}

/// Puts players on these pods, and moves them to the front of the deletion order.
async fn occupy(fleet: &Fleet<'_>, pods: &[String]) {
    for (cost, pod) in pods.iter().enumerate() {
        let cost = cost.to_string();
        fleet.nodes.pod(pod).set_players(1);
        fleet.annotate(pod, json!({ DELETION_COST: cost })).await;
    }
}

/// Returns the status of a search for one idle pod to update.
fn searched(candidates: i32) -> FirstIdleStatus {
    let search = IdleSearchStatus {
        candidates,
        selected: 0,
        needed: 1,
    };
    FirstIdleStatus {
        scale: None,
        update: Some(search),
    }
}

/// Waits until this many pods are updated and ready.
async fn await_updated(fleet: &Fleet<'_>, updated: i32) {
    fleet
        .until(|status| status.updated_ready_replicas == updated)
        .await;
}

/// Waits until this many pods are updated, and the hooks of this many candidates run to find the next one.
async fn await_search(fleet: &Fleet<'_>, updated: i32, candidates: i32) {
    await_updated(fleet, updated).await;
    let search = Some(searched(candidates));
    fleet
        .until(|status| status.updated_ready_replicas == updated && status.first_idle == search)
        .await;
}

/// Waits until all pods are updated, nothing is in progress, and no search is reported.
async fn await_all(fleet: &Fleet<'_>, replicas: usize) {
    await_updated(fleet, i32::try_from(replicas).unwrap()).await;
    await_found(fleet, replicas).await;
    fleet.all_run("game:v2", replicas).await;
}

/// Waits until hooks run for exactly these pods, and checks that all of them are scouts. Returns their UIDs.
async fn await_scouts(fleet: &Fleet<'_>, way: Way, pods: &BTreeSet<String>) -> BTreeSet<Option<String>> {
    let asked = fleet.asked(pods.len()).await;
    let is_scout = |name: &String| name.starts_with(way.prefix);
    assert!(asked.keys().all(is_scout), "{asked:?}");
    let found: BTreeSet<String> = asked.into_values().collect();
    assert_eq!(found, *pods);
    let runs = fleet.until_runs(|runs| runs.len() == pods.len()).await;
    assert!(runs.iter().all(|run| is_kind(run, way.types.scout)));
    runs.iter().map(ResourceExt::uid).collect()
}

/// Updates six pods; the first four in deletion order are busy.
async fn update_idle_pods_first(fleet: &Fleet<'_>, way: Way) {
    let names = names(fleet).await;
    let (busy, idle) = names.split_at(4);
    occupy(fleet, busy).await;
    let pods = seen::pods(fleet).await;
    let runs = Seen::of(fleet.runs()).await;
    fleet.set_image("game:v2").await;
    await_search(fleet, 2, 4).await;
    let message = fleet
        .until_message("Progressing", "; waiting for 1 more idle pod")
        .await;
    assert_has(&message, ": running the hooks of 4 candidates");
    await_scouts(fleet, way, &set_of(busy)).await;
    fleet.quiet().await;
    assert_eq!(fleet.nodes.terminated_pods(), set_of(idle));
    assert!(ever_selected(&pods).await.is_subset(&set_of(idle)));

    // Another pod becomes idle. It is neither the first nor the last one.
    let next = &busy[1];
    fleet.nodes.pod(next).set_players(0);
    await_search(fleet, 3, 3).await;
    let left: BTreeSet<String> = busy.iter().filter(|pod| *pod != next).cloned().collect();
    await_scouts(fleet, way, &left).await;
    fleet.quiet().await;
    let all = set_of(&names);
    assert_eq!(
        fleet.nodes.terminated_pods(),
        all.difference(&left).cloned().collect()
    );

    for pod in &left {
        fleet.nodes.pod(pod).set_players(0);
    }
    await_all(fleet, 6).await;
    assert_eq!(fleet.nodes.terminated_pods(), all);
    assert_eq!(fleet.nodes.terminations().len(), 6);
    assert_eq!(seen::fewest_ready(&pods, 6).await, 5);
    let events = runs.up_to_now().await;
    let is_known = |run: &HookRun| is_kind(run, way.types.scout) || is_kind(run, way.types.own);
    assert!(states(&events).all(is_known));
    assert_eq!(successful(&events, way.types.own), all);
    for pod in idle.iter().chain([next]) {
        assert_confirmed(&events, way.types, pod);
    }
    // The last one needs no scout.
    let unconfirmed = all.iter().filter(|pod| !is_confirmed(&events, way.types, pod));
    assert!(unconfirmed.count() <= 1);
}

#[tokio::test]
async fn idle_pods_are_recreated_first() {
    let fleet = launch("update-idle", ROLLING, until_empty(), 6, json!({})).await;
    let before = fleet.names().await;
    update_idle_pods_first(&fleet, ROLLING).await;
    assert!(fleet.names().await.is_disjoint(&before));
}

#[tokio::test]
async fn idle_pods_are_updated_in_place_first() {
    let fleet = launch("update-idle-in-place", IN_PLACE, until_empty(), 6, json!({})).await;
    let before = fleet.uids().await;
    update_idle_pods_first(&fleet, IN_PLACE).await;
    assert_eq!(fleet.uids().await, before);
}

#[tokio::test]
async fn a_pod_that_a_player_joins_in_between_leaves_its_slot_to_another() {
    let fleet = launch("update-idle-joined", ROLLING, until_empty(), 3, json!({})).await;
    fleet.nodes.every_pod().set_players(1);
    let before = fleet.uids().await;
    let names = names(&fleet).await;
    let (joined, idle, other) = (&names[0], &names[1], &names[2]);
    let runs = Seen::of(fleet.runs()).await;
    fleet.set_image("game:v2").await;
    await_scouts(&fleet, ROLLING, &set_of(&names)).await;
    join_in_between(&fleet, joined).await;
    fleet.until_marked(&BTreeSet::from([joined.clone()])).await;
    fleet
        .until(|status| {
            let search = status.first_idle.and_then(|search| search.update);
            search.is_some_and(|search| (search.candidates, search.selected) == (2, 1))
        })
        .await;
    fleet.quiet().await;
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::new());

    fleet.nodes.pod(idle).set_players(0);
    await_search(&fleet, 1, 2).await;
    // The pod is a candidate again.
    await_scouts(&fleet, ROLLING, &set_of(&[joined.clone(), other.clone()])).await;
    let pods = fleet.until_pods(|pods| !is_selected(&pods[joined])).await;
    assert_eq!(pods[joined].uid(), before[joined]);
    fleet.quiet().await;
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::from([idle.clone()]));

    let nobody = Answer::json(json!({ "players": 0 }));
    fleet.nodes.pod(joined).otherwise(nobody);
    fleet.nodes.pod(other).set_players(0);
    await_all(&fleet, 3).await;
    let events = runs.up_to_now().await;
    assert_confirmed(&events, PRE_DELETE, idle);
    assert_eq!(successful(&events, PRE_DELETE.own), set_of(&names));
    let own = created(&events, PRE_DELETE.own);
    assert_eq!((own[joined].len(), own[idle].len()), (2, 1), "{own:?}");
}

#[tokio::test]
async fn partition_leaves_the_busy_pods_at_the_old_revision() {
    let partition = json!({ "partition": 3 });
    let fleet = launch("update-idle-partition", ROLLING, until_empty(), 4, partition).await;
    let names = names(&fleet).await;
    occupy(&fleet, &names[..3]).await;
    let runs = Seen::of(fleet.runs()).await;
    fleet.set_image("game:v2").await;
    await_updated(&fleet, 1).await;
    await_found(&fleet, 4).await;
    let last = BTreeSet::from([names[3].clone()]);
    assert_eq!(fleet.nodes.terminated_pods(), last);
    assert_eq!(pods_with(&runs.up_to_now().await, PRE_DELETE.own), last);

    let partition = json!({ "updateStrategy": { "partition": 2 } });
    fleet.set(partition).await;
    await_search(&fleet, 1, 3).await;
    fleet.quiet().await;
    assert_eq!(fleet.nodes.terminated_pods(), last);
    fleet.nodes.pod(&names[1]).set_players(0);
    await_updated(&fleet, 2).await;
    await_found(&fleet, 4).await;
    let gone = BTreeSet::from([names[1].clone(), names[3].clone()]);
    assert_eq!(fleet.nodes.terminated_pods(), gone);
    let events = runs.up_to_now().await;
    assert_eq!(pods_with(&events, PRE_DELETE.own), gone);
    for pod in &gone {
        assert_confirmed(&events, PRE_DELETE, pod);
    }
}

/// Updates one of four pods, and counts the writes for the other ones.
async fn count_writes(fleet: &mut Fleet<'_>, way: Way) {
    let proxy = ApiProxy::start(fleet.control_plane).unwrap();
    fleet.start_behind(&proxy, Who::Workloads).await;
    fleet.nodes.every_pod().set_players(1);
    fleet.set_image("game:v2").await;
    fleet.asked(4).await;
    let mut scouts = fleet.until_runs(|runs| runs.len() == 4).await;
    assert!(scouts.iter().all(|run| is_kind(run, way.types.scout)));
    let idle = pod_of(&scouts.remove(0));
    fleet.nodes.pod(&idle).set_players(0);
    await_updated(fleet, 1).await;
    await_found(fleet, 4).await;
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::from([idle]));
    // One for each pod, and the own hook of the pod that was updated.
    assert_eq!(proxy.count("create", "hookruns"), 4 + 1);
    for scout in &scouts {
        assert_two_writes(&proxy, scout);
    }
}

#[tokio::test]
async fn a_candidate_that_is_not_recreated_costs_two_writes() {
    let partition = json!({ "partition": 3 });
    let mut fleet = launch("update-idle-writes", ROLLING, until_empty(), 4, partition).await;
    count_writes(&mut fleet, ROLLING).await;
}

#[tokio::test]
async fn a_candidate_that_is_not_updated_in_place_costs_two_writes() {
    let partition = json!({ "partition": 3 });
    let hook = until_empty();
    let mut fleet = launch("update-idle-in-place-writes", IN_PLACE, hook, 4, partition).await;
    count_writes(&mut fleet, IN_PLACE).await;
}

#[tokio::test]
async fn only_twice_as_many_scouts_run_as_pods_are_needed() {
    let two = json!({ "maxUnavailable": 2 });
    let fleet = launch("update-idle-scouts", ROLLING, until_empty(), 10, two).await;
    let before = fleet.names().await;
    let pods = seen::pods(&fleet).await;
    let runs = Seen::of(fleet.runs()).await;
    fleet.set_image("game:v2").await;
    await_all(&fleet, 10).await;
    assert_eq!(fleet.nodes.terminated_pods(), before);
    assert_eq!(fleet.nodes.terminations().len(), 10);
    assert!(seen::fewest_ready(&pods, 10).await >= 8);
    let events = runs.up_to_now().await;
    let most = most_running(&events, PRE_DELETE.scout);
    assert!((1..=4).contains(&most), "{most} scouts at once");
    let (scouts, own) = counts(&events, PRE_DELETE);
    assert!(scouts <= 10 && own == 10, "{scouts} scouts, {own} own hooks");
    assert_eq!(successful(&events, PRE_DELETE.own), before);
    // The last ones need no scouts.
    let unconfirmed = before
        .iter()
        .filter(|pod| !is_confirmed(&events, PRE_DELETE, pod));
    assert!(unconfirmed.count() <= 2);
}

#[tokio::test]
async fn scouts_that_fail_are_reported_and_retried() {
    let fleet = launch("update-idle-failed", ROLLING, empty_now(), 3, json!({})).await;
    fleet.nodes.every_pod().set_players(7);
    let names = fleet.names().await;
    let runs = Seen::of(fleet.runs()).await;
    fleet.set_image("game:v2").await;
    let message = fleet.says("UpdateBlocked", "HookUnsuccessful").await;
    assert_has(&message, "\"7\" does not satisfy asInt(result) == 0");
    assert_has(&message, "retry to true");
    fleet.quiet().await;
    let events = runs.up_to_now().await;
    assert_eq!(pods_with(&events, PRE_DELETE.scout), names);
    assert_eq!(successful(&events, PRE_DELETE.own), BTreeSet::new());

    // Hooks that have failed do not run again by themselves.
    fleet.nodes.every_pod().set_players(0);
    fleet.quiet().await;
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::new());
    fleet.retry("preDeleteUpdateStrategy");
    await_all(&fleet, 3).await;
    fleet.cleared("UpdateBlocked").await;
    assert_eq!(fleet.nodes.terminated_pods(), names);
    assert_eq!(successful(&runs.up_to_now().await, PRE_DELETE.own), names);
    let strategy = fleet.game().await.spec.pre_delete_update_strategy.unwrap();
    assert_eq!(strategy.retry, Some(false));
}

/// Builds a hook that polls until the pod has no players, and fails if it has more than five.
fn until_empty_unless_crowded() -> Value {
    let mut hook = until_empty();
    let limits =
        json!({ "failureCondition": "asInt(result) > 5", "failureLimit": 0, "inconclusiveLimit": 1_000_000 });
    merge(&mut hook["metrics"][0], limits);
    hook
}

#[tokio::test]
async fn retry_runs_scouts_again_although_no_pod_is_selected() {
    let hook = until_empty_unless_crowded();
    let fleet = launch("update-idle-retried", ROLLING, hook, 3, json!({})).await;
    fleet.nodes.every_pod().set_players(7);
    let names = names(&fleet).await;
    let (busy, idle) = (&names[0], &names[1]);
    fleet.nodes.pod(busy).set_players(1);
    let runs = Seen::of(fleet.runs()).await;
    fleet.set_image("game:v2").await;
    let is_scouted = |runs: &[HookRun]| {
        let is_scout = |run: &HookRun| {
            let is_busy = pod_of(run) == *busy;
            let wanted = if is_busy { Phase::Running } else { Phase::Failed };
            is_kind(run, PRE_DELETE.scout) && phase(run) == wanted
        };
        runs.len() == 3 && runs.iter().all(is_scout)
    };
    fleet.until_runs(is_scouted).await;
    // Pods whose scouts have failed are not selected while another pod may turn out to be idle.
    fleet.nodes.pod(idle).set_players(0);
    fleet.quiet().await;
    fleet.until_runs(is_scouted).await;
    assert_eq!(fleet.marked().await, BTreeSet::new());

    fleet.retry("preDeleteUpdateStrategy");
    await_updated(&fleet, 1).await;
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::from([idle.clone()]));
    fleet.nodes.every_pod().set_players(0);
    await_all(&fleet, 3).await;
    let events = runs.up_to_now().await;
    assert_confirmed(&events, PRE_DELETE, idle);
    let scouts = created(&events, PRE_DELETE.scout);
    assert_eq!((scouts[busy].len(), scouts[idle].len()), (1, 2), "{scouts:?}");
}

#[tokio::test]
async fn a_restarted_operator_goes_on_with_the_same_scouts() {
    let mut fleet = launch("update-idle-restarted", ROLLING, until_empty(), 4, json!({})).await;
    fleet.nodes.every_pod().set_players(1);
    let names = names(&fleet).await;
    let (busy, idle) = names.split_at(2);
    let runs = Seen::of(fleet.runs()).await;
    fleet.set_image("game:v2").await;
    let scouts = await_scouts(&fleet, ROLLING, &set_of(&names)).await;
    fleet.kill_workloads();
    fleet.start_workloads().await;
    fleet.quiet().await;
    assert_eq!(await_scouts(&fleet, ROLLING, &set_of(&names)).await, scouts);
    for pod in idle {
        fleet.nodes.pod(pod).set_players(0);
    }
    await_search(&fleet, 2, 2).await;
    assert_eq!(fleet.nodes.terminated_pods(), set_of(idle));
    let left = await_scouts(&fleet, ROLLING, &set_of(busy)).await;
    assert!(left.is_subset(&scouts), "{left:?} {scouts:?}");
    for pod in busy {
        fleet.nodes.pod(pod).set_players(0);
    }
    await_all(&fleet, 4).await;
    let events = runs.up_to_now().await;
    assert_eq!(counts(&events, PRE_DELETE), (4, 4));
    for pod in idle {
        assert_confirmed(&events, PRE_DELETE, pod);
    }
}

#[tokio::test]
async fn a_pause_ends_the_search() {
    let fleet = launch("update-idle-paused", IN_PLACE, until_empty(), 4, json!({})).await;
    fleet.nodes.every_pod().set_players(1);
    let before = fleet.uids().await;
    fleet.set_image("game:v2").await;
    await_search(&fleet, 0, 4).await;
    fleet.set(json!({ "updateStrategy": { "paused": true } })).await;
    await_found(&fleet, 4).await;
    // No trace of the search remains.
    fleet.nodes.every_pod().set_players(0);
    await_found(&fleet, 4).await;
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::new());
    assert_eq!(fleet.images().await, BTreeSet::from(["game:v1".to_owned()]));
    fleet.set(json!({ "updateStrategy": { "paused": false } })).await;
    await_all(&fleet, 4).await;
    assert_eq!(fleet.uids().await, before);
}

#[tokio::test]
async fn a_scale_down_takes_the_first_idle_pod_and_shares_the_scouts() {
    let fleet = launch("update-idle-scaled", ROLLING, until_empty(), 6, json!({})).await;
    let policy = json!({ "selectionPolicy": "FirstIdle" });
    fleet.set(json!({ "scaleStrategy": policy })).await;
    fleet.nodes.every_pod().set_players(1);
    let names = names(&fleet).await;
    let (idle, left) = names.split_first().unwrap();
    let runs = Seen::of(fleet.runs()).await;
    fleet.set_image("game:v2").await;
    fleet.scale(5);
    fleet
        .until(|status| {
            let search = status.first_idle.unwrap_or_default();
            let scale = search.scale.map(|scale| (scale.candidates, scale.needed));
            scale == Some((6, 1)) && search.update.is_some()
        })
        .await;
    await_scouts(&fleet, ROLLING, &set_of(&names)).await;
    fleet.nodes.pod(idle).set_players(0);
    fleet.until_pods(|pods| pods.len() == 5).await;
    await_search(&fleet, 0, 5).await;
    await_scouts(&fleet, ROLLING, &set_of(left)).await;
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::from([idle.clone()]));
    fleet.nodes.every_pod().set_players(0);
    await_all(&fleet, 5).await;
    let events = runs.up_to_now().await;
    assert_eq!(counts(&events, PRE_DELETE), (6, 6));
    assert_eq!(pods_with(&events, PRE_DELETE.scout), set_of(&names));
}
