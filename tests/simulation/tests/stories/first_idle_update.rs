//! Stories of the selection policy `FirstIdle` for updates.

use std::collections::BTreeSet;

use gamedeployment_core::hook_kind::HookKind;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use shared_api::Phase;
use shared_api::game_deployment::{FirstIdle, FirstIdleStatus, IdleSearchStatus, ScaleStrategy};
use simulation::endpoint::Behaviour;
use simulation::questions::question;
use simulation::referee::is_scout;
use simulation::script::{Hooks, Script};
use simulation::setup::{NAMES, strategy_of};
use simulation::world::url;

/// Hook with one measurement: a busy pod is given up at once.
const ONCE: u8 = 0;
/// Hook that polls until a pod is idle.
const POLLS: u8 = 1;
/// Seconds in which each candidate is found busy.
const SOME_POLLS: usize = 40;
/// Maximum number of seconds until something happens.
const SOON: usize = 90;
/// Seconds without hook-operator until scouts, and then the hook of a selected pod, count as not taken up.
const NOT_TAKEN_UP: usize = 150;

/// Type of update, and the only hook that is set.
type Case = (&'static str, HookKind);

const CASES: [Case; 4] = [
    ("RollingUpdate", HookKind::PreDelete),
    ("InplaceUpdate", HookKind::PreInplace),
    ("InplaceUpdate", HookKind::PreDelete),
    ("RollingUpdate", HookKind::PreInplace),
];

/// Returns a fleet of busy pods with these hooks of this kind.
fn busy_fleet(replicas: i32, type_: &str, hooks: &[HookKind], kind: u8) -> Script {
    let mut script = Script::fleet(replicas, type_, Hooks::All);
    for name in NAMES {
        script.world.server.put_template(name, question(kind, url(name)));
    }
    script.edit(|spec| {
        for hook in HookKind::ALL {
            if !hooks.contains(&hook) {
                *strategy_of(spec, hook) = None;
            }
        }
    });
    script.all_say(Behaviour::NO);
    set_policy(&mut script, "FirstIdle", None);
    script.rest();
    script
}

fn fleet_of((type_, hook): Case, replicas: i32, kind: u8) -> Script {
    busy_fleet(replicas, type_, &[hook], kind)
}

fn options(candidates: Option<IntOrString>) -> Option<FirstIdle> {
    candidates.map(|candidates| FirstIdle {
        candidates: Some(candidates),
    })
}

fn set_policy(script: &mut Script, policy: &str, candidates: Option<IntOrString>) {
    script.edit_strategy(|update| {
        update.selection_policy = Some(policy.to_owned());
        update.first_idle = options(candidates);
    });
}

fn number_of_scouts(script: &Script) -> usize {
    script.runs().iter().filter(|run| is_scout(run)).count()
}

/// Returns the UIDs of the pods whose own hook runs.
fn with_own_run(script: &Script) -> BTreeSet<String> {
    let runs = script.runs();
    let own = runs.iter().filter(|run| !is_scout(run));
    own.filter_map(|run| run.read.pod_uid.clone()).collect()
}

/// Returns those of these pods that are updated or gone.
fn updated(script: &Script, before: &BTreeSet<String>) -> BTreeSet<String> {
    before - &script.running("game:v0")
}

/// Lets time pass until this holds.
fn until(script: &mut Script, holds: impl Fn(&Script) -> bool) {
    for _ in 0..SOON {
        if holds(script) {
            return;
        }
        script.seconds(1);
    }
    panic!("the condition was not met in time: {}", script.world.describe());
}

/// Lets time pass until pods are updated. Returns their UIDs.
fn first_updated(script: &mut Script, before: &BTreeSet<String>) -> BTreeSet<String> {
    until(script, |script| !updated(script, before).is_empty());
    updated(script, before)
}

/// Returns the status of a search for idle pods to update.
fn search(candidates: i32, needed: i32) -> FirstIdleStatus {
    let update = IdleSearchStatus {
        candidates,
        selected: 0,
        needed,
    };
    FirstIdleStatus {
        scale: None,
        update: Some(update),
    }
}

fn assert_ended(script: &Script) {
    assert!(
        script.runs().is_empty() && script.marked().is_empty(),
        "{}",
        script.world.describe()
    );
    assert_eq!(script.status().first_idle, None);
}

#[test]
fn the_idle_pod_is_updated_first_though_busy_ones_rank_before_it() {
    for case in CASES {
        for place in 0..4 {
            let mut script = fleet_of(case, 4, POLLS);
            let idle = script.make_idle_last(&[place]);
            let before = script.uids();
            script.want_game(1);
            assert_eq!(first_updated(&mut script, &before), idle, "{case:?} {place}");
            script.seconds(2 * SOME_POLLS);
            let text = || format!("{case:?} {place}: {}", script.world.describe());
            assert_eq!(updated(&script, &before), idle, "{}", text());
            assert!(with_own_run(&script).is_empty(), "{}", text());
            assert!(script.marked().is_empty(), "{}", text());
            assert_eq!(script.status().first_idle, Some(search(3, 1)), "{}", text());
            script.world.check_words();
            script.all_say(Behaviour::YES);
            script.rest();
            assert_eq!(script.running("game:v1").len(), 4);
            assert_ended(&script);
        }
    }
}

/// With the other policy, the first pod keeps the only slot until its match ends.
#[test]
fn a_busy_pod_holds_up_the_update_with_the_other_policy() {
    for case in CASES {
        let mut script = fleet_of(case, 4, POLLS);
        set_policy(&mut script, "Ranked", None);
        script.make_idle_last(&[1]);
        let before = script.uids();
        script.want_game(1);
        script.seconds(2 * SOME_POLLS);
        assert!(updated(&script, &before).is_empty(), "{case:?}");
        assert_eq!((with_own_run(&script).len(), number_of_scouts(&script)), (1, 0));
    }
}

#[test]
fn with_a_partition_only_the_idle_pod_is_updated() {
    for case in CASES {
        for (kind, place) in [ONCE, POLLS]
            .into_iter()
            .flat_map(|kind| (0..4).map(move |at| (kind, at)))
        {
            let mut script = fleet_of(case, 4, kind);
            let idle = script.make_idle_last(&[place]);
            let before = script.uids();
            script.edit_strategy(|update| update.partition = Some(IntOrString::Int(3)));
            script.want_game(1);
            script.rest();
            let text = || format!("{case:?} {kind} {place}: {}", script.world.describe());
            assert_eq!(updated(&script, &before), idle, "{}", text());
            assert_eq!(script.running("game:v1").len(), 1, "{}", text());
            assert_ended(&script);
        }
    }
}

#[test]
fn candidates_limits_the_scouts_but_never_below_the_free_slots() {
    let number = |count| Some(IntOrString::Int(count));
    let percentage = |text: &str| Some(IntOrString::String(text.to_owned()));
    // candidates, maxUnavailable, scouts
    let table = [
        (None, 1, 4),
        (number(1), 1, 1),
        (number(3), 1, 3),
        (number(9), 1, 4),
        (percentage("30%"), 1, 2),
        (percentage("100%"), 1, 4),
        (number(1), 2, 2),
        (number(1), 3, 3),
    ];
    for (candidates, slots, wanted) in table {
        let mut script = fleet_of(CASES[0], 4, POLLS);
        set_policy(&mut script, "FirstIdle", candidates.clone());
        script.edit_strategy(|update| update.max_unavailable = Some(IntOrString::Int(slots)));
        let before = script.uids();
        script.want_game(1);
        script.seconds(SOME_POLLS);
        let text = || format!("{candidates:?} {slots}: {}", script.world.describe());
        let of = |script: &Script| -> BTreeSet<String> {
            script.runs().iter().map(|run| run.id.uid.clone()).collect()
        };
        let scouts = of(&script);
        assert_eq!(
            (scouts.len(), number_of_scouts(&script)),
            (wanted, wanted),
            "{}",
            text()
        );
        let status = search(i32::try_from(wanted).unwrap(), slots);
        assert_eq!(script.status().first_idle, Some(status), "{}", text());
        script.world.check_words();
        script.seconds(SOME_POLLS);
        assert_eq!(of(&script), scouts, "scouts are replaced");
        assert_eq!(script.running("game:v0"), before);
    }
}

/// A match begins after the success of the scout: the pod stays, and another one is updated in its place.
#[test]
fn a_pod_that_is_busy_again_gives_its_slot_to_an_idle_one() {
    for case in CASES {
        let mut script = fleet_of(case, 3, POLLS);
        let before = script.uids();
        let idle = script.make_idle_last(&[1]);
        script.want_game(1);
        until(&mut script, |script| !with_own_run(script).is_empty());
        script.all_say(Behaviour::NO);
        script.seconds(SOME_POLLS);
        let text = |script: &Script| format!("{case:?}: {}", script.world.describe());
        assert_eq!(script.running("game:v0"), before, "{}", text(&script));
        assert_eq!(
            with_own_run(&script),
            idle,
            "it keeps its slot: {}",
            text(&script)
        );
        assert!(
            number_of_scouts(&script) > 0,
            "the search goes on: {}",
            text(&script)
        );
        script.world.check_words();
        let other = script.pods().into_iter().find(|pod| !idle.contains(&pod.id.uid));
        let other = other.unwrap();
        script.say(&other, Behaviour::YES);
        let first = first_updated(&mut script, &before);
        assert!(first.iter().eq([&other.id.uid]), "{}", text(&script));
        script.seconds(SOME_POLLS);
        assert_eq!(updated(&script, &before), first);
        assert!(
            with_own_run(&script).is_empty() && script.marked().is_empty(),
            "it is a candidate again: {}",
            text(&script)
        );
        script.all_say(Behaviour::YES);
        script.rest();
        assert_eq!(script.running("game:v1").len(), 3);
        assert_ended(&script);
    }
}

/// Without a success of the pod's own hook, that of its scout does not count, however long the pod waits.
#[test]
fn a_success_of_a_scout_opens_no_gate() {
    for case in CASES {
        let mut script = fleet_of(case, 3, ONCE);
        let before = script.uids();
        let idle = script.make_idle_last(&[2]);
        script.want_game(1);
        until(&mut script, |script| {
            let runs = script.runs();
            let mut scouts = runs.iter().filter(|run| is_scout(run));
            scouts.any(|scout| scout.read.phase == Phase::Successful)
        });
        script.silent = true;
        script.seconds(SOME_POLLS);
        assert_eq!(script.running("game:v0"), before, "{case:?}");
        assert_eq!(with_own_run(&script), idle, "{case:?}");
        script.silent = false;
        script.rest();
        assert_eq!(updated(&script, &before), idle, "{case:?}");
    }
}

#[test]
fn busy_pods_are_reported_as_with_the_other_policy_once_no_hook_can_succeed() {
    for (type_, hook) in CASES {
        for policy in ["Ranked", "FirstIdle"] {
            let mut script = fleet_of((type_, hook), 3, ONCE);
            let before = script.uids();
            set_policy(&mut script, policy, None);
            script.want_game(1);
            script.rest();
            let text = |script: &Script| format!("{type_} {hook:?} {policy}: {}", script.world.describe());
            assert_eq!(script.running("game:v0"), before, "{}", text(&script));
            assert_eq!(with_own_run(&script), before, "{}", text(&script));
            let reason = script.reason_of("UpdateBlocked");
            assert_eq!(reason.as_deref(), Some("HookUnsuccessful"), "{}", text(&script));
            script.world.check_words();
            // A verdict stands until somebody has the hooks run again.
            script.all_say(Behaviour::YES);
            script.rest();
            assert_eq!(script.running("game:v0"), before, "{}", text(&script));
            script.edit(|spec| strategy_of(spec, hook).as_mut().unwrap().retry = Some(true));
            script.rest();
            assert_eq!(script.running("game:v1").len(), 3);
            let retry = strategy_of(&mut script.spec(), hook).as_ref().unwrap().retry;
            assert_eq!(retry, Some(false));
            assert_ended(&script);
        }
    }
}

#[test]
fn a_search_without_hook_operator_is_reported() {
    for case in CASES {
        let mut script = fleet_of(case, 3, ONCE);
        script.want_game(1);
        script.without_hook_operator(NOT_TAKEN_UP);
        let reason = script.reason_of("UpdateBlocked");
        assert_eq!(
            reason.as_deref(),
            Some("HookNotTakenUp"),
            "{case:?}: {}",
            script.world.describe()
        );
        assert_eq!(with_own_run(&script).len(), 1, "{case:?}");
        script.all_say(Behaviour::YES);
        script.rest();
        assert_eq!(script.running("game:v1").len(), 3);
        assert_eq!(script.reason_of("UpdateBlocked"), None);
        assert_ended(&script);
    }
}

#[test]
fn a_search_ends_at_once_with_a_pause_another_policy_or_a_reverted_template() {
    for case in CASES {
        let mut script = fleet_of(case, 3, POLLS);
        let before = script.uids();
        let begins = |script: &mut Script| {
            script.seconds(SOME_POLLS);
            assert_eq!(script.status().first_idle, Some(search(3, 1)), "{case:?}");
            assert_eq!((script.runs().len(), number_of_scouts(script)), (3, 3));
        };
        script.want_game(1);
        begins(&mut script);
        script.pause(true);
        script.rest();
        assert_ended(&script);
        script.pause(false);
        begins(&mut script);
        script.want_game(0);
        script.rest();
        assert_ended(&script);
        script.want_game(1);
        begins(&mut script);
        set_policy(&mut script, "Ranked", None);
        script.seconds(SOME_POLLS);
        assert_eq!((with_own_run(&script).len(), number_of_scouts(&script)), (1, 0));
        assert_eq!(script.status().first_idle, None);
        assert_eq!(script.running("game:v0"), before);
    }
}

/// The last pods are selected at once: there is nothing to choose from.
#[test]
fn there_are_no_scouts_if_no_more_candidates_than_free_slots_are_left() {
    for case in CASES {
        let mut script = fleet_of(case, 4, POLLS);
        script.edit_strategy(|update| update.max_unavailable = Some(IntOrString::Int(2)));
        let before = script.uids();
        let idle = script.make_idle_last(&[0, 2]);
        script.want_game(1);
        until(&mut script, |script| updated(script, &before).len() == 2);
        assert_eq!(updated(&script, &before), idle, "{case:?}");
        script.seconds(SOME_POLLS);
        let text = || format!("{case:?}: {}", script.world.describe());
        assert_eq!(with_own_run(&script), &before - &idle, "{}", text());
        assert_eq!(number_of_scouts(&script), 0, "{}", text());
        assert_eq!(script.status().first_idle, None, "{}", text());
        script.all_say(Behaviour::YES);
        script.rest();
        assert_eq!(script.running("game:v1").len(), 4);
        let mut script = fleet_of(case, 3, POLLS);
        script.edit_strategy(|update| update.max_unavailable = Some(IntOrString::Int(3)));
        script.want_game(1);
        script.seconds(SOME_POLLS);
        assert_eq!((with_own_run(&script).len(), number_of_scouts(&script)), (3, 0));
    }
}

/// Lowers `replicas` and begins an update while all pods are busy, at the same time or the update first.
fn scale_down_and_update(type_: &str, hooks: &[HookKind], is_update_first: bool) -> Script {
    let mut script = busy_fleet(4, type_, hooks, POLLS);
    script.want_game(1);
    if is_update_first {
        script.seconds(SOME_POLLS);
        assert_eq!(script.status().first_idle, Some(search(4, 1)));
    }
    script.edit(|spec| {
        spec.scale_strategy = Some(ScaleStrategy {
            selection_policy: Some("FirstIdle".to_owned()),
            ..ScaleStrategy::default()
        });
        spec.replicas = Some(3);
    });
    script.seconds(SOME_POLLS);
    assert_eq!(script.uids().len(), 4);
    assert!(
        with_own_run(&script).is_empty() && script.marked().is_empty(),
        "nothing is selected: {}",
        script.world.describe()
    );
    script.world.check_words();
    script
}

#[test]
fn an_idle_pod_is_deleted_rather_than_updated_if_there_are_too_many() {
    for (place, is_update_first) in (0..4).flat_map(|place| [(place, false), (place, true)]) {
        let mut script = scale_down_and_update("RollingUpdate", &[HookKind::PreDelete], is_update_first);
        let text = |script: &Script| format!("{place} {is_update_first}: {}", script.world.describe());
        assert_eq!(
            number_of_scouts(&script),
            4,
            "one for each pod: {}",
            text(&script)
        );
        let searches = script.status().first_idle.unwrap();
        assert_eq!(searches.scale.map(|scale| scale.needed), Some(1));
        let before = script.uids();
        let idle = script.pods().remove(place);
        script.say(&idle, Behaviour::YES);
        until(&mut script, |script| !updated(script, &before).is_empty());
        script.seconds(SOME_POLLS);
        assert!(
            (&before - &script.uids()).iter().eq([&idle.id.uid]),
            "{}",
            text(&script)
        );
        assert_eq!(script.running("game:v0").len(), 3, "{}", text(&script));
        script.all_say(Behaviour::YES);
        script.rest();
        assert_eq!(script.running("game:v1").len(), 3);
        assert_ended(&script);
    }
}

#[test]
fn a_search_for_pods_to_update_in_place_has_scouts_of_its_own() {
    let hooks = [HookKind::PreDelete, HookKind::PreInplace];
    for hooks in [&hooks[..], &hooks[..1]] {
        check_scouts_of_both_searches(hooks);
    }
}

fn check_scouts_of_both_searches(hooks: &[HookKind]) {
    let mut script = scale_down_and_update("InplaceUpdate", hooks, false);
    let text = |script: &Script| script.world.describe();
    let searches = script.status().first_idle.unwrap();
    assert!(
        searches.scale.is_some() && searches.update.is_some(),
        "{}",
        text(&script)
    );
    assert_eq!(number_of_scouts(&script), 8, "{}", text(&script));
    script.scale(4);
    script.seconds(SOME_POLLS);
    assert_eq!(number_of_scouts(&script), 4, "{}", text(&script));
    assert_eq!(
        script.status().first_idle,
        Some(search(4, 1)),
        "{}",
        text(&script)
    );
    script.all_say(Behaviour::YES);
    script.rest();
    assert_eq!(script.running("game:v1").len(), 4);
    assert_ended(&script);
}
