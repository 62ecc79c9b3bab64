//! Responses of endpoints, and what a condition sees of them.

use operator_tests::{SOON, at_once, merge, web};
use serde_json::{Value, json};
use shared_api::Phase;
use test_kit::Answer;

use crate::env;

#[tokio::test]
async fn values_are_typed_exact_and_whole() {
    let env = env("good-answers").await;
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
            "result == \"ready\"",
            "ready",
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
        env.game.on(&url, answer.clone());
        let mut metric = at_once(web(
            "webtest",
            &env.game.url(&url),
            json!({ "successCondition": condition }),
        ));
        merge(&mut metric, json!({ "provider": { "web": how } }));
        env.measure(name, metric).await;
    }
    for (name, _, _, _, value) in cases {
        let status = env.verdict(name).await;
        assert_eq!(status.phase, Phase::Successful, "{name}: {status:?}");
        assert_eq!(
            status.metric_results[0].measurements[0].value.as_deref(),
            Some(value),
            "{name}"
        );
    }
}

#[tokio::test]
async fn what_is_missing_or_no_number_opens_nothing_and_the_keys_that_are_there_are_named() {
    let env = env("good-answers").await;
    let page = json!({ "error": "overloaded", "of": 0, "rooms": [{ "players": 0 }, { "error": "timeout" }] });
    env.game.on("/", Answer::json(page));
    let success = |condition: &str| json!({ "successCondition": condition });
    let failure = |condition: &str| json!({ "failureCondition": condition });
    let there = "key \"status\" not found; existing keys: error, of, rooms";
    let cases: [(&str, &str, Value, &str); 8] = [
        ("unequal", "", success("result.status != \"busy\""), there),
        ("equal", "", success("result.status == \"free\""), there),
        (
            "negated",
            "",
            success("not (result.status matches \"busy\")"),
            there,
        ),
        ("failure", "", failure("result.status in [\"busy\"]"), there),
        (
            "both",
            "",
            json!({ "successCondition": "result.status == 1", "failureCondition": "result.status == 2" }),
            there,
        ),
        (
            "no-number",
            "",
            failure("result.of / result.of > 0.05"),
            "a value is NaN",
        ),
        (
            "room",
            "{.rooms[*].players}",
            success("all(result, # == 0)"),
            "key \"players\" not found in element 2 of 2; existing keys: error",
        ),
        (
            "on-purpose",
            "",
            success("(result.status ?? \"free\") == \"free\""),
            "",
        ),
    ];
    for (name, path, more, _) in &cases {
        let mut metric = at_once(web("webtest", &env.game.url("/"), more.clone()));
        metric["provider"]["web"]["jsonPath"] = json!(path);
        env.measure(name, metric).await;
    }
    for (name, _, _, words) in cases {
        let status = env.verdict(name).await;
        let phase = if words.is_empty() {
            Phase::Successful
        } else {
            Phase::Error
        };
        assert_eq!(status.phase, phase, "{name}: {status:?}");
        let message = status.message.unwrap_or_default();
        assert!(message.contains(words), "{name}: {words} is not in {message}");
    }
}

#[tokio::test]
async fn a_connection_is_kept_for_the_next_measurement() {
    let env = env("good-answers").await;
    env.game.on("/", Answer::json(json!({ "age": 45 })));
    let metric = web(
        "webtest",
        &env.game.url("/"),
        json!({ "count": 3, "interval": "50ms" }),
    );
    env.measure("run", metric).await;
    assert_eq!(env.settled("run").await.phase, Phase::Successful);
    let requests = env.game.await_requests("/", 3, SOON).await.unwrap();
    assert!(
        requests.iter().all(|request| request.from == requests[0].from),
        "{requests:?}"
    );
}
