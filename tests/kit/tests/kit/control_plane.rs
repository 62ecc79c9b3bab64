//! Tests of the control plane.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, Secret, ServiceAccount};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ListParams, PostParams};
use kube::config::AuthInfo;
use kube::{Api, Client, Config, CustomResource, CustomResourceExt as _, Resource as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use test_kit::assets::Component;
use test_kit::{ControlPlane, Options, eventually};

const A_WHILE: Duration = Duration::from_secs(30);

#[derive(CustomResource, Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[kube(group = "kit.example.org", version = "v1", kind = "Widget", namespaced)]
struct WidgetSpec {
    size: i32,
}

pub(crate) fn crds() -> Vec<CustomResourceDefinition> {
    vec![Widget::crd()]
}

fn config_map(name: &str) -> ConfigMap {
    let mut map = ConfigMap {
        data: Some(BTreeMap::from([("k".into(), "v".into())])),
        ..ConfigMap::default()
    };
    map.metadata.name = Some(name.to_owned());
    map
}

fn pod(name: &str) -> Pod {
    let pod =
        json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "game", "image": "game:1"}]}});
    serde_json::from_value(pod).unwrap()
}

#[tokio::test]
async fn namespaces_are_fresh_and_ready_for_pods() {
    let shared = ControlPlane::shared(crds).await;
    let (one, other) = tokio::join!(shared.namespace("pods"), shared.namespace("pods"));
    assert_ne!(one, other);
    assert!(one.starts_with("pods-"));
    let pods: Api<Pod> = Api::namespaced(shared.client(), &one);
    let made = pods.create(&PostParams::default(), &pod("p")).await.unwrap();
    assert_eq!(
        made.spec.unwrap().service_account_name.as_deref(),
        Some("default")
    );
}

#[tokio::test]
async fn what_an_owner_leaves_behind_is_collected() {
    let shared = ControlPlane::shared(crds).await;
    if !shared.has_controller_manager() {
        eprintln!("skipped: the given programs have no controller manager");
        return;
    }
    let namespace = shared.namespace("gc").await;
    let widgets: Api<Widget> = Api::namespaced(shared.client(), &namespace);
    let maps: Api<ConfigMap> = Api::namespaced(shared.client(), &namespace);
    let owner = widgets
        .create(&PostParams::default(), &Widget::new("w", WidgetSpec { size: 1 }))
        .await
        .unwrap();
    let mut left_over = config_map("owned");
    left_over.metadata.owner_references = Some(vec![owner.controller_owner_ref(&()).unwrap()]);
    maps.create(&PostParams::default(), &left_over).await.unwrap();
    widgets
        .delete("w", &kube::api::DeleteParams::default())
        .await
        .unwrap();
    // The collector discovers new kinds every 30 s; ours knows this one because it started later.
    let deadline = Duration::from_secs(if shared.is_own() { 20 } else { 90 });
    eventually(deadline, || async {
        maps.get_opt("owned").await.unwrap().is_none().then_some(())
    })
    .await;
}

#[tokio::test]
async fn the_tokens_of_service_accounts_are_accepted() {
    let shared = ControlPlane::shared(crds).await;
    let namespace = shared.namespace("tokens").await;
    let accounts: Api<ServiceAccount> = Api::namespaced(shared.client(), &namespace);
    let account: ServiceAccount = serde_json::from_value(json!({"metadata": {"name": "operator"}})).unwrap();
    accounts.create(&PostParams::default(), &account).await.unwrap();
    let request = TokenRequest::default();
    let token = accounts
        .create_token_request("operator", &PostParams::default(), &request)
        .await
        .unwrap();
    let mut config: Config = shared.config();
    config.auth_info = AuthInfo {
        token: Some(token.status.unwrap().token.into()),
        ..AuthInfo::default()
    };
    let as_account = Client::try_from(config).unwrap();
    let refused = Api::<Secret>::namespaced(as_account, &namespace)
        .list(&ListParams::default())
        .await
        .unwrap_err();
    let text = refused.to_string();
    assert!(
        text.contains(&format!("system:serviceaccount:{namespace}:operator")),
        "{text}"
    );
}

