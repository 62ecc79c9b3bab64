//! Tests of the outlook, over the cases of gamedeployment-operator's rules.

use gamedeployment_core::revision::name_of;
use gamedeployment_core::template::Template;
use serde_json::json;

use super::*;
use crate::view::samples;

const FLAGS: &str = " -n games";
const STATUS: &str = "kubectl game status arena -n games  # wait until the rollout is complete";
const RESUME: &str = "kubectl game resume arena -n games  # start the update";
const WATCH_IT: &str = "kubectl game get arena -w -n games  # watch";
const PROMOTE_2: &str =
    "kubectl game promote arena -n games  # continue past the pause at step 2 once it is reached";
const REMOVE_STEPS: &str = "kubectl patch gd arena --type=merge -p \
    '{\"spec\":{\"updateStrategy\":{\"canary\":null,\"paused\":null}}}' -n games  # remove the canary steps and any \
    pause from the spec, to roll back without them";
const PATCHED: &str = "Pods are hot-patched while in service, without running a hook, as maxUnavailable allows. A \
    kubelet without support for hot patches restarts the container, which disconnects players.";
const GATED: &str = "Each pod is updated once its hook succeeds and maxUnavailable allows it.";
/// Last completed revision of the samples.
const COMPLETE: Target<'static> = Target::Known("arena-7d4b9c");
/// Another revision.
const OTHER: Target<'static> = Target::Known("arena-5f6d8b");

/// Returns a complete workload with these fields of its update strategy, three replicas and a `PreDelete` hook.
fn with(strategy: Value) -> GameDeployment {
    let mut game = samples::complete().game;
    game.spec.update_strategy = Some(serde_json::from_value(strategy).unwrap());
    game
}

/// Returns a complete workload with these canary steps.
fn canary(steps: &Value) -> GameDeployment {
    with(json!({ "type": "InplaceUpdate", "canary": { "steps": steps } }))
}

/// Returns a workload with these canary steps, whose rollout has reached the step with this index.
fn at_step(steps: &Value, index: i32) -> GameDeployment {
    let mut game = samples::canary("PausedByCanaryPauseStep", true).game;
    let strategy = game.spec.update_strategy.as_mut().unwrap();
    strategy.canary = Some(serde_json::from_value(json!({ "steps": steps })).unwrap());
    let status = game.status.as_mut().unwrap();
    status.current_step_index = Some(index);
    status.current_revision = Some("arena-5f6d8b".to_owned());
    game
}

fn shown(answer: &Answer) -> (&str, Vec<String>) {
    let next = answer.next.iter().map(ToString::to_string);
    (&answer.message, next.collect())
}

fn check(game: &GameDeployment, target: Target<'_>, message: &str, commands: &[&str]) {
    let answer = Outlook::of(game, FLAGS).update(target);
    let commands: Vec<String> = commands.iter().map(ToString::to_string).collect();
    assert_eq!(shown(&answer), (message, commands));
}

#[test]
fn the_message_says_that_idle_pods_are_updated_first() {
    let idle = " The hook first runs for candidates, and those whose hook succeeds first are selected (selectionPolicy \
                FirstIdle).";
    for (type_, has_effect) in [
        ("RollingUpdate", true),
        ("InplaceUpdate", true),
        ("HotPatchUpdate", false),
        ("OnDelete", false),
        ("Recreate", false),
    ] {
        let mut game = with(json!({ "type": type_, "selectionPolicy": "FirstIdle" }));
        let message = Outlook::of(&game, FLAGS).update(OTHER).message;
        assert_eq!(message.contains(idle), has_effect, "{type_}: {message}");
        game.spec.pre_delete_update_strategy = None;
        let message = Outlook::of(&game, FLAGS).update(OTHER).message;
        assert!(!message.contains(idle), "no hook finds idle pods: {message}");
    }
}

fn two_steps() -> Value {
    json!([{ "partition": 2 }, { "pause": {} }])
}

