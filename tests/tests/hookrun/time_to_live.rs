//! `ttlSecondsAfterFinished`: the operator deletes a finished run when its time has come, and not before.

use std::time::Duration;

use operator_tests::{SOON, TestEnv, at_once, milliseconds, web};
use serde_json::json;
use shared_api::Phase;
use shared_api::time::Time;
use test_kit::{Answer, eventually};

use crate::env;

/// Far less than any resync: an operator that sleeps through the expiry misses it.
const PROMPTLY: Duration = Duration::from_secs(15);

#[tokio::test]
async fn a_run_is_deleted_when_its_time_has_come() {
    let env = env("ttl").await;
    env.game.on("/", Answer::json(json!({ "age": 45 })));
    create(&env, "run", Some(2)).await;
    // Keeps the run for inspection.
    env.patch(
        "run",
        json!({ "metadata": { "finalizers": ["example.com/wait"] } }),
    )
    .await;
    assert_eq!(env.verdict("run").await.phase, Phase::Successful);
    let run = eventually(PROMPTLY, || async {
        let run = env.runs().get("run").await.map_err(|error| error.to_string())?;
        if run.metadata.deletion_timestamp.is_some() {
            Ok(run)
        } else {
            Err(format!("{run:?}"))
        }
    })
    .await;
    let ended = run.status.unwrap().completed_at;
    let deleted = run.metadata.deletion_timestamp.map(|at| Time::new(at.0));
    // The API server truncates deletion times to whole seconds.
    assert!(milliseconds(ended, deleted) > Some(1000), "{ended:?} {deleted:?}");
    env.patch("run", json!({ "metadata": { "finalizers": null } }))
        .await;
    gone(&env, "run").await;
    env.idle().await;
}

#[tokio::test]
async fn zero_is_at_once_and_unset_is_never() {
    let env = env("ttl").await;
    env.game.on("/", Answer::status(503));
    create(&env, "kept", None).await;
    create(&env, "patient", Some(3600)).await;
    create(&env, "gone", Some(0)).await;
    gone(&env, "gone").await;
    env.verdict("kept").await;
    env.verdict("patient").await;
    eventually(SOON, || async {
        let ended = env
            .metric("hookgate_hook_runs_completed_total", "phase=\"Error\"")
            .await;
        if ended == 3 { Ok(()) } else { Err(ended) }
    })
    .await;
    let mut names = env.names().await;
    names.sort();
    assert_eq!(names, ["kept", "patient"]);
}

#[tokio::test]
async fn a_time_to_live_can_be_set_after_the_end() {
    let env = env("ttl").await;
    env.game.on("/", Answer::json(json!({ "age": 45 })));
    create(&env, "run", None).await;
    env.settled("run").await;
    env.patch("run", json!({ "spec": { "ttlSecondsAfterFinished": 0 } }))
        .await;
    gone(&env, "run").await;
    env.idle().await;
    assert_eq!(env.game.counts("/").received, 1);
}

async fn create(env: &TestEnv<'_>, name: &str, seconds: Option<i64>) {
    let metric = at_once(web("webtest", &env.game.url("/"), json!({})));
    env.create(
        name,
        json!({ "ttlSecondsAfterFinished": seconds, "metrics": [metric] }),
    )
    .await;
}

async fn gone(env: &TestEnv<'_>, name: &str) {
    let runs = env.runs();
    eventually(PROMPTLY, || async {
        match runs.get_opt(name).await {
            Ok(None) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}
