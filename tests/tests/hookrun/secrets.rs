//! A Secret's text reaches only the endpoint: it appears in no status, event, log line or metric, whatever
//! the endpoint does with it.

mod escapes;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ListParams, ObjectMeta, PostParams};
use operator_tests::{SOON, TestEnv, assert_has, at_once, free_address, web};
use serde_json::{Value, json};
use shared_api::Phase;
use test_kit::webhook::{Received, Script};
use test_kit::{Answer, eventually};

use crate::env;

/// Needs quoting in JSON and encoding in a URL; each of its parts is unique.
const SECRET: &str = "hush+Zq8 \"Vx2\\Kw7\"/Jy4%Bn5&Tr3";

async fn secretive() -> TestEnv<'static> {
    let mut env = env("secrets").await;
    env.secrets = vec![SECRET.to_owned()];
    env
}

#[tokio::test]
async fn a_secret_reaches_header_url_and_body() {
    let env = secretive().await;
    put_secret(&env, "credentials", "token").await;
    env.game.otherwise(Answer::json(json!({ "age": 45 })));
    create(
        &env,
        "run",
        web("webtest", &with_token(&env.game.url("/")), everywhere()),
    )
    .await;
    let status = env.settled("run").await;
    assert_eq!(status.phase, Phase::Successful, "{status:?}");
    let requests = env.game.requests("/");
    let [request] = requests.as_slice() else {
        panic!("{requests:?}")
    };
    assert_eq!(request.header("authorization"), Some(SECRET));
    assert_eq!(
        request.header("x-token"),
        Some(format!("Bearer {SECRET}").as_str())
    );
    assert_eq!(request.query, format!("token={}", percent(SECRET)));
    assert_eq!(request.json().unwrap(), json!({ "token": SECRET }));
    assert_hidden(&env).await;
}

#[tokio::test]
async fn an_endpoint_that_sends_it_back_does_not_publish_it() {
    let env = secretive().await;
    put_secret(&env, "credentials", "token").await;
    let filler = |length: usize| "x".repeat(length);
    let echo = |request: &Received| {
        let body = String::from_utf8_lossy(&request.body).into_owned();
        json!({ "headers": request.headers, "query": request.query, "body": body, "text": SECRET, "age": 5 })
    };
    let answers: [(&str, Script, Value); 9] = [
        // The whole response is the value.
        (
            "whole",
            Script::by(move |request| Answer::json(echo(request))),
            json!({ "provider": { "web": { "jsonPath": "" } } }),
        ),
        (
            "failed",
            Script::by(move |request| Answer::json(echo(request))),
            json!({ "successCondition": "result == \"x\"",
            "provider": { "web": { "jsonPath": "{$.text}" } } }),
        ),
        (
            "condition-error",
            Script::by(move |request| Answer::json(echo(request))),
            json!({ "successCondition": "asInt(result) > 3",
            "provider": { "web": { "jsonPath": "{$.text}" } } }),
        ),
        (
            "path-error",
            Script::by(move |request| Answer::json(echo(request))),
            json!({ "provider": { "web": { "jsonPath": "{$.nothing}" } } }),
        ),
        (
            "no-json",
            Script::by(|_| Answer::text(format!("{SECRET} is no JSON"))),
            json!({}),
        ),
        (
            "page",
            Script::by(move |request| Answer::json(echo(request)).with_status(503)),
            json!({}),
        ),
        // A page that is cut in the middle of the secret.
        (
            "cut-page",
            Script::by(move |_| Answer::text(format!("{} {SECRET}", filler(185))).with_status(500)),
            json!({}),
        ),
        (
            "cut-body",
            Script::by(move |request| {
                let body = String::from_utf8_lossy(&request.body).into_owned();
                Answer::text(format!("{} {body}", filler(175))).with_status(500)
            }),
            json!({}),
        ),
        // The same for a value, which is cut at 1 KiB, and at 120 bytes in a message.
        (
            "cut-value",
            Script::by(move |_| {
                Answer::json(json!({ "age": format!("{}{SECRET}{}{SECRET}", filler(110), filler(870)) }))
            }),
            json!({ "successCondition": "result == \"x\"" }),
        ),
    ];
    for (name, script, more) in answers {
        let path = format!("/{name}");
        env.game.on(&path, script);
        for quoted in [false, true] {
            let mut metric = web("webtest", &with_token(&env.game.url(&path)), everywhere());
            operator_tests::merge(&mut metric, more.clone());
            metric["quoteAnswers"] = json!(quoted);
            let name = format!("{name}-{quoted}");
            create(&env, &name, metric).await;
            let value = env.verdict(&name).await.metric_results[0].measurements[0]
                .value
                .clone();
            assert!(quoted || value.is_none(), "{name}: {value:?}");
        }
        assert_eq!(env.game.counts(&path).received, 2, "{name}");
    }
    for name in ["whole-true", "failed-true"] {
        let value = env.status(name).await.metric_results[0].measurements[0]
            .value
            .clone()
            .unwrap();
        assert!(value.contains("*****"), "{value}");
    }
    assert_hidden(&env).await;
}

