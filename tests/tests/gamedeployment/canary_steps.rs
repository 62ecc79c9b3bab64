//! Canary steps without hooks: partitions, pauses, and changes by users during a rollout.

use operator_tests::Fleet;
use operator_tests::fleet::game;
use serde_json::{Value, json};
use shared_api::{GameDeployment, GameDeploymentStatus};

use crate::fleet;

const PAUSED: &str = "PausedByCanaryPauseStep";

fn steps(steps: Value) -> Value {
    json!({ "updateStrategy": { "canary": { "steps": steps } } })
}

async fn change_steps(fleet: &Fleet<'_>, new: Value) {
    fleet.set(steps(new)).await;
}

fn is_paused(game: &GameDeployment) -> Option<bool> {
    game.spec.update_strategy.as_ref()?.paused
}

/// Sets `paused` to false, with the documented command.
fn go_on(fleet: &Fleet<'_>) {
    let patch = r#"-p={"spec":{"updateStrategy":{"paused":false}}}"#;
    let _ = fleet.kubectl(
        &[
            "patch",
            "gamedeployment",
            operator_tests::fleet::GAME,
            "--type=merge",
            patch,
        ],
        "",
    );
}

/// Waits until the rollout pauses at this step with this many updated pods; then checks that nothing more
/// happens.
async fn pauses(fleet: &Fleet<'_>, index: i32, updated: i32) -> GameDeploymentStatus {
    let status = fleet
        .until(|status| {
            status.current_step_index == Some(index)
                && status.updated_ready_replicas == updated
                && status.pause_conditions.len() == 1
        })
        .await;
    fleet.quiet().await;
    assert_eq!(fleet.status().await, status);
    let pause = &status.pause_conditions[0];
    assert_eq!(pause.reason.as_str(), PAUSED);
    assert!(pause.start_time.is_some());
    let message = fleet.says("Progressing", PAUSED).await;
    let step = format!(
        "canary step {}: paused; to continue, set spec.updateStrategy.paused to false",
        index + 1
    );
    assert!(message.starts_with(&step), "{message}");
    assert_eq!(is_paused(&fleet.game().await), Some(true));
    status
}

#[tokio::test]
async fn each_step_waits_for_the_one_before_and_a_pause_for_people_or_time() {
    let fleet = fleet("canary-steps").await;
    let four =
        json!([{ "partition": 3 }, { "pause": {} }, { "partition": "25%" }, { "pause": { "duration": 2 } }]);
    fleet.launch(&game(4, steps(four))).await;
    let first = fleet.settled(4).await;
    assert_eq!(
        first.current_step_index,
        Some(4),
        "the first rollout has no steps"
    );
    assert!(first.pause_conditions.is_empty() && first.current_step_hash.is_some());
    assert_eq!(first.canary.clone().unwrap().revision, first.update_revision);
    fleet.set_image("game:v2").await;
    let status = pauses(&fleet, 1, 1).await;
    assert_eq!(status.current_step_hash, first.current_step_hash);
    assert_eq!(
        status.canary.unwrap().revision,
        first.update_revision,
        "what was rolled out whole"
    );
    assert_eq!(status.current_revision, first.update_revision);
    assert_eq!(fleet.nodes.terminations().len(), 1);
    go_on(&fleet);
    let status = fleet
        .until(|status| status.current_step_index == Some(3) && status.pause_conditions.len() == 1)
        .await;
    assert_eq!(status.updated_ready_replicas, 3);
    assert_eq!(status.pause_conditions[0].reason.as_str(), PAUSED);
    fleet
        .until_message("Progressing", "canary step 4: paused until ")
        .await;
    fleet.until(|status| status.updated_ready_replicas == 4).await;
    let done = fleet.settled(4).await;
    fleet.all_run("game:v2", 4).await;
    assert_eq!(done.current_step_index, Some(4));
    assert_eq!(done.pause_conditions.len(), 0);
    assert_eq!(done.canary.unwrap().revision, done.update_revision);
    assert_ne!(done.update_revision, first.update_revision);
    assert_eq!(
        is_paused(&fleet.game().await),
        Some(false),
        "a timed pause needs nobody"
    );
    let ends = fleet.nodes.terminations();
    let waited = ends[3].time.duration_since(ends[2].time);
    assert!(ends.len() == 4 && waited.as_millis() > 1900, "{waited:?}");
}

#[tokio::test]
async fn a_pause_that_people_set_themselves_is_ended_by_them_alone() {
    let fleet = fleet("canary-steps").await;
    fleet
        .launch(&game(2, steps(json!([{ "pause": {} }, { "partition": 1 }]))))
        .await;
    fleet.set(json!({ "updateStrategy": { "paused": true } })).await;
    fleet.set_image("game:v2").await;
    pauses(&fleet, 0, 0).await;
    go_on(&fleet);
    fleet.settled(2).await;
    fleet.all_run("game:v2", 2).await;
    // Between steps, too: a rollout that a user stops stays stopped.
    fleet
        .set(json!({ "updateStrategy": { "canary": { "steps": [{ "partition": 1 }] }, "paused": true } }))
        .await;
    fleet.set_image("game:v3").await;
    let message = fleet.says("Progressing", "Paused").await;
    assert!(
        message.starts_with(
            "canary step 1: updates are paused at 0 of 1 pods; to continue, set spec.updateStrategy.paused to false"
        ),
        "{message}"
    );
    fleet.quiet().await;
    assert_eq!(is_paused(&fleet.game().await), Some(true));
    assert_eq!(fleet.nodes.terminations().len(), 2);
    go_on(&fleet);
    fleet.settled(2).await;
    fleet.all_run("game:v3", 2).await;
}

