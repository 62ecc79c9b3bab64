//! `spec.terminate` ends a run, whatever it is doing, and never opens a gate.

use operator_tests::{SOON, web};
use serde_json::json;
use shared_api::Phase;
use shared_api::hook_run::HookRunStatus;
use test_kit::Answer;

use crate::stage;

#[tokio::test]
async fn before_any_measurement_nothing_is_asked() {
    let stage = stage("terminate").await;
    stage.game.on("/", Answer::json(json!({ "age": 45 })));
    let metric = web("webtest", &stage.game.url("/"), json!({}));
    stage
        .create("run", json!({ "terminate": true, "metrics": [metric] }))
        .await;
    assert_terminated(&stage.settled("run").await);
    assert_eq!(stage.game.counts("/").received, 0);
}

#[tokio::test]
async fn in_mid_run_what_was_measured_is_kept() {
    let stage = stage("terminate").await;
    stage.game.otherwise(Answer::json(json!({ "age": 45 })));
    let done = web("done", &stage.game.url("/done"), json!({}));
    let endless = web(
        "endless",
        &stage.game.url("/endless"),
        json!({ "interval": "50ms" }),
    );
    stage.create("run", json!({ "metrics": [done, endless] })).await;
    stage
        .until("run", |status| {
            status.metric_results.iter().any(|result| result.successful >= 2)
        })
        .await;
    stage.patch("run", json!({ "spec": { "terminate": true } })).await;
    let status = stage.settled("run").await;
    assert_terminated(&status);
    let [done, endless] = status.metric_results.as_slice() else {
        panic!("{status:?}")
    };
    assert_eq!((done.phase, done.successful), (Phase::Successful, 1));
    assert_eq!(endless.phase, Phase::Inconclusive);
    assert!(
        endless.successful >= 2 && !endless.measurements.is_empty(),
        "{endless:?}"
    );
}

#[tokio::test]
async fn a_hanging_call_is_cancelled() {
    let stage = stage("terminate").await;
    stage.game.on("/", Answer::never());
    stage
        .measure("run", web("webtest", &stage.game.url("/"), json!({})))
        .await;
    stage.game.await_in_flight("/", 1, SOON).await.unwrap();
    stage.patch("run", json!({ "spec": { "terminate": true } })).await;
    stage.game.await_cancelled("/", 1, SOON).await.unwrap();
    assert_terminated(&stage.settled("run").await);
    assert_eq!(stage.game.counts("/").received, 1);
}

#[tokio::test]
async fn a_verdict_stays() {
    let stage = stage("terminate").await;
    stage.game.on("/", Answer::json(json!({ "age": 45 })));
    stage
        .measure("run", web("webtest", &stage.game.url("/"), json!({})))
        .await;
    let before = stage.settled("run").await;
    stage.patch("run", json!({ "spec": { "terminate": true } })).await;
    assert_eq!(stage.settled("run").await, before);
    assert_eq!(before.phase, Phase::Successful);
}

fn assert_terminated(status: &HookRunStatus) {
    assert_eq!(
        (status.phase, status.reason.as_deref()),
        (Phase::Inconclusive, Some("Terminated"))
    );
    let message = status.message.as_deref().unwrap_or_default();
    assert!(message.ends_with("Inconclusive: terminated"), "{message}");
}
