//! Readiness gate that keeps a pod out of service during an in-place update.

use std::time::Instant;

use serde_json::json;
use test_kit::real_node::samples::GAME_V2;

use crate::enclosed::Outcome;
use crate::node_test::harness::Harness;
use crate::node_test::pod::{GAME, Seen, ensure, manifest};
use crate::node_test::suite::{Check, check};

/// Condition that the operator owns.
const GATE: &str = "InPlaceUpdateReady";

pub(super) const CHECKS: [Check; 1] = [check!(
    "a pod with a readiness gate is ready as its condition says, and keeps it through a restart",
    gate
)];

async fn gate(harness: &Harness<'_>) -> Outcome<()> {
    let mut pod = manifest("game-0");
    pod["spec"]["readinessGates"] = json!([{ "conditionType": GATE }]);
    harness.create(&pod).await?;
    let seen = harness
        .until("game-0", |seen| seen.condition("ContainersReady") == "True")
        .await?;
    ensure(
        !seen.is_ready(),
        "ready containers are not enough without the condition",
    )?;
    ensure(
        seen.condition(GATE).is_empty(),
        "nobody but us sets the condition",
    )?;
    let ready = seen.conditions.get("Ready").cloned().unwrap_or_default();
    harness.note(format!(
        "without it: Ready={} {}",
        ready.status,
        ready.reason.unwrap_or_default()
    ));
    harness.note(ready.message.unwrap_or_default());

    for wanted in [true, false] {
        let started = Instant::now();
        harness.set_condition("game-0", GATE, wanted).await?;
        harness.until("game-0", |seen| seen.is_ready() == wanted).await?;
        harness.note(format!(
            "{GATE}={wanted}: Ready follows after {} ms",
            started.elapsed().as_millis()
        ));
    }

    let before = harness.see("game-0").await?;
    harness.set_image("game-0", GAME_V2).await?;
    let restarted = |seen: &Seen| {
        let game = seen.container(GAME);
        game.restarts == 1 && game.ready && seen.condition("ContainersReady") == "True"
    };
    let after = harness.until("game-0", restarted).await?;
    ensure(
        !after.is_ready(),
        "the pod stays out of service after the restart",
    )?;
    ensure(
        before.conditions.get(GATE) == after.conditions.get(GATE),
        format!(
            "the kubelet keeps our condition: {:?} {:?}",
            before.conditions.get(GATE),
            after.conditions.get(GATE)
        ),
    )?;
    harness.set_condition("game-0", GATE, true).await?;
    harness.until("game-0", Seen::is_ready).await?;
    Ok(())
}