#[tokio::test]
async fn an_endpoint_that_is_not_there_does_not_publish_it() {
    let env = secretive().await;
    put_secret(&env, "credentials", "token").await;
    let redirect = format!("http://elsewhere/{}", percent(SECRET));
    env.game.on("/redirect", Answer::redirect(redirect));
    env.game.on("/never", Answer::never());
    env.game.on("/hang-up", Answer::hang_up());
    let address = env.game.address();
    let metrics = [
        ("refused", format!("http://{}/", free_address())),
        ("never", env.game.url("/never")),
        ("hang-up", env.game.url("/hang-up")),
        ("redirect", env.game.url("/redirect")),
        (
            "in-path",
            format!("http://{address}/nothing/{{{{ args.token }}}}"),
        ),
        ("as-host", "http://{{ args.token }}/".to_owned()),
        ("forbidden", "http://169.254.169.254/{{ args.token }}".to_owned()),
    ];
    for (name, url) in metrics {
        let mut metric = web("webtest", &with_token(&url), everywhere());
        metric["provider"]["web"]["timeoutSeconds"] = json!(1);
        create(&env, name, metric).await;
        assert_eq!(env.verdict(name).await.phase, Phase::Error, "{name}");
    }
    let prometheus = json!({ "name": "prometheus", "provider": { "prometheus": {
        "address": env.game.url("/in-query"), "query": "up{token=\"{{ args.token }}\"}",
        "headers": [{ "key": "Authorization", "valueFrom": { "secretKeyRef": { "name": "credentials", "key": "token" } } }]
    } } });
    env.game.otherwise(Script::by(|request| {
        let query = String::from_utf8_lossy(&request.body).into_owned();
        Answer::json(json!({ "status": "error", "errorType": query, "error": SECRET })).with_status(400)
    }));
    create(&env, "prometheus", prometheus).await;
    assert_eq!(env.verdict("prometheus").await.phase, Phase::Error);
    assert_hidden(&env).await;
}

#[tokio::test]
async fn a_missing_secret_is_named_and_heals_when_it_comes() {
    let env = secretive().await;
    env.game.on("/", Answer::json(json!({ "age": 45 })));
    put_secret(&env, "other", "another-key").await;
    let wrong_key = json!({ "provider": { "web": { "headers": [{ "key": "Authorization",
        "valueFrom": { "secretKeyRef": { "name": "other", "key": "token" } } }] } } });
    let polling = json!({ "interval": "50ms", "successfulLimit": 1 });
    create(&env, "no-key", web("webtest", &env.game.url("/"), wrong_key)).await;
    create(
        &env,
        "no-secret",
        web("webtest", &with_token(&env.game.url("/")), json!({})),
    )
    .await;
    create(
        &env,
        "waiting",
        web("webtest", &with_token(&env.game.url("/")), polling),
    )
    .await;
    for (name, words) in [
        ("no-key", "key \"token\" of Secret \"other\""),
        ("no-secret", "key \"token\" of Secret \"credentials\""),
    ] {
        let status = env.verdict(name).await;
        assert_eq!(status.phase, Phase::Error);
        let message = status.message.unwrap();
        assert_has(&message, &format!("{words} does not exist"));
    }
    let waiting = env.until("waiting", |status| status.message.is_some()).await;
    assert_eq!(waiting.phase, Phase::Running);
    assert_eq!(env.game.all_requests().len(), 0);
    put_secret(&env, "credentials", "token").await;
    let seen = env.game.await_requests("/", 1, SOON).await.unwrap();
    assert_eq!(seen[0].query, format!("token={}", percent(SECRET)));
    assert_eq!(env.settled("waiting").await.phase, Phase::Successful);
    assert_hidden(&env).await;
}

