//! Tests of undo with canary steps: the output says what the operator then does.

use std::process::Stdio;

use operator_tests::fleet::{GAME, game};
use operator_tests::{Fleet, assert_has};
use serde_json::{Value, json};
use shared_api::{GameDeployment, GameDeploymentStatus};

use crate::fleet;
use crate::plugin::{Plugin, next};

/// Sentence about canary steps that run.
const STEPS_RUN: &str = "The 2 canary steps run first; the update pauses at step 2.";

/// Returns a workload of two pods with these canary steps.
fn canary(steps: Value) -> Value {
    game(2, json!({ "updateStrategy": { "canary": { "steps": steps } } }))
}

/// Returns a workload of two pods that pauses after one of them is updated.
fn pausing() -> Value {
    canary(json!([{ "partition": 1 }, { "pause": {} }]))
}

/// Returns all commands below `Next:`, without their purposes.
fn commands(out: &str) -> Vec<&str> {
    let (_, lines) = out.split_once("Next:\n").unwrap();
    let lines = lines.lines().take_while(|line| line.starts_with("  "));
    lines
        .map(|line| line.split("  # ").next().unwrap_or_default().trim())
        .collect()
}

/// Runs a printed command of kubectl in a shell.
async fn run_printed(fleet: &Fleet<'_>, printed: &str) {
    let kubectl = fleet.control_plane.kubectl_file().unwrap();
    let script = format!("kubectl() {{ '{}' \"$@\"; }}\n{printed}", kubectl.display());
    let mut shell = tokio::process::Command::new("bash");
    shell
        .args(["--noprofile", "--norc", "-c", &script])
        .env("KUBECONFIG", fleet.control_plane.kubeconfig_path())
        .stdin(Stdio::null());
    let output = shell.output().await.unwrap();
    assert!(output.status.success(), "{printed}: {output:?}");
}

/// Returns the one command that starts like this.
fn command<'o>(out: &'o str, start: &str) -> &'o str {
    let mut found = commands(out).into_iter().filter(|line| line.starts_with(start));
    match (found.next(), found.next()) {
        (Some(only), None) => only,
        other => panic!("{start}: {other:?}: {out}"),
    }
}

fn is_paused(game: &GameDeployment) -> bool {
    let strategy = game.spec.update_strategy.as_ref();
    strategy.and_then(|strategy| strategy.paused) == Some(true)
}

/// Waits until the second canary step begins to pause, with one pod of each image.
async fn until_one_is_updated(fleet: &Fleet<'_>) {
    let status = fleet
        .until(|status| !status.pause_conditions.is_empty() && status.updated_ready_replicas == 1)
        .await;
    assert_eq!(status.current_step_index, Some(1), "counted from 0");
    assert_eq!(fleet.images().await.len(), 2);
}

/// Waits until the second canary step has paused the workload.
async fn until_step_2_pauses(fleet: &Fleet<'_>) {
    until_one_is_updated(fleet).await;
    assert!(is_paused(&fleet.game().await));
}

/// Waits until every pod runs this image, and the rollout is the last complete one.
async fn until_complete(plugin: &Plugin<'_>, image: &str) {
    plugin.ok(&format!("status {GAME} --timeout 60s")).await;
    plugin.fleet.all_run(image, 2).await;
    let complete = |status: &GameDeploymentStatus| {
        status.current_revision.is_some() && status.current_revision == status.update_revision
    };
    plugin.fleet.until(complete).await;
}

/// Rolls out an image past the pause of its canary, and checks what the commands announce.
async fn rolled_out(plugin: &Plugin<'_>, image: &str) {
    let answer = plugin.ok(&format!("set image {GAME} game={image}")).await;
    assert_has(&answer, STEPS_RUN);
    until_step_2_pauses(plugin.fleet).await;
    let promoted = plugin.obeys(command(&answer, "kubectl game promote ")).await;
    assert_eq!(promoted.code, 0, "{promoted:?}");
    assert_has(&promoted.out, "continuing past the pause at canary step 2.");
    command(&promoted.out, "kubectl game status ");
    until_complete(plugin, image).await;
}

