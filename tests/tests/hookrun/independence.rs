//! No run waits for another run's endpoint.

use operator_tests::{SOON, at_once, web};
use serde_json::json;
use shared_api::Phase;
use test_kit::{Answer, Webhook};

use crate::{stage, stage_with};

#[tokio::test]
async fn hanging_calls_hold_up_nobody() {
    let stage = stage("independence").await;
    stage.game.on("/never", Answer::never());
    stage.game.on("/", Answer::json(json!({ "age": 45 })));
    let hanging = 40;
    for number in 0..hanging {
        stage
            .measure(
                &format!("hanging-{number}"),
                web("webtest", &stage.game.url("/never"), json!({})),
            )
            .await;
    }
    stage.game.await_requests("/never", hanging, SOON).await.unwrap();
    stage
        .measure("healthy", web("webtest", &stage.game.url("/"), json!({})))
        .await;
    assert_eq!(stage.verdict("healthy").await.phase, Phase::Successful);
}

#[tokio::test]
async fn a_host_has_its_share_of_calls_and_others_have_theirs() {
    let flags = ["--egress-allow-loopback", "--max-in-flight-per-host", "1"];
    let stage = stage_with("independence", &flags).await;
    let other = Webhook::start().unwrap();
    other.on("/", Answer::json(json!({ "age": 45 })));
    stage.game.on("/never", Answer::never());
    stage.game.on("/", Answer::json(json!({ "age": 45 })));
    // Holds the only place until it is terminated.
    let holder = json!({ "provider": { "web": { "timeoutSeconds": 600 } } });
    stage
        .measure("holder", web("webtest", &stage.game.url("/never"), holder))
        .await;
    stage.game.await_in_flight("/never", 1, SOON).await.unwrap();
    // Waiting for a place is no part of a call's time.
    let second = json!({ "provider": { "web": { "timeoutSeconds": 1 } } });
    stage
        .measure("waiting", at_once(web("webtest", &stage.game.url("/"), second)))
        .await;
    stage
        .until("waiting", |status| status.phase == Phase::Running)
        .await;
    stage
        .measure("elsewhere", web("webtest", &other.url("/"), json!({})))
        .await;
    assert_eq!(stage.verdict("elsewhere").await.phase, Phase::Successful);
    assert_eq!(stage.game.counts("/").received, 0);
    stage
        .patch("holder", json!({ "spec": { "terminate": true } }))
        .await;
    assert_eq!(stage.verdict("waiting").await.phase, Phase::Successful);
    assert_eq!(stage.settled("holder").await.phase, Phase::Inconclusive);
}
