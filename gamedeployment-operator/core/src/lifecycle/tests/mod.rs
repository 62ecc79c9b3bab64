//! Rollouts with hooks in a small world, whose own record says which revision each pod got before which verdict.

use serde_json::{Value, json};
use shared_api::game_deployment::LifecycleHookPhase;
use shared_api::{HookRun, Phase};

use crate::samples::FakeCluster;
use world::{World, hook};

mod deadline;
mod new_pod;
mod owner_missing;
mod policies;
mod properties;
mod recreate;
mod rollback;
mod world;

#[test]
fn points_open_one_after_another_and_the_rollout_ends_after_the_last_hook() {
    let hooks = [
        hook("after", &json!("Post")),
        hook("half", &json!("50%")),
        hook("two", &json!(2)),
        hook("before", &json!("Pre")),
    ];
    let mut world = World::new(6, &hooks);
    for (name, pods) in [("before", 0), ("two", 2), ("half", 3), ("after", 6)] {
        world.settle();
        assert_eq!(world.at("new"), pods, "{name}: {:?}", world.log);
        assert!(world.is_running(name), "{name}: {:?}", world.log);
        assert_eq!(world.current(), Some("old"));
        assert_eq!(world.condition("Progressing").1, "LifecycleHookRunning");
        assert_eq!(world.condition("LifecycleHooksSucceeded").0, "Unknown");
        world.end(name, Phase::Successful);
    }
    world.settle();
    assert_eq!(world.current(), Some("new"));
    assert_eq!(
        world.condition("Progressing"),
        ("True".to_owned(), "RolloutComplete".to_owned())
    );
    let succeeded = ("True".to_owned(), "LifecycleHooksSucceeded".to_owned());
    assert_eq!(world.condition("LifecycleHooksSucceeded"), succeeded);
    assert!(
        world.runs.is_empty(),
        "successful runs are not retained: {:?}",
        world.runs
    );
    // Scaling and healing start no hook.
    world.log.clear();
    world.object.spec.replicas = Some(9);
    world.settle();
    world.pods.pop_first();
    world.settle();
    assert_eq!(world.at("new"), 9);
    assert!(
        world.log.iter().all(|event| event.starts_with("pod new")),
        "{:?}",
        world.log
    );
}

#[test]
fn a_point_is_reached_when_its_pods_are_available() {
    let mut world = World::new(4, &[hook("half", &json!("50%"))]);
    world.settle();
    // Both pods are created at once in this world; one is not available.
    let mut early = World::new(4, &[hook("half", &json!("50%"))]);
    let updated = |world: &World| -> Vec<String> {
        let pods = world.pods.iter().filter(|(_, revision)| *revision == "new");
        pods.map(|(name, _)| name.clone()).collect()
    };
    while updated(&early).len() < 2 {
        let plan = early.plan();
        let writes = !plan.actions.is_empty();
        plan.actions
            .into_iter()
            .for_each(|action| early.carry_out(action));
        early.object.status = plan
            .status
            .filter(|_| !writes)
            .map(|status| *status)
            .or(early.object.status);
    }
    early.starting = vec![updated(&early)[0].clone()];
    early.settle();
    assert!(!early.is_running("half"), "{:?}", early.log);
    early.starting.clear();
    early.settle();
    assert!(
        early.is_running("half") && early.at("new") == 2,
        "{:?}",
        early.log
    );
}

#[test]
fn hooks_of_one_point_run_side_by_side_and_an_earlier_point_ends_first_on_the_same_pod() {
    let hooks = [
        hook("a", &json!("50%")),
        hook("b", &json!(1)),
        hook("c", &json!("60%")),
    ];
    let mut world = World::new(2, &hooks);
    world.settle();
    assert!(world.is_running("a") && world.is_running("b") && !world.is_running("c"));
    world.ends("b", Phase::Successful);
    assert!(!world.is_running("c") && world.at("new") == 1);
    world.ends("a", Phase::Successful);
    assert!(world.is_running("c") && world.at("new") == 2, "{:?}", world.log);
    let mut one = World::new(1, &hooks);
    one.settle();
    one.end("a", Phase::Successful);
    one.settle();
    assert!(
        one.is_running("c") && !one.is_running("b"),
        "100% is one pod: {:?}",
        one.log
    );
}