#[tokio::test]
async fn a_rollback_of_a_complete_rollout_runs_the_canary_steps_as_announced() {
    let fleet = fleet("plugin").await;
    let plugin = Plugin { fleet: &fleet };
    fleet.launch(&pausing()).await;
    rolled_out(&plugin, "game:v2").await;

    let answer = plugin.ok(&format!("undo {GAME}")).await;
    assert_has(
        &answer,
        &format!("{GAME}: restored spec.template from revision 1 ("),
    );
    assert_has(&answer, STEPS_RUN);
    assert_eq!(
        next(&answer),
        format!("kubectl game get {GAME} -w -n {}", fleet.namespace)
    );
    until_step_2_pauses(&fleet).await;
    let promoted = plugin.obeys(command(&answer, "kubectl game promote ")).await;
    assert_eq!(promoted.code, 0, "{promoted:?}");
    until_complete(&plugin, "game:v1").await;
    fleet.settled(2).await;
}

/// In an emergency, the command that is printed last ends the wait: at a pause with a time limit.
#[tokio::test]
async fn a_rollback_continues_without_the_canary_steps() {
    let fleet = fleet("plugin").await;
    let plugin = Plugin { fleet: &fleet };
    let answer = undone_with(&plugin, &json!({ "duration": 86_400 })).await;
    assert_has(&answer, "The 2 canary steps run first. ");
    assert_has(
        &answer,
        "To roll back faster, remove the canary steps and any pause.",
    );
    until_one_is_updated(&fleet).await;
    continues_without_steps(&plugin, &answer).await;
}

/// The same at a pause without one, which the operator has recorded and set in the spec.
#[tokio::test]
async fn a_rollback_that_a_step_has_paused_continues_without_the_canary_steps() {
    let fleet = fleet("plugin").await;
    let plugin = Plugin { fleet: &fleet };
    let answer = undone_with(&plugin, &json!({})).await;
    assert_has(&answer, STEPS_RUN);
    assert_has(
        &answer,
        "To roll back faster, promote at each pause, or remove the canary steps and any pause.",
    );
    until_step_2_pauses(&fleet).await;
    continues_without_steps(&plugin, &answer).await;
}

/// Rolls out an image, adds canary steps with this pause and rolls the image back. Returns the output.
async fn undone_with(plugin: &Plugin<'_>, pause: &Value) -> String {
    let fleet = plugin.fleet;
    fleet.launch(&game(2, json!({}))).await;
    plugin.ok(&format!("set image {GAME} game=game:v2")).await;
    until_complete(plugin, "game:v2").await;
    let steps = json!([{ "partition": 1 }, { "pause": pause }]);
    fleet
        .set(json!({ "updateStrategy": { "canary": { "steps": steps } } }))
        .await;
    fleet.says("Progressing", "RolloutComplete").await;
    plugin.ok(&format!("undo {GAME}")).await
}

/// Removes the steps with the printed command, and checks that the rollback completes.
async fn continues_without_steps(plugin: &Plugin<'_>, answer: &str) {
    let fleet = plugin.fleet;
    let patch = command(answer, &format!("kubectl patch gd {GAME} "));
    run_printed(fleet, patch).await;
    until_complete(plugin, "game:v1").await;
    let game = fleet.game().await;
    let strategy = game.spec.update_strategy.unwrap_or_default();
    assert_eq!((strategy.canary.is_some(), strategy.paused), (false, None));
    fleet.settled(2).await;
}

/// Two broken versions in succession: the rollback skips the first one.
#[tokio::test]
async fn a_rollback_of_a_second_rollout_restores_the_last_complete_revision() {
    let fleet = fleet("plugin").await;
    let plugin = Plugin { fleet: &fleet };
    let steps = json!([{ "partition": 1 }, { "pause": { "duration": 86_400 } }]);
    fleet.launch(&canary(steps)).await;
    plugin.ok(&format!("set image {GAME} game=game:v2")).await;
    until_one_is_updated(&fleet).await;
    let first = fleet.status().await.update_revision;
    plugin.ok(&format!("set image {GAME} game=game:v3")).await;
    fleet.until(|status| status.update_revision != first).await;
    until_one_is_updated(&fleet).await;
    let answer = plugin.ok(&format!("undo {GAME}")).await;
    assert_has(
        &answer,
        &format!("{GAME}: restored spec.template from revision 1 ("),
    );
    until_complete(&plugin, "game:v1").await;
    fleet.settled(2).await;
}

