//! Time limit of a rollout.

use serde_json::{Value, json};
use shared_api::Phase;
use shared_api::game_deployment::LifecycleHookPhase;

use super::world::{World, hook};
use crate::view::WriteErrors;

const EXCEEDED: &str = "ProgressDeadlineExceeded";

fn set_update(world: &mut World, field: &str, value: Value) {
    let mut update = serde_json::to_value(&world.object.spec.update_strategy).unwrap();
    update[field] = value;
    world.object.spec.update_strategy = serde_json::from_value(update).unwrap();
}

/// A rollout without hooks whose new pods do not become available; a pod may be missing.
fn stuck(seconds: i32) -> World {
    let mut world = World::new(4, &[]);
    set_update(&mut world, "maxUnavailable", json!(1));
    world.limit_time(Some(seconds));
    world.is_stuck = true;
    world.settle();
    world
}

fn let_start(world: &mut World) {
    world.is_stuck = false;
    world.starting.clear();
}

fn assert_exceeded(world: &World) {
    let reason = EXCEEDED.to_owned();
    assert_eq!(
        world.condition("Progressing"),
        ("False".to_owned(), reason.clone())
    );
    assert_eq!(world.condition("UpdateBlocked"), ("True".to_owned(), reason));
}

#[test]
fn a_rollout_that_takes_too_long_gets_no_further_pod() {
    let mut world = stuck(600);
    assert_eq!((world.at("new"), world.at("old")), (1, 3));
    assert_eq!(
        world.wake,
        Some(world.timer().unwrap().running_since.unwrap().timestamp() + std::time::Duration::from_mins(10))
    );
    let message = world.message("Progressing");
    assert!(message.contains("; the rollout will be aborted at "), "{message}");
    world.pass(599);
    world.settle();
    assert_eq!(world.condition("Progressing").1, "RollingOut");
    world.pass(1);
    world.settle();
    assert_exceeded(&world);
    let message = world.message("UpdateBlocked");
    let expected = "the rollout exceeded spec.updateStrategy.timeoutSeconds (600s): 1 of 4 pods are at revision new, 0 \
                    of them available; no further pods are updated; ";
    assert!(message.starts_with(expected), "{message}");
    // Another pod of the revision would have room. A lost old pod comes back at its revision.
    world.starting.clear();
    let old = world
        .pods
        .iter()
        .find(|(_, revision)| *revision == "old")
        .unwrap()
        .0
        .clone();
    world.pods.remove(&old);
    world.settle();
    world.pass(100_000);
    world.settle();
    assert_eq!((world.at("new"), world.at("old")), (1, 3));
    assert_eq!(
        world
            .warnings
            .iter()
            .filter(|warning| warning.reason.as_str() == EXCEEDED)
            .count(),
        1
    );
}

#[test]
fn an_exceeded_rollout_goes_on_after_a_retry_a_higher_limit_or_another_template() {
    let again: [fn(&mut World); 5] = [
        |world| world.request("rollout=1"),
        |world| world.limit_time(Some(1200)),
        |world| world.limit_time(None),
        |world| world.set_template("third", "game:v3"),
        |world| world.request("lifecycle/none=1"),
    ];
    for (number, again) in again.into_iter().enumerate() {
        let mut world = stuck(600);
        world.pass(600);
        world.settle();
        assert_exceeded(&world);
        let_start(&mut world);
        again(&mut world);
        world.settle();
        assert_eq!(world.condition("Progressing").1, "RolloutComplete", "{number}");
        assert_eq!(world.timer(), None, "{number}");
    }
}

#[test]
fn a_retry_gives_the_whole_time_again_and_counts_once() {
    let mut world = stuck(600);
    for number in 0..3 {
        world.pass(600);
        world.settle();
        assert_exceeded(&world);
        world.request(&format!("rollout={number}"));
        world.settle();
        assert_eq!(world.condition("Progressing").1, "RollingOut", "{number}");
    }
    // A request before the rollout asks for nothing.
    let mut world = World::new(4, &[]);
    world.request("rollout=old");
    set_update(&mut world, "maxUnavailable", json!(1));
    world.limit_time(Some(600));
    world.is_stuck = true;
    world.settle();
    world.pass(600);
    world.settle();
    assert_exceeded(&world);
}

