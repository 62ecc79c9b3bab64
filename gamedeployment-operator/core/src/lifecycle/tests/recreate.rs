//! Rollouts of type `Recreate`: old pods, the hooks of Mid, new pods. [`World`] refuses to create a pod beside one
//! of another revision.

use serde_json::json;
use shared_api::Phase;

use super::world::{World, hook};
use crate::view::WriteErrors;

fn hooks() -> [serde_json::Value; 4] {
    [
        hook("after", &json!("Post")),
        hook("half", &json!("50%")),
        hook("between", &json!("Mid")),
        hook("before", &json!("Pre")),
    ]
}

#[test]
fn all_old_pods_go_before_mid_and_the_first_new_one_comes_after_it() {
    let mut world = World::new(4, &hooks()).recreates();
    for (name, old, new) in [
        ("before", 4, 0),
        ("between", 0, 0),
        ("half", 0, 2),
        ("after", 0, 4),
    ] {
        world.settle();
        assert_eq!(
            (world.at("old"), world.at("new")),
            (old, new),
            "{name}: {:?}",
            world.log
        );
        assert!(world.is_running(name), "{name}: {:?}", world.log);
        world.end(name, Phase::Successful);
    }
    world.settle();
    assert_eq!(world.condition("Progressing").1, "RolloutComplete");
    assert_eq!(world.current(), Some("new"));
    // Nothing runs again.
    world.pods.pop_first();
    world.settle();
    assert_eq!((world.at("new"), world.runs_of("between").len()), (4, 0));
}

#[test]
fn a_pod_that_is_still_ending_holds_up_mid_and_the_new_pods() {
    let mut world = World::new(3, &[hook("between", &json!("Mid"))]).recreates();
    world.lingers = true;
    world.settle();
    assert_eq!((world.terminating.len(), world.pods.len()), (3, 0));
    assert!(!world.is_running("between"));
    assert_eq!(world.condition("Progressing").1, "RollingOut");
    let message = world.message("Progressing");
    assert!(
        message.starts_with("3 pods of earlier revisions are left; new pods"),
        "{message}"
    );
    world.terminating.clear();
    world.ends("between", Phase::Successful);
    assert_eq!(world.at("new"), 3);
}

#[test]
fn a_first_rollout_passes_mid_before_its_first_pod() {
    let mut world = World::empty(2, &hooks()).recreates();
    for (name, pods) in [("before", 0), ("between", 0), ("half", 1), ("after", 2)] {
        world.settle();
        assert_eq!(world.pods.len(), pods, "{name}: {:?}", world.log);
        world.end(name, Phase::Successful);
    }
    world.settle();
    assert_eq!(world.current(), Some("new"));
}

#[test]
fn without_hooks_no_pod_is_created_beside_an_old_one() {
    let mut world = World::new(3, &[]).recreates();
    world.lingers = true;
    world.settle();
    assert_eq!((world.terminating.len(), world.pods.len()), (3, 0));
    world.terminating.pop_first();
    world.settle();
    assert_eq!(world.pods.len(), 0);
    world.terminating.clear();
    world.settle();
    assert_eq!(world.at("new"), 3);
    assert_eq!(world.condition("Progressing").1, "RolloutComplete");
}

#[test]
fn before_the_update_begins_missing_pods_are_replaced_by_the_same_revision() {
    for is_paused in [false, true] {
        let mut world = World::new(3, &[hook("before", &json!("Pre"))]).recreates();
        let strategy = world.object.spec.update_strategy.as_mut().unwrap();
        strategy.paused = Some(is_paused);
        world.settle();
        world.pods.pop_first();
        world.settle();
        assert_eq!((world.at("old"), world.at("new")), (3, 0), "{is_paused}");
    }
}

#[test]
fn a_pause_between_two_deletions_brings_the_old_pods_back() {
    let mut world = World::new(3, &[]).recreates();
    world.pods.pop_first();
    world.object.spec.update_strategy.as_mut().unwrap().paused = Some(true);
    world.settle();
    assert_eq!((world.at("old"), world.at("new")), (3, 0));
    assert_eq!(world.condition("Progressing").1, "Paused");
    world.object.spec.update_strategy.as_mut().unwrap().paused = Some(false);
    world.settle();
    assert_eq!((world.at("old"), world.at("new")), (0, 3));
}

#[test]
fn a_refused_template_deletes_and_creates_nothing() {
    let mut world = World::new(3, &[]).recreates();
    world.write_errors = Some(WriteErrors {
        pod: Some("the pod is not valid".to_owned()),
        ..WriteErrors::default()
    });
    world.pods.pop_first();
    world.settle();
    assert_eq!((world.at("old"), world.at("new")), (2, 0));
    assert_eq!(world.condition("UpdateBlocked").1, "PodRefused");
    world.write_errors = None;
    world.settle();
    assert_eq!((world.at("old"), world.at("new")), (0, 3));
}

