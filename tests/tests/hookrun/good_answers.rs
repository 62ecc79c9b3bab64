//! What endpoints answer, and what a condition gets to see of it.

use operator_tests::{SOON, at_once, merge, web};
use serde_json::{Value, json};
use shared_api::Phase;
use test_kit::Answer;

use crate::stage;

#[tokio::test]
async fn values_are_typed_exact_and_whole() {
    let stage = stage("good-answers").await;
    let items = json!({ "items": [{ "players": 0 }, { "players": 3 }] });
    let (path, whole) = (
        |path: &str| json!({ "jsonPath": path }),
        json!({ "jsonPath": "" }),
    );
    let cases = [
        (
            "million",
            Answer::json(json!({ "age": 1_000_000 })),
            path("{$.age}"),
            "asInt(result) == 1000000",
            "1000000",
        ),
        (
            "large",
            Answer::json(json!({ "age": 9_007_199_254_740_993_i64 })),
            path("$.age"),
            "result == 9007199254740993",
            "9007199254740993",
        ),
        (
            "flag",
            Answer::json(json!({ "age": true })),
            path(".age"),
            "result == \"true\" && result",
            "true",
        ),
        (
            "text",
            Answer::json(json!({ "age": "45" })),
            path("{.age}"),
            "asInt(result) > 30",
            "45",
        ),
        (
            "key",
            Answer::json(json!({ "a.b": { "c": "free" } })),
            path("{.a\\.b.c}"),
            "result == 'free'",
            "free",
        ),
        (
            "list",
            Answer::json(items.clone()),
            path("{.items[*].players}"),
            "any(result, # > 2)",
            "[0,3]",
        ),
        (
            "object",
            Answer::json(items),
            whole.clone(),
            "len(result.items) == 2",
            "{\"items\":[{\"players\":0},{\"players\":3}]}",
        ),
        (
            "plain",
            Answer::text("ready\n"),
            whole.clone(),
            "trim(result) == \"ready\"",
            "ready\n",
        ),
        (
            "gzip",
            Answer::gzip_json(json!({ "age": 45 })),
            path("{$.age}"),
            "result > 30",
            "45",
        ),
        (
            "created",
            Answer::json(json!({ "age": 45 })).with_status(201),
            whole,
            "response.code == 201 && result.age == 45",
            "{\"age\":45}",
        ),
    ];
    for (name, answer, how, condition, _) in &cases {
        let url = format!("/{name}");
        stage.game.on(&url, answer.clone());
        let mut metric = at_once(web(
            "webtest",
            &stage.game.url(&url),
            json!({ "successCondition": condition }),
        ));
        merge(&mut metric, json!({ "provider": { "web": how } }));
        stage.measure(name, metric).await;
    }
    for (name, _, _, _, value) in cases {
        let status = stage.verdict(name).await;
        assert_eq!(status.phase, Phase::Successful, "{name}: {status:?}");
        assert_eq!(
            status.metric_results[0].measurements[0].value.as_deref(),
            Some(value),
            "{name}"
        );
    }
}

#[tokio::test]
async fn a_missing_key_is_neither_equal_nor_unequal() {
    let stage = stage("good-answers").await;
    stage.game.on("/", Answer::json(json!({ "error": "overloaded" })));
    let cases: [(&str, Value, Phase); 4] = [
        (
            "unequal",
            json!({ "successCondition": "result.status != \"busy\"" }),
            Phase::Error,
        ),
        (
            "equal",
            json!({ "successCondition": "result.status == \"free\"" }),
            Phase::Error,
        ),
        (
            "on-purpose",
            json!({ "successCondition": "(result.status ?? \"free\") == \"free\"" }),
            Phase::Successful,
        ),
        (
            "both",
            json!({ "successCondition": "result.age == 1", "failureCondition": "result.age == 2" }),
            Phase::Error,
        ),
    ];
    for (name, more, _) in &cases {
        let mut metric = at_once(web("webtest", &stage.game.url("/"), more.clone()));
        metric["provider"]["web"]["jsonPath"] = json!("");
        stage.measure(name, metric).await;
    }
    for (name, _, phase) in cases {
        let status = stage.verdict(name).await;
        assert_eq!(status.phase, phase, "{name}: {status:?}");
    }
}

#[tokio::test]
async fn a_connection_is_kept_for_the_next_measurement() {
    let stage = stage("good-answers").await;
    stage.game.on("/", Answer::json(json!({ "age": 45 })));
    let metric = web(
        "webtest",
        &stage.game.url("/"),
        json!({ "count": 3, "interval": "50ms" }),
    );
    stage.measure("run", metric).await;
    assert_eq!(stage.settled("run").await.phase, Phase::Successful);
    let requests = stage.game.await_requests("/", 3, SOON).await.unwrap();
    assert!(
        requests.iter().all(|request| request.from == requests[0].from),
        "{requests:?}"
    );
}
