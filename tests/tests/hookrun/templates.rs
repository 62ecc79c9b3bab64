//! A HookTemplate's `Valid` condition reports whether its runs can be measured.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams};
use operator_tests::{SOON, TestEnv, assert_has, web};
use serde_json::{Value, json};
use shared_api::HookTemplate;
use test_kit::eventually;

use crate::env;

#[tokio::test]
async fn a_good_template_is_valid_and_open_arguments_are_no_mistake() {
    let env = env("templates").await;
    let metric = web(
        "webtest",
        "http://{{ args.PodIP }}:9091",
        json!({
            "count": 3, "interval": "60s", "failureLimit": 2, "successCondition": "asInt(result) > {{ args.least }}"
        }),
    );
    let args = json!([{ "name": "PodIP" }, { "name": "PodName" }, { "name": "least" }]);
    env.create_template("test", json!({ "args": args, "metrics": [metric] }))
        .await;
    let valid = condition(&env, "test", "True").await;
    assert_eq!(valid.reason.as_str(), "SpecValid");
    assert_eq!(valid.observed_generation, Some(1));
    gauge(&env, 0).await;
    assert_eq!(env.warnings("test").await, [""; 0]);
}

#[tokio::test]
async fn every_problem_is_named_with_path_and_position() {
    let env = env("templates").await;
    env.create_template("test", broken()).await;
    let invalid = condition(&env, "test", "False").await;
    assert_eq!(invalid.reason, "SpecInvalid");
    for words in [
        "metrics[0].interval: ",
        "metrics[0].successCondition: ",
        "(1:16)",
        "metrics[0].failureCondition: ",
        "asInteger",
        "metrics[0].provider.web.url: args.PodIp not supplied",
        "metrics[0].provider.web.jsonPath: ",
    ] {
        assert_has(&invalid.message, words);
    }
    env.warned("test", "SpecInvalid metrics[0].interval: ").await;
    gauge(&env, 1).await;
}

#[tokio::test]
async fn the_condition_follows_the_spec() {
    let env = env("templates").await;
    let good = json!({ "metrics": [web("webtest", "http://game:9091", json!({}))] });
    env.create_template("test", good.clone()).await;
    let valid = condition(&env, "test", "True").await;
    let bad =
        json!({ "metrics": [web("webtest", "http://game:9091", json!({ "successCondition": "result >" }))] });
    replace_spec(&env, &bad).await;
    let invalid = condition(&env, "test", "False").await;
    assert_eq!(invalid.observed_generation, Some(2));
    assert!(
        invalid.last_transition_time >= valid.last_transition_time,
        "{invalid:?}"
    );
    gauge(&env, 1).await;
    replace_spec(&env, &good).await;
    assert_eq!(condition(&env, "test", "True").await.observed_generation, Some(3));
    gauge(&env, 0).await;
    replace_spec(&env, &bad).await;
    condition(&env, "test", "False").await;
    gauge(&env, 1).await;
    env.templates()
        .delete("test", &DeleteParams::default())
        .await
        .unwrap();
    gauge(&env, 0).await;
}

#[tokio::test]
async fn a_condition_that_is_true_already_is_not_written_again() {
    let env = env("templates").await;
    env.create_template(
        "test",
        json!({ "metrics": [web("webtest", "http://game:9091", json!({}))] }),
    )
    .await;
    condition(&env, "test", "True").await;
    let before = env.templates().get("test").await.unwrap();
    env.operator.process.restart().unwrap();
    env.operator.ready().await;
    // The operator listed the template before this one, so it has written any condition for it.
    env.create_template("later", broken()).await;
    condition(&env, "later", "False").await;
    assert_eq!(
        env.templates()
            .get("test")
            .await
            .unwrap()
            .metadata
            .resource_version,
        before.metadata.resource_version
    );
}

fn broken() -> Value {
    let metric = web(
        "webtest",
        "http://{{ args.PodIp }}:9091",
        json!({
            "interval": "1 minute", "successCondition": "asInt(result) >", "failureCondition": "asInteger(result) > 3",
            "provider": { "web": { "jsonPath": "{$.age" } }
        }),
    );
    json!({ "args": [{ "name": "PodIP" }], "metrics": [metric] })
}

#[tokio::test]
async fn what_cannot_even_be_read_is_not_valid_and_says_so() {
    let env = env("templates").await;
    if !operator_tests::stores_wide_integers(env.control_plane, &env.namespace) {
        return;
    }
    let metric = web(
        "webtest",
        "http://game:9091",
        json!({ "count": 5_000_000_000_i64, "interval": "1s" }),
    );
    let template = json!({
        "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "HookTemplate",
        "metadata": { "name": "test" }, "spec": { "metrics": [metric] }
    });
    let kind = ApiResource::erase::<HookTemplate>(&());
    let templates: Api<DynamicObject> = Api::namespaced_with(env.client(), &env.namespace, &kind);
    let params = PatchParams::apply("test").force();
    templates
        .patch("test", &params, &Patch::Apply(template))
        .await
        .unwrap();
    let message = eventually(SOON, || async {
        let template = templates.get("test").await.unwrap();
        let valid = template.data.pointer("/status/conditions/0").cloned();
        let valid = valid.filter(|valid| valid["status"] == "False")?;
        valid["message"].as_str().map(str::to_owned)
    })
    .await;
    assert!(message.contains("5000000000"), "{message}");
    env.warned("test", "SpecInvalid the spec cannot be parsed").await;
    gauge(&env, 1).await;
}

/// Waits until `Valid` has this status for the template's current generation.
pub(crate) async fn condition(env: &TestEnv<'_>, name: &str, status: &str) -> Condition {
    let templates = env.templates();
    eventually(SOON, || async {
        let template = templates.get(name).await.map_err(|error| error.to_string())?;
        let found = template.status.unwrap_or_default();
        let conditions = found
            .conditions
            .iter()
            .filter(|condition| condition.type_ == "Valid");
        let [valid] = conditions.collect::<Vec<_>>()[..] else {
            return Err(format!("{found:?}"));
        };
        let is_current = valid.observed_generation == template.metadata.generation;
        if is_current && valid.status == status {
            Ok(valid.clone())
        } else {
            Err(format!("{found:?}"))
        }
    })
    .await
}

async fn replace_spec(env: &TestEnv<'_>, spec: &Value) {
    let patch = Patch::Merge(json!({ "spec": spec }));
    env.templates()
        .patch("test", &PatchParams::default(), &patch)
        .await
        .unwrap();
}

async fn gauge(env: &TestEnv<'_>, wanted: u64) {
    eventually(SOON, || async {
        let seen = env.metric("hookgate_hook_invalid_templates", "").await;
        if seen == wanted { Ok(()) } else { Err(seen) }
    })
    .await;
}
