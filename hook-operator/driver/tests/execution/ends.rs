//! Ends of a hook before its containers have ended, and its deletion after it has finished.

use serde_json::json;
use shared_api::ExecutionHook;

use crate::world::{Crash, FAILS, Fault, HANGS, World, millis, seconds};

/// Starts a hook of which one container has succeeded, one fails and one hangs.
fn begin(spec: serde_json::Value) -> World {
    let mut world = World::new(3, spec, json!({}));
    world.script("p0", FAILS);
    world.script("p1", HANGS);
    world.start(true, false);
    world.run_for(seconds(5));
    assert_eq!(world.status().succeeded, 1);
    world
}

#[test]
fn an_edit_ends_the_hook_and_no_command_follows() {
    type Change = fn(&mut ExecutionHook);
    let terminate: Change = |hook| hook.spec.terminate = Some(true);
    let respecify: Change = |hook| hook.spec.parallelism = Some(2);
    for (change, reason) in [(terminate, "HookTerminated"), (respecify, "SpecChanged")] {
        for restart in [false, true] {
            let mut world = begin(json!({}));
            let tries = world.commands.len();
            world.edit(change);
            if restart {
                world.kill();
                world.start(true, true);
            }
            world.run_for(seconds(300));
            world.ended(reason);
            assert_eq!((world.commands.len(), world.status().failed), (tries, 2));
            let errors = ["p0", "p1"].map(|pod| world.recorded(pod, "game").error.unwrap());
            let reasons = errors.map(|error| error.reason.unwrap());
            assert_eq!(reasons, ["HookEnded", "HookEnded"]);
            assert_eq!(world.recorded("p2", "game").succeed, Some(true));
        }
    }
}

#[test]
fn a_hook_that_has_not_begun_ends_without_a_command() {
    let (ended, invalid) = ("HookTerminated", "InvalidHook");
    for (spec, timeout, reason) in [
        (json!({}), 0, ended),
        (json!({ "terminate": true }), 1, ended),
        (json!({ "parallelism": 0 }), 1, invalid),
        (json!({ "podSelection": {} }), 1, invalid),
    ] {
        let mut world = World::new(2, spec, json!({ "callTimeoutSeconds": timeout }));
        world.start(true, false);
        world.run_for(seconds(20));
        if timeout == 0 {
            world.edit(|hook| hook.spec.terminate = Some(true));
        }
        world.run_for(seconds(20));
        world.ended(reason);
        assert_eq!((world.commands.len(), world.status().total), (0, 0));
    }
}

#[test]
fn nothing_is_started_in_a_hook_that_is_deleted() {
    for after in [None, Some(5)] {
        let mut world = World::new(2, json!({}), json!({}));
        world.script("p0", FAILS);
        world.start(true, false);
        if let Some(after) = after {
            world.run_for(seconds(after));
        }
        let tries = world.commands.len();
        world.delete();
        world.run_for(seconds(300));
        assert_eq!(world.commands.len(), tries);
        assert!(world.status().completion_time.is_none());
    }
}

#[test]
fn a_disabled_operator_ends_the_hook_before_anything_runs() {
    let mut world = World::new(2, json!({}), json!({}));
    world.start(false, false);
    world.run_for(seconds(60));
    world.ended("ExecutionHooksDisabled");
    assert_eq!(world.commands.len(), 0);
    let mut world = begin(json!({}));
    let tries = world.commands.len();
    world.kill();
    world.start(false, true);
    world.run_for(seconds(60));
    world.ended("ExecutionHooksDisabled");
    assert_eq!((world.commands.len(), world.status().failed), (tries, 2));
}

#[test]
fn a_finished_hook_is_deleted_when_its_time_to_live_has_passed() {
    for (ttl, wanted) in [(json!(0), 0), (json!(100), 100), (json!(null), 3600)] {
        for restart in [false, true] {
            let mut world = World::new(2, json!({ "ttlSecondsAfterFinished": ttl }), json!({}));
            world.start(true, false);
            world.run_for(millis(1500));
            world.ended("ActionSucceeded");
            if restart {
                world.kill();
                world.start(true, false);
            }
            world.run_for(seconds(4000));
            assert!(world.hook.is_none());
            let deleted = format!("deleted at {wanted}s");
            assert!(world.log.contains(&deleted), "{:?}", world.log);
            assert!(world.outputs < 200, "{} outputs", world.outputs);
        }
    }
}

#[test]
fn a_deletion_that_fails_is_repeated_and_keeps_the_results() {
    for failures in [1, 3, 8] {
        let mut world = World::new(2, json!({ "ttlSecondsAfterFinished": 10 }), json!({}));
        world.start(true, false);
        world.faults.deletions = failures;
        world.run_for(seconds(300));
        assert!(world.hook.is_none());
        assert_eq!(world.status().hook_statuses.len(), 2);
        let completed = world.log.iter().filter(|line| *line == "completed");
        assert_eq!(completed.count(), 1, "{:?}", world.log);
    }
}

#[test]
fn a_deletion_of_a_hook_that_was_edited_is_repeated() {
    let mut world = World::new(2, json!({ "ttlSecondsAfterFinished": 10 }), json!({}));
    world.start(true, false);
    world.run_for(seconds(5));
    world.edit_unseen(|hook| hook.spec.terminate = Some(true));
    world.run_for(seconds(30));
    assert!(world.hook.is_none());
    assert_eq!(world.status().hook_statuses.len(), 2);
}

#[test]
fn an_execution_of_a_hook_that_is_gone_ends() {
    for output in 1..12 {
        let mut world = begin(json!({}));
        world.hook = None;
        let (output, after, stale) = (world.outputs + output, true, true);
        world.crash = Some(Crash { output, after, stale });
        world.run_for(seconds(300));
        assert!(world.log.contains(&"end".to_owned()), "{output}: {:?}", world.log);
    }
}

/// The end is not recorded, as the API server refuses it twice, and meanwhile its cause is withdrawn.
#[test]
fn an_end_whose_cause_is_withdrawn_before_it_is_recorded_leaves_nothing() {
    type Change = fn(&mut ExecutionHook);
    let terminate: [Change; 2] = [
        |hook| hook.spec.terminate = Some(true),
        |hook| hook.spec.terminate = None,
    ];
    let respecify: [Change; 2] = [
        |hook| hook.spec.parallelism = Some(2),
        |hook| hook.spec.parallelism = None,
    ];
    for [change, withdraw] in [terminate, respecify] {
        let mut world = World::new(3, json!({}), json!({ "actionTimeoutSeconds": 100 }));
        world.script("p0", FAILS);
        world.script("p1", HANGS);
        world.start(true, false);
        world.run_for(seconds(5));
        world.faults.writes.extend([Fault::Refused, Fault::Refused]);
        world.edit(change);
        world.run_for(millis(300));
        world.edit(withdraw);
        world.run_for(seconds(300));
        world.ended("ActionFailed");
        let reasons = ["p0", "p1"].map(|pod| world.recorded(pod, "game").error.unwrap().reason.unwrap());
        assert_eq!(reasons, ["ActionTimedOut", "ActionTimedOut"]);
    }
}
