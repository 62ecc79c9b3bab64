//! `count`, `interval` and limits as in the user document's manifests, at a faster pace.

use operator_tests::{milliseconds, phases, values, web};
use serde_json::json;
use shared_api::Phase;
use shared_api::hook_run::MetricResult;
use test_kit::Answer;

use crate::env;

#[tokio::test]
async fn three_successes_are_recorded_one_by_one() {
    let env = env("count").await;
    let answers = Answer::json(json!({ "age": 32 }))
        .times(1)
        .then(Answer::json(json!({ "age": 33 })));
    env.game.on("/", answers);
    let metric = web(
        "webtest",
        &env.game.url("/"),
        json!({
            "count": 3, "failureLimit": 2, "interval": "600ms", "successCondition": "asInt(result) > 30"
        }),
    );
    env.create("run", json!({ "metrics": [metric] })).await;
    let first = env.until("run", |status| status.metric_results.len() == 1).await;
    assert_eq!(first.phase, Phase::Running);
    assert_eq!(first.metric_results[0].phase, Phase::Running);
    let status = env.settled("run").await;
    assert_eq!(status.phase, Phase::Successful);
    let result = &status.metric_results[0];
    assert_eq!(values(result), ["32", "33", "33"]);
    assert_eq!(phases(result), [Phase::Successful; 3]);
    assert_eq!(result.count, 3);
    assert_eq!(result.successful, 3);
    assert_eq!(result.consecutive_successful, 3);
    assert_spacing(result, 600);
    assert_eq!(env.game.counts("/").received, 3);
}

#[tokio::test]
async fn a_failing_hook_fails_when_the_limit_is_exceeded() {
    let env = env("count").await;
    env.game.on("/", Answer::json(json!({ "age": 45 })));
    let metric = web(
        "webtest",
        &env.game.url("/"),
        json!({
            "count": 3, "failureLimit": 2, "interval": "300ms", "successCondition": "asInt(result) < 30"
        }),
    );
    env.create("run", json!({ "metrics": [metric] })).await;
    let status = env.settled("run").await;
    let result = &status.metric_results[0];
    assert_eq!((status.phase, result.phase), (Phase::Failed, Phase::Failed));
    assert_eq!((result.count, result.failed, result.successful), (3, 3, 0));
    assert_eq!(
        status.message.as_deref(),
        Some("metric webtest Failed: \"45\" does not satisfy asInt(result) < 30 (3 failed > failureLimit 2)")
    );
}

#[tokio::test]
async fn failures_within_the_limit_are_tolerated() {
    let env = env("count").await;
    env.game.on(
        "/",
        Answer::json(json!({ "age": 5 }))
            .times(2)
            .then(Answer::json(json!({ "age": 45 }))),
    );
    let metric = web(
        "webtest",
        &env.game.url("/"),
        json!({
            "count": 3, "failureLimit": 2, "interval": "100ms", "successCondition": "asInt(result) > 30"
        }),
    );
    env.create("run", json!({ "metrics": [metric] })).await;
    let status = env.settled("run").await;
    assert_eq!(
        phases(&status.metric_results[0]),
        [Phase::Failed, Phase::Failed, Phase::Successful]
    );
    assert_eq!(status.phase, Phase::Successful);
}

/// The walk-through of canary rollouts promises this.
#[tokio::test]
async fn without_tolerance_the_first_failure_decides() {
    let env = env("count").await;
    env.game.on("/", Answer::json(json!({ "age": 45 })));
    let metric = web(
        "webtest",
        &env.game.url("/"),
        json!({ "count": 2, "failureLimit": 0, "interval": "60s", "successCondition": "asInt(result) < 30" }),
    );
    env.measure("run", metric).await;
    assert_eq!(env.settled("run").await.phase, Phase::Failed);
    assert_eq!(env.game.counts("/").received, 1);
}

/// Asserts that at least the interval passes between the end of one measurement and the start of the next.
fn assert_spacing(result: &MetricResult, least: i128) {
    for pair in result.measurements.windows(2) {
        let gap = milliseconds(pair[0].finished_at, pair[1].started_at);
        assert!(gap >= Some(least), "{gap:?} ms between two measurements");
    }
}
