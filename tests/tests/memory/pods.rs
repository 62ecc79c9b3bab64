//! Pods with long environments, and ControllerRevisions with long data. Users may create as many as they like, and
//! gamedeployment-operator reads them all: any of them may be of a workload.

use futures::stream::{self, StreamExt as _};
use operator_tests::alone;
use serde_json::json;

use crate::api::Kind;
use crate::json_text::with_text;
use crate::manifests::manifest;
use crate::shapes::{OBJECT, list};
use crate::templates::AT_ONCE;
use crate::world::World;
use crate::{MACHINE, count};

/// Objects that are created while the operators run.
const LATER: usize = 5;
/// Bytes of the environment of a pod. A variable of thirteen bytes takes about four hundred when it is parsed.
const ENVIRONMENT: usize = 1_000_000;
const DATA: usize = 1_400_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_of_one_tenant_exhaust_no_memory() {
    let listed = count(8, 25);
    let pods = (0..listed + LATER).map(|number| (Kind::Pod, pod(&format!("pod-{number:02}"))));
    are_withstood(pods, listed, "large pods").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn revisions_of_one_tenant_exhaust_no_memory() {
    let listed = count(6, 20);
    let revisions = (0..listed + LATER).map(|number| {
        let object = revision(&format!("revision-{number:02}"), number);
        (Kind::ControllerRevision, object)
    });
    are_withstood(revisions, listed, "large ControllerRevisions").await;
}

/// Stores objects: the first `listed` before the operators start, which list them, the others after it.
async fn are_withstood(mut objects: impl Iterator<Item = (Kind, String)>, listed: usize, about: &str) {
    let _turn = MACHINE.read().await;
    let control_plane = alone().await;
    let mut world = World::without_operators(&control_plane).await;
    store(&world, objects.by_ref().take(listed)).await;
    world.start().await;
    world.launch_brisk().await;
    world.goes_on().await;
    world.is_small(&format!("after lists of {about}"));
    store(&world, objects).await;
    world.goes_on().await;
    world.is_small(&format!("after watches of {about}"));
}

/// Stores objects of the tenant, some at a time.
pub(crate) async fn store(world: &World<'_>, objects: impl Iterator<Item = (Kind, String)>) {
    let stored = stream::iter(objects)
        .map(|(kind, object)| async move { world.api.create(kind, &world.hostile, object).await });
    stored.buffer_unordered(AT_ONCE).collect::<()>().await;
}

fn pod(name: &str) -> String {
    let variables = list(r#"{"name":"A"}"#, ENVIRONMENT);
    with_text(
        manifest(Kind::Pod, name, ""),
        "/spec/containers/0/env",
        &variables,
    )
}

/// Builds a revision that holds a template, every other one with a list of small objects.
fn revision(name: &str, number: usize) -> String {
    let comment = if number.is_multiple_of(2) {
        list(OBJECT, DATA)
    } else {
        json!("x".repeat(DATA)).to_string()
    };
    let data = format!(r#"{{"spec":{{"template":{{"spec":{{"comment":{comment}}}}}}}}}"#);
    with_text(manifest(Kind::ControllerRevision, name, ""), "/data", &data)
}
