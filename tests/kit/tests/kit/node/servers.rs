//! Tests of the game servers behind the pods' addresses.

use std::time::Duration;

use serde_json::{Value, json};
use test_kit::node::{Behaviour, Options, PodSelector, Timing};
use test_kit::webhook::Script;
use test_kit::{Answer, http_client};

use super::{A_WHILE, NodeHarness};

async fn get(harness: &NodeHarness, pod: &str, path: &str) -> Result<Value, reqwest::Error> {
    let url = harness.nodes.pod(pod).url(path).unwrap();
    http_client().unwrap().get(url).send().await?.json().await
}

pub(crate) async fn ask(harness: &NodeHarness, pod: &str) -> Value {
    get(harness, pod, "/").await.unwrap()
}

pub(crate) async fn answers(harness: &NodeHarness, pod: &str) -> bool {
    get(harness, pod, "/").await.is_ok()
}

#[tokio::test]
async fn each_pod_answers_for_itself() {
    let harness = NodeHarness::new("answers").await;
    harness.nodes.pod("b").set_players(7);
    harness.ready(["a", "b"]).await;
    let expected =
        json!({"name": "bryan", "male": "yes", "age": 45, "players": 0, "ready": true, "pod": "a"});
    assert_eq!(ask(&harness, "a").await, expected);
    assert_eq!(ask(&harness, "b").await["players"], 7);
    harness.nodes.every_pod().set_players(2);
    harness.nodes.pod("a").set("age", json!(20));
    assert_eq!(ask(&harness, "b").await["players"], 2);
    let a = ask(&harness, "a").await;
    assert_eq!((&a["players"], &a["age"]), (&json!(2), &json!(20)));
    harness.nodes.pod("a").set_document(json!([1]));
    assert_eq!(ask(&harness, "a").await, json!([1]));
}

#[tokio::test]
async fn paths_are_scripted_for_one_pod_or_for_all() {
    let harness = NodeHarness::new("scripts").await;
    let all = harness.nodes.every_pod();
    all.on(
        "/count",
        Script::by(|request| Answer::json(json!(request.to.ip().to_string()))),
    );
    harness
        .nodes
        .pod("b")
        .on("/count", Answer::json(json!(1)).then(Answer::json(json!(2))));
    let [a, _] = harness.ready(["a", "b"]).await;
    assert_eq!(
        get(&harness, "a", "/count").await.unwrap(),
        json!(a.ip.unwrap().to_string())
    );
    assert_eq!(get(&harness, "b", "/count").await.unwrap(), json!(1));
    assert_eq!(get(&harness, "b", "/count").await.unwrap(), json!(2));
}

#[tokio::test]
async fn requests_are_counted_pod_by_pod() {
    let harness = NodeHarness::new("counts").await;
    harness.ready(["a", "b"]).await;
    get(&harness, "a", "/x?y=1").await.unwrap();
    get(&harness, "a", "/x").await.unwrap();
    let a = harness.nodes.pod("a");
    a.await_requests("/x", 2, A_WHILE).await.unwrap();
    assert_eq!((a.requests().len(), a.requests()[0].query.as_str()), (2, "y=1"));
    assert_eq!(a.counts("/x").in_flight, 0);
    assert!(harness.nodes.pod("b").requests().is_empty());
}

#[tokio::test]
async fn a_server_lives_with_its_container() {
    let timing = Timing {
        stop: Duration::from_secs(2),
        ..Timing::default()
    };
    let harness = NodeHarness::with(
        "lives",
        Options {
            port: 9191,
            timing,
            ..Options::default()
        },
    )
    .await;
    harness
        .nodes
        .behave(PodSelector::image("game:1"), Behaviour::CannotPull);
    harness.create("p").await;
    harness.that("p", |pod| pod.ip.is_some()).await;
    assert!(harness.nodes.pod("p").url("/").unwrap().ends_with(":9191/"));
    assert!(!answers(&harness, "p").await, "nothing runs yet");
    harness
        .nodes
        .behave(PodSelector::image("game:1"), Behaviour::Normal);
    harness.that("p", |pod| pod.ready).await;
    assert!(answers(&harness, "p").await);
    let url = harness.nodes.pod("p").url("/").unwrap();
    harness.delete("p").await;
    harness.that("p", |pod| pod.terminating).await;
    assert!(answers(&harness, "p").await, "a terminating pod still serves");
    harness.gone("p").await;
    assert!(
        http_client()
            .unwrap()
            .get(url)
            .send()
            .await
            .unwrap_err()
            .is_connect()
    );
}

#[tokio::test]
async fn a_call_under_way_breaks_with_its_container() {
    let harness = NodeHarness::new("breaks").await;
    harness.ready(["p"]).await;
    harness.nodes.pod("p").on("/never", Answer::never());
    let url = harness.nodes.pod("p").url("/never").unwrap();
    let call = tokio::spawn(http_client().unwrap().get(url).send());
    harness
        .nodes
        .pod("p")
        .await_requests("/never", 1, A_WHILE)
        .await
        .unwrap();
    harness.set_image("p", "game:2").await;
    assert!(call.await.unwrap().is_err());
    harness
        .that("p", |pod| pod.ready && pod.containers[0].restarts == 1)
        .await;
    assert!(answers(&harness, "p").await, "a new server at the same address");
}

#[tokio::test]
async fn everything_ends_with_the_simulation() {
    let harness = NodeHarness::new("drop").await;
    harness.ready(["p"]).await;
    let url = harness.nodes.pod("p").url("/").unwrap();
    let NodeHarness { nodes, pods, .. } = harness;
    drop(nodes);
    let refused = http_client().unwrap().get(url).send().await.unwrap_err();
    assert!(refused.is_connect(), "{refused}");
    pods.delete("p", &kube::api::DeleteParams::default())
        .await
        .unwrap();
    assert!(pods.get_opt("p").await.unwrap().is_some(), "nobody ends it");
}
