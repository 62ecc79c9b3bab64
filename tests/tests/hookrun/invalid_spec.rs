//! A run with an invalid spec reports all its errors at once, and affects no other run.

use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use operator_tests::{SOON, TestEnv, assert_ended, assert_has, web};
use serde_json::{Value, json};
use shared_api::{HookRun, Phase};
use test_kit::{Answer, eventually};

use crate::env;

#[tokio::test]
async fn every_problem_is_named_with_its_path() {
    let env = env("invalid").await;
    let broken = json!({
        "name": "broken", "interval": "60", "initialDelay": "-1s",
        "successCondition": "asInt(result) >", "failureCondition": "noSuchFunction(result)",
        "provider": { "web": { "url": "ftp://game", "jsonPath": "{$.age", "timeoutSeconds": -1,
            "headers": [{ "key": "X Y", "value": "{{ args.nobody }}" }] } }
    });
    let twice = web(
        "broken",
        "http://{{ args.PodIP }}/",
        json!({ "count": 2, "interval": "1s", "failureLimit": 3 }),
    );
    let spec = json!({ "policy": "Random", "timeoutSeconds": 0, "metrics": [broken, twice] });
    env.create("run", spec).await;
    let status = env.settled("run").await;
    assert_ended(&status, Phase::Error, "InvalidSpec");
    let message = status.message.unwrap();
    assert!(message.starts_with("hook spec invalid: "), "{message}");
    for path in [
        "policy: ",
        "timeoutSeconds: ",
        "metrics[0].interval: ",
        "metrics[0].initialDelay: ",
        "metrics[0].successCondition: ",
        "metrics[0].failureCondition: ",
        "metrics[0].provider.web.url: ",
        "metrics[0].provider.web.jsonPath: ",
        "metrics[0].provider.web.timeoutSeconds: ",
        "metrics[0].provider.web.headers[0].key: ",
        "metrics[0].provider.web.headers[0].value: args.nobody ",
        "metrics[1].name: ",
        "metrics[1].count: ",
        "metrics[1].provider.web.url: args.PodIP ",
    ] {
        assert!(message.contains(path), "{path} is not in {message}");
    }
    assert!(status.metric_results.is_empty());
    env.warned("run", "InvalidSpec Error: hook spec invalid: ").await;
}

#[tokio::test]
async fn an_argument_without_a_value_is_named_and_nothing_is_asked() {
    let env = env("invalid").await;
    let metric = web(
        "webtest",
        &format!("{}?pod={{{{ args.PodName }}}}", env.game.url("/")),
        json!({}),
    );
    env.create(
        "run",
        json!({ "args": [{ "name": "PodName" }], "metrics": [metric] }),
    )
    .await;
    let status = env.settled("run").await;
    assert_eq!(status.phase, Phase::Error);
    let message = status.message.unwrap();
    assert_eq!(
        message,
        "hook spec invalid: args[0]: argument \"PodName\" was not supplied; set its value"
    );
    assert_eq!(env.game.all_requests().len(), 0);
}

#[tokio::test]
async fn providers_that_are_not_offered_are_refused_with_the_remedy() {
    let env = env("invalid").await;
    let kubernetes =
        json!({ "fields": [{ "path": "metadata.annotations.ready", "value": "yes" }], "function": "get" });
    let exec = json!({ "container": "game", "command": ["true"] });
    for (name, provider, remedy) in [
        ("kubernetes", kubernetes, "--provider-kubernetes"),
        ("exec", exec, "--provider-exec"),
    ] {
        env.measure(name, json!({ "name": "old", "provider": { name: provider } }))
            .await;
        let status = env.settled(name).await;
        assert_ended(&status, Phase::Error, "InvalidSpec");
        let message = status.message.unwrap();
        assert_has(&message, &format!("metrics[0].provider.{name}: "));
        assert_has(&message, remedy);
    }
}

#[tokio::test]
async fn what_cannot_even_be_read_gets_a_phase_and_stops_nobody() {
    let env = env("invalid").await;
    if !operator_tests::stores_wide_integers(env.control_plane, &env.namespace) {
        return;
    }
    env.game.on("/", Answer::json(json!({ "age": 45 })));
    let polling = web(
        "webtest",
        &env.game.url("/"),
        json!({ "interval": "50ms", "successfulLimit": 1000 }),
    );
    env.measure("polling", polling).await;
    env.game.await_requests("/", 2, SOON).await.unwrap();
    let too_large = web(
        "webtest",
        &env.game.url("/"),
        json!({ "count": 5_000_000_000_i64, "interval": "50ms" }),
    );
    create_as_is(&env, "unreadable", json!({ "metrics": [too_large] })).await;
    let status = eventually(SOON, || async {
        let status = as_is(&env).get("unreadable").await.unwrap().data["status"].take();
        if status["phase"] == "Error" {
            Ok(status)
        } else {
            Err(status)
        }
    })
    .await;
    let message = status["message"].as_str().unwrap();
    assert!(
        message.starts_with("hook spec invalid: ") && message.contains("5000000000"),
        "{message}"
    );
    assert_eq!(status["reason"], "InvalidSpec");
    env.warned("unreadable", "InvalidSpec hook spec invalid: ").await;
    assert!(env.metric("hookgate_hook_unreadable_objects_total", "").await >= 1);
    env.measure("after", web("webtest", &env.game.url("/"), json!({})))
        .await;
    assert_eq!(env.verdict("after").await.phase, Phase::Successful);
    let asked = env.game.counts("/").received;
    env.game.await_requests("/", asked + 2, SOON).await.unwrap();
    assert_eq!(env.status("polling").await.phase, Phase::Running);
}

