//! The operator follows redirects only to places where the manifest's headers belong.

use std::net::Ipv4Addr;

use operator_tests::{TestEnv, at_once, web};
use serde_json::json;
use shared_api::Phase;
use test_kit::{Answer, Webhook};

use crate::env;

#[tokio::test]
async fn to_the_same_host_they_are_followed() {
    let env = env("redirects").await;
    env.game.on("/old", Answer::redirect("/new?room=1"));
    env.game.on("/new", Answer::json(json!({ "age": 45 })));
    let details =
        json!({ "provider": { "web": { "headers": [{ "key": "Authorization", "value": "Bearer abc" }] } } });
    env.measure("run", web("webtest", &env.game.url("/old"), details))
        .await;
    assert_eq!(env.settled("run").await.phase, Phase::Successful);
    let [new] = &env.game.requests("/new")[..] else {
        panic!("asked once")
    };
    assert_eq!(new.query.as_str(), "room=1");
    assert_eq!(new.header("authorization"), Some("Bearer abc"));
}

#[tokio::test]
async fn to_anywhere_else_they_are_an_error_that_names_the_target() {
    let env = env("redirects").await;
    let elsewhere = Webhook::start_at((Ipv4Addr::new(127, 0, 0, 2), 0).into()).unwrap();
    elsewhere.otherwise(Answer::json(json!({ "age": 45 })));
    let other_port = Webhook::start().unwrap();
    other_port.otherwise(Answer::json(json!({ "age": 45 })));
    for (name, target) in [("host", elsewhere.url("/")), ("port", other_port.url("/"))] {
        let address = target.trim_end_matches('/');
        assert_refused(
            &env,
            name,
            &target,
            &format!("received status 302, a redirect to {address}; "),
        )
        .await;
    }
    let metadata = "http://169.254.169.254/latest/meta-data/iam/security-credentials/";
    assert_refused(
        &env,
        "metadata",
        metadata,
        "169.254.169.254 is a cloud metadata address",
    )
    .await;
    assert_refused(
        &env,
        "spelled",
        "//0xA9FEA9FE/",
        "169.254.169.254 is a cloud metadata address",
    )
    .await;
    assert_refused(&env, "scheme", "file:///etc/passwd", "scheme file is not allowed").await;
    assert_eq!(elsewhere.all_requests().len(), 0);
    assert_eq!(other_port.all_requests().len(), 0);
}

#[tokio::test]
async fn in_a_circle_they_end() {
    let env = env("redirects").await;
    env.game.on("/circle", Answer::redirect("/circle"));
    assert_refused(&env, "run", "/circle", "more than 3 redirects").await;
    assert_eq!(env.game.counts("/circle").received, 3);
}

/// Asserts that a hook redirected to this target ends in an Error with these words.
async fn assert_refused(env: &TestEnv<'_>, name: &str, target: &str, words: &str) {
    let path = format!("/{name}");
    env.game.on(&path, Answer::redirect(target));
    let metric = web("webtest", &env.game.url(&path), json!({}));
    env.measure(name, at_once(metric)).await;
    let status = env.settled(name).await;
    assert_eq!(status.phase, Phase::Error);
    let message = status.message.unwrap();
    assert!(message.contains(words), "{words:?} is not in {message:?}");
}
