//! HookTemplates, HookRuns and a workload with large specs, all at the same time, while the operators run and after
//! they were killed.

use operator_tests::alone;
use operator_tests::proof::played;

use crate::lag::operator_is_on_time;
use crate::world::World;
use crate::{MACHINE, crowd, scale_down, templates};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_specs_of_one_tenant_exhaust_no_memory_and_delay_nobody_else() {
    let _alone = MACHINE.write().await;
    let control_plane = alone().await;
    let mut world = World::on(&control_plane).await;
    scale_down::launch(&world).await;
    world.launch_growing().await;
    world.is_small("with a workload and nothing to do");
    let before = world.lag().await;
    let leads = world.leads().await;

    let (templates, meanwhile) = world.lag_during(templates::store(&world)).await;
    operator_is_on_time(&before, &meanwhile, "while large HookTemplates are stored");
    templates::are_refused(&world, &templates).await;
    let (crowd, meanwhile) = world.lag_during(crowd::store(&world)).await;
    operator_is_on_time(&before, &meanwhile, "while large HookRuns are stored");
    crowd::are_served(&world, &crowd, "as they come").await;
    scale_down::is_blocked(&world).await;
    world.is_small("beside large specs");
    world.is_on_time(&before, "beside large specs").await;
    assert_eq!(world.leads().await, leads);

    let took = world.restart().await;
    played(
        "fairness",
        "a run of another tenant beside large specs, stored while the operators were down",
        &[("ms from their start to its question", &took.as_millis())],
    );
    templates::are_refused(&world, &templates).await;
    crowd::are_served(&world, &crowd, "after a restart").await;
    scale_down::stays_blocked(&world).await;
    world.is_small("after a restart beside large specs");
    world
        .is_on_time(&before, "after a restart beside large specs")
        .await;

    let leads = world.leads().await;
    scale_down::goes_with_a_small_one(&world).await;
    let ((), meanwhile) = world.lag_during(scale_down::goes_at_the_limit(&world)).await;
    operator_is_on_time(&before, &meanwhile, "while pods go behind runs of 128 KiB");
    world.is_small("after runs of 128 KiB");
    world.is_on_time(&before, "after runs of 128 KiB").await;
    assert_eq!(world.leads().await, leads);
}
