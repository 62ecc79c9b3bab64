//! Failures at each point with each policy, and hooks that take their time.

use serde_json::{Value, json};
use shared_api::Phase;

use super::world::{World, hook};

/// Points of four pods, with the number of pods that each needs.
const POINTS: [(&str, usize); 4] = [("Pre", 0), ("Mid", 0), ("50%", 2), ("Post", 4)];

/// Worlds at each point with a hook of this policy: rolling updates, and updates of type Recreate.
fn worlds(policy: &str) -> Vec<(String, usize, World)> {
    let mut worlds = Vec::new();
    for (point, needs) in POINTS {
        for is_recreate in [false, true] {
            if point == "Mid" && !is_recreate {
                continue;
            }
            let mut hook = hook("check", &json!(point));
            hook["failurePolicy"] = json!(policy);
            let world = World::new(4, &[hook]);
            let world = if is_recreate { world.recreates() } else { world };
            worlds.push((format!("{point} {policy} {is_recreate}"), needs, world));
        }
    }
    worlds
}

#[track_caller]
fn is_complete(world: &World, name: &str) {
    assert_eq!(world.condition("Progressing").1, "RolloutComplete", "{name}");
    assert_eq!((world.at("new"), world.current()), (4, Some("new")), "{name}");
}

#[test]
fn abort_keeps_the_pods_that_the_point_needed_until_somebody_asks_again() {
    for (name, needs, mut world) in worlds("Abort") {
        world.ends("check", Phase::Failed);
        assert_eq!(
            world.condition("UpdateBlocked").1,
            "LifecycleHookAborted",
            "{name}"
        );
        assert_eq!((world.at("new"), world.current()), (needs, Some("old")), "{name}");
        world.pass(86_400);
        world.settle();
        assert!(!world.is_running("check"), "{name}");
        world.request("lifecycle/check=1");
        world.ends("check", Phase::Successful);
        is_complete(&world, &name);
    }
}

#[test]
fn ignore_reports_the_failure_and_completes_the_rollout() {
    for (name, _, mut world) in worlds("Ignore") {
        world.ends("check", Phase::Failed);
        is_complete(&world, &name);
        let succeeded = world.condition("LifecycleHooksSucceeded");
        assert_eq!(
            succeeded,
            ("True".to_owned(), "LifecycleHookIgnored".to_owned()),
            "{name}"
        );
        let reported = |reason: &str| world.warnings.iter().any(|one| one.reason.as_str() == reason);
        assert!(reported("LifecycleHookFailed"), "{name}: {:?}", world.warnings);
    }
}

#[test]
fn retry_waits_at_its_point_and_runs_again() {
    for (name, needs, mut world) in worlds("Retry") {
        world.ends("check", Phase::Failed);
        assert_eq!(world.condition("Progressing").1, "LifecycleHookWaiting", "{name}");
        assert!(!world.is_running("check"), "{name}");
        world.pass(10);
        world.settle();
        assert_eq!(world.at("new"), needs, "{name}");
        world.ends("check", Phase::Successful);
        is_complete(&world, &name);
    }
}

#[test]
fn a_job_without_a_limit_may_take_days() {
    for (name, needs, mut world) in worlds("Abort") {
        let hooks = world.object.spec.lifecycle_hooks.as_mut().unwrap();
        hooks[0].hook = None;
        let job = json!({ "template": { "spec": { "containers": [{ "name": "check" }] } } });
        hooks[0].job_spec = Some(job.into());
        world.settle();
        let status = world.running_mut("check").unwrap().status.get_or_insert_default();
        (status.phase, status.reason) = (Phase::Running, Some("Measuring".to_owned()));
        world.pass(3 * 86_400);
        world.settle();
        assert_eq!(world.at("new"), needs, "{name}");
        assert_eq!(world.condition("Progressing").1, "LifecycleHookRunning", "{name}");
        world.ends("check", Phase::Successful);
        is_complete(&world, &name);
    }
}

/// With OnDelete, people delete the pods; the hooks decide which revision a successor gets.
#[test]
fn on_delete_gives_successors_the_revision_that_the_points_allow() {
    let mut world = World::new(4, &[hook("before", &json!("Pre")), hook("half", &json!("50%"))]);
    world.object.spec.update_strategy = serde_json::from_value(json!({ "type": "OnDelete" })).unwrap();
    let delete_old = |world: &mut World| {
        let name = world
            .pods
            .iter()
            .find(|(_, revision)| *revision == "old")
            .unwrap()
            .0
            .clone();
        world.pods.remove(&name);
        world.settle();
    };
    world.settle();
    delete_old(&mut world);
    assert_eq!(
        (world.at("old"), world.at("new")),
        (4, 0),
        "Pre has not succeeded"
    );
    world.ends("before", Phase::Successful);
    assert_eq!(world.at("new"), 0, "nobody has deleted a pod since");
    for updated in [1, 2, 2] {
        delete_old(&mut world);
        assert_eq!(world.at("new"), updated);
    }
    world.ends("half", Phase::Successful);
    delete_old(&mut world);
    delete_old(&mut world);
    is_complete(&world, "OnDelete");
}

#[test]
fn arguments_of_a_new_pod_take_the_place_of_those_of_the_template() {
    let exec = |more: Value| {
        let mut exec = json!({ "containerName": "game" });
        exec.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let hook = json!({ "name": "check", "trigger": { "type": "Pre" }, "execNewPod": exec });
        let mut world = World::new(1, &[hook]);
        world.settle();
        let job = world.runs_of("check")[0].spec.metrics[0]
            .provider
            .job
            .clone()
            .unwrap();
        let container = &job.spec.value()["template"]["spec"]["containers"][0];
        [container["command"].clone(), container["args"].clone()]
    };
    let (command, args) = (json!(["migrate"]), json!(["--all"]));
    assert_eq!(exec(json!({ "args": args })), [Value::Null, args.clone()]);
    assert_eq!(exec(json!({ "command": command, "args": args })), [command, args]);
}