#[test]
fn the_first_rollout_runs_its_hooks_and_creates_no_pod_beyond_the_open_point() {
    let hooks = [
        hook("before", &json!("Pre")),
        hook("some", &json!(3)),
        hook("after", &json!("Post")),
    ];
    let mut world = World::empty(10, &hooks);
    world.object.spec.update_strategy.as_mut().unwrap().partition =
        Some(k8s_openapi::apimachinery::pkg::util::intstr::IntOrString::Int(4));
    for (name, pods) in [("before", 0), ("some", 3), ("after", 10)] {
        world.settle();
        assert_eq!(
            (world.pods.len(), world.current()),
            (pods, None),
            "{:?}",
            world.log
        );
        assert!(world.is_running(name), "{:?}", world.log);
        world.end(name, Phase::Successful);
    }
    world.settle();
    assert_eq!(world.current(), Some("new"), "{:#?}", world.object.status);
    assert!(world.revisions.iter().any(|revision| revision.name == "old"));
}

#[test]
fn a_paused_first_rollout_says_what_its_pods_wait_for() {
    let mut world = World::empty(2, &[hook("before", &json!("Pre"))]);
    let update = json!({ "maxUnavailable": "100%", "paused": true });
    world.object.spec.update_strategy = serde_json::from_value(update).unwrap();
    world.settle();
    assert_eq!((world.pods.len(), world.is_running("before")), (0, false));
    assert_eq!(
        world.condition("Progressing"),
        ("False".to_owned(), "Paused".to_owned())
    );
    let message = world.message("Progressing");
    assert!(
        message.starts_with(
            "0 of 2 pods have been created; to continue, set spec.updateStrategy.paused to false; lifecycle hook"
        ),
        "{message}"
    );
}

/// The world knows no update in place: none may begin beside the surge pod.
#[test]
fn a_surge_pod_counts_for_its_point_in_updates_in_place_too() {
    let mut world = World::new(5, &[hook("one", &json!(1))]);
    let update = json!({ "type": "HotPatchUpdate", "maxUnavailable": 0, "maxSurge": 1 });
    world.object.spec.update_strategy = serde_json::from_value(update).unwrap();
    world.settle();
    assert!(world.is_running("one"), "{:?}", world.log);
    assert_eq!((world.at("new"), world.at("old")), (1, 5));
}

/// A GameDeployment that was deleted without its dependents, and created again.
#[test]
fn the_verdict_of_an_earlier_workload_does_not_count() {
    let mut before = hook("before", &json!("Pre"));
    before["retainPolicy"] = json!("Always");
    let mut world = World::empty(2, &[before]);
    world.ends("before", Phase::Successful);
    assert_eq!((world.at("new"), world.runs.len()), (2, 1));
    world.object.status = None;
    world.pods.clear();
    world.settle();
    assert!(
        world.is_running("before") && world.pods.is_empty(),
        "{:?}",
        world.log
    );
    world.ends("before", Phase::Successful);
    assert_eq!(world.at("new"), 2);
}

#[test]
fn a_failure_that_cannot_be_recorded_wakes_nobody_in_the_past() {
    let mut world = World::new(2, &[hook("before", &json!("Pre"))]);
    world.settle();
    world.end("before", Phase::Failed);
    assert_eq!(
        world.plan().wake.map(|at| at.duration_since(world.now).as_secs()),
        Some(10)
    );
    world.pass(60);
    assert_eq!(world.plan().wake, None);
}

