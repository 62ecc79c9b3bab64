//! A deep template, a deep run and a deep workload keep their pods, say why, and name the way out.

use std::collections::BTreeSet;

use operator_tests::fleet::{GAME, game, hooked};
use operator_tests::{SOON, alone, assert_has};
use serde_json::json;
use test_kit::Answer;

use crate::api::{Id, Kind};
use crate::broken::{TOO_DEEP, said};
use crate::json_text::lists;
use crate::tenants::until_good;
use crate::world::World;

/// Field of a template and of a run.
const COMMENT: &str = "/spec/metrics/0/comment";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_pod_goes_while_its_hook_its_run_or_its_workload_is_too_deep() {
    let control_plane = alone().await;
    let world = World::on(&control_plane).await;
    the_template(&world).await;
    the_run(&world).await;
    the_workload(&world).await;
}

/// Returns the pods that ended since.
fn ended_since(world: &World<'_>, before: &BTreeSet<String>) -> BTreeSet<String> {
    let ended = world.ended_pods_of(GAME);
    ended.difference(before).cloned().collect()
}

/// A workload names a template that becomes too deep.
async fn the_template(world: &World<'_>) {
    let fleet = &world.fleet;
    world.hook("deep", until_good()).await;
    fleet.launch(&game(4, hooked("deep"))).await;
    let template = Id::new(Kind::HookTemplate, &fleet.namespace, "deep");
    world.api.set(&template, COMMENT, &lists(5000)).await;
    let words = "HookTemplate deep cannot be parsed: ";
    let message = fleet.until_message("HooksResolved", words).await;
    assert_has(&message, TOO_DEEP);
    fleet.scale(3);
    let message = fleet.until_message("ScaleBlocked", words).await;
    assert_has(&message, TOO_DEEP);
    fleet.told(words).await;
    fleet.quiet().await;
    assert_eq!(world.server.counts("/deep").received, 0);

    world.refuse("/deep");
    world.api.remove(&template, COMMENT).await;
    world.server.await_requests("/deep", 2, SOON).await.unwrap();
    assert_eq!(world.ended_pods_of(GAME), BTreeSet::new());
    world.allow("/deep");
    fleet.settled(3).await;
    let ended = world.ended_pods_of(GAME);
    let about: BTreeSet<String> = world.questions("/deep", 0).into_iter().collect();
    assert_eq!(about, ended.iter().map(|pod| format!("pod={pod}")).collect());
    assert_eq!(ended.len(), 1);
}

/// Somebody edits the run of a hook that has no answer yet.
async fn the_run(world: &World<'_>) {
    let fleet = &world.fleet;
    let patient = json!({ "provider": { "web": { "timeoutSeconds": 120 } } });
    world.hook("slow", patient).await;
    fleet.set(hooked("slow")).await;
    for replicas in [2, 1] {
        let (before, asked) = (world.ended_pods_of(GAME), world.server.counts("/slow").received);
        world.server.on("/slow", Answer::never());
        fleet.scale(replicas);
        let (run, pod) = fleet.asked(1).await.pop_first().unwrap();
        world
            .server
            .await_requests("/slow", asked + 1, SOON)
            .await
            .unwrap();
        let id = Id::new(Kind::HookRun, &fleet.namespace, &run);
        world.api.set(&id, COMMENT, &lists(5000)).await;
        let words = format!("HookRun {run} already exists but cannot be parsed: ");
        let message = fleet.until_message("ScaleBlocked", &words).await;
        assert_has(&message, &pod);
        assert_has(&message, TOO_DEEP);
        assert_has(&message, "delete it, or set retry: true");
        let is_refused = |run: &str| said(Kind::HookRun, run).0 == "Error InvalidSpec";
        world.api.until(&id, is_refused).await;
        world.allow("/slow");
        fleet.quiet().await;
        assert_eq!(ended_since(world, &before), BTreeSet::new());

        if replicas == 2 {
            fleet.retry("preDeleteUpdateStrategy");
        } else {
            fleet.kubectl(&["delete", "hookrun", &run], "");
        }
        fleet.settled(replicas).await;
        assert_eq!(ended_since(world, &before), BTreeSet::from([pod.clone()]));
        let about = format!("pod={pod}");
        assert_eq!(world.questions("/slow", asked), [about.clone(), about]);
    }
}

/// A workload becomes too deep, and smaller at the same time.
async fn the_workload(world: &World<'_>) {
    let fleet = &world.fleet;
    fleet.scale(2);
    fleet.settled(2).await;
    world.launch_brisk().await;
    let (before, asked) = (world.ended_pods_of(GAME), world.server.counts("/slow").received);
    let pods = world.pods_of(GAME).await;
    let comment = "/spec/template/spec/comment";
    world.api.set(&world.game(GAME), comment, &lists(500)).await;
    let is_refused = |game: &str| said(Kind::GameDeployment, game).0 == "True InvalidSpec";
    let object = world.api.until(&world.game(GAME), is_refused).await;
    assert_has(&said(Kind::GameDeployment, &object).1, TOO_DEEP);
    world.scale(GAME, 1).await;
    // The watch shows changes in order: the operator has seen the last one.
    world.goes_on().await;
    assert_eq!(world.pods_of(GAME).await, pods);
    assert_eq!(world.server.counts("/slow").received, asked);

    world.api.remove(&world.game(GAME), comment).await;
    world.has(GAME, 1).await;
    let ended = ended_since(world, &before).into_iter();
    let about: Vec<String> = ended.map(|pod| format!("pod={pod}")).collect();
    assert_eq!(about.len(), 1);
    assert_eq!(world.questions("/slow", asked), about);
}