#[test]
fn pauses_do_not_count() {
    let mut world = stuck(600);
    world.pass(400);
    set_update(&mut world, "paused", json!(true));
    world.settle();
    let message = world.message("Progressing");
    assert!(
        message.contains(
            "; 400s of the 600s timeout (timeoutSeconds) used; the timer is stopped during this wait"
        ),
        "{message}"
    );
    assert_eq!(world.wake, None);
    world.pass(100_000);
    world.settle();
    assert_eq!(world.condition("Progressing").1, "Paused");
    set_update(&mut world, "paused", json!(false));
    world.settle();
    world.pass(199);
    world.settle();
    assert_eq!(world.condition("Progressing").1, "RollingOut");
    world.pass(1);
    world.settle();
    assert_exceeded(&world);
    // A pause afterwards does not hide the end, and its end does not begin the rollout again.
    for paused in [true, false] {
        set_update(&mut world, "paused", json!(paused));
        world.settle();
        assert_exceeded(&world);
    }
}

#[test]
fn a_partition_and_canary_pauses_do_not_count() {
    let mut world = World::new(4, &[]);
    world.limit_time(Some(600));
    set_update(&mut world, "partition", json!(2));
    world.settle();
    world.pass(100_000);
    world.settle();
    assert_eq!(
        (world.at("new"), world.condition("Progressing").1.as_str()),
        (2, "RolloutComplete")
    );
    assert_eq!(world.timer().unwrap().elapsed_milliseconds, 0);
    // Nor does the time in which others decide about the pods.
    let mut world = World::new(4, &[]);
    world.limit_time(Some(600));
    set_update(&mut world, "type", json!("OnDelete"));
    set_update(&mut world, "canary", json!({ "steps": [{ "partition": 2 }] }));
    world.settle();
    world.pass(100_000);
    world.settle();
    assert_eq!(world.condition("Progressing").1, "RollingOut");
    let mut world = World::new(4, &[]);
    world.limit_time(Some(600));
    let steps = json!({ "steps": [{ "partition": 2 }, { "pause": {} }, { "partition": 0 }] });
    set_update(&mut world, "canary", steps);
    world.settle();
    world.pass(100_000);
    world.settle();
    assert_eq!(world.condition("Progressing").1, "PausedByCanaryPauseStep");
    set_update(&mut world, "paused", json!(false));
    world.settle();
    assert_eq!(world.current(), Some("new"));
}

#[test]
fn a_hook_that_runs_too_long_ends_with_the_rollout_whatever_its_policy() {
    for policy in ["Retry", "Abort", "Ignore"] {
        let mut half = hook("half", &json!("50%"));
        half["failurePolicy"] = json!(policy);
        let mut world = World::new(4, &[half, hook("after", &json!("Post"))]);
        world.limit_time(Some(600));
        world.settle();
        world.pass(600);
        world.settle();
        assert_exceeded(&world);
        assert!(
            world.log.contains(&"terminate half".to_owned()),
            "{policy}: {:?}",
            world.log
        );
        world.ends("half", Phase::Inconclusive);
        assert_eq!(world.phase("half"), LifecycleHookPhase::Inconclusive, "{policy}");
        assert_exceeded(&world);
        assert_eq!(
            world.condition("LifecycleHooksSucceeded"),
            ("False".to_owned(), EXCEEDED.to_owned())
        );
        world.pass(100_000);
        world.settle();
        assert_eq!((world.at("new"), world.runs_of("half").len()), (2, 1), "{policy}");
        // The time begins again, and with it the hook.
        world.request("rollout=1");
        world.settle();
        assert!(world.is_running("half"), "{policy}: {:#?}", world.object.status);
        world.end("half", Phase::Successful);
        world.ends("after", Phase::Successful);
        assert_eq!(world.current(), Some("new"), "{policy}");
    }
}

#[test]
fn attempts_stop_between_two_when_the_time_has_passed() {
    let mut world = World::new(4, &[hook("half", &json!("50%"))]);
    world.limit_time(Some(15));
    world.settle();
    world.pass(10);
    world.end("half", Phase::Failed);
    world.settle();
    assert_eq!(world.phase("half"), LifecycleHookPhase::Waiting);
    world.pass(6);
    world.settle();
    assert_exceeded(&world);
    assert_eq!(
        (world.phase("half"), world.runs_of("half").len()),
        (LifecycleHookPhase::Failed, 1)
    );
}

