//! Traces: sent only with a configured collector, with names and classes and without secrets; an unreachable
//! collector does no harm.

use operator_tests::{SOON, Start, TestEnv, at_once, hooks_kubeconfig, web};
use serde_json::json;
use shared_api::Phase;
use test_kit::webhook::Received;
use test_kit::{Answer, Webhook, eventually};

use crate::{PROGRAM, env, shared};

/// Path of a collector's endpoint.
const PATH: &str = "/v1/traces";

async fn traced(endpoint: &str) -> TestEnv<'static> {
    let control_plane = shared().await;
    let namespace = control_plane.namespace("traces").await;
    let start = Start::new(PROGRAM, &hooks_kubeconfig(control_plane).await, &namespace)
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
        .env("OTEL_BSP_SCHEDULE_DELAY", "100");
    TestEnv::with(control_plane, namespace, &start).await
}

/// Whether an OTLP message has a span with this name: field 5 of a span, a string with its length.
fn has_span(message: &Received, name: &str) -> bool {
    let field = [&[0x2a, u8::try_from(name.len()).unwrap()], name.as_bytes()].concat();
    has(message, &field)
}

fn has(message: &Received, words: &[u8]) -> bool {
    message.body.windows(words.len()).any(|part| part == words)
}

#[tokio::test]
async fn a_collector_gets_every_measurement_and_every_write_and_no_secret() {
    let collector = Webhook::start().unwrap();
    collector.otherwise(Answer::text(""));
    let env = traced(&collector.url("")).await;
    env.game.on("/secret-path", Answer::json(json!({ "age": 45 })));
    let url = env.game.url("/secret-path?token=hunter2");
    env.measure("run", web("webtest", &url, json!({}))).await;
    assert_eq!(env.settled("run").await.phase, Phase::Successful);
    for span in ["measurement", "record", "api call"] {
        eventually(SOON, || async {
            let sent = collector.requests(PATH);
            let found = sent.iter().any(|message| has_span(message, span));
            if found {
                Ok(())
            } else {
                Err(format!("{span}: {} messages", sent.len()))
            }
        })
        .await;
    }
    let sent = collector.requests(PATH);
    let said = |words: &str| sent.iter().any(|message| has(message, words.as_bytes()));
    for words in [
        "hook-operator",
        &env.namespace,
        "webtest",
        "provider",
        "web",
        "Successful",
        "write the status",
    ] {
        assert!(said(words), "{words} is in no span");
    }
    for secret in ["hunter2", "secret-path", "127.0.0.1"] {
        assert!(!said(secret), "{secret} is in a span");
    }
    let mut kinds = sent.iter().filter_map(|message| message.header("content-type"));
    assert!(kinds.all(|kind| kind == "application/x-protobuf"));
    // The log is the same as without traces.
    assert!(!env.operator.process.stderr().contains("\"name\":\"measurement\""));
}

#[tokio::test]
async fn a_collector_that_does_not_answer_does_no_harm_and_is_told_of_once() {
    let env = traced("http://127.0.0.1:1").await;
    env.game.on("/", Answer::json(json!({ "age": 45 })));
    for run in ["one", "two", "three"] {
        env.measure(run, web("webtest", &env.game.url("/"), json!({})))
            .await;
        assert_eq!(env.settled(run).await.phase, Phase::Successful);
        let words = "failed to send traces";
        eventually(SOON, || async {
            let log = env.operator.process.stderr();
            if log.contains(words) { Ok(()) } else { Err(()) }
        })
        .await;
        assert_eq!(env.operator.process.stderr().matches(words).count(), 1);
    }
    let ended = env.operator.process.terminate(SOON).await.unwrap();
    assert_eq!(ended.code(), Some(0), "{}", env.operator.process.tail(20));
}

#[tokio::test]
async fn without_an_endpoint_nothing_is_sent() {
    let env = env("traces").await;
    env.game.on("/", Answer::json(json!({ "age": 45 })));
    env.measure("run", at_once(web("webtest", &env.game.url("/"), json!({}))))
        .await;
    assert_eq!(env.settled("run").await.phase, Phase::Successful);
    // An exporter has its own thread.
    let threads = std::fs::read_dir(format!("/proc/{}/task", env.operator.process.id())).unwrap();
    let names: Vec<String> = threads
        .filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("comm")).ok())
        .collect();
    assert!(
        !names.is_empty() && names.iter().all(|name| !name.contains("OpenTel")),
        "{names:?}"
    );
}