#[tokio::test]
async fn steps_that_are_edited_while_they_are_taken_begin_anew_and_never_hang() {
    let fleet = fleet("canary-edited").await;
    fleet
        .launch(&game(4, steps(json!([{ "partition": 2 }, { "pause": {} }]))))
        .await;
    fleet.set_image("game:v2").await;
    let before = pauses(&fleet, 1, 2).await;
    // Fewer pods than are already updated: that step is complete, and no pod is reverted.
    change_steps(
        &fleet,
        json!([{ "partition": 3 }, { "partition": 1 }, { "pause": {} }]),
    )
    .await;
    fleet
        .until_message("Progressing", "canary step 2: updates are paused at 2 of 3 pods")
        .await;
    go_on(&fleet);
    let after = pauses(&fleet, 2, 3).await;
    assert_ne!(after.current_step_hash, before.current_step_hash);
    assert_eq!(fleet.nodes.terminations().len(), 3);
    // Without steps, the rest follows once a user resumes the rollout.
    fleet.set(json!({ "updateStrategy": { "canary": null } })).await;
    fleet
        .until_message("Progressing", "updates are paused at 3 of 4 pods")
        .await;
    go_on(&fleet);
    let status = fleet.settled(4).await;
    fleet.all_run("game:v2", 4).await;
    assert_eq!((status.current_step_index, status.canary), (None, None));
    assert_eq!(status.pause_conditions, []);
    assert_eq!(fleet.nodes.terminations().len(), 4);
}

#[tokio::test]
async fn replicas_that_change_on_the_way_hang_nothing() {
    let fleet = fleet("canary-replicas").await;
    fleet
        .launch(&game(
            4,
            steps(json!([{ "partition": 3 }, { "pause": {} }, { "partition": 1 }])),
        ))
        .await;
    fleet.set_image("game:v2").await;
    pauses(&fleet, 1, 1).await;
    // More replicas: the number of old pods stays, new pods are at the update revision.
    fleet.scale(6);
    let status = fleet.until(|status| status.ready_replicas == 6).await;
    assert_eq!(status.updated_ready_replicas, 3);
    assert_eq!(status.current_step_index, Some(1));
    pauses(&fleet, 1, 3).await;
    assert_eq!(fleet.nodes.terminations().len(), 1);
    // Fewer than the partition keeps.
    fleet.scale(2);
    fleet
        .until(|status| status.replicas == 2 && status.ready_replicas == 2)
        .await;
    fleet.settled(2).await;
    go_on(&fleet);
    fleet.until(|status| status.current_step_index == Some(3)).await;
    let status = fleet.settled(2).await;
    fleet.all_run("game:v2", 2).await;
    assert_eq!(status.canary.unwrap().revision, status.update_revision);
}

#[tokio::test]
async fn going_back_to_what_was_rolled_out_whole_needs_no_steps() {
    let fleet = fleet("canary-back").await;
    fleet
        .launch(&game(3, steps(json!([{ "partition": 2 }, { "pause": {} }]))))
        .await;
    let first = fleet.settled(3).await;
    fleet.set_image("game:v2").await;
    pauses(&fleet, 1, 1).await;
    fleet.set_image("game:v1").await;
    let status = fleet
        .until(|status| status.update_revision == first.update_revision && status.pause_conditions.is_empty())
        .await;
    assert_eq!(status.current_step_index, Some(2));
    let message = fleet.says("Progressing", "Paused").await;
    assert!(
        message.starts_with("updates are paused at 2 of 3 pods"),
        "{message}"
    );
    go_on(&fleet);
    let status = fleet.settled(3).await;
    assert_eq!(fleet.images().await, ["game:v1".to_owned()].into());
    assert_eq!(status.canary, first.canary);
    assert_eq!(fleet.nodes.terminations().len(), 2);
}

#[tokio::test]
async fn another_template_begins_at_the_first_step_whatever_step_was_reached() {
    let fleet = fleet("canary-anew").await;
    fleet
        .launch(&game(3, steps(json!([{ "partition": 2 }, { "pause": {} }]))))
        .await;
    fleet.set_image("game:v2").await;
    pauses(&fleet, 1, 1).await;
    fleet.set_image("game:v3").await;
    let status = fleet
        .until(|status| status.updated_replicas == 0 && status.current_step_index == Some(0))
        .await;
    assert_eq!(status.pause_conditions, []);
    go_on(&fleet);
    pauses(&fleet, 1, 1).await;
    let images = fleet.images().await;
    assert_eq!(images.len(), 2, "{images:?}");
    assert!(
        images.contains("game:v3") && images.contains("game:v1"),
        "{images:?}"
    );
    go_on(&fleet);
    fleet.settled(3).await;
    fleet.all_run("game:v3", 3).await;
}
