//! Rollback of aborted rollouts.

use serde_json::{Value, json};
use shared_api::Phase;
use shared_api::game_deployment::LifecycleHookPhase;

use super::world::{World, hook};
use crate::plan::{Action, Warning};

/// Hook that aborts its rollout and takes updated pods back.
fn smoke(point: &Value) -> Value {
    let mut hook = hook("smoke", point);
    (hook["failurePolicy"], hook["abortAction"]) = (json!("Abort"), json!("Rollback"));
    hook
}

fn rejected(world: &World) -> Vec<&str> {
    let warnings = world.warnings.iter();
    let rejected = warnings.filter(|warning| warning.reason.as_str() == "AbortRejected");
    rejected.map(|Warning { message, .. }| message.as_str()).collect()
}

fn set_update(world: &mut World, update: Value) {
    world.object.spec.update_strategy = serde_json::from_value(update).unwrap();
}

#[test]
fn a_hook_that_fails_takes_the_updated_pods_back_and_nothing_else_happens() {
    let mut world = World::new(6, &[hook("before", &json!("Pre")), smoke(&json!("50%"))]);
    world.ends("before", Phase::Successful);
    world.settle();
    assert_eq!(world.at("new"), 3);
    world.ends("smoke", Phase::Failed);
    assert_eq!((world.at("new"), world.at("old")), (0, 6), "{:?}", world.log);
    let back = world.rollback().unwrap();
    assert_eq!(
        (back.from_revision.as_str(), back.to_revision.as_str()),
        ("new", "old")
    );
    for (kind, status) in [
        ("Progressing", "False"),
        ("UpdateBlocked", "True"),
        ("LifecycleHooksSucceeded", "False"),
    ] {
        assert_eq!(
            world.condition(kind),
            (status.to_owned(), "LifecycleHookAborted".to_owned()),
            "{kind}"
        );
    }
    let message = world.message("UpdateBlocked");
    assert!(
        message.starts_with("lifecycle hook smoke: HookRun lifecycle-new-"),
        "{message}"
    );
    assert!(
        message.contains("no pods need to be rolled back to revision old; "),
        "{message}"
    );
    let status = world.object.status.as_ref().unwrap();
    assert_eq!(
        (status.update_revision.as_deref(), status.updated_replicas),
        (Some("new"), 0)
    );
    assert_eq!((status.updated_ready_replicas, status.ready_replicas), (0, 6));
    // Pods are replaced and added at the revision that serves.
    world.pods.pop_first();
    world.object.spec.replicas = Some(8);
    world.pass(100_000);
    world.settle();
    assert_eq!(
        (world.at("new"), world.at("old"), world.current()),
        (0, 8, Some("old"))
    );
    assert_eq!(world.runs_of("smoke").len(), 1, "kept as evidence");
}

#[test]
fn a_hook_after_the_last_pod_takes_all_pods_back() {
    let mut world = World::new(4, &[smoke(&json!("Post"))]);
    world.settle();
    assert_eq!(world.at("new"), 4);
    world.ends("smoke", Phase::Error);
    assert_eq!((world.at("old"), world.current()), (4, Some("old")));
    // Another template begins a rollout of its own; the earlier one is no longer rolled back.
    world.set_template("third", "game:v3");
    world.settle();
    assert!(
        world.rollback().is_none() && world.is_running("smoke"),
        "{:?}",
        world.log
    );
    world.ends("smoke", Phase::Successful);
    assert_eq!((world.at("third"), world.current()), (4, Some("third")));
}

#[test]
fn the_earlier_template_ends_the_rollback() {
    let mut world = World::new(4, &[smoke(&json!("50%"))]);
    world.ends("smoke", Phase::Failed);
    world.set_template("old", "game:v1");
    world.settle();
    world.ends("smoke", Phase::Successful);
    assert!(world.rollback().is_none());
    assert_eq!(world.condition("Progressing").1, "RolloutComplete");
    assert_eq!((world.at("old"), world.at("new")), (4, 0));
}

