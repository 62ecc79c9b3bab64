//! Tests of the API proxy.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::{Api, Client, Error};
use serde_json::json;
use test_kit::api_proxy::{Failure, Handling, Matcher, Moment, Outcome, WatchFault};
use test_kit::{ApiProxy, ControlPlane};

const A_WHILE: Duration = Duration::from_secs(20);

struct Proxied {
    proxy: ApiProxy,
    /// Client through the proxy.
    maps: Api<ConfigMap>,
    /// Client that bypasses the proxy.
    direct: Api<ConfigMap>,
}

async fn proxied() -> Proxied {
    let control_plane = ControlPlane::shared(super::control_plane::crds).await;
    let namespace = control_plane.namespace("proxy").await;
    let proxy = ApiProxy::start(control_plane).unwrap();
    let maps = Api::namespaced(Client::try_from(proxy.config()).unwrap(), &namespace);
    let direct = Api::namespaced(control_plane.client(), &namespace);
    Proxied { proxy, maps, direct }
}

fn map(name: &str) -> ConfigMap {
    let mut map = ConfigMap {
        data: Some(BTreeMap::new()),
        ..ConfigMap::default()
    };
    map.metadata.name = Some(name.to_owned());
    map
}

fn code(error: &Error) -> Option<u16> {
    match error {
        Error::Api(status) => Some(status.code),
        _ => None,
    }
}

#[tokio::test]
async fn requests_pass_and_are_counted_by_verb_and_resource() {
    let Proxied { proxy, maps, direct } = proxied().await;
    maps.create(&PostParams::default(), &map("a")).await.unwrap();
    assert!(direct.get("a").await.is_ok());
    maps.get("a").await.unwrap();
    let listed = maps.list(&ListParams::default()).await.unwrap();
    assert!(
        listed
            .items
            .iter()
            .any(|one| one.metadata.name.as_deref() == Some("a"))
    );
    assert_eq!(code(&maps.get("missing").await.unwrap_err()), Some(404));
    let counts = ["create", "get", "list", "patch"].map(|verb| proxy.count(verb, "configmaps"));
    assert_eq!(counts, [1, 2, 1, 0]);
    assert_eq!(proxy.requests().last().unwrap().outcome, Outcome::Status(404));
}

