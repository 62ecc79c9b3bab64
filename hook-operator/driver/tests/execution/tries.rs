//! Tries: parallelism, pauses, timeouts, and pods that come and go.

use serde_json::{Value, json};
use shared_api::execution_hook::ErrorType;

use crate::world::{FAILS, HANGS, Script, World, millis, seconds};

fn begin(pods: usize, spec: Value, action: Value) -> World {
    let mut world = World::new(pods, spec, action);
    world.start(true, false);
    world
}

fn named(pods: Value) -> Value {
    json!({ "podSelection": { "podContainerNamesList": pods } })
}

/// Returns the seconds between the starts of the commands in a pod.
fn pauses(world: &World, pod: &str) -> Vec<u64> {
    let commands = world.commands_in(pod);
    let pairs = commands.windows(2);
    pairs
        .map(|pair| pair[1].start.abs_diff(pair[0].start).as_secs())
        .collect()
}

#[test]
fn the_selection_is_recorded_before_the_first_command() {
    let mut world = begin(3, json!({}), json!({}));
    world.run_for(seconds(10));
    world.ended("ActionSucceeded");
    let first = world.history.iter().find_map(|hook| hook.status.clone()).unwrap();
    let uids = first
        .hook_statuses
        .iter()
        .map(|entry| entry.pod_uid.clone().unwrap());
    assert_eq!(uids.collect::<Vec<_>>(), ["p0-1", "p1-2", "p2-3"]);
    assert!(first.hook_statuses.iter().all(|entry| entry.timestamp.is_none()));
    assert_eq!(first.action.unwrap().uid, "a1");
    assert_eq!(
        (first.succeeded, world.commands.len(), world.log),
        (0, 3, vec!["completed".to_owned()])
    );
}

#[test]
fn a_thousand_containers_cost_few_writes_and_run_in_turn() {
    for (parallelism, most) in [(1, 20), (64, 4), (1024, 4)] {
        let mut world = begin(1000, json!({ "parallelism": parallelism }), json!({}));
        world.run_for(seconds(60));
        world.ended("ActionSucceeded");
        assert_eq!((world.commands.len(), world.status().succeeded), (1000, 1000));
        let last = world.writes.last().unwrap().as_secs();
        let writes = world.writes.len();
        let is_bounded = writes <= most && writes as u64 <= last + 2;
        assert!(is_bounded, "{writes} writes in {last}s");
        let batches = 1000_u64.div_ceil(parallelism);
        let ends = world.commands.iter().map(|command| command.end);
        assert!(ends.max() <= Some(millis(10 * batches)));
    }
}

