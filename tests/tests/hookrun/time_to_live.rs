//! `ttlSecondsAfterFinished`: a finished run is deleted when its time has come, and not before.

use std::time::Duration;

use jiff::Timestamp;
use operator_tests::{SOON, Stage, web};
use serde_json::json;
use shared_api::Phase;
use test_kit::{Answer, eventually};

use crate::stage;

/// Far less than any resync: an operator that sleeps through the expiry misses it.
const PROMPTLY: Duration = Duration::from_secs(15);

#[tokio::test]
async fn a_run_is_deleted_when_its_time_has_come() {
    let stage = stage("ttl").await;
    stage.game.on("/", Answer::json(json!({ "age": 45 })));
    create(&stage, "run", Some(1)).await;
    let ended = stage.verdict("run").await;
    assert_eq!(ended.phase, Phase::Successful);
    gone(&stage, "run").await;
    let kept = Timestamp::now().duration_since(ended.completed_at.unwrap().timestamp());
    assert!(kept.as_millis() >= 1000, "deleted after {kept:?}");
    no_session_left(&stage).await;
}

#[tokio::test]
async fn zero_is_at_once_and_unset_is_never() {
    let stage = stage("ttl").await;
    stage.game.on("/", Answer::status(503));
    create(&stage, "kept", None).await;
    create(&stage, "patient", Some(3600)).await;
    create(&stage, "gone", Some(0)).await;
    gone(&stage, "gone").await;
    stage.verdict("kept").await;
    stage.verdict("patient").await;
    assert_eq!(
        stage
            .operator
            .metric("hookgate_hook_runs_completed_total", "phase=\"Error\"")
            .await,
        3.0
    );
    let mut names = stage.names().await;
    names.sort();
    assert_eq!(names, ["kept", "patient"]);
}

#[tokio::test]
async fn a_time_to_live_can_be_set_after_the_end() {
    let stage = stage("ttl").await;
    stage.game.on("/", Answer::json(json!({ "age": 45 })));
    create(&stage, "run", None).await;
    stage.settled("run").await;
    stage
        .patch("run", json!({ "spec": { "ttlSecondsAfterFinished": 0 } }))
        .await;
    gone(&stage, "run").await;
    no_session_left(&stage).await;
    assert_eq!(stage.game.counts("/").received, 1);
}

async fn create(stage: &Stage<'_>, name: &str, seconds: Option<i64>) {
    let metric = web(
        "webtest",
        &stage.game.url("/"),
        json!({ "consecutiveErrorLimit": 0 }),
    );
    stage
        .create(
            name,
            json!({ "ttlSecondsAfterFinished": seconds, "metrics": [metric] }),
        )
        .await;
}

async fn gone(stage: &Stage<'_>, name: &str) {
    let runs = stage.runs();
    eventually(PROMPTLY, || async {
        match runs.get_opt(name).await {
            Ok(None) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

async fn no_session_left(stage: &Stage<'_>) {
    eventually(SOON, || async {
        let active = stage.operator.metric("hookgate_hook_active_runs", "").await;
        if active == 0.0 { Ok(()) } else { Err(active) }
    })
    .await;
}
