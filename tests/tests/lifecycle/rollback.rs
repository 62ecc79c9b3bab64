//! Rollback of an aborted rollout: pods go back through their own hooks, and the template stays.

use operator_tests::fleet::empty_now;
use serde_json::json;

use crate::{Rollouts, hook, rollout};

#[tokio::test]
async fn a_failed_check_takes_pods_back_in_place_except_one_with_players() {
    let mut rollouts = Rollouts::start("rollback").await;
    rollouts.fleet.hook("empty", empty_now()).await;
    rollouts.answer("smoke", "yes");
    let mut smoke = hook("smoke", &json!("50%"));
    (smoke["failurePolicy"], smoke["abortAction"]) = (json!("Abort"), json!("Rollback"));
    let mut game = rollout(4, &[smoke], json!({ "maxUnavailable": 4 }));
    game["spec"]["preInplaceUpdateStrategy"] = json!({ "hook": { "templateName": "empty" } });
    rollouts.fleet.apply(&game);
    rollouts.until_complete(4).await;
    let first = rollouts.fleet.uids().await;

    rollouts.answer("smoke", "wait");
    rollouts.fleet.set_image("game:v2").await;
    rollouts.until_running("smoke").await;
    let pods = rollouts.fleet.all_pods().await;
    let is_updated = |pod: &k8s_openapi::api::core::v1::Pod| {
        pod.spec.as_ref().unwrap().containers[0].image.as_deref() == Some("game:v2")
    };
    let updated: Vec<&String> = pods
        .iter()
        .filter(|(_, pod)| is_updated(pod))
        .map(|(name, _)| name)
        .collect();
    let [busy, _] = updated[..] else {
        panic!("{updated:?}")
    };
    rollouts.fleet.nodes.pod(busy).set_players(1);
    rollouts.answer("smoke", "no");
    let message = rollouts.fleet.says("UpdateBlocked", "HookUnsuccessful").await;
    assert!(message.contains(&format!("pod {busy}: ")), "{message}");
    rollouts.fleet.until(|status| status.updated_replicas == 1).await;

    // A new process continues the rollback, not the rollout.
    rollouts.fleet.kill_workloads();
    rollouts.fleet.start_workloads().await;
    rollouts.fleet.quiet().await;
    assert_eq!(rollouts.running("game:v1").await, 3);
    let progress = rollouts.fleet.says("Progressing", "LifecycleHookAborted").await;
    assert!(
        progress.contains("; 1 pod is being rolled back to revision "),
        "{progress}"
    );
    rollouts.fleet.nodes.pod(busy).set_players(0);
    rollouts.fleet.retry("preInplaceUpdateStrategy");
    rollouts.fleet.all_run("game:v1", 4).await;
    let message = rollouts.fleet.says("UpdateBlocked", "LifecycleHookAborted").await;
    assert_eq!(rollouts.fleet.uids().await, first, "in place");
    let status = rollouts.fleet.until(|status| status.updated_replicas == 0).await;
    let back = status.rollback.unwrap();
    assert_eq!(
        (status.update_revision.as_ref(), status.current_revision.as_ref()),
        (Some(&back.from_revision), Some(&back.to_revision))
    );

    // The command of the message.
    rollouts.answer("smoke", "yes");
    let command = message.split("restart the rollout: kubectl ").nth(1).unwrap();
    let command = command.replace("$(date +%s)", "now");
    let words: Vec<&str> = command.split_whitespace().collect();
    let _ = rollouts.fleet.kubectl(&words, "");
    rollouts.until_complete(4).await;
    rollouts.fleet.all_run("game:v2", 4).await;
    assert_eq!(rollouts.attempts(), 3);
    let order = rollouts.order.check(&[("smoke", 2)]);
    assert_eq!(order, [["smoke"], ["smoke"]]);
}
