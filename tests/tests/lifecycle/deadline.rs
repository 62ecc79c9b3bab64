//! Time limit of a rollout: it stands still while a pod has players, and ends a hook that runs too long.

use operator_tests::fleet::empty_now;
use serde_json::json;
use shared_api::reason::WorkloadReason;

use crate::{Rollouts, hook, rollout};

impl Rollouts {
    /// Limits the time of rollouts.
    async fn limit_time(&self, seconds: i64) {
        let patch = json!({ "spec": { "updateStrategy": { "timeoutSeconds": seconds } } });
        self.fleet.patch(patch).await;
    }
}

#[tokio::test]
async fn time_with_players_does_not_count_and_a_hook_that_takes_too_long_ends_the_rollout() {
    let exceeded = WorkloadReason::ProgressDeadlineExceeded.as_str();
    let mut rollouts = Rollouts::start("deadline").await;
    rollouts.fleet.hook("empty", empty_now()).await;
    rollouts.answer("half", "yes");
    let mut game = rollout(4, &[hook("half", &json!("50%"))], json!({ "maxUnavailable": 4 }));
    game["spec"]["preDeleteUpdateStrategy"] = json!({ "hook": { "templateName": "empty" } });
    rollouts.fleet.apply(&game);
    rollouts.until_complete(4).await;

    // All pods have players: no pod is updated, and the time stands still.
    rollouts.answer("half", "wait");
    for name in rollouts.fleet.names().await {
        rollouts.fleet.nodes.pod(&name).set_players(1);
    }
    rollouts.limit_time(600).await;
    rollouts.fleet.set_image("game:v2").await;
    rollouts.fleet.says("UpdateBlocked", "HookUnsuccessful").await;
    let is_still = |status: &shared_api::GameDeploymentStatus| {
        let timer = status.rollout_timer.as_ref();
        timer.is_some_and(|timer| timer.running_since.is_none())
    };
    let status = rollouts.fleet.until(is_still).await;
    rollouts.fleet.quiet().await;
    assert_eq!(rollouts.fleet.status().await.rollout_timer, status.rollout_timer);
    assert_eq!(rollouts.running("game:v2").await, 0);

    // The players leave, and the hook at the point has no verdict in time.
    for name in rollouts.fleet.names().await {
        rollouts.fleet.nodes.pod(&name).set_players(0);
    }
    rollouts.fleet.retry("preDeleteUpdateStrategy");
    rollouts.until_running("half").await;
    let status = rollouts.fleet.until(|status| !is_still(status)).await;
    rollouts
        .limit_time(status.rollout_timer.unwrap().elapsed_milliseconds / 1000 + 1)
        .await;
    let entry = rollouts.until("half", |entry| entry.phase.is_aborted()).await;
    assert_eq!(entry.reason.as_deref(), Some(exceeded), "{entry:#?}");
    let message = rollouts.fleet.says("UpdateBlocked", exceeded).await;
    assert!(message.contains("2 of 4 pods are at revision "), "{message}");
    rollouts.fleet.says("Progressing", exceeded).await;
    rollouts
        .fleet
        .told("ProgressDeadlineExceeded the rollout exceeded spec.updateStrategy.timeoutSeconds (")
        .await;

    // A new process begins nothing.
    rollouts.fleet.kill_workloads();
    rollouts.fleet.start_workloads().await;
    rollouts.fleet.quiet().await;
    assert_eq!((rollouts.running("game:v2").await, rollouts.attempts()), (2, 2));

    // The command of the message, with more time.
    rollouts.answer("half", "yes");
    rollouts.limit_time(600).await;
    let command = message.split("restart the timer: kubectl ").nth(1).unwrap();
    let command = command.replace("$(date +%s)", "now");
    let words: Vec<&str> = command.split_whitespace().collect();
    let _ = rollouts.fleet.kubectl(&words, "");
    rollouts.until_complete(4).await;
    rollouts.fleet.all_run("game:v2", 4).await;
    assert_eq!(rollouts.fleet.status().await.rollout_timer, None);
    assert_eq!(rollouts.attempts(), 3);
    rollouts.order.check(&[("half", 2)]);
}
