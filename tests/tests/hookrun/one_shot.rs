//! A metric without count and interval is measured once, and that decides the verdict.

use operator_tests::web;
use serde_json::json;
use shared_api::Phase;
use test_kit::Answer;

use crate::env;

#[tokio::test]
async fn success() {
    let env = env("one-shot").await;
    env.game.on(
        "/",
        Answer::json(json!({ "name": "bryan", "male": "yes", "age": 45 })),
    );
    let metric = web(
        "webtest",
        &env.game.url("/"),
        json!({ "successCondition": "asInt(result) > 30" }),
    );
    env.create("run", json!({ "metrics": [metric] })).await;
    let status = env.settled("run").await;
    assert_eq!(status.phase, Phase::Successful);
    let result = &status.metric_results[0];
    assert_eq!(result.phase, Phase::Successful);
    assert_eq!(result.count, 1);
    assert_eq!(result.successful, 1);
    assert_eq!(result.measurements[0].value.as_deref(), Some("45"));
    assert_eq!(result.measurements[0].message, None);
    assert_eq!(env.game.counts("/").received, 1);
    assert_eq!(
        env.warnings("run").await,
        [] as [String; 0],
        "a success needs nobody's attention"
    );
}

#[tokio::test]
async fn failure() {
    let env = env("one-shot").await;
    env.game.on("/", Answer::json(json!({ "age": 45 })));
    let metric = web(
        "webtest",
        &env.game.url("/"),
        json!({ "successCondition": "asInt(result) < 30" }),
    );
    env.create("run", json!({ "metrics": [metric] })).await;
    let status = env.settled("run").await;
    assert_eq!(status.phase, Phase::Failed);
    assert_eq!(status.reason.as_deref(), Some("FailureLimitExceeded"));
    assert_eq!(
        status.message.as_deref(),
        Some("metric webtest Failed: \"45\" does not satisfy asInt(result) < 30 (1 failed > failureLimit 0)")
    );
    env.warned(
        "run",
        "FailureLimitExceeded Failed: metric webtest Failed: \"45\" does not satisfy",
    )
    .await;
    assert_eq!(env.game.counts("/").received, 1);
}