#[test]
fn a_success_at_the_last_moment_counts() {
    let mut world = World::new(4, &[hook("after", &json!("Post"))]);
    world.limit_time(Some(600));
    world.settle();
    world.pass(600);
    world.end("after", Phase::Successful);
    world.settle();
    assert_eq!((world.current(), world.timer()), (Some("new"), None));
    // So do pods that become available while nobody looks.
    let mut world = World::new(4, &[]);
    world.limit_time(Some(600));
    world.is_stuck = true;
    world.settle();
    assert_eq!(world.at("new"), 4);
    world.pass(601);
    let_start(&mut world);
    world.settle();
    assert_eq!(
        (world.condition("Progressing").1.as_str(), world.timer()),
        ("RolloutComplete", None)
    );
}

#[test]
fn the_last_pods_count_until_they_are_available() {
    let mut world = World::new(4, &[]);
    world.limit_time(Some(600));
    world.is_stuck = true;
    world.settle();
    assert_eq!((world.at("new"), world.current()), (4, Some("new")));
    world.pass(600);
    world.settle();
    assert_exceeded(&world);
    // A lost pod has no other revision to come back at.
    world.pods.pop_first();
    world.settle();
    assert_eq!(world.at("new"), 4);
    let_start(&mut world);
    world.settle();
    assert_eq!(
        (world.condition("Progressing").1.as_str(), world.timer()),
        ("RolloutComplete", None)
    );
    // Later failures are not of the rollout.
    world.starting = world.pods.keys().cloned().collect();
    world.object.spec.replicas = Some(6);
    world.settle();
    world.pass(100_000);
    world.settle();
    assert_eq!((world.at("new"), world.timer()), (6, None));
}

#[test]
fn a_first_rollout_heals_its_pods_up_to_the_open_point() {
    let mut world = World::empty(4, &[hook("half", &json!("50%"))]);
    world.limit_time(Some(600));
    world.settle();
    assert_eq!(world.at("new"), 2);
    world.pass(600);
    world.settle();
    assert_exceeded(&world);
    world.pods.pop_first();
    world.settle();
    assert_eq!(world.at("new"), 2);
}

#[test]
fn a_rollback_follows_where_the_hook_that_ran_asks_for_it() {
    let mut half = hook("half", &json!("50%"));
    half["abortAction"] = json!("Rollback");
    let mut world = World::new(4, &[half]);
    world.limit_time(Some(600));
    world.settle();
    world.pass(600);
    world.settle();
    world.ends("half", Phase::Error);
    let back = world.rollback().unwrap();
    assert_eq!(
        (back.reason.as_str(), world.at("old"), world.timer()),
        (EXCEEDED, 4, None)
    );
    assert_exceeded(&world);
    world.request("rollout=1");
    world.settle();
    assert!(world.is_running("half"), "{:#?}", world.object.status);
    assert_eq!(world.timer().unwrap().elapsed_milliseconds, 0);
    // A person can go back, too.
    let mut world = stuck(600);
    world.pass(600);
    world.settle();
    world.request_abort("new=1");
    let_start(&mut world);
    world.settle();
    assert_eq!(
        (world.at("old"), world.condition("Progressing").1.as_str()),
        (4, "RolloutAborted")
    );
}

#[test]
fn a_recreate_stops_deleting_and_goes_on_creating() {
    let mut before = hook("before", &json!("Pre"));
    before["failurePolicy"] = json!("Abort");
    let mut world = World::new(3, &[before.clone()]).recreates();
    world.limit_time(Some(600));
    world.settle();
    world.pass(600);
    world.settle();
    assert_exceeded(&world);
    world.ends("before", Phase::Failed);
    assert_eq!((world.at("old"), world.at("new")), (3, 0));
    // Without old pods, the new ones are all that is left.
    let mut world = World::new(3, &[before]).recreates();
    world.limit_time(Some(600));
    world.is_stuck = true;
    world.ends("before", Phase::Successful);
    assert_eq!(world.at("new"), 3);
    world.pass(600);
    world.settle();
    assert_exceeded(&world);
    world.pods.pop_first();
    world.settle();
    assert_eq!(world.at("new"), 3);
}

#[test]
fn a_template_that_cannot_be_recorded_stops_the_timer() {
    let mut world = stuck(600);
    world.pass(400);
    let recorded = world.object.spec.template.clone();
    let mut template = recorded.value();
    template["spec"]["containers"] = json!([]);
    world.object.spec.template = template.into();
    world.settle();
    assert_eq!(world.condition("InvalidSpec").0, "True");
    world.pass(100_000);
    world.settle();
    world.object.spec.template = recorded;
    world.settle();
    assert_eq!(world.timer().unwrap().elapsed_milliseconds, 400_000);
    assert_eq!(world.condition("Progressing").1, "RollingOut");
    // So does any other problem of the spec.
    world.pass(100);
    set_update(&mut world, "type", json!("Sometimes"));
    world.settle();
    world.pass(100_000);
    set_update(&mut world, "type", json!("RollingUpdate"));
    world.settle();
    assert_eq!(world.timer().unwrap().elapsed_milliseconds, 500_000);
    assert_eq!(world.condition("Progressing").1, "RollingOut");
}