#[test]
fn an_adopted_fleet_runs_no_hook() {
    let mut world = World::new(3, &[hook("before", &json!("Pre")), hook("after", &json!("Post"))]);
    world.object.status = None;
    for revision in world.pods.values_mut() {
        "new".clone_into(revision);
    }
    world.pods.pop_first();
    world.settle();
    assert_eq!((world.current(), world.pods.len()), (Some("new"), 3));
    assert!(
        !world.log.iter().any(|event| event.starts_with("run")),
        "{:?}",
        world.log
    );
    // Its next rollout runs them.
    world.set_template("third", "game:v3");
    world.settle();
    assert!(world.is_running("before"));
}

#[test]
fn hooks_that_are_added_to_a_finished_rollout_wait_for_the_next_one() {
    let mut world = World::new(2, &[]);
    world.settle();
    assert_eq!(world.current(), Some("new"));
    world.object.spec.lifecycle_hooks =
        serde_json::from_value(json!([hook("before", &json!("Pre"))])).unwrap();
    world.settle();
    assert!(!world.is_running("before"));
    world.set_template("third", "game:v3");
    world.settle();
    assert!(world.is_running("before") && world.at("third") == 0);
}

#[test]
fn a_failure_with_abort_ends_the_rollout_until_a_person_asks_again() {
    let mut half = hook("half", &json!("50%"));
    half["failurePolicy"] = json!("Abort");
    let mut world = World::new(4, &[half]);
    world.request("lifecycle/half=before the rollout");
    world.ends("half", Phase::Failed);
    assert_eq!(
        (world.phase("half"), world.at("new")),
        (LifecycleHookPhase::Failed, 2)
    );
    let aborted = |status: &str| (status.to_owned(), "LifecycleHookAborted".to_owned());
    assert_eq!(world.condition("Progressing"), aborted("False"));
    assert_eq!(world.condition("UpdateBlocked"), aborted("True"));
    assert_eq!(world.condition("LifecycleHooksSucceeded"), aborted("False"));
    let reasons: Vec<&str> = world
        .warnings
        .iter()
        .map(|warning| warning.reason.as_str())
        .collect();
    assert_eq!(reasons, ["LifecycleHookAborted", "LifecycleHookFailed"]);
    assert_eq!(world.runs_of("half").len(), 1, "a failed run is retained");
    // More pods are old ones, and so are successors.
    world.object.spec.replicas = Some(8);
    world.settle();
    let updated = world
        .pods
        .iter()
        .find(|(_, revision)| *revision == "new")
        .unwrap()
        .0
        .clone();
    world.pods.remove(&updated);
    world.pass(100_000);
    world.settle();
    assert_eq!((world.at("new"), world.at("old")), (1, 7));
    world.request("lifecycle/other=1");
    world.settle();
    assert_eq!(world.phase("half"), LifecycleHookPhase::Failed);
    world.request("lifecycle/half=1");
    world.settle();
    // Its point is 4 of 8 pods now.
    assert!(
        world.is_running("half") && world.at("new") == 4,
        "{:?}",
        world.log
    );
    world.ends("half", Phase::Successful);
    assert_eq!((world.at("new"), world.current()), (8, Some("new")));
}

#[test]
fn a_failure_with_ignore_lets_the_rollout_go_on_and_is_reported() {
    let mut before = hook("before", &json!("Pre"));
    before["failurePolicy"] = json!("Ignore");
    let mut world = World::new(2, &[before]);
    world.ends("before", Phase::Error);
    assert_eq!(
        (world.phase("before"), world.at("new")),
        (LifecycleHookPhase::Ignored, 2)
    );
    let ignored = ("True".to_owned(), "LifecycleHookIgnored".to_owned());
    assert_eq!(world.condition("LifecycleHooksSucceeded"), ignored);
    assert_eq!(world.warnings.len(), 1, "{:?}", world.warnings);
    assert!(world.warnings[0].message.ends_with("the rollout continues"));
}