#[test]
fn other_hooks_are_stopped_and_run_again_when_the_rollout_begins_again() {
    let hooks = [
        hook("before", &json!("Pre")),
        smoke(&json!("50%")),
        hook("load", &json!("50%")),
    ];
    let mut world = World::new(4, &hooks);
    world.ends("before", Phase::Successful);
    world.settle();
    assert!(world.is_running("smoke") && world.is_running("load"));
    world.ends("smoke", Phase::Failed);
    assert!(
        world.log.contains(&"terminate load".to_owned()),
        "{:?}",
        world.log
    );
    assert_eq!(world.at("old"), 4);
    assert_eq!(world.phase("load"), LifecycleHookPhase::Waiting);
    let begun = world.made;
    // A request for a hook that did not abort the rollout begins nothing.
    world.request("lifecycle/load=1");
    world.settle();
    assert!(world.rollback().is_some());
    world.request("lifecycle/smoke=1");
    world.settle();
    assert!(world.rollback().is_none());
    assert_eq!(
        world.made, begun,
        "it waits for the end of the hook that was stopped"
    );
    world.ends("load", Phase::Inconclusive);
    assert_eq!(
        (world.at("new"), world.is_running("before")),
        (0, true),
        "from the first point on"
    );
    for hook in ["before", "smoke", "load"] {
        world.ends(hook, Phase::Successful);
    }
    assert_eq!(
        (world.at("new"), world.current()),
        (4, Some("new")),
        "{:?}",
        world.log
    );
}

#[test]
fn a_request_begins_the_rollout_again_once_for_each_text() {
    let mut world = World::new(4, &[smoke(&json!("50%"))]);
    world.request("rollout=before");
    world.ends("smoke", Phase::Failed);
    assert!(world.rollback().is_some(), "the request is older");
    for text in ["rollout=1", "rollout=2"] {
        world.request(text);
        world.settle();
        assert!(
            world.is_running("smoke") && world.at("new") == 2,
            "{:?}",
            world.log
        );
        world.ends("smoke", Phase::Failed);
        assert_eq!(world.at("new"), 0);
    }
    let status = world.object.status.as_ref().unwrap();
    assert_eq!(
        status.lifecycle_hooks[0].attempts, 3,
        "each with a HookRun of its own"
    );
}

#[test]
fn without_a_complete_revision_pods_stay_and_the_message_says_why() {
    let mut first = World::empty(4, &[smoke(&json!("50%"))]);
    first.ends("smoke", Phase::Failed);
    assert_eq!((first.at("new"), first.rollback()), (2, None));
    assert!(
        first
            .message("UpdateBlocked")
            .ends_with("; not rolled back: there is no completed rollout to roll back to"),
        "{}",
        first.message("UpdateBlocked")
    );
    // Back at the last complete revision, there is nothing to go back to.
    let mut world = World::new(4, &[smoke(&json!("Pre"))]);
    world.settle();
    world.set_template("old", "game:v1");
    world.settle();
    world.end("smoke", Phase::Inconclusive);
    world.ends("smoke", Phase::Failed);
    assert_eq!(world.rollback(), None);
    assert!(
        world
            .message("UpdateBlocked")
            .contains("; not rolled back: the last completed rollout used the same template")
    );
}

#[test]
fn a_pause_holds_the_way_back_and_partition_and_steps_do_not() {
    let mut world = World::new(4, &[smoke(&json!("50%"))]);
    world.settle();
    set_update(
        &mut world,
        json!({ "maxUnavailable": "100%", "paused": true, "partition": 3 }),
    );
    world.ends("smoke", Phase::Failed);
    assert_eq!(world.at("new"), 2);
    let message = world.message("UpdateBlocked");
    assert!(
        message.contains(
            "; 2 pods will be rolled back to revision old once spec.updateStrategy.paused is set to false; "
        ),
        "{message}"
    );
    set_update(&mut world, json!({ "maxUnavailable": "100%", "partition": 3 }));
    world.settle();
    assert_eq!(world.at("new"), 0);
}

#[test]
fn pods_wait_for_their_budget_on_the_way_back() {
    let mut world = World::new(4, &[smoke(&json!("50%"))]);
    world.settle();
    set_update(&mut world, json!({ "maxUnavailable": 1 }));
    world.end("smoke", Phase::Failed);
    world.starting = world
        .pods
        .keys()
        .filter(|name| name.contains("old"))
        .cloned()
        .collect();
    world.settle();
    assert_eq!(world.at("new"), 2, "two pods are not available: {:?}", world.log);
    world.starting.clear();
    world.settle();
    assert_eq!(world.at("new"), 0);
}

