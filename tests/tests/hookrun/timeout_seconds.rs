//! `timeoutSeconds` bounds the whole run: it ends in Error, whatever it is waiting for.

use operator_tests::{SOON, assert_ended, milliseconds, web};
use serde_json::{Value, json};
use shared_api::Phase;
use shared_api::hook_run::HookRunStatus;
use test_kit::Answer;

use crate::env;

#[tokio::test]
async fn a_hanging_call_is_cancelled_when_the_run_times_out() {
    let env = env("timeout").await;
    env.game.on("/", Answer::never());
    env.create(
        "run",
        within_a_second(&[web("webtest", &env.game.url("/"), json!({}))]),
    )
    .await;
    env.game.await_cancelled("/", 1, SOON).await.unwrap();
    let status = env.settled("run").await;
    assert_timed_out(&status);
    assert_eq!(status.metric_results[0].phase, Phase::Error);
    assert_eq!(env.game.counts("/").received, 1);
}

#[tokio::test]
async fn polling_and_waiting_end_and_verdicts_stay() {
    let env = env("timeout").await;
    env.game.on("/done", Answer::json(json!({ "age": 45 })));
    env.game.on("/busy", Answer::json(json!({ "age": 5 })));
    let done = web("done", &env.game.url("/done"), json!({}));
    let busy = web(
        "busy",
        &env.game.url("/busy"),
        json!({
            "interval": "100ms", "successfulLimit": 1, "successCondition": "asInt(result) > 30"
        }),
    );
    let waiting = web(
        "waiting",
        &env.game.url("/waiting"),
        json!({ "initialDelay": "1h" }),
    );
    env.create("run", within_a_second(&[done, busy, waiting])).await;
    let status = env.settled("run").await;
    assert_timed_out(&status);
    let phases: Vec<Phase> = status.metric_results.iter().map(|result| result.phase).collect();
    assert_eq!(phases, [Phase::Successful, Phase::Error, Phase::Error]);
    assert!(status.metric_results[1].failed > 0);
    assert_eq!(env.game.counts("/waiting").received, 0);
}

#[tokio::test]
async fn a_run_that_ends_in_time_is_not_touched() {
    let env = env("timeout").await;
    env.game.on("/", Answer::json(json!({ "age": 45 })));
    let metric = web("webtest", &env.game.url("/"), json!({}));
    env.create("run", json!({ "timeoutSeconds": 60, "metrics": [metric] }))
        .await;
    assert_eq!(env.settled("run").await.phase, Phase::Successful);
}

fn within_a_second(metrics: &[Value]) -> Value {
    json!({ "timeoutSeconds": 1, "metrics": metrics })
}

fn assert_timed_out(status: &HookRunStatus) {
    assert_ended(status, Phase::Error, "TimedOut");
    assert!(
        status
            .message
            .as_deref()
            .unwrap_or_default()
            .ends_with("run timed out"),
        "{status:?}"
    );
    assert!(
        milliseconds(status.started_at, status.completed_at) >= Some(1000),
        "{status:?}"
    );
}