#[test]
fn each_type_of_update_says_when_a_pod_is_updated() {
    let recreate = "All pods of other revisions are deleted, each once its hook succeeds; new pods are created after \
                    the last one is gone.";
    let on_delete = "With OnDelete, a pod is updated only when a user deletes it, and no hook runs.";
    for (strategy, message, command) in [
        (json!({}), GATED, STATUS),
        (json!({ "type": "RollingUpdate" }), GATED, STATUS),
        (json!({ "type": "InplaceUpdate" }), GATED, STATUS),
        (json!({ "type": "HotPatchUpdate" }), PATCHED, STATUS),
        (json!({ "type": "OnDelete" }), on_delete, WATCH_IT),
        (json!({ "type": "Recreate" }), recreate, STATUS),
        (
            json!({ "type": "RollingUpdate", "partition": "50%" }),
            "Each pod is updated once its hook succeeds and maxUnavailable allows it. spec.updateStrategy.partition \
             keeps up to 2 of 3 pods at old revisions.",
            STATUS,
        ),
    ] {
        check(&with(strategy), OTHER, message, &[command]);
    }
}

#[test]
fn without_a_hook_before_the_update_pods_wait_for_none() {
    let mut game = with(json!({ "type": "InplaceUpdate" }));
    game.spec.pre_delete_update_strategy = None;
    let none =
        "Pods are updated as maxUnavailable allows, without running a hook, which disconnects their players.";
    check(&game, OTHER, none, &[STATUS]);
    let restart = none.replace("updated", "replaced");
    check(&game, Target::Restart, &restart, &[STATUS]);
    let hook = json!({ "hook": { "templateName": "empty" } });
    game.spec.post_inplace_update_strategy = Some(serde_json::from_value(hook.clone()).unwrap());
    check(&game, OTHER, none, &[STATUS]);
    game.spec.pre_inplace_update_strategy = Some(serde_json::from_value(hook).unwrap());
    check(&game, OTHER, GATED, &[STATUS]);
    let mut recreate = with(json!({ "type": "Recreate" }));
    recreate.spec.pre_delete_update_strategy = None;
    let message = "All pods of other revisions are deleted without running a hook, which disconnects their players; \
                   new pods are created after the last one is gone.";
    check(&recreate, OTHER, message, &[STATUS]);
}

#[test]
fn a_pod_that_cannot_be_patched_is_replaced_with_the_fallback_alone() {
    let in_place = json!({ "fallback": "Recreate" });
    let mut game = with(json!({ "type": "HotPatchUpdate", "inPlaceUpdateStrategy": in_place }));
    let gated = format!("{PATCHED} A pod that cannot be patched is replaced once its hook succeeds.");
    check(&game, OTHER, &gated, &[STATUS]);
    let template = game.spec.template.value();
    check(&game, Target::OfTemplate(&template), &gated, &[STATUS]);
    // Before a pod is replaced, the hook of in-place updates runs if no other is set.
    game.spec.pre_inplace_update_strategy = game.spec.pre_delete_update_strategy.take();
    check(&game, OTHER, &gated, &[STATUS]);
    game.spec.pre_inplace_update_strategy = None;
    let open = format!("{PATCHED} A pod that cannot be patched is replaced, which disconnects its players.");
    check(&game, OTHER, &open, &[STATUS]);
}

