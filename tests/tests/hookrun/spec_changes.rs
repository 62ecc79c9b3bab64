//! A spec change during a run takes effect: the current spec decides the verdict.

use operator_tests::{SOON, assert_ended, web};
use serde_json::json;
use shared_api::Phase;
use test_kit::Answer;

use crate::env;

#[tokio::test]
async fn a_corrected_address_is_asked_from_then_on() {
    let env = env("spec-changes").await;
    env.game.on("/right", Answer::json(json!({ "age": 45 })));
    let polling = json!({ "interval": "50ms", "successfulLimit": 2 });
    env.measure("run", web("webtest", &env.game.url("/wrong"), polling.clone()))
        .await;
    env.until("run", |status| {
        status.metric_results.iter().any(|result| result.error >= 2)
    })
    .await;
    let right = web("webtest", &env.game.url("/right"), polling);
    env.patch("run", json!({ "spec": { "metrics": [right] } })).await;
    let status = env.settled("run").await;
    assert_eq!(status.phase, Phase::Successful);
    assert_eq!(status.observed_generation, Some(2));
    assert!(
        status.metric_results[0].error >= 2,
        "what was measured stays: {status:?}"
    );
    assert_eq!(env.game.counts("/right").received, 2);
}

#[tokio::test]
async fn an_answer_is_not_judged_by_a_condition_that_is_gone() {
    let env = env("spec-changes").await;
    let answer = Answer::json(json!({ "age": 45 }));
    env.game.on("/", Answer::never().times(1).then(answer));
    let patient = json!({ "provider": { "web": { "timeoutSeconds": 600 } } });
    let mut lax = web("webtest", &env.game.url("/"), patient);
    lax["successCondition"] = json!("asInt(result) > 30");
    let mut strict = lax.clone();
    strict["successCondition"] = json!("asInt(result) > 50");
    env.measure("run", lax).await;
    env.game.await_in_flight("/", 1, SOON).await.unwrap();
    env.patch("run", json!({ "spec": { "metrics": [strict] } })).await;
    env.game.await_cancelled("/", 1, SOON).await.unwrap();
    let status = env.settled("run").await;
    assert_eq!(status.phase, Phase::Failed);
    assert_eq!(status.observed_generation, Some(2));
    assert!(status.message.unwrap().contains("asInt(result) > 50"));
    assert_eq!(env.game.counts("/").received, 2);
}

#[tokio::test]
async fn a_change_that_makes_no_sense_ends_the_run() {
    let env = env("spec-changes").await;
    env.game.on("/", Answer::json(json!({ "age": 45 })));
    let polling = web("webtest", &env.game.url("/"), json!({ "interval": "50ms" }));
    env.measure("run", polling).await;
    env.until("run", |status| {
        status.metric_results.iter().any(|result| result.successful >= 2)
    })
    .await;
    let typo = web(
        "webtest",
        &env.game.url("/"),
        json!({ "interval": "50ms", "successCondition": "result >" }),
    );
    env.patch("run", json!({ "spec": { "metrics": [typo] } })).await;
    let status = env.settled("run").await;
    assert_ended(&status, Phase::Error, "InvalidSpec");
    assert!(status.metric_results[0].successful >= 2);
}
