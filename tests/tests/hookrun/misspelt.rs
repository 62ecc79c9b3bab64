//! A misspelt or misplaced field opens no gate: the API server keeps it, and the operator suggests the right
//! one.

use operator_tests::{assert_has, at_once, merge, web};
use serde_json::json;
use shared_api::Phase;
use test_kit::Answer;

use crate::env;
use crate::templates::condition;

#[tokio::test]
async fn a_misspelt_condition_ends_a_run_before_anything_is_asked() {
    let env = env("misspelt").await;
    env.game.otherwise(Answer::json(json!({ "age": 45 })));
    let url = env.game.url("/");
    let cases = [
        (
            "slip",
            json!({ "sucessCondition": "result == 0" }),
            "metrics[0].sucessCondition: unknown field; did you mean",
        ),
        (
            "snake",
            json!({ "success_condition": "result == 0" }),
            "did you mean successCondition?",
        ),
        (
            "misplaced",
            json!({ "provider": { "web": { "successCondition": "result == 0" } } }),
            "metrics[0].provider.web.successCondition: unknown field; move it to the metric itself",
        ),
        (
            "path",
            json!({ "provider": { "web": { "jsonpath": "{.ok}" } } }),
            "did you mean jsonPath?",
        ),
    ];
    let beside =
        json!({ "metrics": [at_once(web("webtest", &url, json!({})))], "successCondition": "result == 0" });
    let cases = cases.map(|(name, more, words)| {
        let metric = at_once(web("webtest", &url, more));
        (name, json!({ "metrics": [metric] }), words)
    });
    let of_spec = (
        "beside",
        beside,
        "successCondition: unknown field; move it to the metric itself",
    );
    for (name, spec, words) in cases.into_iter().chain([of_spec]) {
        env.create(name, spec.clone()).await;
        let status = env.settled(name).await;
        assert_eq!(status.phase, Phase::Error, "{name}");
        assert_eq!(status.reason.as_deref(), Some("InvalidSpec"), "{name}");
        let message = status.message.unwrap();
        assert_has(&message, words);
        env.create_template(name, spec).await;
        let invalid = condition(&env, name, "False").await;
        assert_has(&invalid.message, words);
    }
    assert_eq!(env.game.all_requests().len(), 0);
}

#[tokio::test]
async fn what_is_only_odd_is_said_on_the_template_and_in_the_verdict() {
    let env = env("misspelt").await;
    env.game.otherwise(Answer::json(json!({ "age": 45 })));
    let mut metric = web("webtest", &env.game.url("/"), json!({ "comment": "of ours" }));
    env.create_template("odd", json!({ "metrics": [metric.clone()] }))
        .await;
    let valid = condition(&env, "odd", "True").await;
    for words in [
        "metrics[0].comment: unknown field, which has no effect",
        "metrics[0]: no condition is set, so any 2xx response is a success",
    ] {
        assert_has(&valid.message, words);
    }
    merge(&mut metric, json!({ "successCondition": "" }));
    env.create("odd", json!({ "metrics": [metric] })).await;
    let status = env.settled("odd").await;
    assert_eq!(status.phase, Phase::Successful);
    let message = status.message.unwrap();
    assert_has(&message, "no condition is set, so any 2xx response is a success");
}
