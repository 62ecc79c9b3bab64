//! Deep objects of one tenant while the operators run, when they start again, and when others take over the lead.

use std::collections::BTreeSet;
use std::time::Duration;

use operator_tests::fleet::Who;
use operator_tests::{SOON, alone};
use test_kit::api_proxy::{Handling, WatchFault};

use crate::api::Kind;
use crate::broken::{Broken, SHAPES};
use crate::cure;
use crate::world::World;

/// Time for which a watch loses its events before it ends with 410.
const LOST: Duration = Duration::from_millis(50);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deep_objects_of_one_tenant_hold_up_nobody_else() {
    let control_plane = alone().await;
    let mut world = World::on(&control_plane).await;
    world.launch_brisk().await;
    let held = world.begin_held().await;
    let mut broken = live(&world, &held).await;
    let later = restarted(&mut world, &held).await;
    broken.extend(led_by_others(&mut world, &held).await);
    cure::deleted(&world, &later);
    cure::cured(&world, &broken).await;
    cure::namespace_ends(&world);
    world.goes_on().await;
}

/// Stores deep objects while other tenants work.
async fn live(world: &World<'_>, held: &BTreeSet<String>) -> Vec<Broken> {
    let store = async {
        let mut broken = Vec::new();
        // The parser follows 127 levels, of which a list takes two.
        for levels in [126, 500, 5000] {
            broken.extend(world.store_broken("live", &SHAPES, levels).await);
        }
        broken
    };
    let (broken, ()) = tokio::join!(store, world.goes_on());
    for one in &broken {
        one.says_so(&world.api).await;
    }
    world.goes_on().await;
    world.is_held(held).await;
    are_counted(world, &broken).await;
    broken
}

/// Starts the operators again, at first so that they see every change by another list.
async fn restarted(world: &mut World<'_>, held: &BTreeSet<String>) -> Vec<Broken> {
    world.api.proxy.decide_by(|call| {
        if call.verb == "watch" {
            Handling::Disturb(WatchFault::Lose(0, LOST))
        } else {
            Handling::Forward
        }
    });
    world.restart_behind_proxy().await;
    let lists = world.api.proxy.count("list", "hookruns");
    // A run in flight goes on where it was.
    world.is_held(held).await;
    world.allow("/in-flight");
    world.succeeds("in-flight").await;
    let proxy = &world.api.proxy;
    proxy
        .await_count("list", "hookruns", lists + 1, SOON)
        .await
        .unwrap();
    proxy.clear_faults();
    let broken = world.store_broken("later", &SHAPES[..1], 5000).await;
    for one in &broken {
        one.says_so(&world.api).await;
    }
    world.goes_on().await;
    world.is_held(held).await;
    broken
}

/// Kills the operators that lead. Their successors find everything in its place.
async fn led_by_others(world: &mut World<'_>, held: &BTreeSet<String>) -> Vec<Broken> {
    world.change_leaders().await;
    world.is_held(held).await;
    world.opens(held).await;
    let broken = world.store_broken("led", &SHAPES[1..], 126).await;
    for one in &broken {
        one.says_so(&world.api).await;
    }
    world.goes_on().await;
    broken
}

/// Checks that the metrics count the broken objects.
async fn are_counted(world: &World<'_>, broken: &[Broken]) {
    let count = |kinds: &[Kind]| {
        let of_kinds = broken.iter().filter(|one| kinds.contains(&one.id.kind));
        u64::try_from(of_kinds.count()).unwrap()
    };
    for (who, metric, least) in [
        (
            Who::Hooks,
            "hookgate_hook_unreadable_objects_total",
            count(&[Kind::HookRun, Kind::HookTemplate]),
        ),
        (
            Who::Workloads,
            "hookgate_gamedeployment_unreadable_total",
            count(&[Kind::GameDeployment]),
        ),
    ] {
        let counted = world.metric(who, metric).await;
        assert!(counted >= least, "{metric}: {counted} of {least}");
    }
}