#[test]
fn a_person_aborts_a_rollout_without_hooks_once_for_each_request() {
    let mut world = World::new(4, &[]);
    set_update(&mut world, json!({ "maxUnavailable": "100%", "partition": 2 }));
    world.settle();
    assert_eq!(world.at("new"), 2);
    world.request_abort("new=1");
    world.settle();
    assert_eq!((world.at("new"), world.at("old")), (0, 4), "{:?}", world.log);
    assert_eq!(
        world.condition("Progressing"),
        ("False".to_owned(), "RolloutAborted".to_owned())
    );
    assert_eq!(world.condition("UpdateBlocked").1, "RolloutAborted");
    assert!(
        world
            .message("UpdateBlocked")
            .starts_with("the rollout to revision new was aborted; ")
    );
    world.request("rollout=1");
    world.settle();
    assert_eq!(
        (world.at("new"), world.rollback()),
        (2, None),
        "the request to abort is handled"
    );
    set_update(&mut world, json!({ "maxUnavailable": "100%" }));
    world.settle();
    assert_eq!((world.at("new"), world.current()), (4, Some("new")));
    assert_eq!(rejected(&world), Vec::<&str>::new());
}

#[test]
fn an_abort_of_a_canary_rollout_begins_again_at_the_first_step() {
    let mut world = World::new(4, &[]);
    let steps = |paused: bool| {
        json!({ "maxUnavailable": "100%", "paused": paused, "canary": { "steps": [
            { "partition": 3 }, { "pause": { "duration": 60 } }, { "partition": 0 },
        ] } })
    };
    set_update(&mut world, steps(false));
    world.settle();
    assert_eq!(world.at("new"), 1);
    world.pass(60);
    world.settle();
    assert_eq!(world.at("new"), 4);
    world.set_template("third", "game:v3");
    world.settle();
    assert_eq!(world.at("third"), 1);
    world.request_abort("third=1");
    world.settle();
    assert_eq!((world.at("third"), world.at("new")), (0, 4), "{:?}", world.log);
    world.pass(60);
    world.settle();
    world.request("rollout=1");
    world.settle();
    assert_eq!(world.at("third"), 1, "the steps are not skipped");
    world.pass(60);
    world.settle();
    assert_eq!(world.current(), Some("third"));
}

#[test]
fn a_request_that_cannot_be_met_is_rejected_once_and_changes_nothing() {
    let mut first = World::empty(2, &[]);
    set_update(&mut first, json!({ "partition": 2 }));
    first.object.spec.lifecycle_hooks = serde_json::from_value(json!([hook("half", &json!("50%"))])).unwrap();
    let mut complete = World::new(2, &[]);
    complete.settle();
    let mut other = World::new(2, &[hook("half", &json!("50%"))]);
    let mut recreates = World::new(2, &[hook("before", &json!("Pre"))]).recreates();
    for (world, request, why) in [
        (
            &mut first,
            "new=1",
            "there is no completed rollout to roll back to",
        ),
        (
            &mut complete,
            "new=1",
            "the last completed rollout used the same template",
        ),
        (
            &mut other,
            "old=1",
            "this is not the revision being rolled out; see status.updateRevision",
        ),
        (
            &mut recreates,
            "new=1",
            "with spec.updateStrategy.type Recreate, new pods may",
        ),
    ] {
        world.settle();
        let before = world.pods.clone();
        world.request_abort(request);
        world.settle();
        assert_eq!(
            (&world.pods, world.rollback()),
            (&before, None),
            "{request}: {why}"
        );
        let words = format!("ignored annotation tkex.tencent.com/abort-requested={request}: {why}");
        assert!(
            matches!(rejected(world)[..], [one] if one.starts_with(&words)),
            "{:?}",
            world.warnings
        );
        world.pass(60);
        world.settle();
        assert_eq!(rejected(world).len(), 1);
    }
}