#[tokio::test]
async fn somebody_else_may_only_do_what_they_may() {
    let shared = ControlPlane::shared(crds).await;
    let kubeconfig = shared.kubeconfig_as("jane", &["system:authenticated"]).unwrap();
    let output = shared
        .kubectl()
        .env("KUBECONFIG", kubeconfig)
        .args(["get", "nodes"])
        .output()
        .unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        error.contains(r#"User "jane" cannot list resource "nodes""#),
        "{error}"
    );
}

#[tokio::test]
async fn kubectl_is_an_administrator() {
    let shared = ControlPlane::shared(crds).await;
    let output = shared
        .kubectl()
        .args(["get", "crd", "-o", "name"])
        .output()
        .unwrap();
    let names = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        names,
        "customresourcedefinition.apiextensions.k8s.io/widgets.kit.example.org\n"
    );
}

#[tokio::test]
async fn a_paused_api_server_is_silent_and_goes_on_where_it_was() {
    let own = ControlPlane::start(Options {
        controller_manager: false,
        ..Options::default()
    })
    .await
    .unwrap();
    if !own.is_own() {
        let refused = own.pause_api_server().unwrap_err().to_string();
        assert!(
            refused.starts_with("pausing the API server is not supported on an existing cluster"),
            "{refused}"
        );
        return;
    }
    let namespaces: Api<Namespace> = Api::all(own.client());
    own.pause_api_server().unwrap();
    let silent = tokio::time::timeout(Duration::from_millis(500), namespaces.get("default")).await;
    assert!(silent.is_err(), "no answer and no refusal");
    own.resume_api_server().unwrap();
    eventually(A_WHILE, || namespaces.get("default")).await;
}

#[tokio::test]
async fn a_stopped_api_server_refuses_and_a_restarted_one_has_its_data() {
    let audit = Options {
        controller_manager: false,
        audit: true,
        ..Options::default()
    };
    let own = ControlPlane::start(audit).await.unwrap();
    if !own.is_own() {
        assert!(own.stop_api_server().await.is_err() && own.restart_api_server().await.is_err());
        return;
    }
    let namespace = own.namespace("data").await;
    let maps: Api<ConfigMap> = Api::namespaced(own.client(), &namespace);
    let made = maps
        .create(&PostParams::default(), &config_map("kept"))
        .await
        .unwrap();
    own.stop_api_server().await.unwrap();
    assert!(matches!(
        maps.get("kept").await,
        Err(kube::Error::HyperError(_) | kube::Error::Service(_))
    ));
    own.restart_api_server().await.unwrap();
    let found = maps.get("kept").await.unwrap();
    assert_eq!(found.metadata.uid, made.metadata.uid);
    assert!(own.usage(Component::ApiServer).unwrap().peak_rss_bytes > 50 << 20);
    let log = std::fs::read_to_string(own.audit_log().unwrap()).unwrap();
    assert!(
        log.lines()
            .any(|line| line.contains(r#""verb":"create""#) && line.contains("configmaps")),
        "{log}"
    );
}

#[tokio::test]
#[ignore = "the scheduler is built on first need, which takes minutes"]
async fn a_scheduler_can_be_had() {
    let own = ControlPlane::start(Options {
        scheduler: true,
        ..Options::default()
    })
    .await
    .unwrap();
    let namespace = own.namespace("scheduled").await;
    let pods: Api<Pod> = Api::namespaced(own.client(), &namespace);
    pods.create(&PostParams::default(), &pod("p")).await.unwrap();
    eventually(A_WHILE, || async {
        let status = pods.get("p").await.unwrap().status.unwrap_or_default();
        let conditions = status.conditions.unwrap_or_default();
        let reason = conditions.iter().find_map(|one| one.reason.clone());
        if reason.as_deref() == Some("Unschedulable") {
            Ok(())
        } else {
            Err(reason)
        }
    })
    .await;
}
