//! Permissions of the eviction responder: its story uses each of them, and without any one of them something
//! is refused.
//!
//! API servers before 1.37 do not know Evictions, so they are custom resources here, and the story plays
//! their controller.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt as _;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use operator_tests::fleet::{Who, game, hooked, until_empty};
use operator_tests::proof::played;
use operator_tests::{Fleet, GROUPS, SOON, Start, merge};
use serde_json::json;
use shared_api::names::eviction::{GROUP, PRIORITY, RESPONDER, VERSION};
use test_kit::{ApiProxy, eventually};

use crate::grants::{EVERYWHERE, EVICTIONS, Grant, Rights, granted};
use crate::{PROGRAMS, is_refused_during, strict, was_refused};

/// Name of the Eviction in the story.
const NAME: &str = "pod-1-game";

/// Returns a definition of Evictions, as far as the operator reads and writes them.
pub(crate) fn definition() -> CustomResourceDefinition {
    let list = json!({
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        "items": {
            "type": "object", "required": ["name"], "properties": { "name": { "type": "string" } },
            "x-kubernetes-preserve-unknown-fields": true
        }
    });
    let schema = json!({ "type": "object", "properties": {
        "spec": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
        "status": { "type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
            "requesters": list, "targetResponders": list, "responders": list
        } }
    } });
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("evictions.{GROUP}"),
            // Required for groups of Kubernetes.
            "annotations": { "api-approved.kubernetes.io": "unapproved, for tests" }
        },
        "spec": {
            "group": GROUP, "scope": "Namespaced",
            "names": {
                "kind": "Eviction", "listKind": "EvictionList", "plural": "evictions", "singular": "eviction"
            },
            "versions": [{
                "name": VERSION, "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": schema }
            }]
        }
    });
    serde_json::from_value(definition).unwrap()
}

/// Returns the namespace's Evictions.
fn evictions(fleet: &Fleet<'_>) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk(GROUP, VERSION, "Eviction");
    let kind = ApiResource::from_gvk_with_plural(&kind, "evictions");
    Api::namespaced_with(fleet.client(), &fleet.namespace, &kind)
}

/// Creates an Eviction of a pod, and makes the operator its active responder.
async fn evict(fleet: &Fleet<'_>, pod: &Pod) {
    fleet.apply(&json!({
        "apiVersion": format!("{GROUP}/{VERSION}"), "kind": "Eviction",
        "metadata": { "name": NAME, "labels": { RESPONDER: "responder" } },
        "spec": { "target": { "pod": { "name": pod.name_any(), "uid": pod.uid() } } }
    }));
    let status = json!({ "status": {
        "requesters": [{ "name": "test.example.com/drain", "intent": "Eviction" }],
        "targetResponders": [{ "name": RESPONDER, "priority": PRIORITY, "state": "Active" }],
        "responders": [{ "name": RESPONDER, "startTime": Timestamp::now().to_string() }]
    } });
    let patched = evictions(fleet)
        .patch_status(NAME, &PatchParams::default(), &Patch::Merge(status))
        .await;
    patched.map(drop).unwrap();
}

/// Returns a fleet whose gamedeployment-operator responds to Evictions behind a proxy, as a user without a
/// permission; and the proxy.
async fn fleet_without(missing: Option<&Grant>) -> (Fleet<'static>, ApiProxy) {
    let control_plane = strict().await;
    let mut fleet = Fleet::on(control_plane, PROGRAMS, "rights").await;
    // The operator looks for the API only once in ten minutes.
    eventually(SOON, || async {
        let api = format!("{GROUP}/{VERSION}");
        let list = fleet.client().list_api_group_resources(&api).await;
        let resources = list.map_err(|error| error.to_string())?.resources;
        if resources.iter().any(|resource| resource.name == "evictions") {
            Ok(())
        } else {
            Err(format!("{resources:?}"))
        }
    })
    .await;
    let rights = Rights {
        files: &[EVERYWHERE, EVICTIONS],
        who: Who::Workloads,
        missing,
    };
    let user = rights.user(control_plane, &fleet.namespace).await;
    let proxy = ApiProxy::start(control_plane).unwrap();
    let kubeconfig = proxy.kubeconfig_as(&user, &GROUPS).unwrap();
    let start = Start::new(PROGRAMS.workloads, &kubeconfig, &fleet.namespace);
    // Readiness does not depend on Evictions.
    fleet
        .start(Who::Workloads, &start.flags(&["--eviction-responder"]))
        .await;
    (fleet, proxy)
}

/// Evicts a pod with players: the operator reports to the Eviction, and completes it once the pod is gone.
async fn tell(fleet: &Fleet<'_>, proxy: &ApiProxy) {
    let mut spec = hooked("empty");
    merge(&mut spec, json!({ "disruption": { "policy": "Ask" } }));
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(1, spec)).await;
    fleet.nodes.every_pod().set_players(1);
    let pod = fleet.all_pods().await.into_values().next().unwrap();
    evict(fleet, &pod).await;
    proxy
        .await_count("patch", "evictions/status", 1, SOON)
        .await
        .unwrap();
    fleet.nodes.every_pod().set_players(0);
    let evictions = evictions(fleet);
    eventually(SOON, || async {
        let found = evictions.get(NAME).await.map_err(|error| error.to_string())?;
        let responder = &found.data["status"]["responders"][0];
        if responder["completionTime"].is_string() {
            Ok(())
        } else {
            Err(responder.to_string())
        }
    })
    .await;
}

/// Returns the permissions that the responder needs in addition to those of `deploy/rbac.yaml`.
fn added() -> BTreeSet<Grant> {
    granted(EVICTIONS).into_iter().collect()
}

#[tokio::test]
async fn the_responder_uses_every_right_that_it_adds_and_nothing_is_refused() {
    let (fleet, proxy) = fleet_without(None).await;
    tell(&fleet, &proxy).await;
    let requests = proxy.requests();
    let refused: Vec<_> = requests.iter().filter(|entry| was_refused(entry)).collect();
    assert!(refused.is_empty(), "{refused:?}");
    let calls = requests.iter().map(|entry| &entry.call);
    let of_evictions = calls.filter(|call| call.resource.starts_with("evictions"));
    let used: BTreeSet<Grant> = of_evictions
        .map(|call| Grant::new(Who::Workloads, call.verb, &call.resource))
        .collect();
    let added = added();
    assert_eq!(used, added);
    played(
        "rights",
        "a story of the eviction responder, with all rights",
        &[("added", &added.len()), ("refused", &0)],
    );
}

#[tokio::test]
async fn without_any_one_right_of_the_responder_something_is_refused() {
    let added = added();
    for missing in &added {
        let (fleet, proxy) = fleet_without(Some(missing)).await;
        let is_missed = is_refused_during(&proxy, missing, tell(&fleet, &proxy)).await;
        assert!(is_missed, "nobody missed {missing:?}");
    }
    played(
        "rights",
        "a story of the eviction responder, with one right taken away",
        &[("taken away", &added.len()), ("not missed", &0)],
    );
}
