//! Endpoints with bad, slow, endless or missing responses cause an Error with the reason, and no harm.

use std::time::Duration;

use operator_tests::{SOON, TestEnv, assert_ended, at_once, free_address, milliseconds, web};
use serde_json::{Value, json};
use shared_api::Phase;
use shared_api::hook_run::HookRunStatus;
use test_kit::Answer;

use crate::env;

/// Upper bound of the unread data in a connection's buffers, with margin.
const BUFFERED: u64 = 64 << 20;
/// Upper bound of the memory that one measurement may add to the operator, with margin.
const ROOM: u64 = 50 << 20;

#[tokio::test]
async fn every_failure_is_named() {
    let env = env("bad-answers").await;
    let page = Answer::text("<h1>no room\n\tfor you</h1>").with_status(503);
    let cases = [
        ("status", Answer::status(503), "received status 503"),
        ("page", page, "received status 503: <h1>no room for you</h1>"),
        (
            "not-found",
            Answer::json(json!({ "age": 45 })).with_status(404),
            "received status 404",
        ),
        ("html", Answer::text("<html>"), "the response is not JSON"),
        (
            "half",
            Answer::claimed_json("{\"age\": 4"),
            "the response is not JSON",
        ),
        ("empty", Answer::status(200), "the response is empty"),
        ("no-content", Answer::status(204), "the response is empty"),
        ("no-key", Answer::json(json!({ "Age": 45 })), "age"),
        ("hang-up", Answer::hang_up(), "127.0.0.1"),
        ("cut-short", Answer::cut_short("{\"age\": 45"), "127.0.0.1"),
        (
            "not-gzip",
            Answer::json(json!({ "age": 45 })).with_header("content-encoding", "gzip"),
            "failed to decode the response body",
        ),
    ];
    for (name, answer, _) in &cases {
        env.game.on(&format!("/{name}"), answer.clone());
        measure(&env, name, &env.game.url(&format!("/{name}")), json!({})).await;
    }
    let nobody = free_address();
    measure(&env, "refused", &format!("http://{nobody}/"), json!({})).await;
    measure(&env, "no-such-name", "http://no-such-host.invalid/", json!({})).await;
    for (name, _, words) in &cases {
        assert_error(&env.verdict(name).await, words);
        assert_eq!(
            env.game.counts(&format!("/{name}")).received,
            1,
            "{name}: asked once, and not retried in secret"
        );
    }
    assert_error(
        &env.verdict("refused").await,
        &format!("connection refused by {nobody}"),
    );
    assert_error(
        &env.verdict("no-such-name").await,
        "failed to resolve no-such-host.invalid: ",
    );
}

#[tokio::test]
async fn what_takes_too_long_is_given_up() {
    let env = env("bad-answers").await;
    env.game.on("/never", Answer::never());
    env.game
        .on("/drip", Answer::drip("{\"age\": 45}", Duration::from_millis(300)));
    let second = json!({ "provider": { "web": { "timeoutSeconds": 1 } } });
    for name in ["never", "drip"] {
        measure(&env, name, &env.game.url(&format!("/{name}")), second.clone()).await;
    }
    for name in ["never", "drip"] {
        env.game
            .await_cancelled(&format!("/{name}"), 1, SOON)
            .await
            .unwrap();
        let status = env.settled(name).await;
        assert_error(
            &status,
            &format!("timed out after 1s waiting for {}", env.game.address()),
        );
        let measurement = &status.metric_results[0].measurements[0];
        let took = milliseconds(measurement.started_at, measurement.finished_at);
        assert!(took >= Some(1000), "{status:?}");
    }
    assert_eq!(
        env.metric("hookgate_hook_measurement_failures_total", "kind=\"Timeout\"")
            .await,
        2
    );
}

#[tokio::test]
async fn an_answer_without_end_is_cut_and_costs_little() {
    let env = env("bad-answers").await;
    env.game.on("/warm", Answer::json(json!({ "age": 45 })));
    measure(&env, "warm", &env.game.url("/warm"), json!({})).await;
    env.verdict("warm").await;
    let before = env.operator.process.peak_rss_bytes();
    for (name, answer) in [
        ("endless", Answer::endless(10 << 30)),
        ("bomb", Answer::gzip_bomb(10 << 30)),
    ] {
        env.game.on(&format!("/{name}"), answer);
        measure(&env, name, &env.game.url(&format!("/{name}")), json!({})).await;
        assert_error(&env.settled(name).await, "the response is larger than 1 MiB");
        let sent = env.game.counts(&format!("/{name}")).sent_bytes;
        assert!(sent < BUFFERED, "{name}: {sent} bytes were sent");
    }
    let grown = env.operator.process.peak_rss_bytes() - before;
    assert!(grown < ROOM, "{grown} bytes more");
}

#[tokio::test]
async fn a_huge_value_does_not_make_a_huge_status() {
    let env = env("bad-answers").await;
    env.game
        .on("/", Answer::json(json!({ "age": "ä".repeat(500_000) })));
    let metric = web(
        "webtest",
        &env.game.url("/"),
        json!({
            "count": 15, "interval": "20ms", "failureLimit": -1, "successCondition": "result == \"free\""
        }),
    );
    env.measure("run", metric).await;
    let status = env.settled("run").await;
    assert_eq!(status.phase, Phase::Failed);
    let result = &status.metric_results[0];
    assert_eq!((result.failed, result.measurements.len()), (15, 10));
    for measurement in &result.measurements {
        for text in [&measurement.value, &measurement.message].map(|text| text.as_deref().unwrap()) {
            assert!(text.len() <= 1024 && text.contains("… (cut)"), "{text}");
        }
    }
    let size = serde_json::to_string(&status).unwrap().len();
    assert!(size < 32 * 1024, "{size} bytes");
}

async fn measure(env: &TestEnv<'_>, name: &str, url: &str, more: Value) {
    env.measure(name, at_once(web("webtest", url, more))).await;
}

#[track_caller]
fn assert_error(status: &HookRunStatus, words: &str) {
    assert_ended(status, Phase::Error, "ErrorLimitExceeded");
    let measurement = &status.metric_results[0].measurements[0];
    assert_eq!(measurement.phase, Phase::Error, "{status:?}");
    assert_eq!(measurement.value.as_deref(), None, "{status:?}");
    let message = measurement.message.as_deref().unwrap();
    assert!(
        message.contains(words) && message.len() <= 1024,
        "{words:?} is not in {message:?}"
    );
    assert!(status.message.as_deref().unwrap().contains(words), "{status:?}");
}
