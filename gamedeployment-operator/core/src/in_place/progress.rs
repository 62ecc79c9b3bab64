//! When a container that got a new image runs it.
//!
//! The kubelet replaces a container whose image changed in name, also when both names mean the same image; the new
//! one has a new containerID. That alone does not tell which image it runs: the old one may have crashed and come
//! back at the very moment of the write. Times are arguments; nothing here reads a clock.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ContainerStatus;
use serde::{Deserialize, Serialize};

use crate::image::{ImageName, digest_of_id};

/// How long a new container has to run until it counts as one of the new image, where nothing else tells. By then
/// the kubelet, which sees a write within a second, has ended a container of the old image.
pub const SETTLE: SignedDuration = SignedDuration::from_secs(5);

/// A container that started so long before the write is of the old image; no node's clock is that wrong.
const CLOCKS_DIFFER: SignedDuration = SignedDuration::from_secs(60);

/// A kubelet that works has replaced a container long before.
pub const NEVER_SO_LATE: SignedDuration = SignedDuration::from_secs(60);

/// What a container was before its image was written. Kept in an annotation of the pod, and written together with
/// the image: between a mark and a later write the container could crash and come back with another containerID.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerMark {
    /// The image's ID by the container's status; empty where the container had not started.
    #[serde(rename = "imageID")]
    pub image_id: String,
    /// The container's ID; empty where it had not started. `None` in a mark of the original operator.
    #[serde(rename = "containerID", skip_serializing_if = "Option::is_none")]
    pub container_id: Option<String>,
    /// How often it had restarted. For people; nothing is decided by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart_count: Option<i32>,
    /// The image's name by the container's status, which may be another than the pod's. For people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The image that the pod asked for when this container started, where that is known: when that is asked for
    /// again before the kubelet has ended it, it stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec_image: Option<String>,
}

impl ContainerMark {
    /// The mark of a container with this status; of one without a status: `None`.
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

/// What a container is now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContainerNow {
    /// The image's name by the container's status.
    pub image: String,
    /// The image's ID by the container's status.
    pub image_id: String,
    /// The container's ID; empty where it never started.
    pub container_id: String,
    /// Whether its probes and its startup are done.
    pub ready: bool,
    /// When it started, by its node's clock; `None` where it does not run.
    pub running_since: Option<Timestamp>,
}

impl ContainerNow {
    /// What a container's status says.
    pub fn of(status: &ContainerStatus) -> Self {
        let running = status.state.as_ref().and_then(|state| state.running.as_ref());
        Self {
            image: status.image.clone(),
            image_id: status.image_id.clone(),
            container_id: status.container_id.clone().unwrap_or_default(),
            ready: status.ready,
            // A container that runs and does not say since when has run since the earliest time.
            running_since: running
                .map(|running| running.started_at.as_ref().map_or(Timestamp::MIN, |time| time.0)),
        }
    }
}

/// How far a container is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// It runs the new image and is ready.
    Done,
    /// Its status has to change first.
    Waiting,
    /// Nothing but time is missing: look again then, also if the status stays as it is.
    CheckAgainAt(Timestamp),
}

/// Whether a container whose image was written at `written_at` runs `wanted_image` at the time `at`.
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
        // The original's mark cannot tell a restart; a container that started after the write is a new one.
        None => named || other || since >= later(written_at, SETTLE),
    };
    let old_name = mark.image.as_deref().filter(|image| !image.is_empty());
    let shows_old = old_name.is_some_and(|old| shows(now, old));
    if !replaced {
        // The image was changed and changed back, and the kubelet has not seen it, or is just ending the container.
        return if mark.spec_image.as_deref() == Some(wanted_image) {
            wait_until(later(written_at, SETTLE), at)
        } else if named && shows_old {
            // Or it crashed meanwhile. No kubelet leaves a container so long that is to be replaced.
            wait_until(later(written_at, NEVER_SO_LATE), at)
        } else {
            Progress::Waiting
        };
    }
    // A name that the old container had too proves nothing, nor does its tag, pulled anew; a digest does.
    let digest = named && other && ImageName::read(wanted_image).digest.is_some();
    if digest || ((named || other) && !shows_old) {
        return Progress::Done;
    }
    // Same content under another name, or a name that a mirror has changed: only time tells.
    if later(since, CLOCKS_DIFFER) < written_at {
        return Progress::Waiting;
    }
    // A start that is still to come is a clock that goes wrong, and says nothing.
    let started = if since > at { written_at } else { since };
    wait_until(later(started.max(written_at), SETTLE), at)
}

fn wait_until(settled: Timestamp, at: Timestamp) -> Progress {
    if at >= settled {
        Progress::Done
    } else {
        Progress::CheckAgainAt(settled)
    }
}

/// Whether the status shows this image: its digest where it has one (its tag may be another's by now), else its name.
fn shows(now: &ContainerNow, image: &str) -> bool {
    let (image, shown) = (ImageName::read(image), ImageName::read(&now.image));
    match image.digest {
        Some(_) => image.digest == shown.digest || image.digest == digest_of_id(&now.image_id),
        None => !now.image.is_empty() && image.same_as(&shown),
    }
}

/// Whether the ID is another than the mark's. One digest under two names is one image; an empty ID tells nothing.
fn another_image(mark: &ContainerMark, image_id: &str) -> bool {
    if mark.image_id.is_empty() || image_id.is_empty() {
        return false;
    }
    match (digest_of_id(&mark.image_id), digest_of_id(image_id)) {
        (Some(before), Some(after)) => before != after,
        _ => mark.image_id != image_id,
    }
}

/// `at + wait`, or the end of time where that cannot be written.
fn later(at: Timestamp, wait: SignedDuration) -> Timestamp {
    at.checked_add(wait).unwrap_or(Timestamp::MAX)
}
