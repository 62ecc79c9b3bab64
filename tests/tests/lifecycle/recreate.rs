//! Rollouts of type `Recreate`: no two revisions side by side, and hooks while no pod runs.

use operator_tests::fleet::{empty_now, hooked};
use serde_json::{Value, json};

use crate::{Rollouts, hook, rollout};

fn hooks() -> [Value; 4] {
    [
        hook("before", &json!("Pre")),
        hook("between", &json!("Mid")),
        hook("half", &json!("50%")),
        hook("after", &json!("Post")),
    ]
}

const NEEDS: [(&str, usize); 3] = [("before", 0), ("between", 0), ("half", 2)];

/// A workload whose pods are asked before they are deleted.
fn game() -> Value {
    let mut game = rollout(4, &hooks(), json!({}));
    game["spec"]["updateStrategy"] = json!({ "type": "Recreate" });
    game["spec"]["preDeleteUpdateStrategy"] = hooked("empty")["preDeleteUpdateStrategy"].clone();
    game
}

#[tokio::test]
async fn old_pods_go_through_their_gates_before_mid_and_the_new_ones_come_after_it() {
    let rollouts = Rollouts::start("recreate").await;
    rollouts.fleet.hook("empty", empty_now()).await;
    rollouts.answer_all(&hooks(), "yes");
    rollouts.fleet.apply(&game());
    rollouts.until_complete(4).await;
    rollouts.answer_all(&hooks(), "wait");
    rollouts.fleet.nodes.every_pod().set_players(0);
    let busy = rollouts.fleet.names().await.into_iter().next().unwrap();
    rollouts.fleet.nodes.pod(&busy).set_players(3);
    rollouts.fleet.set_image("game:v2").await;
    rollouts.until_running("before").await;
    assert_eq!(rollouts.running("game:v1").await, 4);
    rollouts.answer("before", "yes");
    // One pod has players: it stays, and nothing else begins.
    rollouts.fleet.says("UpdateBlocked", "HookUnsuccessful").await;
    rollouts.fleet.until_pods(|pods| pods.len() == 1).await;
    rollouts.fleet.quiet().await;
    assert_eq!(
        rollouts.fleet.names().await.into_iter().next(),
        Some(busy.clone())
    );
    let message = rollouts
        .fleet
        .until_message("Progressing", "1 pod of an earlier revision is left; ")
        .await;
    assert!(
        message.contains("new pods will be created once it is gone"),
        "{message}"
    );
    rollouts.fleet.nodes.pod(&busy).set_players(0);
    rollouts.fleet.retry("preDeleteUpdateStrategy");
    rollouts.until_running("between").await;
    assert_eq!(rollouts.fleet.names().await.len(), 0, "nothing runs during Mid");
    rollouts.answer("between", "yes");
    rollouts.until_running("half").await;
    assert_eq!(rollouts.running("game:v2").await, 2);
    rollouts.answer("half", "yes");
    rollouts.until_running("after").await;
    rollouts.answer("after", "yes");
    rollouts.until_complete(4).await;
    assert_eq!(rollouts.order.check_apart(), 8);
    assert_eq!(rollouts.order.check(&NEEDS).len(), 2);
}

#[tokio::test]
async fn a_failure_while_nothing_runs_ends_the_rollout_and_the_way_back_brings_the_pods() {
    let rollouts = Rollouts::start("recreate-abort").await;
    rollouts.fleet.hook("empty", empty_now()).await;
    rollouts.answer_all(&hooks(), "yes");
    let mut game = game();
    game["spec"]["lifecycleHooks"][1]["failurePolicy"] = json!("Abort");
    rollouts.fleet.apply(&game);
    rollouts.until_complete(4).await;
    rollouts.answer("between", "no");
    rollouts.fleet.nodes.every_pod().set_players(0);
    rollouts.fleet.set_image("game:v2").await;
    let message = rollouts.fleet.says("UpdateBlocked", "LifecycleHookAborted").await;
    assert!(message.contains("lifecycle hook between"), "{message}");
    rollouts.fleet.quiet().await;
    assert_eq!(rollouts.fleet.names().await.len(), 0);
    rollouts.answer("between", "yes");
    rollouts.fleet.set_image("game:v1").await;
    rollouts.until_complete(4).await;
    assert_eq!(rollouts.running("game:v1").await, 4);
    assert_eq!(rollouts.order.check_apart(), 8);
}
