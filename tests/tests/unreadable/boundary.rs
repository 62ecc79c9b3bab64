//! An object of the group may have exactly 100 levels. A workload needs no name that a deep ControllerRevision has.

use std::collections::BTreeSet;

use operator_tests::fleet::hooked;
use operator_tests::{SOON, alone};
use serde_json::json;
use test_kit::eventually;

use crate::api::{Id, Kind};
use crate::broken::{Broken, MAX_LEVELS, PLACES, Place, SHAPES, said};
use crate::json_text::{field, levels, lists, metadata, with_text};
use crate::manifests::{manifest, named_game};
use crate::world::World;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_hundred_levels_work_and_one_more_is_refused_with_words() {
    let control_plane = alone().await;
    let world = World::on(&control_plane).await;
    world.launch_brisk().await;
    hooks(&world).await;
    workloads(&world).await;
    squatted(&world).await;
    world.goes_on().await;
}

/// Templates and runs in each place and shape, with 100 levels and with 101.
async fn hooks(world: &World<'_>) {
    let places = PLACES
        .into_iter()
        .filter(|place| place.kind != Kind::GameDeployment);
    for place in places {
        for shape in SHAPES {
            let path = format!("/{}", world.new_name("boundary"));
            let url = world.server.url(&path);
            let owner = (world.hostile.as_str(), "boundary");
            let allowed = Broken::new(place, shape, owner, MAX_LEVELS, &url);
            allowed.store(&world.api).await;
            let state = match place.kind {
                Kind::HookTemplate => "True SpecValid",
                _ => "Successful AllMetricsSuccessful",
            };
            let is_in_state = |object: &str| said(place.kind, object).0 == state;
            world.api.until(&allowed.id, is_in_state).await;
            is_sent_as_it_is(world, place, &path);

            let url = world.server.url("/beyond");
            let refused = Broken::new(place, shape, owner, MAX_LEVELS + 1, &url);
            refused.store(&world.api).await;
            refused.says_so(&world.api).await;
        }
    }
    assert_eq!(world.server.counts("/beyond").received, 0);
}

/// Checks the requests of a run. The body has as many levels as the place leaves.
fn is_sent_as_it_is(world: &World<'_>, place: Place, path: &str) {
    let requests = world.server.requests(path);
    let bodies = requests
        .iter()
        .map(|request| levels(&String::from_utf8_lossy(&request.body)));
    let bodies: Vec<usize> = bodies.collect();
    let wanted = match place.kind {
        Kind::HookTemplate => vec![],
        _ if place.pointer.ends_with("/jsonBody") => vec![MAX_LEVELS - place.around],
        _ => vec![0],
    };
    assert_eq!(bodies, wanted, "{path}");
}

/// Returns the levels of the revisions of a workload.
async fn revisions_of(world: &World<'_>, game: &str) -> Vec<usize> {
    let revisions = world.api.list(Kind::ControllerRevision, &world.fleet.namespace);
    let revisions = revisions.await.into_iter();
    let own = revisions.filter(|revision| metadata(revision)["ownerReferences"][0]["name"] == game);
    own.map(|revision| levels(&revision)).collect()
}

/// A workload with 100 levels is launched, updated and scaled down behind its hook; one with 101 is left alone.
async fn workloads(world: &World<'_>) {
    let (fleet, place) = (&world.fleet, PLACES[4]);
    assert_eq!(place.kind, Kind::GameDeployment);
    let nested = |all: usize| lists(all - place.around);
    world.hook("hundred", json!({})).await;
    for (name, all) in [("hundred", MAX_LEVELS), ("beyond", MAX_LEVELS + 1)] {
        let game = with_text(
            named_game(name, 3, hooked("hundred")),
            place.pointer,
            &nested(all),
        );
        assert_eq!(levels(&game), all);
        world
            .api
            .create(Kind::GameDeployment, &fleet.namespace, game)
            .await;
    }
    world.has("hundred", 3).await;
    // The revision is one level deeper than the workload.
    assert_eq!(revisions_of(world, "hundred").await, [MAX_LEVELS + 1]);
    let image = "/spec/template/spec/containers/0/image";
    world.api.set(&world.game("hundred"), image, "\"game:v2\"").await;
    fleet
        .until_of("hundred", |status| status.updated_ready_replicas == 3)
        .await;
    assert_eq!(revisions_of(world, "hundred").await, [MAX_LEVELS + 1; 2]);
    world.scales_down("hundred").await;

    let is_refused = |game: &str| said(Kind::GameDeployment, game).0 == "True InvalidSpec";
    let object = world.api.until(&world.game("beyond"), is_refused).await;
    let (_, message) = said(Kind::GameDeployment, &object);
    assert!(
        message.contains("spec.template.spec.comment") && message.contains("more than 100 levels"),
        "{message}"
    );
    assert_eq!(world.pods_of("beyond").await, BTreeSet::new());
    assert_eq!(revisions_of(world, "beyond").await, [] as [usize; 0]);
}

/// A tenant takes the name of a workload's revision for a deep one before the workload is created.
async fn squatted(world: &World<'_>) {
    let (fleet, name) = (&world.fleet, "squatted");
    world.launch(name, 2, json!({})).await;
    let revision = revision_of(world, name).await;
    let _ = fleet.kubectl(&["delete", "gamedeployment", name], "");
    fleet
        .until_pods(|pods| !pods.keys().any(|pod| pod.starts_with(name)))
        .await;
    eventually(SOON, || async {
        let left = revisions_of(world, name).await;
        if left.is_empty() { Ok(()) } else { Err(left) }
    })
    .await;

    let object = manifest(Kind::ControllerRevision, &revision, "");
    let object = with_text(object, "/data", &lists(500));
    let taken = Id::new(Kind::ControllerRevision, &fleet.namespace, &revision);
    world.api.create(taken.kind, &taken.namespace, object).await;
    let uid = metadata(&world.api.read(&taken).await)["uid"].clone();
    world.api.warned(&taken, "cannot be parsed: ").await;
    let game = named_game(name, 2, hooked(name)).to_string();
    let _ = fleet.kubectl(&["create", "--filename", "-"], &game);
    world.has(name, 2).await;
    assert_ne!(revision_of(world, name).await, revision);
    assert_eq!(metadata(&world.api.read(&taken).await)["uid"], uid);
    world.scales_down(name).await;
}

/// Returns the name of a workload's revision.
async fn revision_of(world: &World<'_>, game: &str) -> String {
    let game = world.api.read(&world.game(game)).await;
    let status = field(&game, "status");
    status["updateRevision"].as_str().unwrap().to_owned()
}
