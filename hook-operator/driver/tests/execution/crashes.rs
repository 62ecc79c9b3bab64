//! Processes that die at every output, and two that overlap.

use fastrand::Rng;
use serde_json::json;

use crate::world::{Crash, FAILS, Fault, HANGS, Script, World, millis, seconds};

/// A hook whose containers fail, hang and succeed; some of its pods are named, and one of them is missing at first.
fn world(is_named: bool) -> World {
    let pods = json!([{ "podName": "p0" }, { "podName": "p1", "containerNames": ["game"] }, { "podName": "p2" },
        { "podName": "late" }]);
    let spec = if is_named {
        json!({ "podSelection": { "podContainerNamesList": pods } })
    } else {
        json!({})
    };
    let limits = json!({ "actionTimeoutSeconds": 40, "callTimeoutSeconds": 5 });
    let mut world = World::new(3, spec, limits);
    world.create_pod("p2", &["game", "proxy"]);
    world.script("p0", Script { failures: 2, ..FAILS });
    world.script("p1", HANGS);
    world
}

fn finish(world: &mut World) {
    world.run_for(seconds(20));
    world.create_pod("late", &["game"]);
    world.run_for(seconds(280));
}

#[test]
fn a_crash_at_any_output_neither_repeats_a_success_nor_loses_a_container() {
    for (is_named, seed) in [(false, None), (true, None), (false, Some(1)), (true, Some(2))] {
        let begin = |crash| {
            let mut world = world(is_named);
            world.rng = seed.map(Rng::with_seed);
            world.crash = crash;
            world.start(true, false);
            finish(&mut world);
            world.ended("ActionFailed");
            world
        };
        for output in 1..=begin(None).outputs {
            for (after, stale) in [(false, false), (false, true), (true, false), (true, true)] {
                let world = begin(Some(Crash { output, after, stale }));
                let status = world.status();
                assert_eq!(status.total, if is_named { 5 } else { 4 }, "{:?}", world.crash);
                assert!(status.failed == 1 || seed.is_some(), "{:?}", world.crash);
            }
        }
    }
}

#[test]
fn a_crash_after_a_lost_answer_follows_what_was_written() {
    for lost in 0..4 {
        let mut world = world(false);
        world.faults.writes.extend(vec![Fault::Refused; lost]);
        world.faults.writes.push_back(Fault::Lost);
        world.start(true, false);
        world.run_for(seconds(2));
        world.kill();
        world.start(true, true);
        finish(&mut world);
        world.ended("ActionFailed");
        assert_eq!((world.status().succeeded, world.status().failed), (3, 1));
    }
}

#[test]
fn results_of_two_leaders_are_merged() {
    for is_named in [false, true] {
        for offset in [0, 5, 15, 500, 1500, 4000, 7000] {
            let mut world = world(is_named);
            world.start(true, false);
            world.run_for(millis(offset));
            world.start(true, true);
            finish(&mut world);
            world.ended("ActionFailed");
            let total = if is_named { 5 } else { 4 };
            let status = world.status();
            assert_eq!((status.total, status.failed), (total, 1), "{offset}");
            let completed = world.log.iter().filter(|line| *line == "completed");
            assert_eq!(completed.count(), 1, "{:?}", world.log);
        }
    }
}

/// The first leader times out a container in which the second one succeeds a moment before.
#[test]
fn a_failure_that_another_leader_has_overtaken_does_not_fail_the_hook() {
    let limits = json!({ "actionTimeoutSeconds": 10, "callTimeoutSeconds": 20 });
    let mut world = World::new(3, json!({}), limits);
    world.slow = Some(0);
    for (pod, script) in [("p0", FAILS), ("p1", succeeds(9900)), ("p2", succeeds(9500))] {
        world.script(pod, script);
    }
    world.start(true, false);
    world.run_for(millis(7950));
    world.script("p0", succeeds(2010));
    world.start(true, false);
    world.run_for(seconds(60));
    world.ended("ActionSucceeded");
}

/// The second leader succeeds in a pod which the first one finds gone before that is recorded.
#[test]
fn a_success_that_another_leader_has_recorded_as_a_failure_fails_the_hook() {
    let mut world = World::new(4, json!({}), json!({ "callTimeoutSeconds": 3600 }));
    world.slow = Some(1);
    for (pod, script) in [
        ("p0", FAILS),
        ("p1", HANGS),
        ("p2", HANGS),
        ("p3", succeeds(14_050)),
    ] {
        world.script(pod, script);
    }
    world.start(true, false);
    world.run_for(millis(12_900));
    for (pod, takes) in [("p0", 2100), ("p1", 2300), ("p2", 1600)] {
        world.script(pod, succeeds(takes));
    }
    world.start(true, false);
    world.run_for(millis(2120));
    world.pods.remove("p0");
    world.run_for(seconds(60));
    world.ended("ActionFailed");
}

fn succeeds(after: u64) -> Script {
    Script {
        failures: 0,
        takes: millis(after),
    }
}
