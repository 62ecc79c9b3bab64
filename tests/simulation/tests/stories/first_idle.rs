//! Stories of the selection policy `FirstIdle` for deletions.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use shared_api::game_deployment::{FirstIdle, FirstIdleStatus, IdleSearchStatus, ScaleStrategy};
use simulation::endpoint::Behaviour;
use simulation::questions::question;
use simulation::referee::is_scout;
use simulation::script::{Hooks, Script};
use simulation::setup::NAMES;
use simulation::world::url;

/// Hook with one measurement: a busy pod is given up at once.
const ONCE: u8 = 0;
/// Hook that polls until a pod is idle.
const POLLS: u8 = 1;
/// Seconds for several measurements of a hook that polls.
const SOME_POLLS: usize = 20;
/// Maximum number of seconds until a pod is selected.
const SOON: usize = 60;

/// Returns a fleet of busy pods with this hook and this number of candidates.
fn busy_fleet(replicas: i32, hook: u8, candidates: Option<IntOrString>) -> Script {
    let mut script = Script::fleet(replicas, "RollingUpdate", Hooks::PreDelete);
    let name = NAMES[0];
    script.world.server.put_template(name, question(hook, url(name)));
    script.all_say(Behaviour::NO);
    set_policy(&mut script, "FirstIdle", candidates);
    script.rest();
    script
}

fn set_policy(script: &mut Script, policy: &str, candidates: Option<IntOrString>) {
    let strategy = ScaleStrategy {
        selection_policy: Some(policy.to_owned()),
        first_idle: candidates.map(|candidates| FirstIdle {
            candidates: Some(candidates),
        }),
        ..ScaleStrategy::default()
    };
    script.edit(|spec| spec.scale_strategy = Some(strategy));
}

fn number(count: i32) -> IntOrString {
    IntOrString::Int(count)
}

fn percentage(text: &str) -> IntOrString {
    IntOrString::String(text.to_owned())
}

/// Number of scouts, if all runs are scouts.
fn scouts(script: &Script) -> Option<usize> {
    let runs = script.runs();
    runs.iter().all(|run| is_scout(run)).then_some(runs.len())
}

/// Lets time pass until pods are selected. Returns their UIDs.
fn first_selected(script: &mut Script) -> BTreeSet<String> {
    for _ in 0..SOON {
        script.seconds(1);
        let marked = script.marked();
        if !marked.is_empty() {
            return marked;
        }
    }
    panic!("no pod is selected: {}", script.world.describe());
}

#[test]
fn idle_pods_go_first_though_busy_ones_rank_before_them() {
    let table = [
        (ONCE, None),
        (ONCE, Some(number(1))),
        (ONCE, Some(number(3))),
        (ONCE, Some(percentage("30%"))),
        (ONCE, Some(percentage("100%"))),
        (POLLS, None),
        (POLLS, Some(number(3))),
        (POLLS, Some(percentage("100%"))),
    ];
    for (hook, candidates) in table {
        for places in [[0, 1], [0, 3], [1, 2], [2, 3]] {
            let mut script = busy_fleet(4, hook, candidates.clone());
            let idle = script.make_idle_last(&places);
            let before = script.uids();
            script.scale(2);
            script.rest();
            let text = || format!("{hook} {candidates:?} {places:?}: {}", script.world.describe());
            assert_eq!(&before - &script.uids(), idle, "{}", text());
            assert!(script.marked().is_empty(), "{}", text());
            assert_eq!(scouts(&script), Some(0), "{}", text());
            assert_eq!(script.status().first_idle, None, "{}", text());
        }
    }
}

#[test]
fn pods_of_which_all_are_busy_are_searched_up_to_the_limit_and_none_is_selected() {
    // candidates, replicas, scouts
    let table = [
        (None, 3, 4),
        (Some(number(1)), 3, 1),
        (Some(number(3)), 3, 3),
        (Some(number(9)), 3, 4),
        (Some(percentage("30%")), 3, 2),
        (Some(percentage("100%")), 3, 4),
        (Some(number(1)), 2, 2),
        (Some(number(1)), 1, 3),
    ];
    for (candidates, replicas, wanted) in table {
        let mut script = busy_fleet(4, POLLS, candidates.clone());
        let before = script.uids();
        script.scale(replicas);
        script.seconds(SOME_POLLS);
        let text = || format!("{candidates:?} {replicas}: {}", script.world.describe());
        assert_eq!(scouts(&script), Some(wanted), "{}", text());
        let of = script.runs().into_iter().map(|run| run.id.uid.clone());
        let of: BTreeSet<String> = of.collect();
        let scale = IdleSearchStatus {
            candidates: i32::try_from(wanted).unwrap(),
            selected: 0,
            needed: 4 - replicas,
        };
        let status = FirstIdleStatus {
            scale: Some(scale),
            update: None,
        };
        assert_eq!(script.status().first_idle, Some(status), "{}", text());
        assert!(script.marked().is_empty(), "{}", text());
        script.world.check_words();
        script.seconds(SOME_POLLS);
        let after = script.runs().into_iter().map(|run| run.id.uid.clone());
        assert_eq!(after.collect::<BTreeSet<String>>(), of, "scouts are replaced");
        assert_eq!(script.uids(), before);
    }
}

