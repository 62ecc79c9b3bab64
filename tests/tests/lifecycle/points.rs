//! Points of a rollout: the pods that each needs, and nothing beyond it.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use operator_tests::fleet::{condition, game};
use serde_json::json;
use test_kit::node::{Behaviour, PodSelector};

use crate::{Rollouts, hook, rollout};

/// Hooks at four points of ten pods.
fn hooks() -> [serde_json::Value; 5] {
    [
        hook("after", &json!("Post")),
        hook("most", &json!("65%")),
        hook("three", &json!(3)),
        hook("also-three", &json!("30%")),
        hook("before", &json!("Pre")),
    ]
}

/// Number of pods beyond which each hook must have succeeded.
const NEEDS: [(&str, usize); 5] = [
    ("before", 0),
    ("three", 3),
    ("also-three", 3),
    ("most", 7),
    ("after", 10),
];

#[tokio::test]
async fn a_new_workload_runs_its_hooks_and_scaling_does_not() {
    let rollouts = Rollouts::start("points-first").await;
    rollouts.answer_all(&hooks(), "wait");
    rollouts.fleet.apply(&rollout(10, &hooks(), json!({})));
    for (names, pods) in [
        (&["before"][..], 0),
        (&["three", "also-three"], 3),
        (&["most"], 7),
        (&["after"], 10),
    ] {
        for name in names {
            let entry = rollouts.until_running(name).await;
            assert_eq!((entry.attempts, entry.completion_time), (1, None));
        }
        assert_eq!(rollouts.running("game:v1").await, pods, "{names:?}");
        let status = rollouts.fleet.status().await;
        assert_eq!(status.current_revision, None);
        let (of, reason, _) = condition(&status, "LifecycleHooksSucceeded").unwrap();
        assert_eq!(
            (of.as_str(), reason.as_str()),
            ("Unknown", "LifecycleHookRunning")
        );
        for name in names {
            rollouts.answer(name, "yes");
        }
    }
    rollouts.until_complete(10).await;
    assert_eq!(rollouts.attempts(), 5);
    let order = rollouts.order.check(&NEEDS);
    assert_eq!(order.len(), 1);
    assert_eq!((order[0][0].as_str(), order[0][4].as_str()), ("before", "after"));
    // Successful runs are gone, and scaling starts none.
    rollouts.fleet.until_runs(<[_]>::is_empty).await;
    rollouts.fleet.scale(15);
    rollouts.until_complete(15).await;
    assert_eq!(rollouts.attempts(), 5);
    let (of, reason, message) = condition(&rollouts.fleet.status().await, "LifecycleHooksSucceeded").unwrap();
    assert_eq!(
        (of.as_str(), reason.as_str()),
        ("True", "LifecycleHooksSucceeded")
    );
    assert!(message.contains("also-three: Successful"), "{message}");
}

#[tokio::test]
async fn each_update_type_stops_at_the_points() {
    for type_ in ["RollingUpdate", "InplaceUpdate", "HotPatchUpdate"] {
        let rollouts = Rollouts::start("points-types").await;
        rollouts.answer_all(&hooks(), "yes");
        let update = json!({ "type": type_, "maxUnavailable": "50%", "maxSurge": 2 });
        rollouts.fleet.apply(&rollout(10, &hooks(), update));
        rollouts.until_complete(10).await;
        rollouts.answer("most", "wait");
        rollouts.fleet.set_image("game:v2").await;
        rollouts.until_running("most").await;
        assert_eq!(rollouts.running("game:v2").await, 7, "{type_}");
        rollouts.answer("most", "yes");
        rollouts.until_complete(10).await;
        rollouts.fleet.all_run("game:v2", 10).await;
        assert_eq!(rollouts.attempts(), 10, "{type_}");
        assert_eq!(rollouts.order.check(&NEEDS).len(), 2);
    }
}

