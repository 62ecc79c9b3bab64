//! A tenant with thousands of broken or hanging hooks does not hold up another one. The tests count order,
//! not time: the share of the crowd's work that is done before the few others get theirs.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end so")]

mod budget;

use std::fmt::Debug;

use futures::stream::{self, StreamExt as _};
use k8s_openapi::NamespaceResourceScope;
use kube::Resource;
use kube::api::{Api, ListParams, PostParams};
use operator_tests::proof::{Extent, played};
use operator_tests::{Operator, SOON, Start, alone, hooks_kubeconfig_behind};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use shared_api::hook_run::HookRunSpec;
use shared_api::hook_template::HookTemplateSpec;
use shared_api::{HookRun, HookTemplate};
use test_kit::api_proxy::Entry;
use test_kit::{Answer, ApiProxy, ControlPlane, Webhook, eventually};

const PROGRAM: &str = env!("CARGO_BIN_EXE_hook-operator-under-test");

/// Runs of the tenant that must make progress in any case.
const FEW: usize = 10;

/// Creates this many objects of one kind from their names.
async fn create<K>(control_plane: &ControlPlane, namespace: &str, count: usize, made: impl Fn(&str) -> K)
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned,
{
    let api: Api<K> = Api::namespaced(control_plane.client(), namespace);
    let created = stream::iter(0..count).map(|number| {
        let (api, object) = (api.clone(), made(&format!("one-{number:05}")));
        async move { api.create(&PostParams::default(), &object).await.map(drop) }
    });
    let created: Vec<_> = created.buffer_unordered(32).collect().await;
    assert!(created.iter().all(Result::is_ok), "{created:?}");
}

async fn runs(control_plane: &ControlPlane, namespace: &str, count: usize, spec: Value) {
    let spec: HookRunSpec = serde_json::from_value(spec).unwrap();
    create(control_plane, namespace, count, |name| {
        HookRun::new(name, spec.clone())
    })
    .await;
}

async fn templates(control_plane: &ControlPlane, namespace: &str, count: usize, spec: Value) {
    let spec: HookTemplateSpec = serde_json::from_value(spec).unwrap();
    create(control_plane, namespace, count, |name| {
        HookTemplate::new(name, spec.clone())
    })
    .await;
}

fn asking(url: &str, condition: &str) -> Value {
    json!({ "metrics": [{
        "name": "one", "successCondition": condition,
        "provider": { "web": { "url": url, "jsonPath": "{$.age}" } }
    }] })
}

/// Waits until this many runs of a namespace have their verdict.
async fn served(control_plane: &ControlPlane, namespace: &str, count: usize) {
    let api: Api<HookRun> = Api::namespaced(control_plane.client(), namespace);
    eventually(SOON, || async {
        let all = api.list(&ListParams::default()).await;
        let all = all.map_err(|error| error.to_string())?.items;
        let is_final = |run: &&HookRun| run.status.as_ref().is_some_and(|status| status.phase.is_final());
        let found = all.iter().filter(is_final).count();
        if found >= count {
            Ok(())
        } else {
            Err(format!("{found} of {count} in {namespace}"))
        }
    })
    .await;
}

fn status_write(entry: &Entry) -> bool {
    entry.call.verb == "patch" && entry.call.resource.ends_with("/status")
}

#[tokio::test]
async fn thousands_of_broken_hooks_hold_up_nobody_else() {
    let control_plane = alone().await;
    let crowd = usize::try_from(Extent::asked().of(600, 2000, 10_000)).unwrap();
    // Lists are sorted by name: the crowd comes first.
    let (many, few) = (
        control_plane.namespace("a-crowd").await,
        control_plane.namespace("z-few").await,
    );
    let server = Webhook::start().unwrap();
    server.on("/", Answer::json(json!({ "age": 45 })));
    runs(&control_plane, &many, crowd, asking("not a URL", "asInt(")).await;
    templates(&control_plane, &many, crowd, asking("not a URL", "asInt(")).await;
    runs(
        &control_plane,
        &few,
        FEW,
        asking(&server.url("/"), "asInt(result) > 30"),
    )
    .await;
    let proxy = ApiProxy::start(&control_plane).unwrap();
    // With few concurrent calls, the operator chooses their order, not the API server.
    let flags = ["--egress-allow-loopback", "--api-concurrency", "4"];
    let kubeconfig = hooks_kubeconfig_behind(&control_plane, &proxy).await;
    let operator = Operator::start(&Start::everywhere(PROGRAM, &kubeconfig).flags(&flags));
    served(&control_plane, &few, FEW).await;
    let writes: Vec<Entry> = proxy.requests().into_iter().filter(status_write).collect();
    let last = writes
        .iter()
        .rposition(|entry| entry.call.namespace == few)
        .unwrap();
    let before = writes[..last]
        .iter()
        .filter(|entry| entry.call.namespace == many)
        .count();
    played(
        "fairness",
        "broken runs and templates of one tenant beside a few runs of another",
        &[
            ("broken", &(2 * crowd)),
            ("few", &FEW),
            ("of the broken served before the last of the few", &before),
        ],
    );
    assert!(
        before < crowd / 2,
        "{before} of {} were served before the last of {FEW}",
        2 * crowd
    );
    // The crowd gets its turns, too.
    served(&control_plane, &many, 10 * FEW).await;
    drop(operator);
}

#[tokio::test]
async fn hanging_webhooks_hold_up_nobody_else() {
    let control_plane = alone().await;
    let (many, few) = (
        control_plane.namespace("a-crowd").await,
        control_plane.namespace("z-few").await,
    );
    let server = Webhook::start().unwrap();
    server.on("/", Answer::json(json!({ "age": 45 })));
    server.on(
        "/hangs",
        Answer::json(json!({ "age": 45 })).after(std::time::Duration::from_secs(2)),
    );
    // Both query the same host, whose slots are all taken.
    runs(
        &control_plane,
        &many,
        200,
        asking(&server.url("/hangs"), "asInt(result) > 30"),
    )
    .await;
    runs(
        &control_plane,
        &few,
        FEW,
        asking(&server.url("/"), "asInt(result) > 30"),
    )
    .await;
    let proxy = ApiProxy::start(&control_plane).unwrap();
    let kubeconfig = hooks_kubeconfig_behind(&control_plane, &proxy).await;
    let flags = ["--egress-allow-loopback", "--max-in-flight-per-host", "10"];
    let operator = Operator::start(&Start::everywhere(PROGRAM, &kubeconfig).flags(&flags));
    served(&control_plane, &few, FEW).await;
    let asked = server.counts("/hangs").received;
    played(
        "fairness",
        "hanging webhooks of one tenant beside a few quick ones of another, on one host",
        &[
            ("hanging", &200),
            ("few", &FEW),
            ("of the hanging asked before the last of the few", &asked),
        ],
    );
    assert!(
        asked < 100,
        "{asked} of 200 that hang were asked before the last of {FEW}"
    );
    drop(operator);
}
