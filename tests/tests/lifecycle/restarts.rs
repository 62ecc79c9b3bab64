//! Restarts of both operators in a rollout.

use serde_json::json;

use crate::{Rollouts, hook, rollout};

#[tokio::test]
async fn operators_that_restart_at_each_point_run_each_hook_once() {
    let mut rollouts = Rollouts::start("restarts").await;
    let hooks = [
        hook("before", &json!("Pre")),
        hook("half", &json!("50%")),
        hook("after", &json!("Post")),
    ];
    rollouts.answer_all(&hooks, "wait");
    rollouts
        .fleet
        .apply(&rollout(4, &hooks, json!({ "maxUnavailable": 4 })));
    for (name, pods) in [("before", 0), ("half", 2), ("after", 4)] {
        rollouts.until_running(name).await;
        rollouts.fleet.kill_workloads();
        rollouts.fleet.start_hooks().await;
        rollouts.answer(name, "yes");
        // The verdict arrives while nobody decides.
        rollouts
            .fleet
            .until_runs(|runs| {
                let mut phases = runs.iter().filter_map(|run| run.status.as_ref());
                phases.any(|status| status.phase.is_final())
            })
            .await;
        assert_eq!(rollouts.running("game:v1").await, pods);
        rollouts.fleet.start_workloads().await;
    }
    rollouts.until_complete(4).await;
    assert_eq!(rollouts.attempts(), 3);
    let _ = rollouts.order.check(&[("before", 0), ("half", 2)]);
}
