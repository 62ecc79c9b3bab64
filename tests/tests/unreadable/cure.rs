//! Without its nested field an object works like any other, and each can be deleted with or without it.

use operator_tests::{SOON, kubectl};
use test_kit::eventually;

use crate::api::{Id, Kind};
use crate::broken::{Broken, said};
use crate::json_text::metadata;
use crate::manifests::manifest;
use crate::world::World;

/// Corrects all templates and workloads.
pub(crate) async fn cured(world: &World<'_>, broken: &[Broken]) {
    for one in broken {
        match one.id.kind {
            Kind::HookTemplate => {
                world.api.remove(&one.id, one.place.pointer).await;
                let is_valid = |template: &str| said(Kind::HookTemplate, template).0 == "True SpecValid";
                world.api.until(&one.id, is_valid).await;
            }
            Kind::GameDeployment => {
                world.api.remove(&one.id, one.place.pointer).await;
                let is_silent = |game: &str| said(Kind::GameDeployment, game).0.is_empty();
                world.api.until(&one.id, is_silent).await;
                has_a_pod(world, &one.id).await;
            }
            _ => {}
        }
    }
    runs_like_any_other(world).await;
}

/// Waits until a workload has created a pod.
async fn has_a_pod(world: &World<'_>, game: &Id) {
    eventually(SOON, || async {
        let pods = world.api.list(Kind::Pod, &game.namespace).await;
        let mut owners = pods
            .iter()
            .map(|pod| metadata(pod)["ownerReferences"][0]["name"].clone());
        let is_owner = owners.any(|owner| owner == game.name.as_str());
        is_owner.then_some(())
    })
    .await;
}

/// Creates a run of a broken run's spec, without the nested field.
async fn runs_like_any_other(world: &World<'_>) {
    let url = world.server.url("/cured");
    let run = manifest(Kind::HookRun, "cured", &url).to_string();
    world.api.create(Kind::HookRun, &world.hostile, run).await;
    let run = Id::new(Kind::HookRun, &world.hostile, "cured");
    let is_successful = |run: &str| said(Kind::HookRun, run).0.starts_with("Successful ");
    world.api.until(&run, is_successful).await;
    assert_eq!(world.server.counts("/cured").received, 1);
    // None of the broken runs has asked anything.
    assert_eq!(world.server.counts("/hostile").received, 0);
}

/// Deletes broken objects as they are.
pub(crate) fn deleted(world: &World<'_>, broken: &[Broken]) {
    let names = broken.iter().map(|Broken { id, .. }| {
        let kind = id.kind.name().to_lowercase();
        format!("{kind}/{}", id.name)
    });
    let names: Vec<String> = names.collect();
    let mut delete = vec!["delete", "--namespace", &world.hostile];
    delete.extend(names.iter().map(String::as_str));
    let _ = kubectl(world.fleet.control_plane, &delete, "");
}

/// Deletes the namespace with everything in it.
pub(crate) fn namespace_ends(world: &World<'_>) {
    let delete = ["delete", "namespace", &world.hostile, "--timeout=60s"];
    let _ = kubectl(world.fleet.control_plane, &delete, "");
}