#[tokio::test]
async fn the_kubeconfig_leads_through_the_proxy_also_as_somebody_else() {
    let Proxied { proxy, .. } = proxied().await;
    let control_plane = ControlPlane::shared(super::control_plane::crds).await;
    let admin = control_plane
        .kubectl()
        .env("KUBECONFIG", proxy.kubeconfig_path())
        .args(["get", "ns"])
        .output();
    assert!(admin.unwrap().status.success());
    assert_eq!(proxy.count("list", "namespaces"), 1);
    let jane = proxy.kubeconfig_as("jane", &["system:authenticated"]).unwrap();
    let refused = control_plane
        .kubectl()
        .env("KUBECONFIG", jane)
        .args(["get", "ns"])
        .output()
        .unwrap();
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains(r#"User "jane" cannot list"#),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_refused_request_never_arrives() {
    let Proxied { proxy, maps, direct } = proxied().await;
    let fault = proxy.fail_next(Matcher::new("POST", "/configmaps"), Failure::refused(409), 2);
    for _ in 0..2 {
        let error = maps.create(&PostParams::default(), &map("a")).await.unwrap_err();
        assert_eq!(code(&error), Some(409));
    }
    assert!(direct.get_opt("a").await.unwrap().is_none());
    maps.create(&PostParams::default(), &map("a")).await.unwrap();
    assert_eq!(fault.hits(), 2);
}

#[tokio::test]
async fn a_write_can_take_effect_and_its_answer_be_lost() {
    let Proxied { proxy, maps, direct } = proxied().await;
    proxy.fail_next(Matcher::writes("configmaps"), Failure::after_effect(500), 1);
    proxy.fail_next(
        Matcher::writes("configmaps"),
        Failure::hang_up(Moment::AfterForwarding),
        1,
    );
    assert_eq!(
        code(&maps.create(&PostParams::default(), &map("a")).await.unwrap_err()),
        Some(500)
    );
    let change = Patch::Merge(json!({"data": {"k": "v"}}));
    let lost = maps
        .patch("a", &PatchParams::default(), &change)
        .await
        .unwrap_err();
    assert_eq!(code(&lost), None, "no answer: {lost}");
    assert_eq!(proxy.requests().last().unwrap().outcome, Outcome::HungUp);
    assert_eq!(direct.get("a").await.unwrap().data.unwrap()["k"], "v");
}

#[tokio::test]
async fn a_stalled_request_arrives_when_it_is_released() {
    let Proxied { proxy, maps, direct } = proxied().await;
    let stall = proxy.stall_next(Matcher::new("POST", "/configmaps"));
    let maps_there = maps.clone();
    let create = tokio::spawn(async move { maps_there.create(&PostParams::default(), &map("a")).await });
    stall.await_hits(1, A_WHILE).await.unwrap();
    assert!(direct.get_opt("a").await.unwrap().is_none());
    stall.release();
    create.await.unwrap().unwrap();

    let stall = proxy.stall_next_answer(Matcher::new("DELETE", "/configmaps/a"));
    let maps_there = maps.clone();
    let delete =
        tokio::spawn(async move { maps_there.delete("a", &kube::api::DeleteParams::default()).await });
    stall.await_hits(1, A_WHILE).await.unwrap();
    maps.get_opt("another").await.unwrap();
    test_kit::eventually(A_WHILE, || async {
        direct.get_opt("a").await.unwrap().is_none().then_some(())
    })
    .await;
    assert!(!delete.is_finished());
    proxy.clear_faults();
    delete.await.unwrap().unwrap();
}

#[tokio::test]
async fn frozen_watches_deliver_in_order_after_the_thaw_and_cut_ones_break() {
    let Proxied { proxy, maps, direct } = proxied().await;
    let only = ours();
    let mut events = Box::pin(maps.watch(&only, "0").await.unwrap());
    proxy.await_open_watches(1, A_WHILE).await.unwrap();
    proxy.freeze_watches();
    for name in ["a", "b", "c"] {
        direct.create(&PostParams::default(), &map(name)).await.unwrap();
    }
    assert_eq!(
        maps.list(&ListParams::default().fields("metadata.name=c"))
            .await
            .unwrap()
            .items
            .len(),
        1
    );
    assert!(
        tokio::time::timeout(Duration::from_millis(300), events.next())
            .await
            .is_err(),
        "held back"
    );
    proxy.thaw_watches();
    for name in ["a", "b", "c"] {
        let event = tokio::time::timeout(A_WHILE, events.next())
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        assert!(
            matches!(&event, WatchEvent::Added(map) if map.metadata.name.as_deref() == Some(name)),
            "{event:?}"
        );
    }
    proxy.cut_watches();
    let broken = tokio::time::timeout(A_WHILE, events.next()).await.unwrap();
    assert!(!matches!(broken, Some(Ok(_))), "{broken:?}");
    assert_eq!((proxy.open_watches(), proxy.count("watch", "configmaps")), (0, 1));
}

#[tokio::test]
async fn every_request_can_be_decided_on() {
    let Proxied { proxy, maps, .. } = proxied().await;
    let mut seen = 0;
    proxy.decide_by(move |call| {
        seen += 1;
        match (call.verb, seen % 2) {
            ("get", 1) => Handling::Fail(Failure::refused(503)),
            _ => Handling::Delay(Duration::from_millis(1), Duration::from_millis(1)),
        }
    });
    let mut codes = Vec::new();
    for _ in 0..4 {
        codes.push(code(&maps.get("missing").await.unwrap_err()));
    }
    assert_eq!(codes, [Some(503), Some(404), Some(503), Some(404)]);
    proxy.clear_faults();
    assert_eq!(code(&maps.get("missing").await.unwrap_err()), Some(404));
}

#[tokio::test]
async fn an_api_server_that_is_away_gives_no_answer() {
    let nobody = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
    let proxy = ApiProxy::start_before(nobody).unwrap();
    let maps: Api<ConfigMap> = Api::default_namespaced(Client::try_from(proxy.config()).unwrap());
    assert_eq!(code(&maps.get("a").await.unwrap_err()), None);
    assert_eq!(proxy.requests()[0].outcome, Outcome::HungUp);
}

/// Selects a test's own maps: a controller creates another one in each namespace, sooner or later.
fn ours() -> WatchParams {
    WatchParams::default().fields("metadata.name!=kube-root-ca.crt")
}

/// Returns the events of a watch with this fault while three new maps appear, until the last map or the end
/// of the watch.
async fn told(trouble: WatchFault) -> Vec<String> {
    let Proxied { proxy, maps, direct } = proxied().await;
    let start = direct
        .create(&PostParams::default(), &map("first"))
        .await
        .unwrap();
    let start = start.metadata.resource_version.unwrap();
    let other = direct
        .create(&PostParams::default(), &map("second"))
        .await
        .unwrap();
    let newer = other.metadata.resource_version.unwrap();
    // The proxy knows an older version only after a request for it.
    drop(maps.watch(&ours(), &start).await.unwrap());
    proxy.decide_by(move |call| {
        if call.verb == "watch" {
            Handling::Disturb(trouble)
        } else {
            Handling::Forward
        }
    });
    let mut events = Box::pin(maps.watch(&ours(), &newer).await.unwrap());
    for name in ["a", "b", "c"] {
        direct.create(&PostParams::default(), &map(name)).await.unwrap();
    }
    let mut told = Vec::new();
    while told.last().is_none_or(|last| last != "c") {
        let next = tokio::time::timeout(A_WHILE, events.next()).await.unwrap();
        told.push(match next {
            Some(Ok(WatchEvent::Added(map))) => map.metadata.name.unwrap(),
            Some(Ok(WatchEvent::Error(status))) => status.code.to_string(),
            Some(Ok(other)) => format!("{other:?}"),
            Some(Err(_)) | None => return told,
        });
    }
    told
}

#[tokio::test]
async fn a_watch_may_come_late_stop_for_a_while_or_break() {
    let moment = Duration::from_millis(50);
    assert_eq!(told(WatchFault::Late(moment)).await, ["a", "b", "c"]);
    assert_eq!(told(WatchFault::Freeze(1, moment)).await, ["a", "b", "c"]);
    assert_eq!(told(WatchFault::Cut(2)).await, ["a", "b"]);
}

#[tokio::test]
async fn a_watch_may_lose_events_and_be_told_that_its_version_is_too_old() {
    assert_eq!(
        told(WatchFault::Lose(1, Duration::from_millis(50))).await,
        ["a", "410"]
    );
}

#[tokio::test]
async fn a_watch_may_be_told_again_what_was_told() {
    assert_eq!(told(WatchFault::Rewind).await, ["second", "a", "b", "c"]);
}