#[test]
fn a_failure_of_mid_leaves_no_pods_and_the_way_back_passes_mid_before_its_pods() {
    let mut world = after_mid();
    assert_eq!(world.pods.len(), 0);
    assert_eq!(world.condition("UpdateBlocked").1, "LifecycleHookAborted");
    world.set_template("old", "game:v1");
    world.ends("before", Phase::Successful);
    assert_eq!(world.pods.len(), 0, "the data may be half migrated");
    world.ends("between", Phase::Successful);
    assert_eq!(world.at("old"), 3);
}

#[test]
fn the_way_back_keeps_the_pods_that_are_left_and_replaces_the_others() {
    let mut world = World::new(3, &[hook("before", &json!("Pre"))]).recreates();
    world.lingers = true;
    world.ends("before", Phase::Successful);
    world.terminating.clear();
    world.pods = world
        .pods
        .into_iter()
        .chain([("fleet-left".to_owned(), "old".to_owned())])
        .collect();
    world.set_template("old", "game:v1");
    world.settle();
    assert!(world.is_running("before"));
    assert_eq!(world.at("old"), 3, "nothing has changed their data");
}

/// A change of type in the middle of a rolling update meets pods of two revisions.
#[test]
fn beside_pods_of_two_revisions_nothing_is_created() {
    let mut world = World::new(4, &[hook("before", &json!("Pre"))]).recreates();
    world.settle();
    let names: Vec<String> = world.pods.keys().take(2).cloned().collect();
    for name in &names {
        world.pods.insert(name.clone(), "third".to_owned());
    }
    world.pods.pop_last();
    world.settle();
    assert_eq!(world.pods.len(), 3, "{:?}", world.log);
    world.ends("before", Phase::Successful);
    assert_eq!(world.at("new"), 4);
}

#[test]
fn a_corrected_template_brings_no_old_pod_back_after_mid() {
    let mut world = after_mid();
    world.set_template("third", "game:v3");
    world.settle();
    assert!(world.is_running("before"));
    assert_eq!(
        world.pods.len(),
        0,
        "the data may be half migrated: {:?}",
        world.log
    );
    world.ends("before", Phase::Successful);
    world.ends("between", Phase::Successful);
    assert_eq!(world.at("third"), 3);
}

#[test]
fn pods_that_are_all_lost_before_the_update_begins_are_replaced() {
    let mut world = World::new(3, &[hook("before", &json!("Pre"))]).recreates();
    world.settle();
    world.pods.clear();
    world.settle();
    assert_eq!((world.at("old"), world.at("new")), (3, 0));
}

#[test]
fn the_workload_is_not_available_while_its_pods_are_gone() {
    let mut world = World::new(3, &[hook("between", &json!("Mid"))]).recreates();
    world.settle();
    let (status, reason) = world.condition("Available");
    assert_eq!(
        (status.as_str(), reason.as_str()),
        ("False", "MinimumPodsUnavailable")
    );
    world.ends("between", Phase::Successful);
    assert_eq!(world.condition("Available").0, "True");
}

/// A world whose hook of Mid has failed: no pod is left, and the data may be half migrated.
fn after_mid() -> World {
    let mut between = hook("between", &json!("Mid"));
    between["failurePolicy"] = json!("Abort");
    let mut world = World::new(3, &[hook("before", &json!("Pre")), between]).recreates();
    world.ends("before", Phase::Successful);
    world.ends("between", Phase::Failed);
    assert_eq!((world.pods.len(), world.recreating()), (0, Some("new")));
    world
}

#[test]
fn a_template_after_the_way_back_brings_no_old_pod_back_either() {
    let mut world = after_mid();
    world.set_template("old", "game:v1");
    world.ends("before", Phase::Successful);
    world.settle();
    assert!(world.is_running("between"));
    world.set_template("third", "game:v3");
    world.settle();
    world.ends("between", Phase::Inconclusive);
    assert!(world.is_running("before"));
    assert_eq!(world.pods.len(), 0, "{:?}", world.log);
    world.ends("before", Phase::Successful);
    world.ends("between", Phase::Successful);
    assert_eq!((world.at("third"), world.recreating()), (3, None));
}