#[tokio::test]
async fn a_rollback_in_the_middle_runs_no_canary_step() {
    let fleet = fleet("plugin").await;
    let plugin = Plugin { fleet: &fleet };
    let steps = json!([{ "partition": 1 }, { "pause": { "duration": 86_400 } }, { "pause": {} }]);
    fleet.launch(&canary(steps)).await;
    plugin.ok(&format!("set image {GAME} game=game:v2")).await;
    until_one_is_updated(&fleet).await;
    let answer = plugin.ok(&format!("undo {GAME}")).await;
    assert_has(&answer, "so rolling back to it skips canary steps.");
    assert_eq!(commands(&answer).len(), 1, "{answer}");
    let status = plugin.obeys(&format!("{} --timeout 60s", next(&answer))).await;
    assert_eq!(status.code, 0, "{status:?}");
    fleet.all_run("game:v1", 2).await;
    assert!(!is_paused(&fleet.game().await));
    fleet.settled(2).await;
}

#[tokio::test]
async fn a_rollback_at_the_pause_of_a_step_is_resumed_first() {
    let fleet = fleet("plugin").await;
    let plugin = Plugin { fleet: &fleet };
    fleet.launch(&pausing()).await;
    plugin.ok(&format!("set image {GAME} game=game:v2")).await;
    until_step_2_pauses(&fleet).await;
    let answer = plugin.ok(&format!("undo {GAME}")).await;
    assert_has(
        &answer,
        "Updates are paused: no pod is updated until they are resumed. No canary steps will run.",
    );
    let resume = format!("kubectl game resume {GAME} -n {}", fleet.namespace);
    assert_eq!(commands(&answer), [resume.as_str()]);
    fleet.says("Progressing", "Paused").await;
    fleet.quiet().await;
    assert_eq!(fleet.images().await.len(), 2, "no pod went back");
    let resumed = plugin.obeys(&resume).await;
    assert_eq!(resumed.code, 0, "{resumed:?}");
    let status = command(&resumed.out, "kubectl game status ");
    let status = plugin.obeys(&format!("{status} --timeout 60s")).await;
    assert_eq!(status.code, 0, "{status:?}");
    fleet.all_run("game:v1", 2).await;
    fleet.settled(2).await;
}

/// A person has paused the workload: the steps run once it is resumed.
#[tokio::test]
async fn a_rollback_of_a_paused_workload_is_resumed_first_and_its_steps_run_then() {
    let fleet = fleet("plugin").await;
    let plugin = Plugin { fleet: &fleet };
    fleet.launch(&pausing()).await;
    rolled_out(&plugin, "game:v2").await;
    plugin.ok(&format!("pause {GAME}")).await;
    let answer = plugin.ok(&format!("undo {GAME}")).await;
    assert_has(&answer, "The 2 canary steps will then run first.");
    let resume = format!("kubectl game resume {GAME} -n {}", fleet.namespace);
    assert_eq!(commands(&answer), [resume.as_str()]);
    fleet.says("Progressing", "Paused").await;
    fleet.quiet().await;
    fleet.all_run("game:v2", 2).await;
    let resumed = plugin.obeys(&resume).await;
    assert_eq!(resumed.code, 0, "{resumed:?}");
    assert_has(&resumed.out, "The next pause is at step 2.");
    assert_eq!(
        commands(&resumed.out),
        [format!("kubectl game get {GAME} -w -n {}", fleet.namespace)]
    );
    until_step_2_pauses(&fleet).await;
    plugin.ok(&format!("promote {GAME}")).await;
    until_complete(&plugin, "game:v1").await;
    fleet.settled(2).await;
}