#[test]
fn the_obstacle_that_the_rollout_met_stays_in_the_message() {
    let mut world = World::new(4, &[]);
    set_update(&mut world, "type", json!("InplaceUpdate"));
    world.limit_time(Some(600));
    let mut template = world.object.spec.template.value();
    template["spec"]["containers"][0]["env"] = json!([{ "name": "A", "value": "1" }]);
    world.revisions[1].template = crate::template::Template::read(&template);
    world.object.spec.template = template.into();
    world.settle();
    assert_eq!(world.condition("UpdateBlocked").1, "NotInPlaceUpdatable");
    for seconds in [600, 1000] {
        world.pass(seconds);
        world.settle();
        assert_exceeded(&world);
        let message = world.message("UpdateBlocked");
        assert!(
            message
                .contains("; NotInPlaceUpdatable: 4 pods cannot be updated in place: only container images"),
            "{message}"
        );
    }
    // It no longer applies once the update goes on.
    world.limit_time(Some(10_000));
    world.settle();
    assert_eq!(world.timer().unwrap().obstacle, None);
}

#[test]
fn a_hook_whose_point_is_reached_too_late_does_not_wait_in_silence() {
    let mut world = World::new(4, &[hook("after", &json!("Post"))]);
    world.limit_time(Some(600));
    world.is_stuck = true;
    world.settle();
    assert_eq!(world.at("new"), 4);
    world.pass(600);
    world.settle();
    assert_exceeded(&world);
    let_start(&mut world);
    world.settle();
    assert_exceeded(&world);
    world.request("rollout=1");
    world.ends("after", Phase::Successful);
    assert_eq!((world.current(), world.timer()), (Some("new"), None));
}

#[test]
fn a_hook_that_was_stopped_runs_again_if_the_time_begins_again_before_it_ends() {
    for policy in ["Ignore", "Abort", "Retry"] {
        let mut half = hook("half", &json!("50%"));
        (half["failurePolicy"], half["retainPolicy"]) = (json!(policy), json!("Always"));
        let mut world = World::new(4, &[half]);
        world.limit_time(Some(600));
        world.settle();
        world.pass(600);
        world.settle();
        assert!(
            world.log.contains(&"terminate half".to_owned()),
            "{:?}",
            world.log
        );
        world.request("rollout=1");
        world.settle();
        world.end("half", Phase::Inconclusive);
        world.settle();
        assert_eq!((world.at("new"), world.runs_of("half").len()), (2, 2), "{policy}");
        assert!(world.is_running("half"), "{policy}: {:#?}", world.object.status);
        world.ends("half", Phase::Successful);
        assert_eq!(world.current(), Some("new"), "{policy}");
    }
}

#[test]
fn canary_steps_stand_still_and_their_hooks_count() {
    let mut world = World::new(4, &[]);
    world.limit_time(Some(600));
    let hook = json!({ "hook": { "templateName": "ask" } });
    let steps = json!({ "steps": [{ "partition": 2 }, hook, { "pause": {} }, { "partition": 0 }] });
    set_update(&mut world, "canary", steps);
    world.is_stuck = true;
    world.settle();
    world.pass(600);
    world.settle();
    assert_exceeded(&world);
    let_start(&mut world);
    world.settle();
    assert_exceeded(&world);
    assert!(world.runs.is_empty(), "{:?}", world.log);
    // With all pods updated, the hook of the last step is what takes too long.
    let mut world = World::new(4, &[]);
    world.limit_time(Some(600));
    set_update(
        &mut world,
        "canary",
        json!({ "steps": [{ "partition": 0 }, hook] }),
    );
    world.settle();
    assert_eq!((world.at("new"), world.runs.len()), (4, 1));
    world.pass(600);
    world.settle();
    assert_exceeded(&world);
}

