//! `spec.terminate` ends a run in any state, and never opens a gate.

use operator_tests::{SOON, assert_ended, web};
use serde_json::json;
use shared_api::Phase;
use shared_api::hook_run::HookRunStatus;
use test_kit::Answer;

use crate::env;

#[tokio::test]
async fn before_any_measurement_nothing_is_asked() {
    let env = env("terminate").await;
    env.game.on("/", Answer::json(json!({ "age": 45 })));
    let metric = web("webtest", &env.game.url("/"), json!({}));
    env.create("run", json!({ "terminate": true, "metrics": [metric] }))
        .await;
    assert_terminated(&env.settled("run").await);
    assert_eq!(env.game.counts("/").received, 0);
}

#[tokio::test]
async fn in_mid_run_what_was_measured_is_kept() {
    let env = env("terminate").await;
    env.game.otherwise(Answer::json(json!({ "age": 45 })));
    let done = web("done", &env.game.url("/done"), json!({}));
    let endless = web(
        "endless",
        &env.game.url("/endless"),
        json!({ "interval": "50ms" }),
    );
    env.create("run", json!({ "metrics": [done, endless] })).await;
    env.until("run", |status| {
        status.metric_results.iter().any(|result| result.successful >= 2)
    })
    .await;
    env.patch("run", json!({ "spec": { "terminate": true } })).await;
    let status = env.settled("run").await;
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
    let env = env("terminate").await;
    env.game.on("/", Answer::never());
    env.measure("run", web("webtest", &env.game.url("/"), json!({})))
        .await;
    env.game.await_in_flight("/", 1, SOON).await.unwrap();
    env.patch("run", json!({ "spec": { "terminate": true } })).await;
    env.game.await_cancelled("/", 1, SOON).await.unwrap();
    assert_terminated(&env.settled("run").await);
    assert_eq!(env.game.counts("/").received, 1);
}

#[tokio::test]
async fn a_verdict_stays() {
    let env = env("terminate").await;
    env.game.on("/", Answer::json(json!({ "age": 45 })));
    env.measure("run", web("webtest", &env.game.url("/"), json!({})))
        .await;
    let before = env.settled("run").await;
    env.patch("run", json!({ "spec": { "terminate": true } })).await;
    assert_eq!(env.settled("run").await, before);
    assert_eq!(before.phase, Phase::Successful);
}

fn assert_terminated(status: &HookRunStatus) {
    assert_ended(status, Phase::Inconclusive, "Terminated");
    let message = status.message.as_deref().unwrap_or_default();
    assert!(message.ends_with("Inconclusive: terminated"), "{message}");
}
