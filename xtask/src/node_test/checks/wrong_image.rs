//! An image that cannot be pulled.

use test_kit::real_node::samples::{GAME_MISSING, GAME_V1};

use crate::enclosed::Outcome;
use crate::node_test::harness::Harness;
use crate::node_test::pod::{GAME, SIDECAR, Seen, ensure};
use crate::node_test::suite::{Check, check};

pub(super) const CHECKS: [Check; 1] = [check!(
    "a missing image is reported, and going back to the old one recovers the same pod",
    missing_image
)];

async fn missing_image(harness: &Harness<'_>) -> Outcome<()> {
    let before = harness.ready_pod("game-0").await?;
    harness.set_image("game-0", GAME_MISSING).await?;
    let complains = |seen: &Seen| {
        let game = seen.container(GAME);
        matches!(game.state.as_str(), "ErrImagePull" | "ImagePullBackOff")
    };
    let broken = harness.watch("game-0", complains).await?;
    ensure(!broken.is_ready(), "the pod is out of service")?;
    ensure(
        broken.container(SIDECAR) == before.container(SIDECAR),
        "the sidecar goes on as before",
    )?;
    ensure(
        harness.ask_game(&before.ip).await.is_err(),
        "the old game server is gone already",
    )?;

    harness.note(format!("spec.image becomes {GAME_V1} again"));
    harness.set_image("game-0", GAME_V1).await?;
    let after = harness.watch("game-0", Seen::is_ready).await?;
    ensure(
        before.uid == after.uid && before.ip == after.ip,
        "it is the same pod",
    )?;
    let answer = harness.ask_game(&after.ip).await?;
    ensure(answer["version"] == "v1", format!("v1 serves again: {answer}"))?;
    Ok(())
}