#[test]
fn pauses_double_up_to_a_minute() {
    let mut world = begin(1, json!({}), json!({}));
    world.script("p0", Script { failures: 9, ..FAILS });
    world.run_for(seconds(600));
    assert_eq!(pauses(&world, "p0"), [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    world.ended("ActionSucceeded");
    let entry = world.recorded("p0", "game");
    assert_eq!((entry.attempts, entry.error), (10, None));
}

#[test]
fn a_timeout_ends_failing_and_hanging_containers() {
    for (script, timeouts, attempts) in [(FAILS, vec![4, 4, 4, 4], 4), (HANGS, vec![4, 4, 1], 3)] {
        let limits = json!({ "actionTimeoutSeconds": 12, "callTimeoutSeconds": 4 });
        let mut world = begin(2, json!({}), limits);
        world.script("p0", script);
        world.run_for(millis(11_900));
        assert_eq!(world.recorded("p0", "game").succeed, None);
        world.run_for(seconds(3));
        world.ended("ActionFailed");
        let commands = world.commands_in("p0");
        let seen: Vec<u64> = commands.iter().map(|command| command.timeout.as_secs()).collect();
        assert_eq!(seen, timeouts);
        let entry = world.recorded("p0", "game");
        let error = entry.error.unwrap();
        assert_eq!(
            (entry.succeed, entry.attempts, error.error_type),
            (Some(false), attempts, ErrorType::Timeout)
        );
        assert_eq!((world.status().succeeded, world.status().failed), (1, 1));
    }
}

#[test]
fn without_a_timeout_tries_end_with_the_deletion() {
    for script in [FAILS, HANGS] {
        let mut world = begin(1, json!({}), json!({}));
        world.script("p0", script);
        world.run_for(seconds(36_000));
        let tries = world.commands.len();
        assert!((36_000 / 91..36_000 / 59 + 9).contains(&tries), "{tries}");
        world.delete();
        world.run_for(seconds(3600));
        assert_eq!(world.commands.len(), tries);
    }
}

#[test]
fn a_hanging_container_with_parallelism_1_delays_the_others_only() {
    let limits = json!({ "callTimeoutSeconds": 100 });
    let mut world = begin(4, json!({ "parallelism": 1 }), limits);
    world.script("p1", HANGS);
    for pod in ["p0", "p2"] {
        world.script(pod, Script { failures: 3, ..FAILS });
    }
    world.run_for(seconds(1000));
    assert_eq!((world.status().succeeded, world.status().active), (3, 1));
}

#[test]
fn every_container_has_its_turn_although_others_hang() {
    let mut world = begin(8, json!({ "parallelism": 2 }), json!({}));
    for pod in 0..7 {
        world.script(&format!("p{pod}"), HANGS);
    }
    world.run_for(seconds(3600));
    assert_eq!(world.recorded("p7", "game").succeed, Some(true));
}

#[test]
fn a_replaced_pod_ends_its_container() {
    let mut world = begin(2, json!({}), json!({}));
    world.script("p0", Script { failures: 2, ..FAILS });
    world.run_for(millis(500));
    world.create_pod("p0", &["game"]);
    world.run_for(seconds(60));
    world.ended("ActionFailed");
    let entry = world.recorded("p0", "game");
    assert_eq!(entry.error.unwrap().error_type, ErrorType::NotFound);
    assert_eq!((entry.succeed, world.commands_in("p0").len()), (Some(false), 1));
}

#[test]
fn a_named_pod_is_looked_up_until_it_appears_or_the_time_is_over() {
    for appears in [true, false] {
        let spec = named(json!([{ "podName": "late", "containerNames": ["game"] }, { "podName": "p0" }]));
        let mut world = begin(1, spec, json!({ "actionTimeoutSeconds": 100 }));
        world.run_for(seconds(20));
        let status = world.status();
        assert_eq!(
            (status.total, status.succeeded, status.completion_time),
            (2, 1, None)
        );
        let finds = world.finds.iter().filter(|(_, pod)| pod == "late");
        assert_eq!(
            finds.map(|(at, _)| at.as_secs()).collect::<Vec<_>>(),
            [0, 1, 3, 7, 15]
        );
        if appears {
            world.create_pod("late", &["proxy", "game"]);
        }
        world.run_for(seconds(82));
        let reasons = ["ActionFailed", "ActionSucceeded"];
        world.ended(reasons[usize::from(appears)]);
        let error = world.recorded("late", "game").error.map(|error| error.error_type);
        assert_eq!(error, (!appears).then_some(ErrorType::Timeout));
        assert_eq!(world.commands_in("late").len(), usize::from(appears));
    }
}

#[test]
fn a_named_pod_without_containers_stands_for_all_of_them() {
    let pods = named(json!([{ "podName": "p0" }, { "podName": "late" }]));
    let mut world = begin(1, pods, json!({}));
    world.create_pod("p0", &["game", "proxy", "log"]);
    world.run_for(seconds(5));
    assert_eq!((world.status().total, world.status().succeeded), (4, 3));
    world.create_pod("late", &["a", "b"]);
    world.run_for(seconds(60));
    world.ended("ActionSucceeded");
    let entries = world.status().hook_statuses;
    let mut names: Vec<&str> = entries
        .iter()
        .map(|entry| entry.container_name.as_str())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["a", "b", "game", "log", "proxy"]);
    assert_eq!(world.commands.len(), 5);
}

#[test]
fn a_missing_container_fails_when_the_time_is_over() {
    let misspelt = named(json!([{ "podName": "p0", "containerNames": ["gmae"] }]));
    for (spec, removed) in [(misspelt, false), (json!({}), true)] {
        let mut world = begin(1, spec, json!({ "actionTimeoutSeconds": 30 }));
        world.script("p0", FAILS);
        world.run_for(seconds(1));
        if removed {
            world.pods.get_mut("p0").unwrap().containers.clear();
        }
        world.run_for(seconds(40));
        world.ended("ActionFailed");
        let entry = world.status().hook_statuses.remove(0);
        assert_eq!(
            (entry.succeed, entry.error.unwrap().error_type),
            (Some(false), ErrorType::Timeout)
        );
        assert_eq!(world.commands.len(), usize::from(removed));
    }
}

/// Their number is known only when the pods have been looked up.
#[test]
fn too_many_containers_of_named_pods_are_refused_before_the_first_command() {
    let names: Vec<_> = (0..501)
        .map(|pod| json!({ "podName": format!("p{pod}") }))
        .collect();
    let spec = json!({ "podSelection": { "podContainerNamesList": names } });
    let mut world = World::new(501, spec, json!({}));
    world.find_takes = seconds(1);
    for pod in 0..501 {
        world.create_pod(&format!("p{pod}"), &["game", "proxy"]);
    }
    world.start(true, false);
    world.run_for(seconds(60));
    world.ended("TooManyContainers");
    assert_eq!(world.commands.len(), 0);
    // Writes meanwhile lose no pod that was found.
    assert!(world.finds.len() <= 501, "{} look-ups", world.finds.len());
}
