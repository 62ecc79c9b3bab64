//! Detection of when a container runs its new image.
//!
//! The kubelet replaces a container whose image name changed, even if both names refer to the same image, and
//! the new container has a new containerID. That alone does not prove which image it runs: the old container
//! may have crashed and restarted at the moment of the write. Times are arguments; nothing here reads a
//! clock.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ContainerStatus;
use serde::{Deserialize, Serialize};

use crate::image::{ImageName, digest_of_id};

/// Running time after which a new container counts as running the new image if nothing else proves it. By
/// then the kubelet, which sees a write within a second, has ended any container of the old image.
pub const STATUS_SETTLE_TIME: SignedDuration = SignedDuration::from_secs(5);

/// Maximum error of a node's clock: a container that started longer than this before the write runs the old
/// image.
const CLOCK_SKEW: SignedDuration = SignedDuration::from_secs(60);

/// Time within which a working kubelet has certainly replaced a container.
pub const KUBELET_DEADLINE: SignedDuration = SignedDuration::from_secs(60);

/// State of a container before its image was changed. Stored in an annotation of the pod in the same write as
/// the image: with separate writes the container could crash in between and restart with another containerID.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerMark {
    /// Image ID from the container's status; empty if the container had not started.
    #[serde(rename = "imageID")]
    pub image_id: String,
    /// Container ID; empty if the container had not started. `None` in a mark of the original operator.
    #[serde(rename = "containerID", skip_serializing_if = "Option::is_none")]
    pub container_id: Option<String>,
    /// Number of restarts. Informational; no decision uses it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart_count: Option<i32>,
    /// Image name from the container's status, which may differ from the pod's spec. Informational.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Image that the pod requested when this container started, if known. If the pod requests it again
    /// before the kubelet ends the container, the container stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec_image: Option<String>,
}

impl ContainerMark {
    /// Builds the mark of a container from its status; `None` is a container without a status.
    pub fn of(status: Option<&ContainerStatus>) -> Self {
        Self {
            image_id: status.map(|status| status.image_id.clone()).unwrap_or_default(),
            container_id: Some(
                status
                    .and_then(|status| status.container_id.clone())
                    .unwrap_or_default(),
            ),
            restart_count: Some(status.map(|status| status.restart_count).unwrap_or_default()),
            image: Some(status.map(|status| status.image.clone()).unwrap_or_default()),
            spec_image: None,
        }
    }
}

/// Current state of a container.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContainerNow {
    /// Image name from the container's status.
    pub image: String,
    /// Image ID from the container's status.
    pub image_id: String,
    /// Container ID; empty if it never started.
    pub container_id: String,
    /// Whether the container's startup and its probes have succeeded.
    pub ready: bool,
    /// Start time by its node's clock; `None` if it is not running.
    pub running_since: Option<Timestamp>,
}

impl ContainerNow {
    /// Reads a container's status.
    pub fn of(status: &ContainerStatus) -> Self {
        let running = status.state.as_ref().and_then(|state| state.running.as_ref());
        Self {
            image: status.image.clone(),
            image_id: status.image_id.clone(),
            container_id: status.container_id.clone().unwrap_or_default(),
            ready: status.ready,
            // A running container without a start time counts as started at the earliest time.
            running_since: running
                .map(|running| running.started_at.as_ref().map_or(Timestamp::MIN, |time| time.0)),
        }
    }
}

/// Progress of a container's update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// The container runs the new image and is ready.
    Done,
    /// Its status has to change first.
    Waiting,
    /// Only time is missing: check again at this time even if the status does not change.
    CheckAgainAt(Timestamp),
}

/// Determines whether a container whose image was written at `written_at` runs `wanted_image` at the time
/// `at`.
pub fn finished(
    mark: &ContainerMark,
    wanted_image: &str,
    now: &ContainerNow,
    written_at: Timestamp,
    at: Timestamp,
) -> Progress {
    let Some(since) = now
        .running_since
        .filter(|_| now.ready && !now.container_id.is_empty())
    else {
        return Progress::Waiting;
    };
    let named = shows(now, wanted_image);
    let other = another_image(mark, &now.image_id);
    let replaced = match &mark.container_id {
        Some(before) => *before != now.container_id,
        // A mark of the original operator has no container ID to reveal a restart; a container that started
        // after the write is new.
        None => named || other || since >= later(written_at, STATUS_SETTLE_TIME),
    };
    // Before a container's first start, its status names the image that it waits for.
    let had_started = mark.container_id.as_deref() != Some("");
    let old_name = mark
        .image
        .as_deref()
        .filter(|image| had_started && !image.is_empty());
    let shows_old = old_name.is_some_and(|old| shows(now, old));
    if !replaced {
        // The image was changed and changed back, and the kubelet has not noticed or is ending the container
        // right now.
        return if mark.spec_image.as_deref() == Some(wanted_image) {
            wait_until(later(written_at, STATUS_SETTLE_TIME), at)
        } else if named && shows_old {
            // The container may also have crashed. No kubelet keeps an outdated container this long.
            wait_until(later(written_at, KUBELET_DEADLINE), at)
        } else {
            Progress::Waiting
        };
    }
    // A name that the old container had too proves nothing, nor does its tag, which may have been pulled
    // again. A digest does.
    let digest = named && other && ImageName::read(wanted_image).digest.is_some();
    if digest || ((named || other) && !shows_old) {
        return Progress::Done;
    }
    // The same content under another name, or a name rewritten by a mirror: only time can tell.
    if later(since, CLOCK_SKEW) < written_at {
        return Progress::Waiting;
    }
    // A start time in the future comes from a wrong clock and is ignored.
    let started = if since > at { written_at } else { since };
    wait_until(later(started.max(written_at), STATUS_SETTLE_TIME), at)
}

fn wait_until(settled: Timestamp, at: Timestamp) -> Progress {
    if at >= settled {
        Progress::Done
    } else {
        Progress::CheckAgainAt(settled)
    }
}

/// Whether the status shows this image: by digest if the name has one, since its tag may have moved,
/// otherwise by name.
fn shows(now: &ContainerNow, image: &str) -> bool {
    let (image, shown) = (ImageName::read(image), ImageName::read(&now.image));
    match image.digest {
        Some(_) => image.digest == shown.digest || image.digest == digest_of_id(&now.image_id),
        None => !now.image.is_empty() && image.same_as(&shown),
    }
}

/// Whether the ID refers to another image than the mark's. One digest under two names is one image; an empty
/// ID proves nothing.
fn another_image(mark: &ContainerMark, image_id: &str) -> bool {
    if mark.image_id.is_empty() || image_id.is_empty() {
        return false;
    }
    match (digest_of_id(&mark.image_id), digest_of_id(image_id)) {
        (Some(before), Some(after)) => before != after,
        _ => mark.image_id != image_id,
    }
}

/// Returns `at + wait`, saturating at the maximum timestamp.
fn later(at: Timestamp, wait: SignedDuration) -> Timestamp {
    at.checked_add(wait).unwrap_or(Timestamp::MAX)
}