/// The operator bounds a secret's length, and with it the cost of the call and of the search in the response.
#[tokio::test]
async fn a_secret_that_is_too_long_is_not_sent() {
    let env = secretive().await;
    let secrets: Api<Secret> = Api::namespaced(env.client(), &env.namespace);
    let long = Secret {
        metadata: ObjectMeta {
            name: Some("credentials".to_owned()),
            ..ObjectMeta::default()
        },
        string_data: Some(BTreeMap::from([("token".to_owned(), "\"".repeat(1_000_000))])),
        ..Secret::default()
    };
    secrets.create(&PostParams::default(), &long).await.unwrap();
    create(
        &env,
        "run",
        web("webtest", &with_token(&env.game.url("/")), json!({})),
    )
    .await;
    let status = env.verdict("run").await;
    let message = status.message.unwrap();
    assert_eq!(status.phase, Phase::Error, "{message}");
    assert!(
        message.contains("key \"token\" of Secret \"credentials\" is 1000000 bytes long; the limit is 16384"),
        "{message}"
    );
    assert_eq!(env.game.all_requests().len(), 0);
}

/// Places the secret in its own header, within a header and in a JSON body.
fn everywhere() -> Value {
    json!({ "provider": { "web": {
        "method": "POST",
        "headers": [
            { "key": "Authorization", "valueFrom": { "secretKeyRef": { "name": "credentials", "key": "token" } } },
            { "key": "X-Token", "value": "Bearer {{ args.token }}" }
        ],
        "jsonBody": { "token": "{{ args.token }}" }
    } } })
}

fn with_token(url: &str) -> String {
    format!("{url}?token={{{{ args.token }}}}")
}

/// Creates a run with one metric that may use `args.token`; its first error is final, unless it polls.
async fn create(env: &TestEnv<'_>, name: &str, mut metric: Value) {
    if metric["interval"].is_null() {
        metric = at_once(metric);
    }
    let token = json!({ "name": "token", "valueFrom": { "secretKeyRef": { "name": "credentials", "key": "token" } } });
    env.create(name, json!({ "args": [token], "metrics": [metric] }))
        .await;
}

async fn put_secret(env: &TestEnv<'_>, name: &str, key: &str) {
    let secrets: Api<Secret> = Api::namespaced(env.client(), &env.namespace);
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        ..ObjectMeta::default()
    };
    let string_data = Some(BTreeMap::from([(key.to_owned(), SECRET.to_owned())]));
    secrets
        .create(
            &PostParams::default(),
            &Secret {
                metadata,
                string_data,
                ..Secret::default()
            },
        )
        .await
        .unwrap();
}

/// Searches every output for the secret, in any encoding. Every verdict except a success emits its event
/// first, so the events exist by now.
async fn assert_hidden(env: &TestEnv<'_>) {
    let runs = env.runs().list(&ListParams::default()).await.unwrap().items;
    for run in &runs {
        let (name, status) = (
            run.metadata.name.as_deref().unwrap(),
            run.status.as_ref().unwrap(),
        );
        if status.phase != Phase::Successful {
            env.warned(name, status.phase.as_str()).await;
        }
    }
    let log = eventually(SOON, || async {
        let log = env.operator.process.stderr();
        if log.matches("run ended").count() >= runs.len() {
            Ok(log)
        } else {
            Err("not every run's end is logged")
        }
    })
    .await;
    let events: Api<Event> = Api::namespaced(env.client(), &env.namespace);
    let events = events.list(&ListParams::default()).await.unwrap().items;
    let statuses: Vec<_> = runs.iter().map(|run| &run.status).collect();
    let shown = [
        ("a status", serde_json::to_string(&statuses).unwrap()),
        ("an event", serde_json::to_string(&events).unwrap()),
        ("the log", log),
        ("standard output", env.operator.process.stdout()),
        ("a metric", env.operator.get("/metrics").await),
    ];
    for (place, text) in shown {
        let run = witness::secret::run_of(SECRET, &text);
        assert_eq!(run, None, "a part of the secret is in {place}");
    }
}

fn percent(text: &str) -> String {
    let one = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(one).collect()
}