#[test]
fn a_hook_of_pre_that_is_added_during_mid_brings_no_old_pod_back() {
    let mut world = World::new(3, &[hook("between", &json!("Mid"))]).recreates();
    world.settle();
    let hooks = [hook("between", &json!("Mid")), hook("before", &json!("Pre"))];
    world.object.spec.lifecycle_hooks = serde_json::from_value(json!(hooks)).unwrap();
    world.settle();
    assert!(world.is_running("before") && world.is_running("between"));
    assert_eq!(world.pods.len(), 0, "{:?}", world.log);
    world.ends("before", Phase::Successful);
    world.ends("between", Phase::Successful);
    assert_eq!(world.at("new"), 3);
}

#[test]
fn a_hook_of_mid_that_is_removed_ends_before_the_first_pod() {
    let others = [json!([]), json!([hook("after", &json!("Post"))])];
    for others in others {
        let mut hooks = others.as_array().unwrap().clone();
        hooks.push(hook("between", &json!("Mid")));
        let mut world = World::new(3, &hooks).recreates();
        world.settle();
        assert!(world.is_running("between"));
        world.object.spec.lifecycle_hooks = serde_json::from_value(others).unwrap();
        world.settle();
        assert_eq!(world.pods.len(), 0, "{:?}", world.log);
        assert_eq!(world.condition("Progressing").1, "LifecycleHookWaiting");
        world.ends("between", Phase::Inconclusive);
        assert_eq!(world.at("new"), 3);
    }
}

#[test]
fn pods_that_are_lost_after_an_abort_before_the_first_deletion_are_replaced() {
    let mut before = hook("before", &json!("Pre"));
    before["failurePolicy"] = json!("Abort");
    let mut world = World::new(3, &[before]).recreates();
    world.ends("before", Phase::Failed);
    world.pods.clear();
    world.settle();
    assert_eq!((world.at("old"), world.at("new")), (3, 0));
    // So are they under the next template.
    world.set_template("third", "game:v3");
    world.settle();
    world.pods.clear();
    world.settle();
    assert_eq!((world.at("old"), world.pods.len()), (3, 3));
}

#[test]
fn lost_pods_are_replaced_after_an_abort_once_no_old_pod_is_left() {
    let mut after = hook("after", &json!("Post"));
    after["failurePolicy"] = json!("Abort");
    let mut world = World::new(3, &[after]).recreates();
    world.ends("after", Phase::Failed);
    assert_eq!(world.at("new"), 3);
    world.pods.pop_first();
    world.settle();
    assert_eq!((world.at("old"), world.at("new")), (0, 3), "{:?}", world.log);
}

#[test]
fn an_aborted_rollout_deletes_nothing_more_after_a_change_of_type() {
    let mut half = hook("half", &json!("50%"));
    half["failurePolicy"] = json!("Abort");
    let mut world = World::new(4, &[half]);
    world.ends("half", Phase::Failed);
    assert_eq!((world.at("old"), world.at("new")), (2, 2));
    let mut world = world.recreates();
    world.settle();
    assert_eq!((world.at("old"), world.at("new")), (2, 2));
}

#[test]
fn the_way_back_during_the_deletion_replaces_lost_pods_at_every_point() {
    let hooks = [hook("before", &json!("Pre")), hook("between", &json!("Mid"))];
    let mut world = World::new(3, &hooks).recreates();
    world.lingers = true;
    world.ends("before", Phase::Successful);
    // One had players.
    world.terminating.clear();
    world.pods.insert("fleet-left".to_owned(), "old".to_owned());
    world.object.status.as_mut().unwrap().recreating_revision = None;
    world.set_template("old", "game:v1");
    world.settle();
    assert_eq!(world.at("old"), 3);
    world.ends("before", Phase::Successful);
    assert!(world.is_running("between"));
    world.pods.pop_first();
    world.settle();
    assert_eq!(world.at("old"), 3);
}

#[test]
fn a_pause_holds_while_the_last_old_pods_are_ending() {
    let mut world = World::new(3, &[hook("between", &json!("Mid"))]).recreates();
    world.lingers = true;
    world.settle();
    assert_eq!(world.terminating.len(), 3);
    world.object.spec.update_strategy.as_mut().unwrap().paused = Some(true);
    world.settle();
    assert_eq!((world.at("old"), world.at("new")), (3, 0));
    assert!(!world.is_running("between"));
}

#[test]
fn what_the_missing_pods_wait_for_is_named() {
    let mut world = after_mid();
    world.set_template("third", "game:v3");
    world.object.spec.update_strategy.as_mut().unwrap().paused = Some(true);
    world.settle();
    assert_eq!(world.condition("Progressing").1, "LifecycleHookWaiting");
    let message = world.message("Progressing");
    assert!(
        message.starts_with(
            "0 of 3 pods are updated; lifecycle hook before is waiting for the rollout to start"
        ),
        "{message}"
    );
}
