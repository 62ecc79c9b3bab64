//! The HookAction: missing, invalid, changed, or not shown by the API server.

use serde_json::json;
use shared_api::hook_action::HookActionFields;

use crate::world::{FAILS, Fault, Script, World, millis, seconds};

type Change = fn(&mut World);

fn fields(world: &mut World) -> &mut HookActionFields {
    &mut world.action.as_mut().unwrap().fields
}

/// Changes of a HookAction that end a hook.
const CHANGES: [(&str, Change); 4] = [
    ("its command", |world| {
        fields(world).action.exec.as_mut().unwrap().command = vec!["wipe".to_owned()];
    }),
    ("an invalid field", |world| {
        fields(world).call_timeout_seconds = Some(0);
    }),
    ("its UID", |world| {
        world.action.as_mut().unwrap().metadata.uid = None;
    }),
    ("its deletion", |world| world.action = None),
];

/// Reasons for which a hook waits, and their causes.
const CAUSES: [(&str, &str, Change); 4] = [
    ("ActionNotFound", "HookAction a does not exist", |world| {
        world.action = None;
    }),
    (
        "InvalidAction",
        "HookAction a: action: one of exec, httpGet and tcpSocket must be set",
        |world| fields(world).action.exec = None,
    ),
    ("ActionNotRead", "failed to read HookAction a: 503", |world| {
        world.faults.actions = 12;
    }),
    ("PodsNotListed", "failed to call: 503", |world| {
        world.faults.lists = 12;
    }),
];

#[test]
fn a_hook_waits_for_its_action_and_says_so_once() {
    for (reason, message, spoil) in CAUSES {
        let mut world = World::new(2, json!({}), json!({}));
        let action = world.action.clone();
        spoil(&mut world);
        world.start(true, false);
        world.run_for(seconds(90));
        let condition = world.condition();
        assert_eq!(condition.0, reason);
        assert!(condition.1.starts_with(message), "{}", condition.1);
        assert_eq!(world.log, [format!("waits {reason}: {}", condition.1)]);
        assert_eq!((world.commands.len(), world.writes.len()), (0, 1));
        assert!(world.outputs < 40, "{} outputs", world.outputs);
        world.action = action;
        world.run_for(seconds(40));
        world.ended("ActionSucceeded");
        assert_eq!(world.commands.len(), 2);
    }
}

/// The first write fails, and before the second one the watch shows the hook and the action appears.
#[test]
fn a_reason_that_was_never_recorded_is_not_reported() {
    let mut world = World::new(1, json!({}), json!({}));
    let action = world.action.take();
    world.faults.writes.push_back(Fault::Refused);
    world.start(true, false);
    world.run_for(millis(500));
    world.edit(|_| {});
    world.action = action;
    world.run_for(seconds(60));
    world.ended("ActionSucceeded");
    assert_eq!(world.log, ["completed"]);
}

#[test]
fn a_changed_action_ends_the_hook() {
    for restart in [false, true] {
        for (name, change) in CHANGES {
            let mut world = World::new(2, json!({}), json!({ "actionTimeoutSeconds": 3600 }));
            world.script("p0", FAILS);
            world.start(true, false);
            world.run_for(seconds(5));
            let tries = world.commands.len();
            change(&mut world);
            if restart {
                world.kill();
                world.start(true, true);
            }
            world.run_for(seconds(40));
            world.ended("ActionChanged");
            let most = if restart { tries } else { tries + 4 };
            assert!(
                world.commands.len() <= most,
                "{name}: {} commands",
                world.commands.len()
            );
            assert_eq!(
                (world.status().succeeded, world.status().failed),
                (1, 1),
                "{name}"
            );
        }
    }
}

#[test]
fn new_time_limits_of_an_action_apply_to_a_hook_that_runs() {
    let mut world = World::new(2, json!({}), json!({ "actionTimeoutSeconds": 3600 }));
    world.script("p0", FAILS);
    world.start(true, false);
    world.run_for(seconds(5));
    fields(&mut world).action_timeout_seconds = Some(60);
    world.action.as_mut().unwrap().metadata.generation = Some(2);
    world.run_for(seconds(100));
    world.ended("ActionFailed");
    assert_eq!(
        world.recorded("p0", "game").error.unwrap().reason.unwrap(),
        "ActionTimedOut"
    );
}

#[test]
fn an_api_server_that_does_not_show_the_action_changes_nothing_after_the_start() {
    for restart in [false, true] {
        let mut world = World::new(1, json!({}), json!({}));
        world.script("p0", Script { failures: 8, ..FAILS });
        world.start(true, false);
        world.run_for(seconds(10));
        world.faults.actions = 3;
        if restart {
            world.kill();
            world.start(true, false);
        }
        world.run_for(seconds(600));
        world.ended("ActionSucceeded");
        let waits = world
            .log
            .iter()
            .filter(|line| line.starts_with("waits ActionNotRead"));
        assert_eq!(waits.count(), usize::from(restart), "{:?}", world.log);
    }
}

#[test]
fn a_slow_answer_about_the_action_delays_no_try() {
    let mut world = World::new(1, json!({}), json!({}));
    world.script("p0", FAILS);
    world.start(true, false);
    world.run_for(seconds(20));
    world.action_takes = seconds(25);
    world.run_for(seconds(30));
    let starts = world.commands.iter().map(|command| command.start.as_secs());
    assert_eq!(starts.collect::<Vec<_>>(), [0, 1, 3, 7, 15, 31]);
}

/// The write that says why the hook waits is less than a second ago.
#[test]
fn a_hook_that_waited_records_its_containers_before_the_first_command() {
    let mut world = World::new(2, json!({}), json!({}));
    let action = world.action.take();
    world.start(true, false);
    world.run_for(millis(300));
    assert_eq!(world.writes.len(), 1);
    world.action = action;
    world.edit(|hook| hook.spec.parallelism = Some(3));
    world.run_for(seconds(30));
    world.ended("ActionSucceeded");
}

/// The spec is edited while the first HookAction is being read, where nothing forbids it.
#[test]
fn an_edit_of_the_name_before_the_start_runs_the_other_action() {
    let mut world = World::new(1, json!({}), json!({}));
    let action = world.action.take();
    world.start(true, false);
    world.run_for(seconds(3));
    world.edit(|hook| hook.spec.action_name = "another".to_owned());
    world.action = action;
    world.run_for(seconds(60));
    assert_eq!(world.commands.len(), 0, "the world has the action a alone");
    world.edit(|hook| hook.spec.action_name = "a".to_owned());
    world.run_for(seconds(60));
    world.ended("ActionSucceeded");
}