#[test]
fn a_failure_with_retry_runs_again_with_growing_pauses() {
    let mut world = World::new(2, &[hook("before", &json!("Pre"))]);
    let mut pauses = Vec::new();
    for attempt in 1..8 {
        world.ends("before", Phase::Failed);
        assert!(!world.is_running("before"));
        assert_eq!(world.phase("before"), LifecycleHookPhase::Waiting);
        assert_eq!(world.condition("Progressing").1, "LifecycleHookWaiting");
        assert_eq!(world.warnings.len(), attempt, "one event for each attempt");
        let pause = world.wake.unwrap().duration_since(world.now).as_secs();
        pauses.push(pause);
        world.pass(pause - 1);
        world.settle();
        assert!(!world.is_running("before"));
        world.pass(1);
        world.settle();
        assert!(world.is_running("before"), "{pauses:?}");
    }
    assert_eq!(pauses, [10, 20, 40, 80, 160, 300, 300]);
    world.ends("before", Phase::Successful);
    assert_eq!(world.at("new"), 2);
    // A request ends a pause.
    world.set_template("third", "game:v3");
    world.ends("before", Phase::Failed);
    world.request("lifecycle/before=now");
    world.settle();
    assert!(world.is_running("before"));
}

#[test]
fn a_hook_that_outlasts_its_time_is_stopped_and_aborts() {
    let mut before = hook("before", &json!("Pre"));
    before["timeoutSeconds"] = json!(60);
    let mut world = World::new(2, &[before.clone()]);
    world.settle();
    assert_eq!(
        world.wake.map(|at| at.duration_since(world.now).as_secs()),
        Some(30),
        "taken up?"
    );
    world.running_mut("before").unwrap().status =
        serde_json::from_value(json!({ "phase": "Running", "startedAt": "2024-06-01T00:00:00Z" })).unwrap();
    world.pass(59);
    world.settle();
    assert!(!world.log.contains(&"terminate before".to_owned()));
    world.pass(1);
    world.settle();
    assert!(
        world.log.contains(&"terminate before".to_owned()),
        "{:?}",
        world.log
    );
    world.ends("before", Phase::Inconclusive);
    assert_eq!(world.phase("before"), LifecycleHookPhase::Inconclusive);
    assert_eq!(world.condition("UpdateBlocked").1, "LifecycleHookAborted");
    // The time also covers the pauses between attempts.
    let mut world = World::new(2, &[before]);
    world.ends("before", Phase::Failed);
    world.pass(10);
    world.ends("before", Phase::Failed);
    world.pass(50);
    world.settle();
    assert!(!world.is_running("before"));
    assert_eq!(world.phase("before"), LifecycleHookPhase::Failed);
}

#[test]
fn another_template_stops_the_hooks_and_begins_with_its_own() {
    let hooks = [hook("before", &json!("Pre")), hook("half", &json!("50%"))];
    let mut world = World::new(4, &hooks);
    world.ends("before", Phase::Successful);
    world.settle();
    assert!(world.is_running("half"));
    world.set_template("third", "game:v3");
    world.settle();
    assert_eq!(world.log.last().unwrap(), "terminate half");
    assert_eq!(
        world.runs_of("before").len(),
        0,
        "it waits for the end of the other"
    );
    world.ends("half", Phase::Inconclusive);
    assert!(world.is_running("before"), "{:?}", world.log);
    assert_eq!((world.at("new"), world.at("third")), (2, 0));
    world.ends("before", Phase::Successful);
    world.ends("half", Phase::Successful);
    assert_eq!(world.at("third"), 4);
}

#[test]
fn the_wait_for_the_hooks_of_another_rollout_is_explained() {
    let mut world = World::new(4, &[hook("before", &json!("Pre"))]);
    world.settle();
    world.set_template("third", "game:v3");
    world.settle();
    let waiting = ("True".to_owned(), "LifecycleHookWaiting".to_owned());
    assert_eq!(world.condition("Progressing"), waiting);
    // Nobody stops it.
    let wake = world.wake.unwrap();
    assert_eq!(wake.duration_since(world.now).as_secs(), 30);
    world.pass(30);
    world.settle();
    assert_eq!(world.condition("UpdateBlocked").1, "HookNotTakenUp");
    world.ends("before", Phase::Inconclusive);
    assert!(world.is_running("before"), "that of the new revision");
    assert_eq!(world.condition("UpdateBlocked").0, "");
}