#[test]
fn canary_steps_are_announced_with_the_first_pause_that_needs_a_person() {
    let timed = json!([{ "partition": 2 }, { "pause": { "duration": 600 } }]);
    let later = json!([
        { "partition": 2 }, { "pause": { "duration": 600 } }, { "partition": 1 }, { "pause": {} }, { "pause": {} }
    ]);
    let promote_4 = PROMOTE_2.replace("step 2", "step 4");
    let promote_1 = PROMOTE_2.replace("step 2", "step 1");
    for (steps, sentence, commands) in [
        (
            two_steps(),
            "The 2 canary steps run first; the update pauses at step 2.",
            vec![WATCH_IT, PROMOTE_2],
        ),
        (timed, "The 2 canary steps run first.", vec![STATUS]),
        (
            later,
            "The 5 canary steps run first; the update pauses at step 4.",
            vec![WATCH_IT, promote_4.as_str()],
        ),
        (
            json!([{ "partition": 2, "pause": {} }]),
            "The canary step runs first; the update pauses at step 1.",
            vec![WATCH_IT, promote_1.as_str()],
        ),
        (
            json!([{ "hook": { "templateName": "healthy" } }]),
            "The canary step runs first.",
            vec![STATUS],
        ),
    ] {
        let message = format!("{sentence} {GATED}");
        check(&canary(&steps), OTHER, &message, &commands);
    }
    // The steps replace the partition.
    let game = with(json!({ "partition": 2, "canary": { "steps": two_steps() } }));
    let message = format!("The 2 canary steps run first; the update pauses at step 2. {GATED}");
    check(&game, OTHER, &message, &[WATCH_IT, PROMOTE_2]);
    let game = with(json!({ "type": "OnDelete", "canary": { "steps": two_steps() } }));
    let message = "The 2 canary steps run first; the update pauses at step 2. With OnDelete, a pod is updated only \
                   when a user deletes it, and no hook runs.";
    check(&game, OTHER, message, &[WATCH_IT, PROMOTE_2]);
    // With Recreate, steps are invalid.
    let game = with(json!({ "type": "Recreate", "canary": { "steps": two_steps() } }));
    let answer = Outlook::of(&game, FLAGS).update(OTHER);
    assert!(!answer.message.contains("canary"), "{answer:?}");
}

#[test]
fn a_new_template_in_the_middle_begins_at_the_first_step() {
    let steps = json!([{ "pause": {} }, { "partition": 1 }, { "pause": { "duration": 600 } }]);
    let mut game = at_step(&steps, 2);
    game.spec.update_strategy.as_mut().unwrap().paused = None;
    let message = format!("The 3 canary steps run first; the update pauses at step 1. {GATED}");
    let promote = PROMOTE_2.replace("step 2", "step 1");
    let another = Target::Known("arena-6c8d7f");
    check(&game, another, &message, &[WATCH_IT, promote.as_str()]);
}

#[test]
fn the_way_back_and_the_first_rollout_run_no_canary_step() {
    let back =
        format!("This is the last completed revision, so rolling back to it skips canary steps. {GATED}");
    let complete = canary(&two_steps());
    check(&complete, COMPLETE, &back, &[STATUS]);
    let steps = json!([{ "partition": 1 }, { "pause": { "duration": 600 } }, { "pause": {} }]);
    let mut middle = at_step(&steps, 1);
    middle.spec.update_strategy.as_mut().unwrap().paused = None;
    check(&middle, OTHER, &back, &[STATUS]);
    // The revision of the canary's status counts if no other is recorded.
    let mut of_canary = complete.clone();
    let status = of_canary.status.as_mut().unwrap();
    status.current_revision = None;
    status.canary = Some(serde_json::from_value(json!({ "revision": "arena-5f6d8b" })).unwrap());
    check(&of_canary, OTHER, &back, &[STATUS]);

    let first = format!("This is the first rollout, so canary steps are skipped. {GATED}");
    let mut unknown = complete.clone();
    unknown.status = None;
    check(&unknown, OTHER, &first, &[STATUS]);
    // A first rollout that is not complete: its pods have a revision.
    let mut incomplete = complete;
    incomplete.status.as_mut().unwrap().current_revision = None;
    check(&incomplete, COMPLETE, &back, &[STATUS]);
    let steps = format!("The 2 canary steps run first; the update pauses at step 2. {GATED}");
    check(&incomplete, OTHER, &steps, &[WATCH_IT, PROMOTE_2]);
    incomplete.status.as_mut().unwrap().replicas = 0;
    check(&incomplete, OTHER, &first, &[STATUS]);
}