#[tokio::test]
async fn the_template_changes_during_each_hook_while_pods_become_ready_out_of_order() {
    let rollouts = Rollouts::start("points-change").await;
    // Of three pods that are created together, the first may be ready last.
    let lasts =
        |letters: &'static str| move |pod: &Pod| pod.name_any().ends_with(|letter| letters.contains(letter));
    for (letters, milliseconds) in [("bcdfghj", 900), ("klmnpqr", 300)] {
        let start = Behaviour::SlowStart(Duration::from_millis(milliseconds));
        rollouts
            .fleet
            .nodes
            .behave(PodSelector::pods(lasts(letters)), start);
    }
    let hooks = hooks();
    rollouts.answer_all(&hooks, "yes");
    rollouts
        .fleet
        .apply(&rollout(10, &hooks, json!({ "maxUnavailable": "100%" })));
    rollouts.until_complete(10).await;
    for (version, name) in ["before", "three", "most", "after"].into_iter().enumerate() {
        rollouts.answer(name, "wait");
        rollouts.fleet.set_image(&format!("game:w{version}")).await;
        rollouts.until_running(name).await;
        // The next template ends the hook, which begins again at the other revision.
        rollouts.fleet.set_image(&format!("game:x{version}")).await;
        let update = rollouts.fleet.status().await.update_revision;
        rollouts
            .until(name, |entry| {
                Some(&entry.revision) != update.as_ref() || entry.phase.as_str() == "Running"
            })
            .await;
        rollouts.answer(name, "yes");
        rollouts.until_complete(10).await;
        rollouts.fleet.all_run(&format!("game:x{version}"), 10).await;
    }
    let order = rollouts.order.check(&NEEDS);
    // A revision whose first hook was ended has no pod.
    assert_eq!(order.len(), 8, "{order:?}");
    let complete = order.iter().filter(|names| names.len() == 5).count();
    assert_eq!(complete, 5, "{order:?}");
}

#[tokio::test]
async fn on_delete_gives_successors_the_revision_that_the_points_allow() {
    let rollouts = Rollouts::start("points-on-delete").await;
    let hooks = [hook("before", &json!("Pre")), hook("half", &json!("50%"))];
    rollouts.answer_all(&hooks, "yes");
    rollouts
        .fleet
        .apply(&rollout(2, &hooks, json!({ "type": "OnDelete" })));
    rollouts.until_complete(2).await;
    let replace_old = async || {
        let pods = rollouts.fleet.all_pods().await;
        let is_old = |pod: &Pod| pod.spec.as_ref().unwrap().containers[0].image.as_deref() == Some("game:v1");
        let name = pods.into_iter().find(|(_, pod)| is_old(pod)).unwrap().0;
        let _ = rollouts.fleet.kubectl(&["delete", "pod", &name], "");
        rollouts.fleet.until(|status| status.ready_replicas == 2).await;
        rollouts.fleet.quiet().await;
        rollouts.running("game:v2").await
    };
    rollouts.answer_all(&hooks, "wait");
    rollouts.fleet.set_image("game:v2").await;
    rollouts.until_running("before").await;
    assert_eq!(replace_old().await, 0);
    rollouts.answer("before", "yes");
    rollouts
        .until("before", |entry| entry.phase.as_str() == "Successful")
        .await;
    assert_eq!(replace_old().await, 1);
    rollouts.until_running("half").await;
    assert_eq!(replace_old().await, 1);
    rollouts.answer("half", "yes");
    rollouts
        .until("half", |entry| entry.phase.as_str() == "Successful")
        .await;
    assert_eq!(replace_old().await, 2);
    rollouts.until_complete(2).await;
    let _ = rollouts.order.check(&[("before", 0), ("half", 1)]);
}

/// An HPA changes `replicas` at any time, through the scale subresource.
#[tokio::test]
async fn a_point_moves_with_the_number_of_replicas() {
    let rollouts = Rollouts::start("points-scale").await;
    let hooks = [hook("half", &json!("50%"))];
    rollouts.answer_all(&hooks, "yes");
    rollouts
        .fleet
        .apply(&rollout(8, &hooks, json!({ "maxUnavailable": "100%" })));
    rollouts.until_complete(8).await;
    rollouts.answer("half", "wait");
    rollouts.fleet.set_image("game:v2").await;
    rollouts.until_running("half").await;
    assert_eq!(rollouts.running("game:v2").await, 4);
    for (replicas, most) in [(14, 7), (6, 7), (12, 7)] {
        rollouts.fleet.scale(replicas);
        let wanted = i32::try_from(replicas).unwrap();
        rollouts
            .fleet
            .until(|status| status.ready_replicas == wanted)
            .await;
        rollouts.fleet.quiet().await;
        let updated = rollouts.running("game:v2").await;
        assert!(updated <= most, "{updated} of {replicas}");
    }
    let entry = rollouts.until_running("half").await;
    assert_eq!(
        (entry.attempts, rollouts.attempts()),
        (1, 2),
        "the hook runs once"
    );
    rollouts.answer("half", "yes");
    rollouts.until_complete(12).await;
    assert_eq!(rollouts.running("game:v2").await, 12);
    // Scaling to nothing and back starts no hook either.
    rollouts.fleet.scale(0);
    rollouts.until_complete(0).await;
    rollouts.fleet.scale(3);
    rollouts.until_complete(3).await;
    assert_eq!(rollouts.attempts(), 2);
}