#[test]
fn a_lost_revision_or_another_type_of_update_holds_the_pods() {
    let mut world = World::new(4, &[]);
    set_update(&mut world, json!({ "maxUnavailable": "100%", "partition": 2 }));
    world.settle();
    world.request_abort("new=1");
    set_update(
        &mut world,
        json!({ "maxUnavailable": "100%", "partition": 2, "paused": true }),
    );
    world.settle();
    set_update(&mut world, json!({ "type": "Recreate" }));
    world.settle();
    assert_eq!((world.at("new"), world.at("old")), (2, 2), "{:?}", world.log);
    let message = world.message("UpdateBlocked");
    assert!(
        message.contains("; 2 updated pods are kept: with spec.updateStrategy.type Recreate"),
        "{message}"
    );
    set_update(&mut world, json!({ "maxUnavailable": "100%" }));
    world.revisions.retain(|revision| revision.name != "old");
    world.settle();
    assert_eq!((world.at("new"), world.at("old")), (2, 2), "{:?}", world.log);
    let message = world.message("UpdateBlocked");
    assert!(
        message.contains(
            "; revision old no longer exists, so 2 updated pods are kept and no replacement pods are created; "
        ),
        "{message}"
    );
}

#[test]
fn without_the_complete_revision_no_pod_is_created_and_none_counts_as_complete() {
    let mut world = World::new(4, &[smoke(&json!("50%"))]);
    world.ends("smoke", Phase::Failed);
    assert_eq!(world.at("old"), 4);
    world.revisions.retain(|revision| revision.name != "old");
    world.pods.pop_first();
    world.pass(100_000);
    world.settle();
    assert_eq!(
        (world.at("new"), world.at("old"), world.current()),
        (0, 3, Some("old"))
    );
    assert!(
        world
            .message("UpdateBlocked")
            .contains("no replacement pods are created")
    );
    // Another template gets new pods.
    world.set_template("third", "game:v3");
    world.settle();
    world.ends("smoke", Phase::Successful);
    assert_eq!((world.at("third"), world.current()), (4, Some("third")));
}

#[test]
fn a_template_whose_revision_was_recorded_under_another_name_stays_aborted() {
    let mut world = World::new(4, &[smoke(&json!("50%"))]);
    world.ends("smoke", Phase::Failed);
    for revision in &mut world.revisions {
        if revision.name == "new" {
            revision.name = "renamed".to_owned();
        }
    }
    world.settle();
    assert_eq!(
        (world.at("old"), world.rollback().is_some()),
        (4, true),
        "{:?}",
        world.log
    );
    world.request("rollout=1");
    world.settle();
    assert!(
        world.rollback().is_none() && world.at("renamed") == 2,
        "{:?}",
        world.log
    );
}

#[test]
fn an_abort_prevails_over_a_retry_that_is_not_handled_either() {
    let mut world = World::new(4, &[smoke(&json!("50%"))]);
    world.ends("smoke", Phase::Failed);
    world.request("rollout=1");
    world.request_abort("new=1");
    world.settle();
    assert!(
        world.rollback().is_some() && world.at("new") == 0,
        "{:?}",
        world.log
    );
    world.request("rollout=2");
    world.settle();
    assert!(world.is_running("smoke"));
}

#[test]
fn a_request_for_another_revision_is_rejected_during_a_rollback_too() {
    let mut world = World::new(4, &[smoke(&json!("50%"))]);
    world.ends("smoke", Phase::Failed);
    world.request_abort("old=1");
    world.settle();
    assert_eq!(rejected(&world).len(), 1);
}

/// The first rollout is the one that ends, whatever template it ends with.
#[test]
fn an_aborted_first_rollout_is_nothing_to_go_back_to() {
    let mut world = World::empty(4, &[smoke(&json!("50%"))]);
    world.ends("smoke", Phase::Failed);
    assert_eq!((world.at("new"), world.current()), (2, None));
    world.set_template("third", "game:v3");
    world.settle();
    assert_eq!(
        (world.at("new"), world.at("third"), world.current()),
        (2, 2, None),
        "{:?}",
        world.log
    );
    world.ends("smoke", Phase::Failed);
    assert_eq!(
        (world.at("new"), world.at("third"), world.rollback()),
        (2, 2, None),
        "{:?}",
        world.log
    );
    world.set_template("fourth", "game:v4");
    world.ends("smoke", Phase::Successful);
    assert_eq!(
        (world.at("fourth"), world.current()),
        (4, Some("fourth")),
        "{:?}",
        world.log
    );
}

