//! In-place updates of pods: a new image in the same pod.

use test_kit::real_node::samples::{GAME_V1, GAME_V1_RETAGGED, GAME_V2};

use crate::enclosed::Outcome;
use crate::node_test::harness::Harness;
use crate::node_test::pod::{GAME, SIDECAR, SIDECAR_PORT, Seen, ensure, manifest};
use crate::node_test::suite::{Check, check};

pub(super) const CHECKS: [Check; 3] = [
    check!("a pod is ready and answers at its own address", pod),
    check!(
        "another image restarts its container in the same pod, and no other",
        another_image
    ),
    check!(
        "another name of the same image restarts its container, too",
        another_name
    ),
];

async fn pod(harness: &Harness<'_>) -> Outcome<()> {
    let seen = harness.ready_pod("game-0").await?;
    let ip: std::net::IpAddr = seen.ip.parse()?;
    ensure(
        !ip.is_loopback() && !ip.is_unspecified(),
        format!("{ip} is the pod's own address"),
    )?;
    let game = harness.ask_game(&seen.ip).await?;
    ensure(
        game["version"] == "v1" && game["phase"] == "serving",
        format!("v1 serves: {game}"),
    )?;
    let sidecar = harness.ask(&seen.ip, SIDECAR_PORT).await?;
    ensure(
        sidecar["version"] == "v1",
        format!("the sidecar serves: {sidecar}"),
    )?;
    Ok(())
}

/// Checks that the pod is still the same, and its other container is untouched.
fn ensure_same_pod(before: &Seen, after: &Seen) -> Outcome<()> {
    ensure(before.uid == after.uid, "the pod's UID is the same")?;
    ensure(before.ip == after.ip, "the pod's address is the same")?;
    let (before, after) = (before.container(SIDECAR), after.container(SIDECAR));
    ensure(
        before == after,
        format!("the sidecar goes on as before: {before:?} {after:?}"),
    )
}

async fn another_image(harness: &Harness<'_>) -> Outcome<()> {
    let before = harness.ready_pod("game-0").await?;
    harness.set_image("game-0", GAME_V2).await?;
    let restarted = |seen: &Seen| seen.is_ready() && seen.container(GAME).restarts > 0;
    let after = harness.watch("game-0", restarted).await?;
    ensure_same_pod(&before, &after)?;
    let (old, new) = (before.container(GAME), after.container(GAME));
    ensure(
        new.restarts == 1,
        format!("it restarted once, not {} times", new.restarts),
    )?;
    ensure(old.image_id != new.image_id, "the image's id is another")?;
    ensure(old.container_id != new.container_id, "the container is another")?;
    let answer = harness.ask_game(&after.ip).await?;
    ensure(
        answer["version"] == "v2",
        format!("v2 serves at the same address: {answer}"),
    )?;
    Ok(())
}

/// Signs of a completed in-place update. Observed with kubelet 1.20 and containerd 1.6, and checked here:
///
/// - A new name of the same image changes the container's spec: the kubelet restarts the container.
/// - `containerID` and `restartCount` change, `imageID` does not. Waiting for another `imageID` never ends.
/// - `status.image` is one of the image's names as listed by containerd, not the one in the spec. With `v1`
///   and `v1-retagged` it is always `v1`, even in a pod that was created with the other name. Waiting for the
///   spec's image never ends either.
/// - After the change of the spec, the old container is reported as running and ready for a while.
/// - The container may never be reported as not ready: the next observation may be the new container, ready.
///
/// The update is proven by a new `containerID` that is running, together with readiness. With a different
/// image, `imageID` proves the same. With an image that cannot be pulled, `containerID`, `imageID` and
/// `image` stay those of the old container while `state` is waiting (see `wrong_image.rs`).
async fn another_name(harness: &Harness<'_>) -> Outcome<()> {
    let mut before = harness.ready_pod("game-0").await?;
    for (restarts, image) in [(1, GAME_V1_RETAGGED), (2, GAME_V1)] {
        harness.set_image("game-0", image).await?;
        harness.note(format!("spec.image becomes {image}"));
        let restarted = |seen: &Seen| seen.is_ready() && seen.container(GAME).restarts == restarts;
        let after = harness.watch("game-0", restarted).await?;
        ensure_same_pod(&before, &after)?;
        let (old, new) = (before.container(GAME), after.container(GAME));
        ensure(old.image_id == new.image_id, "the image's id is the same")?;
        ensure(
            old.image == new.image,
            "the reported name stays, whatever the spec says",
        )?;
        ensure(old.container_id != new.container_id, "the container is another")?;
        before = after;
    }
    let mut pod = manifest("game-1");
    pod["spec"]["containers"][0]["image"] = GAME_V1_RETAGGED.into();
    harness.create(&pod).await?;
    let other = harness.until("game-1", Seen::is_ready).await?.container(GAME);
    harness.note(format!("made with {GAME_V1_RETAGGED}: {}", other.line()));
    ensure(
        other.image == before.container(GAME).image,
        "a pod made with the other name reports the same one",
    )
}
