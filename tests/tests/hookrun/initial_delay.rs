//! `initialDelay` counts from the moment when a metric may start.

use operator_tests::{milliseconds, web};
use serde_json::json;
use shared_api::Phase;
use test_kit::Answer;

use crate::env;

#[tokio::test]
async fn the_first_measurement_waits() {
    let env = env("initial-delay").await;
    env.game.on("/", Answer::json(json!({ "age": 45 })));
    let metric = web("webtest", &env.game.url("/"), json!({ "initialDelay": "700ms" }));
    env.measure("run", metric).await;
    let status = env.settled("run").await;
    assert_eq!(status.phase, Phase::Successful);
    let first = status.metric_results[0].measurements[0].started_at;
    assert!(milliseconds(status.started_at, first) >= Some(700), "{status:?}");
    assert_eq!(env.game.counts("/").received, 1);
}

#[tokio::test]
async fn meanwhile_the_run_shows_that_it_has_started() {
    let env = env("initial-delay").await;
    let metric = web("webtest", &env.game.url("/"), json!({ "initialDelay": "1h" }));
    env.measure("run", metric).await;
    let waiting = env.until("run", |status| status.phase == Phase::Running).await;
    assert!(
        waiting.started_at.is_some() && waiting.completed_at.is_none(),
        "{waiting:?}"
    );
    assert_eq!(env.game.all_requests().len(), 0);
}

#[tokio::test]
async fn under_ordered_it_counts_from_the_end_of_the_metric_before() {
    let env = env("initial-delay").await;
    env.game.otherwise(Answer::json(json!({ "age": 45 })));
    let first = web(
        "first",
        &env.game.url("/first"),
        json!({ "count": 2, "interval": "300ms" }),
    );
    let second = web(
        "second",
        &env.game.url("/second"),
        json!({ "initialDelay": "300ms" }),
    );
    env.create("run", json!({ "policy": "Ordered", "metrics": [first, second] }))
        .await;
    let status = env.settled("run").await;
    assert_eq!(status.phase, Phase::Successful);
    let end_of_first = status.metric_results[0].measurements[1].finished_at;
    let start_of_second = status.metric_results[1].measurements[0].started_at;
    assert!(
        milliseconds(end_of_first, start_of_second) >= Some(300),
        "{status:?}"
    );
}
