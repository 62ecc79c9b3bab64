//! `{{ args.NAME }}`: a pod's values reach the endpoint, and cannot escape their place.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ObjectMeta, PostParams};
use operator_tests::{SOON, assert_has, at_once, web};
use serde_json::{Value, json};
use shared_api::Phase;
use test_kit::Answer;

use crate::env;

#[tokio::test]
async fn pod_facts_reach_url_header_and_body() {
    let env = env("arguments").await;
    env.game.otherwise(Answer::json(json!({ "age": 45 })));
    let address = env.game.address();
    let url = format!(
        "http://{{{{ args.PodIP }}}}:{}/ns/{{{{args.PodNamespace}}}}/{{{{ args.PodName }}}}?svc={{{{ args.service-name }}}}",
        address.port()
    );
    let details = json!({ "provider": { "web": {
        "method": "POST",
        "headers": [{ "key": "X-Pod", "value": "{{ args.PodNamespace }}/{{ args.PodName }}" }],
        "jsonBody": { "pod": "{{ args.PodName }}", "ip": "{{args.PodIP}}", "players": [1, null, true] }
    } } });
    let args = args(&[
        ("PodIP", &address.ip().to_string()),
        ("PodName", "game-94pn2/ä"),
        ("PodNamespace", "default"),
        ("service-name", "a b&c=d#e\"?"),
    ]);
    env.create(
        "run",
        json!({ "args": args, "metrics": [web("webtest", &url, details)] }),
    )
    .await;
    assert_eq!(env.settled("run").await.phase, Phase::Successful);
    let requests = env.game.all_requests();
    let [request] = requests.as_slice() else {
        panic!("{requests:?}")
    };
    assert_eq!(request.path, "/ns/default/game-94pn2%2F%C3%A4");
    assert_eq!(request.query, "svc=a%20b%26c%3Dd%23e%22%3F");
    assert_eq!(request.method.as_str(), "POST");
    assert_eq!(request.header("x-pod"), Some("default/game-94pn2/ä"));
    assert_eq!(request.header("content-type"), Some("application/json"));
    let body = json!({ "pod": "game-94pn2/ä", "ip": address.ip().to_string(), "players": [1, null, true] });
    assert_eq!(request.json().unwrap(), body);
}

#[tokio::test]
async fn a_text_body_is_sent_as_it_is() {
    let env = env("arguments").await;
    env.game.on("/", Answer::json(json!({ "age": 45 })));
    let details = json!({ "provider": { "web": { "method": "PUT", "body": "drain {{ args.PodName }}\n" } } });
    let metric = web("webtest", &env.game.url("/"), details);
    env.create(
        "run",
        json!({ "args": args(&[("PodName", "{{ args.PodIP }}")]), "metrics": [metric] }),
    )
    .await;
    assert_eq!(env.settled("run").await.phase, Phase::Successful);
    let requests = env.game.requests("/");
    assert_eq!(requests[0].method.as_str(), "PUT");
    assert_eq!(&requests[0].body[..], &b"drain {{ args.PodIP }}\n"[..]);
}

#[tokio::test]
async fn a_condition_takes_arguments_as_values_and_not_as_code() {
    let env = env("arguments").await;
    env.game
        .on("/", Answer::json(json!({ "age": 45, "room": "lobby" })));
    let room = json!({ "provider": { "web": { "jsonPath": "{$.room}" } }, "successCondition": "result == \"{{ args.room }}\"" });
    let age = json!({ "consecutiveErrorLimit": 0, "successCondition": "asInt(result) > {{ args.least }}" });
    let cases = [
        ("number", &age, ("least", "30"), Phase::Successful),
        ("higher", &age, ("least", "50"), Phase::Failed),
        ("code", &age, ("least", "50 || true"), Phase::Error),
        ("text", &room, ("room", "lobby"), Phase::Successful),
        ("quote", &room, ("room", "\" || true || \""), Phase::Failed),
    ];
    for (name, more, arg, _) in &cases {
        let metric = web("webtest", &env.game.url("/"), (*more).clone());
        env.create(name, json!({ "args": args(&[*arg]), "metrics": [metric] }))
            .await;
    }
    for (name, _, _, phase) in cases {
        let status = env.verdict(name).await;
        assert_eq!(status.phase, phase, "{name}: {status:?}");
    }
}

#[tokio::test]
async fn what_would_leave_its_place_is_an_error_and_nothing_is_asked() {
    let env = env("arguments").await;
    env.game.otherwise(Answer::json(json!({ "age": 45 })));
    let header =
        json!({ "provider": { "web": { "headers": [{ "key": "X-Pod", "value": "{{ args.it }}" }] } } });
    let port = env.game.address().port();
    let cases = [
        (
            "header",
            env.game.url("/"),
            header,
            "a\r\nX-Admin: yes",
            "header X-Pod: ",
        ),
        (
            "host",
            format!("http://{{{{ args.it }}}}:{port}/"),
            json!({}),
            "127.0.0.1@elsewhere",
            "url: ",
        ),
        (
            "empty-host",
            format!("http://{{{{ args.it }}}}:{port}/"),
            json!({}),
            "",
            "url: ",
        ),
    ];
    for (name, url, more, value, place) in cases {
        let metric = at_once(web("webtest", &url, more));
        env.create(
            name,
            json!({ "args": args(&[("it", value)]), "metrics": [metric] }),
        )
        .await;
        let status = env.settled(name).await;
        assert_eq!(status.phase, Phase::Error);
        let message = status.message.unwrap();
        assert!(
            message.contains(place) && message.contains("args.it"),
            "{name}: {message}"
        );
    }
    assert_eq!(env.game.all_requests().len(), 0);
}

#[tokio::test]
async fn a_config_map_is_read_when_it_is_needed() {
    let env = env("arguments").await;
    env.game.otherwise(Answer::json(json!({ "age": 45 })));
    let from_map =
        json!([{ "name": "room", "valueFrom": { "configMapKeyRef": { "name": "rooms", "key": "first" } } }]);
    let url = format!("{}?room={{{{ args.room }}}}", env.game.url("/"));
    let metric = web(
        "webtest",
        &url,
        json!({ "interval": "50ms", "successfulLimit": 1 }),
    );
    env.create("run", json!({ "args": from_map, "metrics": [metric] }))
        .await;
    let missing = env.until("run", |status| status.message.is_some()).await;
    let message = missing.message.unwrap();
    assert_has(&message, "key \"first\" of ConfigMap \"rooms\" does not exist");
    assert_eq!(env.game.all_requests().len(), 0);
    let maps: Api<ConfigMap> = Api::namespaced(env.client(), &env.namespace);
    let metadata = ObjectMeta {
        name: Some("rooms".into()),
        ..ObjectMeta::default()
    };
    let data = Some(BTreeMap::from([("first".to_owned(), "the lobby".to_owned())]));
    maps.create(
        &PostParams::default(),
        &ConfigMap {
            metadata,
            data,
            ..ConfigMap::default()
        },
    )
    .await
    .unwrap();
    let seen = env.game.await_requests("/", 1, SOON).await.unwrap();
    assert_eq!(seen[0].query, "room=the%20lobby");
    assert_eq!(env.settled("run").await.phase, Phase::Successful);
}

fn args(pairs: &[(&str, &str)]) -> Value {
    pairs
        .iter()
        .map(|(name, value)| json!({ "name": name, "value": value }))
        .collect()
}