#[test]
fn lost_pods_do_not_count_while_a_partition_is_reached_nor_after_each_pod_had_the_revision() {
    let mut world = World::new(4, &[]);
    world.limit_time(Some(600));
    set_update(&mut world, "partition", json!(2));
    world.settle();
    for _ in 0..3 {
        let updated = world.pods.iter().find(|(_, revision)| *revision == "new");
        let name = updated.unwrap().0.clone();
        world.starting.push(name);
        world.settle();
        world.pass(400);
        let_start(&mut world);
        world.settle();
    }
    assert_eq!(world.timer().unwrap().elapsed_milliseconds, 0);
    // The next part counts.
    world.is_stuck = true;
    set_update(&mut world, "partition", json!(0));
    world.settle();
    world.pass(600);
    world.settle();
    assert_exceeded(&world);
    // The pods of the rollout start, and others are lost meanwhile.
    let mut world = World::new(4, &[]);
    world.limit_time(Some(600));
    world.is_stuck = true;
    world.settle();
    world.pass(300);
    let gone = world.pods.pop_first().unwrap().0;
    world.starting.retain(|name| *name != gone);
    world.settle();
    let created = world.pods.keys().last().unwrap().clone();
    world.starting.retain(|name| *name == created);
    world.settle();
    assert_eq!(world.at("new"), 4);
}

#[test]
fn an_aborted_rollout_deletes_no_pod_for_its_surge_and_makes_no_successor_at_its_revision() {
    let mut world = World::new(4, &[]);
    set_update(&mut world, "maxUnavailable", json!(0));
    set_update(&mut world, "maxSurge", json!(1));
    world.limit_time(Some(600));
    world.is_stuck = true;
    world.settle();
    assert_eq!((world.at("new"), world.at("old")), (1, 4));
    world.pass(600);
    world.settle();
    assert_exceeded(&world);
    let_start(&mut world);
    world.settle();
    assert_eq!((world.at("new"), world.at("old")), (1, 4));
    let named = world
        .pods
        .iter()
        .find(|(_, revision)| *revision == "old")
        .unwrap()
        .0
        .clone();
    let list = json!({ "podsToDelete": [named] });
    world.object.spec.scale_strategy = serde_json::from_value(list).unwrap();
    world.settle();
    assert!(!world.pods.contains_key(&named), "{:?}", world.log);
    assert_eq!(world.at("new"), 1, "{:?}", world.log);
    // Nor while its first hook holds the rollout.
    for seconds in [0, 600] {
        let mut world = World::new(4, &[hook("before", &json!("Pre"))]);
        set_update(&mut world, "maxUnavailable", json!(0));
        set_update(&mut world, "maxSurge", json!(1));
        world.limit_time(Some(600));
        world.settle();
        world.pass(seconds);
        let named = world.pods.keys().next().unwrap().clone();
        let list = json!({ "podsToDelete": [named] });
        world.object.spec.scale_strategy = serde_json::from_value(list).unwrap();
        world.settle();
        assert_eq!((world.at("new"), world.at("old")), (0, 4), "{:?}", world.log);
    }
}

#[test]
fn a_recreate_records_its_revision_before_the_first_pod() {
    let mut world = World::new(1, &[]).recreates();
    world.limit_time(Some(600));
    while world.at("new") == 0 {
        let plan = world.plan();
        let is_calm = plan.actions.is_empty();
        for action in plan.actions {
            world.carry_out(action);
        }
        if is_calm {
            world.object.status = plan.status.map(|status| *status);
        }
    }
    assert_eq!(world.recreating(), Some("new"));
    // Its time passes before the next status.
    world.pass(600);
    world.pods.clear();
    world.settle();
    assert_eq!(
        (world.at("old"), world.at("new")),
        (0, 1),
        "{:#?}",
        world.object.status
    );
}

/// A rollout by surge pods alone, which stands at 2 of 4 pods.
fn at_half(surge: i32, is_exceeded: bool) -> World {
    let mut world = World::new(4, &[hook("half", &json!("50%"))]);
    set_update(&mut world, "maxUnavailable", json!(0));
    set_update(&mut world, "maxSurge", json!(surge));
    world.limit_time(Some(600));
    world.settle();
    if is_exceeded {
        world.pass(600);
        world.settle();
        world.ends("half", Phase::Inconclusive);
        assert_exceeded(&world);
    }
    assert_eq!((world.at("new"), world.at("old")), (2, 2));
    world
}