#[test]
fn nothing_is_called_complete_when_an_abort_meets_the_last_pod_or_a_retry() {
    let mut world = World::new(2, &[]);
    for action in world.plan().actions {
        world.carry_out(action);
    }
    while world.at("new") < 2 {
        for action in world.plan().actions {
            world.carry_out(action);
        }
    }
    world.request_abort("new=1");
    world.object.status.as_mut().unwrap().update_revision = Some("new".to_owned());
    while world.rollback().is_none() {
        let plan = world.plan();
        assert!(plan.actions.is_empty(), "{:?}", plan.actions);
        world.object.status = plan.status.map(|status| *status);
        assert_eq!(world.current(), Some("old"));
        assert_eq!(world.condition("Progressing").1, "RolloutAborted");
    }
    world.settle();
    assert_eq!(world.at("old"), 2);
    world.request("rollout=1");
    let plan = world.plan();
    world.object.status = plan.status.map(|status| *status);
    assert_eq!(
        world.condition("Progressing"),
        ("True".to_owned(), "RollingOut".to_owned())
    );
    assert_eq!(
        world.message("Progressing"),
        "restarting the rollout to revision new"
    );
}

/// A named pod gets its successor first. Between a request and its record, that would be one more at the revision.
#[test]
fn no_pod_is_created_between_a_request_to_abort_and_its_record() {
    let mut world = World::new(4, &[]);
    set_update(&mut world, json!({ "maxUnavailable": "100%", "partition": 2 }));
    world.settle();
    assert_eq!(world.at("new"), 2);
    let named = world.pods.iter().find(|(_, revision)| *revision == "new");
    let named = json!({ "podsToDelete": [named.unwrap().0] });
    world.object.spec.scale_strategy = serde_json::from_value(named).unwrap();
    set_update(
        &mut world,
        json!({ "maxUnavailable": 0, "maxSurge": 1, "partition": 2 }),
    );
    let creates = |world: &World| {
        let actions = world.plan().actions;
        actions
            .iter()
            .any(|action| matches!(action, Action::CreatePod(_)))
    };
    assert!(creates(&world));
    world.request_abort("new=1");
    assert!(!creates(&world));
}

#[test]
fn the_pause_of_a_canary_step_does_not_hold_the_way_back_and_that_of_a_person_does() {
    let steps = |paused: Option<bool>| {
        json!({ "maxUnavailable": "100%", "paused": paused, "canary": { "steps": [
            { "partition": "50%" }, { "pause": {} }, { "partition": 0 },
        ] } })
    };
    let mut world = World::new(4, &[smoke(&json!("50%"))]);
    set_update(&mut world, steps(None));
    world.settle();
    let paused = |world: &World| world.object.spec.update_strategy.as_ref().unwrap().paused;
    assert_eq!((world.at("new"), paused(&world)), (2, Some(true)));
    world.ends("smoke", Phase::Failed);
    assert_eq!(world.at("new"), 0, "{}", world.message("UpdateBlocked"));
    // The failure arrives in the decision that reaches the pause.
    let mut world = World::new(4, &[smoke(&json!("50%"))]);
    world.settle();
    set_update(&mut world, steps(None));
    world.ends("smoke", Phase::Failed);
    assert_eq!(world.at("new"), 0, "{}", world.message("UpdateBlocked"));
    let mut world = World::new(4, &[smoke(&json!("50%"))]);
    world.settle();
    set_update(&mut world, json!({ "maxUnavailable": "100%", "paused": true }));
    world.ends("smoke", Phase::Failed);
    assert_eq!(world.at("new"), 2);
}