#[test]
fn a_template_is_recognized_as_that_of_the_last_complete_revision() {
    let mut game = canary(&two_steps());
    let template = game.spec.template.value();
    let target = Target::OfTemplate(&template);
    let steps = format!("The 2 canary steps run first; the update pauses at step 2. {GATED}");
    check(&game, target, &steps, &[WATCH_IT, PROMOTE_2]);
    let back =
        format!("This is the last completed revision, so rolling back to it skips canary steps. {GATED}");
    for collisions in [0, 2] {
        let name = name_of("arena", &Template::read(&template), collisions);
        let status = game.status.as_mut().unwrap();
        status.current_revision = Some(name);
        status.collision_count = Some(collisions);
        check(&game, target, &back, &[STATUS]);
    }
}

#[test]
fn a_paused_update_is_resumed_first() {
    let paused = |mut game: GameDeployment| {
        game.spec.update_strategy.get_or_insert_default().paused = Some(true);
        game
    };
    let message = "Updates are paused: no pod is updated until they are resumed.";
    let types = [
        "RollingUpdate",
        "InplaceUpdate",
        "HotPatchUpdate",
        "OnDelete",
        "Recreate",
    ];
    for type_ in types {
        let game = paused(with(json!({ "type": type_, "partition": 1 })));
        check(&game, OTHER, message, &[RESUME]);
    }
    let game = paused(canary(&two_steps()));
    let steps = format!("{message} The 2 canary steps will then run first.");
    check(&game, OTHER, &steps, &[RESUME]);
    let answer = Outlook::of(&game, FLAGS).undo("arena-5f6d8b");
    assert_eq!(shown(&answer), (steps.as_str(), vec![RESUME.to_owned()]));
    let back = format!("{message} No canary steps will run.");
    // A step has paused it.
    check(&at_step(&two_steps(), 1), OTHER, &back, &[RESUME]);
    let restart = "Updates are paused: no pod is replaced until they are resumed.";
    check(&paused(with(json!({}))), Target::Restart, restart, &[RESUME]);
}

#[test]
fn a_restart_replaces_pods_and_runs_canary_steps() {
    let replaced = "Each pod is replaced once its hook succeeds and maxUnavailable allows it.";
    for type_ in ["RollingUpdate", "InplaceUpdate", "HotPatchUpdate"] {
        check(
            &with(json!({ "type": type_ })),
            Target::Restart,
            replaced,
            &[STATUS],
        );
    }
    let message = format!("The 2 canary steps run first; the update pauses at step 2. {replaced}");
    check(
        &canary(&two_steps()),
        Target::Restart,
        &message,
        &[WATCH_IT, PROMOTE_2],
    );
}

#[test]
fn lifecycle_hooks_are_mentioned() {
    let mut game = with(json!({ "type": "InplaceUpdate" }));
    let hook = samples::lifecycle_hook("migrate", json!({ "type": "Pre" }));
    game.spec.lifecycle_hooks = Some(serde_json::from_value(json!([hook])).unwrap());
    let message = format!("{GATED} Lifecycle hooks run at their trigger points.");
    check(&game, OTHER, &message, &[STATUS]);
}

