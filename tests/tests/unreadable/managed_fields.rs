//! Managed fields that a tenant forges, deeper than parsers follow, make no difference to any object.

use std::collections::BTreeSet;

use operator_tests::hook_rights::grant_exec;
use operator_tests::{SOON, alone};
use serde_json::json;
use test_kit::eventually;

use crate::api::{Id, Kind};
use crate::broken::said;
use crate::json_text::{field, levels, metadata, with_text};
use crate::manifests::manifest;
use crate::tenants::until_good;
use crate::world::World;

/// Levels of the forged fields.
const FORGED: usize = 200;
/// Patch that removes all managed fields.
const CLEARED: &str = r#"{"metadata":{"managedFields":[{}]}}"#;

/// Builds managed fields of another manager.
fn forged_fields(kind: Kind) -> String {
    let nested = r#"{"f:a":"#.repeat(FORGED) + "{}" + &"}".repeat(FORGED);
    let entry = json!({ "manager": "tenant", "operation": "Update", "apiVersion": kind.api_version(),
        "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1" });
    let entry = with_text(entry, "/fieldsV1", &nested);
    format!("[{entry}]")
}

/// Returns whether the API server keeps the forged fields of an object.
async fn keeps(world: &World<'_>, id: &Id) -> bool {
    let keeps = levels(&world.api.read(id).await) > FORGED;
    if !keeps {
        println!(
            "the API server does not keep forged managed fields of a {}",
            id.kind.name()
        );
    }
    keeps
}

