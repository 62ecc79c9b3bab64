//! A metric with a success limit and no `failureLimit` keeps polling, through failures and errors, until it
//! has that many successes. User interfaces write this shape.

use operator_tests::{assert_ended, assert_has, phases, web};
use serde_json::json;
use shared_api::Phase;
use test_kit::Answer;
use test_kit::webhook::Script;

use crate::env;

#[tokio::test]
async fn successes_are_waited_for_through_failures_and_errors() {
    let env = env("poll-until").await;
    let in_use = Answer::json(json!({ "age": 5 })).times(2);
    let down = Answer::status(503).times(6).then(Answer::hang_up());
    let free = Answer::json(json!({ "age": 45 }));
    env.game.on("/", in_use.then(down).then(free));
    let metric = web(
        "webtest",
        &env.game.url("/"),
        json!({
            "count": 0, "interval": "50ms", "successfulLimit": 2, "successCondition": "asInt(result) > 30"
        }),
    );
    env.measure("run", metric).await;
    let status = env.settled("run").await;
    assert_eq!(status.phase, Phase::Successful);
    let result = &status.metric_results[0];
    assert_eq!(
        (result.successful, result.failed, result.error, result.count),
        (2, 2, 7, 4)
    );
    assert_eq!(env.game.counts("/").received, 11);
}

#[tokio::test]
async fn a_failure_or_an_error_starts_a_streak_anew() {
    let env = env("poll-until").await;
    let (good, bad) = (
        Answer::json(json!({ "age": 45 })),
        Answer::json(json!({ "age": 5 })),
    );
    env.game
        .on("/", in_turn(&[&good, &bad, &good, &Answer::status(500), &good]));
    let metric = web(
        "webtest",
        &env.game.url("/"),
        json!({
            "interval": "50ms", "consecutiveSuccessfulLimit": 2, "successCondition": "asInt(result) > 30"
        }),
    );
    env.measure("run", metric).await;
    let status = env.settled("run").await;
    let (ok, failed, error) = (Phase::Successful, Phase::Failed, Phase::Error);
    assert_eq!(phases(&status.metric_results[0]), [ok, failed, ok, error, ok, ok]);
    assert_eq!(status.phase, ok);
    assert_eq!(status.metric_results[0].consecutive_successful, 2);
}

#[tokio::test]
async fn a_count_that_is_used_up_before_the_limit_is_a_failure() {
    let env = env("poll-until").await;
    env.game.on(
        "/",
        Answer::json(json!({ "age": 45 })).then(Answer::json(json!({ "age": 5 }))),
    );
    let metric = web(
        "webtest",
        &env.game.url("/"),
        json!({
            "count": 3, "interval": "50ms", "successfulLimit": 2, "successCondition": "asInt(result) > 30"
        }),
    );
    env.measure("run", metric).await;
    let status = env.settled("run").await;
    assert_ended(&status, Phase::Failed, "SuccessLimitNotReached");
    let message = status.message.unwrap();
    assert_has(
        &message,
        "1 of 3 measurements successful; success limit not reached",
    );
    assert_eq!(env.game.counts("/").received, 3);
}

#[tokio::test]
async fn a_failure_limit_that_is_written_down_counts() {
    let env = env("poll-until").await;
    env.game.on("/", Answer::json(json!({ "age": 5 })));
    let metric = web(
        "webtest",
        &env.game.url("/"),
        json!({
            "interval": "50ms", "successfulLimit": 2, "failureLimit": 1, "successCondition": "asInt(result) > 30"
        }),
    );
    env.measure("run", metric).await;
    let status = env.settled("run").await;
    assert_eq!(status.phase, Phase::Failed);
    assert_eq!(status.metric_results[0].failed, 2);
}

#[tokio::test]
async fn while_it_waits_the_status_says_what_for() {
    let env = env("poll-until").await;
    env.game.on("/", Answer::status(503));
    let metric = web(
        "webtest",
        &env.game.url("/"),
        json!({ "interval": "50ms", "successfulLimit": 1 }),
    );
    env.measure("run", metric).await;
    let waiting = env.until("run", |status| status.message.is_some()).await;
    assert_eq!((waiting.phase, waiting.completed_at), (Phase::Running, None));
    let message = waiting.message.unwrap();
    assert!(
        message.starts_with("metric webtest: last measurement Error: received status 503"),
        "{message}"
    );
    env.game.on("/", Answer::json(json!({ "age": 45 })));
    assert_eq!(env.settled("run").await.phase, Phase::Successful);
}

/// Returns one response after another, and repeats the last one.
fn in_turn(answers: &[&Answer]) -> Script {
    let mut scripts = answers.iter().map(|answer| Script::from((*answer).clone()));
    let first = scripts.next().unwrap_or_else(|| Answer::status(404).into());
    scripts.fold(first, Script::then)
}
