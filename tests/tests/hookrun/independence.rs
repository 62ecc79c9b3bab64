//! No run waits for another run's endpoint.

use operator_tests::{SOON, at_once, web};
use serde_json::json;
use shared_api::Phase;
use test_kit::{Answer, Webhook};

use crate::{env, stage_with};

#[tokio::test]
async fn hanging_calls_hold_up_nobody() {
    let env = env("independence").await;
    env.game.on("/never", Answer::never());
    env.game.on("/", Answer::json(json!({ "age": 45 })));
    let hanging = 40;
    for number in 0..hanging {
        env.measure(
            &format!("hanging-{number}"),
            web("webtest", &env.game.url("/never"), json!({})),
        )
        .await;
    }
    env.game.await_requests("/never", hanging, SOON).await.unwrap();
    env.measure("healthy", web("webtest", &env.game.url("/"), json!({})))
        .await;
    assert_eq!(env.verdict("healthy").await.phase, Phase::Successful);
}

#[tokio::test]
async fn a_host_has_its_share_of_calls_and_others_have_theirs() {
    let flags = ["--egress-allow-loopback", "--max-in-flight-per-host", "1"];
    let env = stage_with("independence", &flags).await;
    let other = Webhook::start().unwrap();
    other.on("/", Answer::json(json!({ "age": 45 })));
    env.game.on("/never", Answer::never());
    env.game.on("/", Answer::json(json!({ "age": 45 })));
    // Holds the only slot until it is terminated.
    let holder = json!({ "provider": { "web": { "timeoutSeconds": 600 } } });
    env.measure("holder", web("webtest", &env.game.url("/never"), holder))
        .await;
    env.game.await_in_flight("/never", 1, SOON).await.unwrap();
    // Waiting for a slot does not count towards a call's timeout.
    let second = json!({ "provider": { "web": { "timeoutSeconds": 1 } } });
    env.measure("waiting", at_once(web("webtest", &env.game.url("/"), second)))
        .await;
    env.until("waiting", |status| status.phase == Phase::Running)
        .await;
    env.measure("elsewhere", web("webtest", &other.url("/"), json!({})))
        .await;
    assert_eq!(env.verdict("elsewhere").await.phase, Phase::Successful);
    assert_eq!(env.game.counts("/").received, 0);
    env.patch("holder", json!({ "spec": { "terminate": true } }))
        .await;
    assert_eq!(env.verdict("waiting").await.phase, Phase::Successful);
    assert_eq!(env.settled("holder").await.phase, Phase::Inconclusive);
}
