//! A run that is deleted is forgotten at once, and a new one of its name is a new one.

use operator_tests::{SOON, Stage, at_once, web};
use serde_json::json;
use shared_api::Phase;
use test_kit::Answer;

use crate::stage;

#[tokio::test]
async fn a_call_in_flight_is_cancelled_and_nothing_follows() {
    let stage = stage("deletion").await;
    stage.game.on("/", Answer::never());
    stage
        .measure(
            "run",
            web("webtest", &stage.game.url("/"), json!({ "interval": "10ms" })),
        )
        .await;
    stage.game.await_in_flight("/", 1, SOON).await.unwrap();
    assert_eq!(
        stage
            .operator
            .metric("hookgate_hook_measurements_in_flight", "")
            .await,
        1
    );
    stage.delete("run").await;
    stage.game.await_cancelled("/", 1, SOON).await.unwrap();
    stage.idle().await;
    assert_eq!(stage.game.counts("/").received, 1);
    assert_no_trouble(&stage);
}

#[tokio::test]
async fn between_two_measurements_polling_ends() {
    let stage = stage("deletion").await;
    stage.game.on("/", Answer::json(json!({ "age": 45 })));
    stage
        .measure(
            "run",
            web("webtest", &stage.game.url("/"), json!({ "interval": "20ms" })),
        )
        .await;
    stage.game.await_requests("/", 3, SOON).await.unwrap();
    stage.delete("run").await;
    stage.idle().await;
    let asked = stage.game.counts("/").received;
    // Another run's life is long enough for a request that should not come.
    let other = web("webtest", &stage.game.url("/other"), json!({}));
    stage.measure("other", at_once(other)).await;
    stage.verdict("other").await;
    assert_eq!(stage.game.counts("/").received, asked);
    assert_eq!(stage.game.in_flight("/"), 0);
    assert_no_trouble(&stage);
}

#[tokio::test]
async fn a_finalizer_does_not_keep_a_deleted_run_measured() {
    let stage = stage("deletion").await;
    stage.game.on("/", Answer::never());
    stage
        .measure("run", web("webtest", &stage.game.url("/"), json!({})))
        .await;
    stage
        .patch(
            "run",
            json!({ "metadata": { "finalizers": ["example.com/wait"] } }),
        )
        .await;
    stage.game.await_in_flight("/", 1, SOON).await.unwrap();
    stage.delete("run").await;
    stage.game.await_cancelled("/", 1, SOON).await.unwrap();
    stage.idle().await;
    assert!(!stage.status("run").await.phase.is_final());
    stage
        .patch("run", json!({ "metadata": { "finalizers": null } }))
        .await;
    assert_eq!(stage.game.counts("/").received, 1);
}

#[tokio::test]
async fn a_run_of_the_same_name_is_a_new_run() {
    let stage = stage("deletion").await;
    stage.game.on("/old", Answer::json(json!({ "age": 5 })));
    stage.game.on("/new", Answer::json(json!({ "age": 45 })));
    let metric = |path: &str| {
        web(
            "webtest",
            &stage.game.url(path),
            json!({ "successCondition": "asInt(result) > 30", "failureLimit": -1,
            "interval": "20ms", "successfulLimit": 2 }),
        )
    };
    let old = stage.measure("run", metric("/old")).await;
    stage.game.await_requests("/old", 2, SOON).await.unwrap();
    stage.delete("run").await;
    let new = stage.measure("run", metric("/new")).await;
    assert_ne!(old.metadata.uid, new.metadata.uid);
    let status = stage.settled("run").await;
    assert_eq!(status.phase, Phase::Successful);
    let result = &status.metric_results[0];
    assert_eq!(
        (result.successful, result.failed, result.measurements.len()),
        (2, 0, 2)
    );
    assert_eq!(stage.game.counts("/new").received, 2);
    assert_no_trouble(&stage);
}

fn assert_no_trouble(stage: &Stage<'_>) {
    let log = stage.operator.process.stderr();
    let trouble: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("\"level\":\"ERROR\""))
        .collect();
    assert_eq!(trouble, [""; 0]);
}
