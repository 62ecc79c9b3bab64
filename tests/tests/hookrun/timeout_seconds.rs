//! `timeoutSeconds` bounds the whole run: it ends in Error, whatever it waits for.

use operator_tests::{SOON, milliseconds, web};
use serde_json::{Value, json};
use shared_api::Phase;
use shared_api::hook_run::HookRunStatus;
use test_kit::Answer;

use crate::stage;

#[tokio::test]
async fn a_hanging_call_is_cancelled_when_the_run_times_out() {
    let stage = stage("timeout").await;
    stage.game.on("/", Answer::never());
    stage
        .create(
            "run",
            within_a_second(&[web("webtest", &stage.game.url("/"), json!({}))]),
        )
        .await;
    stage.game.await_cancelled("/", 1, SOON).await.unwrap();
    let status = stage.settled("run").await;
    assert_timed_out(&status);
    assert_eq!(status.metric_results[0].phase, Phase::Error);
    assert_eq!(stage.game.counts("/").received, 1);
}

#[tokio::test]
async fn polling_and_waiting_end_and_verdicts_stay() {
    let stage = stage("timeout").await;
    stage.game.on("/done", Answer::json(json!({ "age": 45 })));
    stage.game.on("/busy", Answer::json(json!({ "age": 5 })));
    let done = web("done", &stage.game.url("/done"), json!({}));
    let busy = web(
        "busy",
        &stage.game.url("/busy"),
        json!({
            "interval": "100ms", "successfulLimit": 1, "successCondition": "asInt(result) > 30"
        }),
    );
    let waiting = web(
        "waiting",
        &stage.game.url("/waiting"),
        json!({ "initialDelay": "1h" }),
    );
    stage.create("run", within_a_second(&[done, busy, waiting])).await;
    let status = stage.settled("run").await;
    assert_timed_out(&status);
    let phases: Vec<Phase> = status.metric_results.iter().map(|result| result.phase).collect();
    assert_eq!(phases, [Phase::Successful, Phase::Error, Phase::Error]);
    assert!(status.metric_results[1].failed > 0);
    assert_eq!(stage.game.counts("/waiting").received, 0);
}

#[tokio::test]
async fn a_run_that_ends_in_time_is_not_touched() {
    let stage = stage("timeout").await;
    stage.game.on("/", Answer::json(json!({ "age": 45 })));
    let metric = web("webtest", &stage.game.url("/"), json!({}));
    stage
        .create("run", json!({ "timeoutSeconds": 60, "metrics": [metric] }))
        .await;
    assert_eq!(stage.settled("run").await.phase, Phase::Successful);
}

fn within_a_second(metrics: &[Value]) -> Value {
    json!({ "timeoutSeconds": 1, "metrics": metrics })
}

fn assert_timed_out(status: &HookRunStatus) {
    assert_eq!(
        (status.phase, status.reason.as_deref()),
        (Phase::Error, Some("TimedOut")),
        "{status:?}"
    );
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