#[test]
fn a_hook_that_is_removed_and_comes_back_during_a_rollback_runs_again() {
    let before = hook("before", &json!("Pre"));
    let mut kept = before.clone();
    kept["retainPolicy"] = json!("Always");
    let hooks = json!([kept, smoke(&json!("50%"))]);
    let mut world = World::new(4, hooks.as_array().unwrap());
    world.ends("before", Phase::Successful);
    world.ends("smoke", Phase::Failed);
    world.object.spec.lifecycle_hooks = serde_json::from_value(json!([smoke(&json!("50%"))])).unwrap();
    world.settle();
    world.object.spec.lifecycle_hooks = serde_json::from_value(hooks).unwrap();
    world.settle();
    world.request("rollout=1");
    world.settle();
    assert!(
        world.is_running("before") && world.at("new") == 0,
        "{:?}",
        world.log
    );
}

#[test]
fn a_rollback_waits_while_the_newest_template_is_not_recorded() {
    let mut world = World::new(4, &[smoke(&json!("50%"))]);
    world.settle();
    set_update(&mut world, json!({ "maxUnavailable": "100%", "paused": true }));
    world.ends("smoke", Phase::Failed);
    let mut template = world.object.spec.template.value();
    template["metadata"]["labels"]["build"] = json!("feature/new maps");
    world.object.spec.template = template.into();
    set_update(&mut world, json!({ "maxUnavailable": "100%" }));
    world.settle();
    assert!(world.rollback().is_some() && world.at("new") == 2);
    assert_eq!(world.condition("InvalidSpec").0, "True");
    world.set_template("new", "game:v2");
    world.settle();
    assert_eq!(world.at("new"), 0, "{:?}", world.log);
}

#[test]
fn the_aborted_revision_is_kept_until_its_rollback_has_ended() {
    let mut world = World::new(4, &[smoke(&json!("50%"))]);
    world.object.spec.revision_history_limit = Some(0);
    let has = |world: &World, name: &str| world.revisions.iter().any(|revision| revision.name == name);
    world.ends("smoke", Phase::Failed);
    assert!(world.at("new") == 0 && has(&world, "new"));
    world.set_template("third", "game:v3");
    world.settle();
    assert!(world.rollback().is_none() && !has(&world, "new"));
    world.ends("smoke", Phase::Successful);
    assert_eq!(world.at("third"), 4);
}

#[test]
fn an_abort_at_a_pause_passes_no_step() {
    let mut world = World::new(4, &[]);
    let steps = |paused: Option<bool>| {
        json!({ "maxUnavailable": "100%", "paused": paused, "canary": { "steps": [
            { "partition": 3 }, { "pause": {} }, { "hook": { "templateName": "ask" } }, { "partition": 0 },
        ] } })
    };
    set_update(&mut world, steps(None));
    world.settle();
    let status = world.object.status.as_ref().unwrap();
    assert_eq!((world.at("new"), status.pause_conditions.len()), (1, 1));
    set_update(&mut world, steps(None));
    world.request_abort("new=1");
    world.settle();
    assert_eq!(
        (world.at("new"), world.at("old"), world.made),
        (0, 4, 0),
        "{:?}",
        world.log
    );
    assert!(world.object.status.as_ref().unwrap().pause_conditions.is_empty());
}

#[test]
fn no_pod_is_updated_between_a_request_to_abort_and_its_record() {
    let mut world = World::new(4, &[]);
    set_update(&mut world, json!({ "maxUnavailable": "100%", "partition": 3 }));
    world.settle();
    set_update(&mut world, json!({ "maxUnavailable": "100%" }));
    world.request_abort("new=1");
    assert_eq!(world.plan().actions, []);
    world.settle();
    assert!(!world.log.contains(&"pod new 2".to_owned()), "{:?}", world.log);
    assert_eq!(world.at("old"), 4);
}

#[test]
fn an_abort_before_the_rollout_is_recorded_passes_no_step_either() {
    let mut world = World::new(4, &[]);
    let steps =
        json!({ "maxUnavailable": "100%", "canary": { "steps": [{ "partition": 3 }, { "pause": {} }] } });
    set_update(&mut world, steps);
    // The steps of the last rollout are done.
    world.object.status.as_mut().unwrap().current_step_index = Some(2);
    world.request_abort("new=1");
    let status = world.plan().status.unwrap();
    assert_eq!(
        (status.update_revision.as_deref(), status.current_step_index),
        (Some("new"), Some(0))
    );
    world.settle();
    assert_eq!((world.at("new"), world.rollback().is_some()), (0, true));
}