#[test]
fn a_rollback_of_a_complete_rollout_says_how_to_be_faster() {
    let undo = |game: &GameDeployment, revision: &str| Outlook::of(game, FLAGS).undo(revision);
    let answer = undo(&canary(&two_steps()), "arena-5f6d8b");
    let message = format!(
        "The 2 canary steps run first; the update pauses at step 2. {GATED} To roll back faster, promote at each \
         pause, or remove the canary steps and any pause."
    );
    let commands = [WATCH_IT, PROMOTE_2, REMOVE_STEPS].map(str::to_owned);
    assert_eq!(shown(&answer), (message.as_str(), commands.to_vec()));
    let timed = json!([{ "partition": 2 }, { "pause": { "duration": 600 } }]);
    let answer = undo(&canary(&timed), "arena-5f6d8b");
    let message = format!(
        "The 2 canary steps run first. {GATED} To roll back faster, remove the canary steps and any pause."
    );
    let commands = [STATUS, REMOVE_STEPS].map(str::to_owned);
    assert_eq!(shown(&answer), (message.as_str(), commands.to_vec()));
    let kept = undo(
        &with(json!({ "partition": 2, "canary": { "steps": timed } })),
        "arena-5f6d8b",
    );
    let message =
        format!("{message} spec.updateStrategy.partition then keeps up to 2 of 3 pods at old revisions.");
    assert_eq!(shown(&kept), (message.as_str(), commands.to_vec()));
    // Nothing delays these.
    let back = undo(&canary(&two_steps()), "arena-7d4b9c");
    assert!(
        !back.message.contains("faster") && back.next.len() == 1,
        "{back:?}"
    );
    let direct = undo(&with(json!({ "type": "InplaceUpdate" })), "arena-5f6d8b");
    assert_eq!(shown(&direct), (GATED, vec![STATUS.to_owned()]));
}

#[test]
fn a_rollout_that_goes_on_says_which_step_pauses_next() {
    let resumed = |game: &GameDeployment| {
        let answer = Outlook::of(game, FLAGS).resumed("It continues.".to_owned());
        let (message, next) = shown(&answer);
        assert_eq!(next.len(), 1, "{answer:?}");
        (message.to_owned(), next[0].clone())
    };
    let steps = json!([{ "partition": 2 }, { "pause": {} }, { "partition": 1 }, { "pause": {} }]);
    let unrecorded = |index| {
        let mut game = at_step(&steps, index);
        game.status.as_mut().unwrap().pause_conditions.clear();
        game
    };
    for (game, step) in [
        // The pause at step 2 ends.
        (at_step(&steps, 1), Some(4)),
        (at_step(&steps, 3), None),
        // A person has paused it before.
        (unrecorded(0), Some(2)),
        (unrecorded(1), Some(2)),
        (unrecorded(2), Some(4)),
        (unrecorded(4), None),
    ] {
        let expected = match step {
            Some(step) => (
                format!("It continues. The next pause is at step {step}."),
                format!("kubectl game get arena -w -n games  # watch until the pause at step {step}"),
            ),
            None => ("It continues.".to_owned(), STATUS.to_owned()),
        };
        assert_eq!(resumed(&game), expected, "{:?}", game.status);
    }
    let plain = |command: &str| ("It continues.".to_owned(), command.to_owned());
    let timed = json!([{ "partition": 2 }, { "pause": { "duration": 600 } }]);
    assert_eq!(resumed(&at_step(&timed, 0)), plain(STATUS));
    let mut back = at_step(&steps, 0);
    let status = back.status.as_mut().unwrap();
    status.current_revision.clone_from(&status.update_revision);
    assert_eq!(resumed(&back), plain(STATUS), "a rollback");
    assert_eq!(resumed(&samples::rolled_back().game), plain(WATCH_IT), "aborted");
    let mut on_delete = samples::paused().game;
    on_delete.spec.update_strategy = serde_json::from_value(json!({ "type": "OnDelete" })).unwrap();
    assert_eq!(resumed(&on_delete), plain(WATCH_IT), "users delete pods");
}

#[test]
fn a_status_of_an_earlier_spec_names_no_step() {
    let mut game = at_step(&two_steps(), 1);
    game.metadata.generation = Some(4);
    let resumed = |game: &GameDeployment| {
        let answer = Outlook::of(game, FLAGS).resumed("It continues.".to_owned());
        assert_eq!(answer.message, "It continues.");
        shown(&answer).1
    };
    assert_eq!(resumed(&game), [WATCH_IT]);
    let name = name_of("arena", &Template::read(&game.spec.template.value()), 0);
    game.status.as_mut().unwrap().current_revision = Some(name);
    assert_eq!(resumed(&game), [STATUS], "the template is set back");
}