#[test]
fn a_named_pod_of_either_revision_goes_at_an_open_point() {
    for (surge, is_exceeded) in [(1, false), (2, false), (1, true), (2, true)] {
        for revision in ["old", "new"] {
            let mut world = at_half(surge, is_exceeded);
            let mut pods = world.pods.iter().filter(|(_, known)| *known == revision);
            let named = pods.next().unwrap().0.clone();
            let list = json!({ "podsToDelete": [named] });
            world.object.spec.scale_strategy = serde_json::from_value(list).unwrap();
            world.log.clear();
            // Its successor starts first.
            world.is_stuck = true;
            world.settle();
            assert_eq!(world.pods.len(), 5, "{:?}", world.log);
            let_start(&mut world);
            world.settle();
            let case = format!("{surge} {is_exceeded} {revision}: {:?}", world.log);
            let scale = world.object.spec.scale_strategy.as_ref().unwrap();
            assert_eq!(scale.pods_to_delete, Some(Vec::new()), "{case}");
            assert_eq!(world.pods.len(), 4, "{case}");
            // An aborted rollout loses its named pod to the earlier revision.
            let fewer = usize::from(is_exceeded && revision == "new");
            assert_eq!(world.at("new"), 2 - fewer, "{case}");
        }
    }
}

#[test]
fn an_aborted_rollout_can_be_scaled() {
    for replicas in [3, 2, 0, 6] {
        let mut world = at_half(1, true);
        world.object.spec.replicas = Some(replicas);
        world.settle();
        let replicas = usize::try_from(replicas).unwrap();
        assert_eq!(world.pods.len(), replicas, "{:?}", world.log);
        assert!(world.at("new") <= 2, "{:?}", world.log);
    }
}

#[test]
fn pods_that_were_never_available_do_not_end_the_time_by_their_loss() {
    for replicas in [1, 4] {
        let mut world = World::new(replicas, &[]);
        world.limit_time(Some(600));
        world.is_stuck = true;
        world.settle();
        world.pass(300);
        world.pods.clear();
        world.settle();
        assert_eq!(world.at("new"), replicas);
        world.pass(300);
        world.settle();
        assert_exceeded(&world);
    }
}

#[test]
fn late_pods_end_a_rollout_whose_last_step_is_a_partition() {
    let mut world = World::new(4, &[]);
    world.limit_time(Some(600));
    let steps = json!({ "steps": [{ "partition": 2 }, { "partition": 0 }] });
    set_update(&mut world, "canary", steps);
    world.settle();
    assert_eq!(world.current(), Some("new"));
    world.set_template("third", "game:v3");
    world.is_stuck = true;
    world.settle();
    let_start(&mut world);
    world.is_stuck = true;
    world.settle();
    assert_eq!(world.at("third"), 4);
    world.pass(600);
    world.settle();
    assert_exceeded(&world);
    let_start(&mut world);
    world.settle();
    assert_eq!((world.current(), world.timer()), (Some("third"), None));
}

#[test]
fn pods_of_an_aborted_rollout_stay_its_own_after_a_change_to_recreate() {
    let mut after = hook("after", &json!("Post"));
    after["failurePolicy"] = json!("Abort");
    let mut world = World::new(3, &[after]);
    world.ends("after", Phase::Failed);
    assert_eq!((world.at("new"), world.current()), (3, Some("old")));
    let mut world = world.recreates();
    world.settle();
    for _ in 0..2 {
        world.pods.pop_first();
        world.settle();
        assert_eq!((world.at("old"), world.at("new")), (0, 3), "{:?}", world.log);
        world.pods.clear();
        world.settle();
        assert_eq!((world.at("old"), world.at("new")), (0, 3), "{:?}", world.log);
    }
}

#[test]
fn the_start_of_the_last_pods_counts_with_on_delete_too() {
    let mut world = World::new(2, &[]);
    world.limit_time(Some(600));
    set_update(&mut world, "type", json!("OnDelete"));
    world.settle();
    world.is_stuck = true;
    world.pods.clear();
    world.settle();
    assert_eq!(world.at("new"), 2);
    world.pass(600);
    world.settle();
    assert_exceeded(&world);
}

#[test]
fn a_hook_whose_run_cannot_be_created_in_time_says_why() {
    let mut before = hook("before", &json!("Pre"));
    before["timeoutSeconds"] = json!(60);
    let mut world = World::new(2, &[before]);
    world.write_errors = Some(WriteErrors {
        updating: Some("failed to create a HookRun: denied (403)".to_owned()),
        ..WriteErrors::default()
    });
    world.settle();
    assert_eq!(world.phase("before"), LifecycleHookPhase::Running);
    world.pass(60);
    world.settle();
    // No write is rejected any more.
    world.write_errors = None;
    world.settle();
    let message = world.message("Progressing");
    let expected = "does not exist; WriteFailed: failed to create a HookRun: denied (403)";
    assert!(message.contains(expected), "{message}");
}