/// Forges the managed fields of an object. Returns whether the API server keeps them.
async fn forge(world: &World<'_>, id: &Id) -> bool {
    let patch = format!(r#"{{"metadata":{{"managedFields":{}}}}}"#, forged_fields(id.kind));
    if let Err(refusal) = world.api.try_merge(id, &patch).await {
        println!("{}: {refusal}", id.kind.name());
        return false;
    }
    keeps(world, id).await
}

/// Creates an object with forged managed fields. Returns whether the API server keeps them.
async fn create_forged(world: &World<'_>, id: &Id, url: &str) -> bool {
    let object = manifest(id.kind, &id.name, url);
    let object = with_text(object, "/metadata/managedFields", &forged_fields(id.kind));
    world.api.create(id.kind, &id.namespace, object).await;
    keeps(world, id).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forged_managed_fields_make_no_difference() {
    let control_plane = alone().await;
    let mut world = World::on(&control_plane).await;
    world.start_executions().await;
    grant_exec(&control_plane, &world.fleet.namespace).await;
    world.launch("held", 3, until_good()).await;
    let mut kept = BTreeSet::new();
    for id in of_the_workload(&world).await {
        kept.extend(forge(&world, &id).await.then_some(id.kind));
    }
    let free = Id::new(Kind::Pod, &world.hostile, "free");
    kept.extend(create_forged(&world, &free, "").await.then_some(free.kind));
    kept.extend(an_execution(&world).await);
    kept.extend(a_run(&world).await.then_some(Kind::HookRun));
    assert!(
        !kept.is_empty(),
        "the API server keeps nothing that this test forges"
    );

    a_pod_goes(&world, 2).await;
    world.restart().await;
    a_pod_goes(&world, 1).await;
    assert_eq!(world.ended_pods_of("held").len(), 2);
}

/// Returns the workload, its hook's template, its revision and its pods.
async fn of_the_workload(world: &World<'_>) -> Vec<Id> {
    let namespace = &world.fleet.namespace;
    let mut all = vec![world.game("held"), Id::new(Kind::HookTemplate, namespace, "held")];
    for kind in [Kind::ControllerRevision, Kind::Pod] {
        let names = names_of(world, kind).await.into_iter();
        all.extend(names.map(|name| Id::new(kind, namespace, &name)));
    }
    assert_eq!(all.len(), 6, "{all:?}");
    all
}

/// Returns the names of all objects of a kind in the namespace of the workload.
async fn names_of(world: &World<'_>, kind: Kind) -> Vec<String> {
    let all = world.api.list(kind, &world.fleet.namespace).await;
    let names = all.iter().map(|object| metadata(object)["name"].clone());
    names.map(|name| name.as_str().unwrap().to_owned()).collect()
}

/// An ExecutionHook calls all pods of the workload. Returns the kinds whose fields are kept.
async fn an_execution(world: &World<'_>) -> Vec<Kind> {
    let namespace = &world.fleet.namespace;
    let hook = Id::new(Kind::ExecutionHook, namespace, "call");
    let action = Id::new(Kind::HookAction, namespace, "call");
    let mut kept = Vec::new();
    // The hook waits for its action.
    for id in [&hook, &action] {
        kept.extend(create_forged(world, id, "").await.then_some(id.kind));
    }
    let is_complete = |hook: &str| !field(hook, "status")["completionTime"].is_null();
    let done = world.api.until(&hook, is_complete).await;
    let status = field(&done, "status");
    assert_eq!(
        (&status["total"], &status["succeeded"]),
        (&json!(3), &json!(3)),
        "{status}"
    );
    for pod in names_of(world, Kind::Pod).await {
        assert!(world.fleet.nodes.pod(&pod).counts("/").received >= 1, "{pod}");
    }
    kept
}

/// The verdict of a run is recorded. Returns whether its fields are kept.
async fn a_run(world: &World<'_>) -> bool {
    let run = Id::new(Kind::HookRun, &world.hostile, "forged");
    let kept = create_forged(world, &run, &world.server.url("/forged")).await;
    let is_successful = |run: &str| said(Kind::HookRun, run).0.starts_with("Successful ");
    let done = world.api.until(&run, is_successful).await;
    assert_eq!(levels(&done) > FORGED, kept, "the verdict changed other fields");
    assert_eq!(world.server.counts("/forged").received, 1);
    kept
}

/// Scales the workload down to this many pods: nothing happens until its hook has allowed it, then one pod goes.
async fn a_pod_goes(world: &World<'_>, pods: usize) {
    let asked = world.server.counts("/held").received;
    let before = world.ended_pods_of("held");
    world.refuse("/held");
    world.scale("held", pods).await;
    let questions = world.server.await_requests("/held", asked + 1, SOON).await;
    let pod = questions.unwrap()[asked].query.replace("pod=", "");
    let runs = names_of(world, Kind::HookRun).await;
    assert_eq!(runs.len(), 1, "{runs:?}");
    let run = Id::new(Kind::HookRun, &world.fleet.namespace, &runs[0]);
    forge(world, &run).await;
    world
        .server
        .await_requests("/held", asked + 3, SOON)
        .await
        .unwrap();
    assert_eq!(world.ended_pods_of("held"), before);

    world.allow("/held");
    let id = Id::new(Kind::Pod, &world.fleet.namespace, &pod);
    eventually(SOON, || async {
        let Ok(found) = world.api.try_read(&id).await else {
            return Ok(());
        };
        let metadata = metadata(&found.text());
        if metadata["deletionTimestamp"].is_null() {
            Err(metadata)
        } else {
            Ok(())
        }
    })
    .await;
    // The simulated node cannot read its pod before; then it ends it.
    if let Err(error) = world.api.try_merge(&id, CLEARED).await {
        println!("{pod}: {error}");
    }
    world.fleet.nodes.pod(&pod).await_gone(SOON).await.unwrap();
    let is_done = |game: &str| field(game, "status")["replicas"] == pods;
    world.api.until(&world.game("held"), is_done).await;
    eventually(SOON, || async {
        let left = names_of(world, Kind::HookRun).await;
        if left.is_empty() { Ok(()) } else { Err(left) }
    })
    .await;
    assert_eq!(names_of(world, Kind::Pod).await.len(), pods);
    assert_eq!(world.ended_pods_of("held").len(), before.len() + 1);
}
