//! Writes that fail, conflict, or are written although the answer is lost.

use serde_json::json;

use crate::world::{FAILS, Fault, HANGS, Script, World, millis, seconds};

fn begin(faults: Vec<Fault>) -> World {
    let mut world = World::new(4, json!({}), json!({ "actionTimeoutSeconds": 600 }));
    world.script("p0", Script { failures: 2, ..FAILS });
    world.faults.writes.extend(faults);
    world.start(true, false);
    world
}

#[test]
fn no_result_is_lost_when_writes_fail() {
    for first in 0..4 {
        for fault in [Fault::Refused, Fault::Lost] {
            for number in [1, 2, 5, 9] {
                let mut world = begin(Vec::new());
                world.run_for(millis([0, 1, 20, 1500][first]));
                world.faults.writes.extend(vec![fault; number]);
                world.run_for(seconds(120));
                world.ended("ActionSucceeded");
                assert_eq!(world.commands.len(), 6);
            }
        }
    }
}

#[test]
fn a_failing_write_backs_off_and_is_reported_at_the_fifth_failure() {
    let mut world = begin(vec![Fault::Refused; 4]);
    world.run_for(seconds(60));
    world.ended("ActionSucceeded");
    assert_eq!(world.log, ["completed"]);
    let mut world = begin(vec![Fault::Refused; 300]);
    world.run_for(seconds(1000));
    assert_eq!(world.log, ["not recorded", "not recorded"]);
    assert_eq!(world.commands.len(), 0);
    let pairs = world.writes.windows(2);
    let gaps: Vec<u128> = pairs.map(|pair| pair[1].abs_diff(pair[0]).as_millis()).collect();
    assert_eq!(gaps[..7], [1000, 1000, 1000, 1600, 3200, 5000, 5000]);
    world.run_for(seconds(1000));
    world.ended("ActionSucceeded");
}

#[test]
fn a_hook_that_others_edit_all_the_time_still_ends() {
    for seen in [false, true] {
        let mut world = begin(Vec::new());
        for _ in 0..600 {
            world.run_for(millis(97));
            if seen {
                world.edit(|_| {});
            } else {
                world.edit_unseen(|_| {});
            }
        }
        world.run_for(seconds(10));
        world.ended("ActionSucceeded");
        assert_eq!(world.commands.len(), 6);
    }
}

/// Removes the status after that time, as a restore from a backup does.
fn remove_status(after: u64) {
    let mut world = begin(Vec::new());
    world.run_for(millis(after));
    world.edit(|hook| hook.status = None);
    world.run_for(seconds(600));
    world.ended("ActionSucceeded");
    assert_eq!(world.status().total, 4);
}

#[test]
fn a_status_that_others_remove_is_recorded_again() {
    remove_status(20);
    remove_status(500);
    remove_status(2500);
}

#[test]
fn a_status_that_others_remove_after_the_end_is_recorded_again() {
    remove_status(60_000);
}

#[test]
fn a_hook_that_cannot_be_read_is_not_started() {
    let mut world = begin(Vec::new());
    world.faults.reads = 7;
    world.run_for(seconds(6));
    assert_eq!((world.commands.len(), world.writes.len()), (0, 0));
    world.run_for(seconds(60));
    world.ended("ActionSucceeded");
    assert_eq!(world.log, ["not recorded", "completed"]);
}

#[test]
fn an_idle_execution_sleeps() {
    for parallelism in [1, 64] {
        let mut world = World::new(
            4,
            json!({ "parallelism": parallelism }),
            json!({ "callTimeoutSeconds": 3600 }),
        );
        world.script("p3", HANGS);
        for pod in ["p0", "p1", "p2"] {
            world.script(pod, FAILS);
        }
        world.start(true, false);
        world.run_for(seconds(120));
        let before = world.outputs;
        world.run_for(seconds(3000));
        let outputs = world.outputs - before;
        // Each check of the action is one, and each try costs a request and a write.
        let most = if parallelism == 1 { 110 } else { 110 + 3 * 50 * 5 };
        assert!(outputs < most, "{outputs} outputs");
    }
}