#[test]
fn a_template_can_name_the_revisions_of_the_rollout() {
    let arguments = |world: &World| -> Vec<String> {
        let run = world.runs_of("before")[0];
        let arguments = run.spec.args.iter().flatten();
        let words = arguments.map(|argument| {
            format!(
                "{}={}",
                argument.name,
                argument.value.as_deref().unwrap_or("unset")
            )
        });
        words.collect()
    };
    let declared = |mut world: World| {
        let template = world.cluster.template.as_mut().unwrap();
        let args = json!([{"name": "room", "value": "1"}, {"name": "RolloutTo"}, {"name": "RolloutType"}]);
        template.args = serde_json::from_value(args).unwrap();
        world
    };
    let mut first = declared(World::empty(2, &[hook("before", &json!("Pre"))]));
    first.settle();
    assert_eq!(
        arguments(&first),
        ["room=1", "RolloutTo=new", "RolloutType=ROLLOUT", "RolloutFrom="]
    );
    let mut world = declared(World::new(2, &[hook("before", &json!("Pre"))]));
    world.settle();
    assert_eq!(
        arguments(&world),
        [
            "room=1",
            "RolloutTo=new",
            "RolloutType=ROLLOUT",
            "RolloutFrom=old"
        ]
    );
    world.set_template("old", "game:v1");
    world.settle();
    world.ends("before", Phase::Inconclusive);
    world.runs.retain(|run| run.status.is_none());
    assert_eq!(
        arguments(&world),
        [
            "room=1",
            "RolloutTo=old",
            "RolloutType=ROLLBACK",
            "RolloutFrom=new"
        ]
    );
}

#[test]
fn a_rollback_runs_its_hooks_and_says_so_to_jobs() {
    let job = |name: &str, type_: &str| {
        json!({ "name": name, "trigger": {"type": type_}, "jobSpec": {"template": {"spec": {
            "initContainers": [{"name": "wait"}],
            "containers": [{"name": "a", "env": [{"name": "K8S_ROLLOUT_TYPE", "value": "mine"}, {"name": "B"}]}],
        }}}})
    };
    let mut world = World::new(2, &[job("before", "Pre")]);
    let variables = |world: &World| -> Vec<String> {
        let run = world.runs_of("before")[0];
        let job = run.spec.metrics[0].provider.job.as_ref().unwrap().spec.value();
        let containers =
            ["initContainers", "containers"].map(|list| &job["template"]["spec"][list][0]["env"]);
        let words = |env: &Value| -> String {
            let pairs = env.as_array().unwrap().iter();
            let pairs = pairs.map(|pair| {
                let value = pair["value"].as_str().unwrap_or_default();
                format!(
                    "{}={value}",
                    pair["name"].as_str().unwrap().replace("K8S_ROLLOUT_", "")
                )
            });
            pairs.collect::<Vec<_>>().join(" ")
        };
        containers.into_iter().map(words).collect()
    };
    world.settle();
    assert_eq!(
        variables(&world),
        [
            "FROM_OBJECT=games/old TO_OBJECT=games/new TYPE=ROLLOUT",
            "FROM_OBJECT=games/old TO_OBJECT=games/new TYPE=mine B="
        ]
    );
    let owner = &world.runs_of("before")[0]
        .metadata
        .owner_references
        .as_ref()
        .unwrap()[0];
    assert_eq!(
        (owner.kind.as_str(), owner.name.as_str()),
        ("ControllerRevision", "new")
    );
    let first_name = world.runs_of("before")[0].metadata.name.clone();
    // Back to the last complete revision, before the hook ends.
    world.set_template("old", "game:v1");
    world.settle();
    world.ends("before", Phase::Inconclusive);
    world.runs.retain(|run| run.metadata.name != first_name);
    assert_eq!(
        variables(&world)[0],
        "FROM_OBJECT=games/new TO_OBJECT=games/old TYPE=ROLLBACK"
    );
    assert_eq!(world.current(), Some("old"));
    assert_eq!(world.condition("Progressing").1, "LifecycleHookRunning");
    world.ends("before", Phase::Successful);
    assert_eq!(world.condition("Progressing").1, "RolloutComplete");
    // The same revision again is another rollout: its runs have other names.
    world.set_template("new", "game:v2");
    world.settle();
    assert_ne!(world.runs_of("before")[0].metadata.name, first_name);
    let mut first = World::empty(2, &[job("before", "Pre")]);
    first.settle();
    assert_eq!(
        variables(&first)[0],
        "FROM_OBJECT= TO_OBJECT=games/new TYPE=ROLLOUT"
    );
}