#[tokio::test]
async fn a_verdict_stays_when_the_spec_becomes_unreadable() {
    let env = env("invalid").await;
    if !operator_tests::stores_wide_integers(env.control_plane, &env.namespace) {
        return;
    }
    env.game.on("/", Answer::json(json!({ "age": 45 })));
    let metric = web(
        "webtest",
        &env.game.url("/"),
        json!({ "successCondition": "result < 30" }),
    );
    env.measure("run", metric.clone()).await;
    let verdict = env.settled("run").await;
    let mut unreadable = metric;
    unreadable["count"] = json!(5_000_000_000_i64);
    create_as_is(&env, "run", json!({ "metrics": [unreadable] })).await;
    eventually(SOON, || async {
        let seen = env.metric("hookgate_hook_unreadable_objects_total", "").await;
        if seen > 0 { Ok(()) } else { Err(seen) }
    })
    .await;
    // The operator reads this run first; another object shows that it is done.
    env.measure("after", web("webtest", &env.game.url("/"), json!({})))
        .await;
    env.verdict("after").await;
    let status = as_is(&env).get("run").await.unwrap().data["status"].take();
    assert_eq!(status, serde_json::to_value(verdict).unwrap());
}

#[tokio::test]
async fn a_mistake_in_a_field_that_is_set_right_leaves_the_verdict() {
    let env = env("invalid").await;
    env.game.on("/", Answer::json(json!({ "age": 45 })));
    env.measure(
        "run",
        web(
            "webtest",
            &env.game.url("/"),
            json!({ "successCondition": "result >" }),
        ),
    )
    .await;
    let refused = env.settled("run").await;
    let right = web(
        "webtest",
        &env.game.url("/"),
        json!({ "successCondition": "result > 30" }),
    );
    env.patch("run", json!({ "spec": { "metrics": [right] } })).await;
    assert_eq!(env.settled("run").await, refused, "a verdict never changes");
    assert_eq!(env.game.all_requests().len(), 0);
}

/// Newer API servers enforce these rules and reject the object; with older ones, the operator reports the
/// same.
#[tokio::test]
async fn what_the_schemas_rules_say_holds_without_them_too() {
    let env = env("invalid").await;
    let url = env.game.url("/");
    let body = json!({ "provider": { "web": { "body": "x" } } });
    let cases = [
        ("count", web("webtest", &url, json!({ "count": 2 })), "interval"),
        (
            "limit",
            web("webtest", &url, json!({ "failureLimit": -2 })),
            "failureLimit",
        ),
        (
            "body",
            web("webtest", &url, body),
            "body requires method POST or PUT",
        ),
        ("none", json!({ "name": "webtest", "provider": {} }), "provider"),
    ];
    for (name, metric, words) in cases {
        let spec = serde_json::from_value(json!({ "metrics": [metric] })).unwrap();
        let created = env
            .runs()
            .create(&PostParams::default(), &HookRun::new(name, spec))
            .await;
        let said = if let Err(refusal) = created {
            refusal.to_string()
        } else {
            let status = env.settled(name).await;
            assert_ended(&status, Phase::Error, "InvalidSpec");
            status.message.unwrap()
        };
        assert!(said.contains(words), "{words} is not in {said}");
    }
    assert_eq!(env.game.all_requests().len(), 0);
}

fn as_is(env: &TestEnv<'_>) -> Api<DynamicObject> {
    Api::namespaced_with(env.client(), &env.namespace, &ApiResource::erase::<HookRun>(&()))
}

/// Creates a run without validation, like kubectl.
async fn create_as_is(env: &TestEnv<'_>, name: &str, spec: Value) {
    let run = json!({
        "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "HookRun",
        "metadata": { "name": name }, "spec": spec
    });
    let params = PatchParams::apply("test").force();
    as_is(env).patch(name, &params, &Patch::Apply(run)).await.unwrap();
}
