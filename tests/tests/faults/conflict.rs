//! Another client changes the run between the operator's read and its write.

use operator_tests::assert_ended;
use serde_json::json;
use shared_api::Phase;

use crate::{SOON, counted, fixture, recorded, status_writes, under_way};

#[tokio::test]
async fn a_measurement_survives_a_conflict() {
    let fixture = fixture("conflict").await;
    let env = &fixture.env;
    let held = fixture.proxy.stall_next(status_writes("run"));
    env.create("run", counted(&env.game.url("/"), 3, "300ms")).await;
    held.await_hits(1, SOON).await.unwrap();
    env.patch("run", json!({ "metadata": { "labels": { "touched": "yes" } } }))
        .await;
    held.release();
    let status = env.settled("run").await;
    assert_eq!(status.phase, Phase::Successful);
    assert_eq!(recorded(&status), ["1", "2", "3"]);
    assert_eq!(env.game.counts("/").received, 3);
    assert!(env.metric("hookgate_hook_status_writes_total", "conflict").await >= 1);
    let labels = env
        .runs()
        .get("run")
        .await
        .unwrap()
        .metadata
        .labels
        .unwrap_or_default();
    assert_eq!(
        labels.get("touched").map(String::as_str),
        Some("yes"),
        "the other's change stays"
    );
}

#[tokio::test]
async fn a_termination_that_crosses_a_write_is_honoured() {
    let fixture = under_way("conflict", 100).await;
    let env = &fixture.env;
    let held = fixture.proxy.stall_next(status_writes("run"));
    held.await_hits(1, SOON).await.unwrap();
    env.patch("run", json!({ "spec": { "terminate": true } })).await;
    held.release();
    let status = env.settled("run").await;
    assert_ended(&status, Phase::Inconclusive, "Terminated");
    let asked = env.game.counts("/").received;
    assert_eq!(
        recorded(&status).len(),
        asked,
        "every measurement that was taken is recorded"
    );
}