#[test]
fn nothing_begins_while_no_pod_may_be_updated() {
    let hooks = [hook("before", &json!("Pre")), hook("after", &json!("Post"))];
    let mut world = World::new(4, &hooks);
    let set = |world: &mut World, paused: bool, partition: &str| {
        let update = json!({ "maxUnavailable": "100%", "paused": paused, "partition": partition });
        world.object.spec.update_strategy = serde_json::from_value(update).unwrap();
    };
    set(&mut world, true, "0");
    world.settle();
    assert!(!world.is_running("before"));
    set(&mut world, false, "4");
    world.settle();
    assert!(!world.is_running("before"));
    assert_eq!(world.condition("Progressing").1, "LifecycleHookWaiting");
    set(&mut world, false, "2");
    world.ends("before", Phase::Successful);
    assert_eq!(world.at("new"), 2);
    assert!(!world.is_running("after"), "it waits for the other pods");
    assert_eq!(
        world.condition("Progressing"),
        ("True".to_owned(), "LifecycleHookWaiting".to_owned())
    );
    assert_eq!(world.current(), Some("old"));
    set(&mut world, false, "0");
    world.settle();
    assert!(world.is_running("after") && world.at("new") == 4);
}

#[test]
fn only_its_own_run_as_it_was_created_passes_a_point() {
    type Change = dyn Fn(&mut HookRun);
    let changes: [(&str, &Change); 5] = [
        ("softened", &|run| {
            run.spec.metrics[0].success_condition = Some("true".to_owned());
        }),
        ("edited and restored", &|run| run.metadata.generation = Some(3)),
        ("terminated", &|run| {
            (run.spec.terminate, run.metadata.generation) = (Some(true), Some(2));
        }),
        ("of another attempt", &|run| {
            let notes = run.metadata.annotations.as_mut().unwrap();
            notes.insert(
                "tkex.tencent.com/intent".to_owned(),
                "lifecycle:new:before:2".to_owned(),
            );
        }),
        ("not measured", &|run| {
            run.status.as_mut().unwrap().metric_results.clear();
        }),
    ];
    for (case, change) in changes {
        let mut world = World::new(2, &[hook("before", &json!("Pre"))]);
        world.settle();
        world.end("before", Phase::Successful);
        change(world.runs.iter_mut().next().unwrap());
        world.settle();
        assert_eq!(world.at("new"), 0, "{case}: {:?}", world.log);
    }
    // A run that is gone before its verdict was recorded runs again under its name.
    let mut world = World::new(2, &[hook("before", &json!("Pre"))]);
    world.settle();
    let name = world.runs[0].metadata.name.clone();
    world.runs.clear();
    world.settle();
    assert_eq!((world.at("new"), &world.runs[0].metadata.name), (0, &name));
    world.ends("before", Phase::Successful);
    assert_eq!(world.at("new"), 2);
}

