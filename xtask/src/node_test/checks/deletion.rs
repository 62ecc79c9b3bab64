//! Deletion of a pod.

use std::time::{Duration, Instant};

use kube::api::DeleteParams;
use serde_json::json;

use crate::enclosed::Outcome;
use crate::node_test::harness::{Harness, PATIENCE};
use crate::node_test::pod::{Seen, ensure, manifest};
use crate::node_test::suite::{Check, check};

pub(super) const CHECKS: [Check; 1] = [check!(
    "a deleted pod runs its preStop hook, drains, and only then goes",
    deletion
)];

async fn deletion(harness: &Harness<'_>) -> Outcome<()> {
    let mut pod = manifest("game-0");
    let game = &mut pod["spec"]["containers"][0];
    game["env"] = json!([{ "name": "DRAIN_SECONDS", "value": "2" }]);
    let leave = "game-server say leaving; sleep 1";
    game["lifecycle"] = json!({ "preStop": { "exec": { "command": ["sh", "-c", leave] } } });
    harness.create(&pod).await?;
    let seen = harness.until("game-0", Seen::is_ready).await?;

    let started = Instant::now();
    harness.pods().delete("game-0", &DeleteParams::default()).await?;
    let mut phases: Vec<String> = Vec::new();
    let mut pause = tokio::time::interval(Duration::from_millis(25));
    while harness.pods().get_opt("game-0").await?.is_some() {
        ensure(started.elapsed() < PATIENCE, "the pod goes in time")?;
        let answer = harness.ask_game(&seen.ip).await;
        let phase = answer.map_or("silent".to_owned(), |answer| {
            answer["phase"].as_str().unwrap_or_default().to_owned()
        });
        if phases.last() != Some(&phase) {
            phases.push(phase);
        }
        pause.tick().await;
    }
    let took = started.elapsed();
    harness.note(format!(
        "{}; gone after {:.1} s",
        phases.join(", "),
        took.as_secs_f64()
    ));
    let place = |phase: &str| phases.iter().position(|one| one == phase);
    ensure(
        place("leaving").is_some() && place("leaving") < place("draining"),
        format!("the server said that it leaves, then that it drains: {phases:?}"),
    )?;
    ensure(
        took >= Duration::from_secs(3),
        "one second of preStop and two of draining passed",
    )?;
    ensure(
        took < Duration::from_secs(25),
        "it was not killed after its grace period",
    )?;
    Ok(())
}
