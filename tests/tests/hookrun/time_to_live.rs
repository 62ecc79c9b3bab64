//! `ttlSecondsAfterFinished`: a finished run is deleted when its time has come, and not before.

use std::time::Duration;

use operator_tests::{SOON, Stage, at_once, milliseconds, web};
use serde_json::json;
use shared_api::Phase;
use shared_api::time::Time;
use test_kit::{Answer, eventually};

use crate::stage;

/// Far less than any resync: an operator that sleeps through the expiry misses it.
const PROMPTLY: Duration = Duration::from_secs(15);

#[tokio::test]
async fn a_run_is_deleted_when_its_time_has_come() {
    let stage = stage("ttl").await;
    stage.game.on("/", Answer::json(json!({ "age": 45 })));
    create(&stage, "run", Some(2)).await;
    // Keeps it to be looked at.
    stage
        .patch(
            "run",
            json!({ "metadata": { "finalizers": ["example.com/wait"] } }),
        )
        .await;
    assert_eq!(stage.verdict("run").await.phase, Phase::Successful);
    let run = eventually(PROMPTLY, || async {
        let run = stage.runs().get("run").await.map_err(|error| error.to_string())?;
        if run.metadata.deletion_timestamp.is_some() {
            Ok(run)
        } else {
            Err(format!("{run:?}"))
        }
    })
    .await;
    let ended = run.status.unwrap().completed_at;
    let deleted = run.metadata.deletion_timestamp.map(|at| Time::new(at.0));
    // The API server cuts the time of a deletion to whole seconds.
    assert!(milliseconds(ended, deleted) > Some(1000), "{ended:?} {deleted:?}");
    stage
        .patch("run", json!({ "metadata": { "finalizers": null } }))
        .await;
    gone(&stage, "run").await;
    stage.idle().await;
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
    eventually(SOON, || async {
        let ended = stage
            .operator
            .metric("hookgate_hook_runs_completed_total", "phase=\"Error\"")
            .await;
        if ended == 3 { Ok(()) } else { Err(ended) }
    })
    .await;
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
    stage.idle().await;
    assert_eq!(stage.game.counts("/").received, 1);
}

async fn create(stage: &Stage<'_>, name: &str, seconds: Option<i64>) {
    let metric = at_once(web("webtest", &stage.game.url("/"), json!({})));
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