#[tokio::test]
async fn hooks_wait_for_a_partition_a_pause_and_canary_steps() {
    let rollouts = Rollouts::start("points-partition").await;
    let hooks = [
        hook("before", &json!("Pre")),
        hook("most", &json!("75%")),
        hook("after", &json!("Post")),
    ];
    rollouts.answer_all(&hooks, "yes");
    rollouts
        .fleet
        .apply(&rollout(4, &hooks, json!({ "maxUnavailable": 4 })));
    rollouts.until_complete(4).await;
    rollouts
        .fleet
        .set(json!({ "updateStrategy": { "paused": true } }))
        .await;
    rollouts.fleet.set_image("game:v2").await;
    rollouts
        .until("before", |entry| entry.phase.as_str() == "Waiting")
        .await;
    assert_eq!(rollouts.attempts(), 3, "a paused rollout has not begun");
    rollouts
        .fleet
        .set(json!({ "updateStrategy": { "paused": false, "partition": 2 } }))
        .await;
    rollouts.fleet.says("Progressing", "LifecycleHookWaiting").await;
    rollouts
        .until("before", |entry| entry.phase.as_str() == "Successful")
        .await;
    rollouts
        .fleet
        .until(|status| status.updated_ready_replicas == 2)
        .await;
    rollouts.fleet.says("Progressing", "LifecycleHookWaiting").await;
    rollouts.fleet.quiet().await;
    assert_eq!((rollouts.running("game:v2").await, rollouts.attempts()), (2, 4));
    rollouts.answer("most", "wait");
    rollouts
        .fleet
        .set(json!({ "updateStrategy": { "partition": 0 } }))
        .await;
    rollouts.until_running("most").await;
    assert_eq!(rollouts.running("game:v2").await, 3);
    rollouts.answer("most", "yes");
    rollouts.until_complete(4).await;
    // A step lets two pods be updated, and a later one the rest.
    let steps = json!([{ "partition": 2 }, { "pause": {} }, { "partition": 0 }]);
    rollouts
        .fleet
        .set(json!({ "updateStrategy": { "canary": { "steps": steps } } }))
        .await;
    rollouts.fleet.set_image("game:v3").await;
    rollouts
        .fleet
        .until_game(|game| game.spec.update_strategy.as_ref().unwrap().paused == Some(true))
        .await;
    rollouts.fleet.quiet().await;
    assert_eq!(rollouts.running("game:v3").await, 2);
    rollouts
        .fleet
        .set(json!({ "updateStrategy": { "paused": false } }))
        .await;
    rollouts.until_complete(4).await;
    let _ = rollouts.order.check(&[("before", 0), ("most", 3)]);
    assert_eq!(rollouts.attempts(), 9);
}

#[tokio::test]
async fn an_adopted_fleet_runs_no_hook() {
    let rollouts = Rollouts::start("points-adopted").await;
    rollouts.fleet.launch(&game(3, json!({}))).await;
    let _ = rollouts
        .fleet
        .kubectl(&["delete", "gamedeployment", "--all", "--cascade=orphan"], "");
    let hooks = [hook("before", &json!("Pre")), hook("after", &json!("Post"))];
    rollouts.fleet.apply(&rollout(3, &hooks, json!({})));
    rollouts.until_complete(3).await;
    assert_eq!(rollouts.attempts(), 0);
    rollouts.answer("before", "wait");
    rollouts.fleet.set_image("game:v2").await;
    rollouts.until_running("before").await;
    assert_eq!(rollouts.running("game:v2").await, 0);
}

#[tokio::test]
async fn a_hook_costs_at_most_six_requests() {
    let runs = |_: &str, resource: &str, subresource: &str| (resource, subresource) == ("hookruns", "");
    let states = |verb: &str, resource: &str, subresource: &str| {
        matches!(
            (resource, subresource, verb),
            ("controllerrevisions", "", _) | ("gamedeployments", "status", "patch")
        )
    };
    let mut counts = Vec::new();
    for hooks in [0, 1, 4] {
        let rollouts = Rollouts::start("points-cost").await;
        let hooks: Vec<_> = (0..hooks)
            .map(|n| hook(&format!("h{n}"), &json!("Pre")))
            .collect();
        rollouts.answer_all(&hooks, "yes");
        rollouts.fleet.launch(&game(2, json!({}))).await;
        rollouts.fleet.set(json!({ "lifecycleHooks": hooks })).await;
        rollouts.fleet.quiet().await;
        let (begun, before) = (rollouts.order.count(|_, _, _| true), rollouts.order.count(runs));
        rollouts.fleet.set_image("game:v2").await;
        rollouts.until_complete(2).await;
        rollouts.fleet.until_runs(<[_]>::is_empty).await;
        let before_pods = rollouts.order.count_before_pods(begun, states);
        counts.push(rollouts.order.count(runs) - before + before_pods);
    }
    println!("writes of rollouts with 0, 1 and 4 hooks: {counts:?}");
    assert!(
        counts[1] <= counts[0] + 6 && counts[2] <= counts[0] + 24,
        "{counts:?}"
    );
}