#[test]
fn a_changed_template_does_not_stop_an_attempt_and_counts_from_the_next() {
    let mut world = World::new(2, &[hook("before", &json!("Pre"))]);
    world.settle();
    let metric = &mut world.cluster.template.as_mut().unwrap().metrics[0];
    metric.success_condition = Some("result == 2".to_owned());
    world.settle();
    assert_eq!(world.made, 1);
    world.ends("before", Phase::Failed);
    world.pass(10);
    world.settle();
    let run = world.running_mut("before").unwrap();
    assert_eq!(
        run.spec.metrics[0].success_condition.as_deref(),
        Some("result == 2")
    );
}

#[test]
fn a_deleted_run_begins_again_once_with_the_template_of_that_time() {
    let mut timed = hook("before", &json!("Pre"));
    timed["timeoutSeconds"] = json!(60);
    let mut world = World::new(2, &[timed]);
    world.settle();
    let metric = &mut world.cluster.template.as_mut().unwrap().metrics[0];
    metric.success_condition = Some("result == 2".to_owned());
    let name = world.runs[0].metadata.name.clone();
    world.runs.clear();
    world.settle();
    assert_eq!((world.made, &world.runs[0].metadata.name), (2, &name));
    // An edited one as well.
    world.runs[0].metadata.generation = Some(3);
    world.cluster.template.as_mut().unwrap().metrics[0].success_condition = Some("result == 3".to_owned());
    world.settle();
    assert_eq!((world.made, world.runs.len()), (3, 1));
    world.pass(60);
    world.settle();
    assert_eq!(world.log.last().unwrap(), "terminate before", "its time goes on");
}

#[test]
fn a_hook_that_cannot_run_holds_the_rollout_and_names_the_reason() {
    let mut world = World::new(2, &[hook("before", &json!("Pre"))]);
    world.cluster.template = None;
    world.settle();
    assert_eq!(
        world.condition("UpdateBlocked"),
        ("True".to_owned(), "HookTemplateMissing".to_owned())
    );
    assert_eq!(world.condition("HooksResolved").0, "False");
    world.cluster = FakeCluster::with_hook();
    world.ends("before", Phase::Successful);
    assert_eq!(world.at("new"), 2);
}

#[test]
fn hooks_that_are_added_or_removed_in_a_rollout_count_from_then_on() {
    let mut world = World::new(4, &[hook("half", &json!("50%"))]);
    world.settle();
    assert!(world.is_running("half"));
    let hooks = json!([hook("all", &json!("75%"))]);
    world.object.spec.lifecycle_hooks = serde_json::from_value(hooks).unwrap();
    world.settle();
    assert!(
        world.log.contains(&"terminate half".to_owned()),
        "{:?}",
        world.log
    );
    assert!(!world.is_running("all"), "it waits for the end of the other");
    world.ends("half", Phase::Inconclusive);
    assert!(world.is_running("all") && world.at("new") == 3, "{:?}", world.log);
    world.object.spec.lifecycle_hooks = None;
    world.settle();
    world.end("all", Phase::Inconclusive);
    world.settle();
    assert_eq!((world.at("new"), world.current()), (4, Some("new")));
    assert!(world.object.status.as_ref().unwrap().lifecycle_hooks.is_empty());
}

#[test]
fn retained_runs_are_those_that_the_policy_names() {
    for (policy, after_failure, after_success) in [("Always", 1, 2), ("OnFailure", 1, 1), ("Never", 0, 0)] {
        let mut before = hook("before", &json!("Pre"));
        before["retainPolicy"] = json!(policy);
        let mut world = World::new(2, &[before]);
        world.ends("before", Phase::Failed);
        assert_eq!(world.runs.len(), after_failure, "{policy}");
        world.pass(10);
        world.ends("before", Phase::Successful);
        assert_eq!(world.runs.len(), after_success, "{policy}");
    }
    let mut world = World::new(2, &[hook("before", &json!("Pre"))]);
    for _ in 0..15 {
        world.ends("before", Phase::Failed);
        world.pass(300);
    }
    assert_eq!(world.runs.len(), 10, "of many failures the last ones stay");
}
