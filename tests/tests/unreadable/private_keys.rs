//! The key by which `serde_json` passes raw JSON hides nesting in a text. Nothing that has it overflows a stack.

use operator_tests::{SOON, alone};
use serde_json::json;
use test_kit::eventually;

use crate::api::{Id, Kind};
use crate::broken::{PLACES, Place, said};
use crate::json_text::{levels, metadata, with_text};
use crate::manifests::manifest;
use crate::world::World;

/// Key of an object that `serde_json` takes for the JSON in its value.
const RAW: &str = "$serde_json::private::RawValue";
/// Levels of lists of each stage: with those of the object around it, few enough.
const LEVELS: usize = 91;

/// Builds lists around a text with such lists, and so on. Each stage doubles the length.
fn hidden(stages: usize) -> String {
    let around = |inner: &str| "[".repeat(LEVELS) + inner + &"]".repeat(LEVELS);
    (0..stages).fold(around(""), |text, _| around(&json!({ RAW: text }).to_string()))
}

/// Values that hold the key, by name.
fn values() -> Vec<(&'static str, String)> {
    vec![
        ("none", json!({ RAW: "{" }).to_string()),
        ("number", r#"{"$serde_json::private::Number":"x"}"#.to_owned()),
        ("one-stage", hidden(1)),
        ("twelve-stages", hidden(12)),
        ("sixteen-stages", hidden(16)),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nesting_that_is_hidden_in_a_text_ends_no_operator() {
    let control_plane = alone().await;
    let mut world = World::on(&control_plane).await;
    world.launch_brisk().await;
    let mut stored = Vec::new();
    for (name, value) in values() {
        for place in PLACES {
            stored.push(store(&world, place, name, &value).await);
        }
        let revision = manifest(Kind::ControllerRevision, name, "");
        let template = format!(r#"{{"spec":{{"template":{value}}}}}"#);
        let revision = with_text(revision, "/data", &template);
        let kind = Kind::ControllerRevision;
        world.api.create(kind, &world.hostile, revision).await;
        world.goes_on().await;
    }
    world.restart().await;
    world.goes_on().await;
    for id in &stored {
        decided(&world, id).await;
    }
    are_sent_as_stored(&world);
}

/// Stores an object with a value in this place.
async fn store(world: &World<'_>, place: Place, value_name: &str, value: &str) -> Id {
    let path = place.pointer.rsplit('/').next().unwrap().to_lowercase();
    let name = format!("{value_name}-{path}");
    let url = world.server.url(&format!("/{name}"));
    let object = with_text(manifest(place.kind, &name, &url), place.pointer, value);
    assert!(levels(&object) <= 100, "{name}: it is refused for its own levels");
    world.api.create(place.kind, &world.hostile, object).await;
    Id::new(place.kind, &world.hostile, &name)
}

/// Waits until an object is judged, whichever way: a run has a verdict, a template a condition, and a workload has its
/// pod or says why not.
async fn decided(world: &World<'_>, id: &Id) {
    match id.kind {
        Kind::GameDeployment => {
            eventually(SOON, || async {
                let game = world.api.read(id).await;
                let pods = world.api.list(Kind::Pod, &id.namespace).await;
                let mut owners = pods.iter().map(|pod| metadata(pod)["ownerReferences"].clone());
                let has_pod = owners.any(|owners| owners[0]["name"] == id.name.as_str());
                let (state, message) = said(id.kind, &game);
                if has_pod || state == "True InvalidSpec" {
                    Ok(())
                } else {
                    Err(format!("{id:?}: {message}"))
                }
            })
            .await;
        }
        Kind::HookRun => {
            let is_final = |run: &str| {
                let (state, _) = said(Kind::HookRun, run);
                ["Successful", "Error"]
                    .iter()
                    .any(|phase| state.starts_with(phase))
            };
            world.api.until(id, is_final).await;
        }
        kind => {
            let is_judged = |object: &str| !said(kind, object).0.is_empty();
            world.api.until(id, is_judged).await;
        }
    }
}

/// Checks that each body that was sent is the one that is stored.
fn are_sent_as_stored(world: &World<'_>) {
    for (name, value) in values() {
        for request in world.server.requests(&format!("/{name}-jsonbody")) {
            let body = String::from_utf8_lossy(&request.body);
            assert_eq!(body, value, "{name}");
        }
    }
}
