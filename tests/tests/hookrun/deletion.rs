//! The operator forgets a deleted run at once, and a new one with the same name starts afresh.

use operator_tests::{SOON, TestEnv, at_once, web};
use serde_json::json;
use shared_api::Phase;
use test_kit::Answer;

use crate::env;

#[tokio::test]
async fn a_call_in_flight_is_cancelled_and_nothing_follows() {
    let env = env("deletion").await;
    env.game.on("/", Answer::never());
    env.measure(
        "run",
        web("webtest", &env.game.url("/"), json!({ "interval": "10ms" })),
    )
    .await;
    env.game.await_in_flight("/", 1, SOON).await.unwrap();
    assert_eq!(env.metric("hookgate_hook_measurements_in_flight", "").await, 1);
    env.delete("run").await;
    env.game.await_cancelled("/", 1, SOON).await.unwrap();
    env.idle().await;
    assert_eq!(env.game.counts("/").received, 1);
    assert_no_trouble(&env);
}

#[tokio::test]
async fn between_two_measurements_polling_ends() {
    let env = env("deletion").await;
    env.game.on("/", Answer::json(json!({ "age": 45 })));
    env.measure(
        "run",
        web("webtest", &env.game.url("/"), json!({ "interval": "20ms" })),
    )
    .await;
    env.game.await_requests("/", 3, SOON).await.unwrap();
    env.delete("run").await;
    env.idle().await;
    let asked = env.game.counts("/").received;
    // Another run's lifetime leaves enough time for an unwanted request.
    let other = web("webtest", &env.game.url("/other"), json!({}));
    env.measure("other", at_once(other)).await;
    env.verdict("other").await;
    assert_eq!(env.game.counts("/").received, asked);
    assert_eq!(env.game.in_flight("/"), 0);
    assert_no_trouble(&env);
}

#[tokio::test]
async fn a_finalizer_does_not_keep_a_deleted_run_measured() {
    let env = env("deletion").await;
    env.game.on("/", Answer::never());
    env.measure("run", web("webtest", &env.game.url("/"), json!({})))
        .await;
    env.patch(
        "run",
        json!({ "metadata": { "finalizers": ["example.com/wait"] } }),
    )
    .await;
    env.game.await_in_flight("/", 1, SOON).await.unwrap();
    env.delete("run").await;
    env.game.await_cancelled("/", 1, SOON).await.unwrap();
    env.idle().await;
    assert!(!env.status("run").await.phase.is_final());
    env.patch("run", json!({ "metadata": { "finalizers": null } }))
        .await;
    assert_eq!(env.game.counts("/").received, 1);
}

#[tokio::test]
async fn a_run_of_the_same_name_is_a_new_run() {
    let env = env("deletion").await;
    env.game.on("/old", Answer::json(json!({ "age": 5 })));
    env.game.on("/new", Answer::json(json!({ "age": 45 })));
    let metric = |path: &str| {
        web(
            "webtest",
            &env.game.url(path),
            json!({ "successCondition": "asInt(result) > 30", "failureLimit": -1,
            "interval": "20ms", "successfulLimit": 2 }),
        )
    };
    let old = env.measure("run", metric("/old")).await;
    env.game.await_requests("/old", 2, SOON).await.unwrap();
    env.delete("run").await;
    let new = env.measure("run", metric("/new")).await;
    assert_ne!(old.metadata.uid, new.metadata.uid);
    let status = env.settled("run").await;
    assert_eq!(status.phase, Phase::Successful);
    let result = &status.metric_results[0];
    assert_eq!(result.successful, 2);
    assert_eq!(result.failed, 0);
    assert_eq!(result.measurements.len(), 2);
    assert_eq!(env.game.counts("/new").received, 2);
    assert_no_trouble(&env);
}

fn assert_no_trouble(env: &TestEnv<'_>) {
    let log = env.operator.process.stderr();
    let trouble: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("\"level\":\"ERROR\""))
        .collect();
    assert_eq!(trouble, [""; 0]);
}