#[test]
fn a_search_ends_at_once_when_replicas_rise_or_the_policy_changes() {
    let mut script = busy_fleet(3, POLLS, None);
    let before = script.uids();
    script.scale(2);
    script.seconds(SOME_POLLS);
    assert_eq!(scouts(&script), Some(3));
    script.scale(3);
    script.rest();
    assert_eq!((scouts(&script), script.status().first_idle), (Some(0), None));
    script.scale(2);
    script.seconds(SOME_POLLS);
    assert_eq!(scouts(&script), Some(3), "the search begins again");
    set_policy(&mut script, "Ranked", None);
    script.seconds(SOME_POLLS);
    let (runs, marked) = (script.runs(), script.marked());
    let of_marked = |uid: &String| runs[0].read.pod_uid.as_ref() == Some(uid);
    assert!(runs.len() == 1 && !is_scout(&runs[0]), "{runs:#?}");
    assert!(marked.len() == 1 && marked.iter().all(of_marked));
    assert_eq!((script.uids(), script.status().first_idle), (before, None));
}

/// The success of a scout selects the pod, and opens nothing: players may come before the pod's own hook runs.
#[test]
fn a_pod_that_is_busy_again_stays_until_another_one_is_idle() {
    let mut script = busy_fleet(3, POLLS, None);
    let before = script.uids();
    let idle = script.make_idle_last(&[1]);
    script.scale(2);
    assert_eq!(first_selected(&mut script), idle);
    script.all_say(Behaviour::NO);
    script.seconds(2 * SOME_POLLS);
    assert_eq!(script.uids(), before, "only its scout has succeeded");
    assert_eq!(script.marked(), idle, "it stays selected");
    let runs = script.runs();
    let own = runs.iter().filter(|run| !is_scout(run));
    let own: BTreeSet<String> = own.filter_map(|run| run.read.pod_uid.clone()).collect();
    assert_eq!(own, idle, "its own hook runs");
    assert!(runs.len() > 1, "the search goes on");
    let other = script.pods().into_iter().find(|pod| !idle.contains(&pod.id.uid));
    let other = other.unwrap();
    script.say(&other, Behaviour::YES);
    script.rest();
    let gone: BTreeSet<String> = &before - &script.uids();
    assert!(gone.iter().eq([&other.id.uid]), "{}", script.world.describe());
    assert!(script.marked().is_empty() && scouts(&script) == Some(0));
}

/// Without a verdict of the pod's own hook, the success of its scout is worth nothing, however long it lasts.
#[test]
fn a_success_of_a_scout_opens_no_gate() {
    let mut script = busy_fleet(3, ONCE, None);
    let before = script.uids();
    let idle = script.make_idle_last(&[2]);
    script.scale(2);
    assert_eq!(first_selected(&mut script), idle);
    script.silent = true;
    script.seconds(2 * SOME_POLLS);
    assert_eq!((script.uids(), script.marked()), (before.clone(), idle.clone()));
    script.silent = false;
    script.rest();
    assert_eq!(&before - &script.uids(), idle);
}

#[test]
fn busy_pods_are_reported_as_with_the_other_policy_once_no_hook_can_succeed() {
    for candidates in [None, Some(number(1))] {
        let mut script = busy_fleet(3, ONCE, candidates);
        script.scale(2);
        script.rest();
        assert_eq!((script.uids().len(), script.marked().len()), (3, 1));
        assert_eq!(
            script.reason_of("ScaleBlocked").as_deref(),
            Some("HookUnsuccessful")
        );
        script.world.check_words();
        // A verdict stands until somebody has the hooks run again.
        script.all_say(Behaviour::YES);
        script.rest();
        assert_eq!(script.uids().len(), 3);
        script.edit(|spec| spec.pre_delete_update_strategy.as_mut().unwrap().retry = Some(true));
        script.rest();
        assert_eq!((script.uids().len(), scouts(&script)), (2, Some(0)));
        let retry = script.spec().pre_delete_update_strategy.unwrap().retry;
        assert_eq!(retry, Some(false));
    }
}

#[test]
fn a_search_without_hook_operator_is_reported() {
    let mut script = busy_fleet(3, ONCE, None);
    script.scale(2);
    script.without_hook_operator(80);
    assert_eq!(script.marked().len(), 1);
    assert_eq!(
        script.reason_of("ScaleBlocked").as_deref(),
        Some("HookNotTakenUp")
    );
    script.all_say(Behaviour::YES);
    script.rest();
    assert_eq!((script.uids().len(), script.reason_of("ScaleBlocked")), (2, None));
    assert_eq!(scouts(&script), Some(0));
}

#[test]
fn a_named_pod_goes_before_idle_ones_and_all_pods_go_without_a_search() {
    let mut script = busy_fleet(3, POLLS, None);
    let named = script.pods().remove(0);
    script.edit(|spec| {
        spec.replicas = Some(2);
        let scale = spec.scale_strategy.get_or_insert_default();
        scale.pods_to_delete = Some(vec![named.id.name.clone()]);
    });
    script.seconds(SOME_POLLS);
    assert!(script.marked().iter().eq([&named.id.uid]));
    let runs = script.runs();
    assert!(
        runs.len() == 1 && !is_scout(&runs[0]),
        "nothing is searched for: {runs:#?}"
    );
    script.scale(0);
    script.seconds(SOME_POLLS);
    assert_eq!((script.marked().len(), script.runs().len()), (3, 3));
    assert!(script.runs().iter().all(|run| !is_scout(run)));
    script.all_say(Behaviour::YES);
    script.rest();
    assert!(script.uids().is_empty());
}
