//! Progress of a pod's in-place update. All of it is written to the pod, so a new leader can continue.
//!
//! 1. The condition `InPlaceUpdateReady` becomes False; its message names the revision (out of service,
//!    [`InPlacePhase::Grace`]).
//! 2. After `gracePeriodSeconds` one write changes images, metadata and the revision label, and records the
//!    containers' previous state in an annotation ([`InPlacePhase::Written`]).
//! 3. When every changed container shows that it runs the new image, the condition becomes True
//!    ([`InPlacePhase::Idle`]).

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use shared_api::names;

use crate::in_place::{ContainerMark, ContainerNow, KUBELET_DEADLINE, Progress, finished};
use crate::pod::{Container, ContainerState, Pod};

/// Record written to a pod along with its images. The original operator's format is accepted as well.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// Revision of the update.
    #[serde(default)]
    pub revision: String,
    /// Time of the write, if recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_timestamp: Option<Timestamp>,
    /// The changed containers in their state before the update.
    #[serde(default)]
    pub last_container_statuses: BTreeMap<String, ContainerMark>,
}

impl Record {
    /// Builds the record for changing these containers of a pod. Containers that an earlier update changed
    /// stay in it until they run their new image. Those that run it are left out: their change was approved
    /// only for that update.
    pub fn new<'a>(pod: &Pod, to: &str, changed: impl Iterator<Item = &'a String>, at: Timestamp) -> Self {
        let written = |record: &Self| record.revision == pod.revision();
        let open =
            |record: &Self| pod.is_out_of_service() || !pod.has_readiness_gate && !is_noted(record, pod);
        let before = record(pod).filter(|record| open(record) && written(record));
        let hot = hot_record(pod).filter(written);
        let known = |name: &str| {
            let mut records = [&before, &hot].into_iter().flatten();
            records.find_map(|record| record.last_container_statuses.get(name))
        };
        let new = changed.filter_map(|name| {
            let container = pod.containers.iter().find(|container| container.name == *name)?;
            Some((name.clone(), mark(container, known(name))))
        });
        let new: Vec<_> = new.collect();
        let hot = hot.filter(|_| matches!(hot_patch(pod, at), InPlacePhase::Written { .. }));
        let earlier = [before, hot].into_iter().flatten();
        let mut marks: BTreeMap<_, _> = earlier.flat_map(|record| record.awaited(pod, at)).collect();
        marks.extend(new);
        Self {
            revision: to.to_owned(),
            update_timestamp: Some(at),
            last_container_statuses: marks,
        }
    }

    /// Returns the marks of containers that have not run the written image yet. A container that ran it and
    /// crashed since is not awaited.
    fn awaited(self, pod: &Pod, now: Timestamp) -> BTreeMap<String, ContainerMark> {
        let written = self.update_timestamp.unwrap_or(Timestamp::MIN);
        let has_run = |name: &String, mark: &ContainerMark| {
            let container = pod.containers.iter().find(|container| container.name == *name);
            container.is_some_and(|container| {
                let then = as_now(container);
                let then = ContainerNow {
                    ready: true,
                    running_since: Some(then.running_since.map_or(written, |since| since.min(written))),
                    ..then
                };
                finished(mark, &container.image, &then, written, now) == Progress::Done
            })
        };
        let mut marks = self.last_container_statuses;
        marks.retain(|name, mark| !has_run(name, mark));
        marks
    }

    /// Returns an identifier that is unique among the pod's updates.
    pub fn mark(&self) -> String {
        let at = self.update_timestamp.unwrap_or(Timestamp::MIN);
        format!("{} {at}", self.revision)
    }

    /// Serializes the record as the annotation's value.
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    fn read(text: Option<&str>) -> Option<Self> {
        serde_json::from_str(text?).ok()
    }
}

/// Progress of a pod's in-place update.
#[derive(Debug, Clone, PartialEq)]
pub enum InPlacePhase {
    /// No update is in progress.
    Idle,
    /// The pod is out of service, or was never put into service, without an update.
    OutOfService,
    /// The pod is out of service for this revision; nothing has changed yet.
    Grace {
        /// Target revision.
        to: String,
        /// Time when the pod went out of service, from its condition.
        since: Option<Timestamp>,
    },
    /// The images are written; not all containers run them yet.
    Written {
        /// Time of the write, from the record on the pod.
        since: Option<Timestamp>,
        /// Time of the next check if no event arrives.
        look: Option<Timestamp>,
        /// Error that the kubelet reports.
        complaint: Option<String>,
    },
    /// All changed containers run their new images; the pod can be put back into service.
    Finished,
}

/// Determines the progress of this pod's in-place update.
pub fn in_place_phase(pod: &Pod, now: Timestamp) -> InPlacePhase {
    let Some(condition) = &pod.in_place else {
        // A new pod is not ready until the condition reports that no update is in progress.
        return if pod.has_readiness_gate {
            InPlacePhase::OutOfService
        } else {
            in_service(pod, now)
        };
    };
    if condition.ready {
        return in_service(pod, now);
    }
    if !is_target(&condition.target, pod) {
        return InPlacePhase::Grace {
            to: condition.target.clone(),
            since: condition.since,
        };
    }
    if is_half_written(pod) {
        return InPlacePhase::Grace {
            to: pod.revision().to_owned(),
            since: condition.since,
        };
    }
    match record(pod).filter(|record| record.revision == pod.revision()) {
        Some(record) => advance(pod, &record, now),
        None => InPlacePhase::OutOfService,
    }
}

/// Whether the original operator has started an update of this pod: it writes the label first and the images
/// later.
pub fn is_half_written(pod: &Pod) -> bool {
    pod.is_out_of_service() && pod.annotation(names::pod::IN_PLACE_GRACE).is_some()
}

/// Whether the condition refers to the pod's revision. The original operator's condition names no revision.
fn is_target(target: &str, pod: &Pod) -> bool {
    target.is_empty() || target == pod.revision()
}

/// Returns the progress of a pod in service. Pods without the readiness gate are updated while in service.
fn in_service(pod: &Pod, now: Timestamp) -> InPlacePhase {
    let written = record(pod).filter(|record| {
        !pod.has_readiness_gate && record.revision == pod.revision() && !is_noted(record, pod)
    });
    match written {
        Some(record) => advance(pod, &record, now),
        None => hot_patch(pod, now),
    }
}

/// Whether the pod records that this update is finished. Older releases recorded only the time.
fn is_noted(record: &Record, pod: &Pod) -> bool {
    let Some(condition) = pod.in_place.as_ref().filter(|condition| condition.ready) else {
        return false;
    };
    if condition.target.is_empty() {
        return condition.since >= record.update_timestamp;
    }
    condition.target == record.mark()
}

fn hot_patch(pod: &Pod, now: Timestamp) -> InPlacePhase {
    let Some(record) = hot_record(pod).filter(|record| record.revision == pod.revision()) else {
        return InPlacePhase::Idle;
    };
    let phase = advance(pod, &record, now);
    // Nothing records the end of a hot patch: a pod that has served since is not being updated.
    if phase == InPlacePhase::Finished || has_served_since(pod, &record, now) {
        return InPlacePhase::Idle;
    }
    phase
}

/// Whether an unready pod was ready with its new containers: it became unready after they had started, or
/// long after the write.
fn has_served_since(pod: &Pod, record: &Record, now: Timestamp) -> bool {
    let Some(unready) = pod.unready_since else {
        return false;
    };
    let written = record.update_timestamp.unwrap_or(Timestamp::MIN);
    let long_after = written
        .checked_add(KUBELET_DEADLINE)
        .is_ok_and(|late| unready > late);
    let with_new_ones = || {
        record.last_container_statuses.iter().all(|(name, mark)| {
            let container = pod.containers.iter().find(|container| container.name == *name);
            container.is_some_and(|container| {
                let then = ContainerNow {
                    ready: true,
                    ..as_now(container)
                };
                then.running_since.is_some_and(|since| unready > since)
                    && finished(mark, &container.image, &then, written, now) == Progress::Done
            })
        })
    };
    long_after || with_new_ones()
}

fn advance(pod: &Pod, record: &Record, now: Timestamp) -> InPlacePhase {
    let written = record.update_timestamp.unwrap_or(Timestamp::MIN);
    let mut look: Option<Timestamp> = None;
    let mut waiting = false;
    for (name, mark) in &record.last_container_statuses {
        let Some(container) = pod.containers.iter().find(|container| container.name == *name) else {
            continue;
        };
        match finished(mark, &container.image, &as_now(container), written, now) {
            Progress::Done => {}
            Progress::Waiting => waiting = true,
            Progress::CheckAgainAt(at) => {
                waiting = true;
                look = Some(look.map_or(at, |known| known.min(at)));
            }
        }
    }
    if waiting {
        let complaint = pod.containers.iter().find_map(Container::complaint);
        InPlacePhase::Written {
            since: record.update_timestamp,
            look,
            complaint,
        }
    } else {
        InPlacePhase::Finished
    }
}

/// Whether an update of the pod to `to` was approved and started, and this is its next step: the pod is out
/// of service for this revision, or images were written and only containers that are still being changed
/// change again.
pub fn is_under_way(pod: &Pod, to: &str, modified: &[String]) -> bool {
    if !pod.is_out_of_service() {
        return false;
    }
    let target = pod
        .in_place
        .as_ref()
        .map_or("", |condition| condition.target.as_str());
    let record = record(pod).filter(|record| record.revision == pod.revision());
    let mark = |record: &Option<Record>, name| record.as_ref()?.last_container_statuses.get(name).cloned();
    // A container changed by a hot patch is awaited along with the update, but its restart was not approved.
    let hot = hot_record(pod);
    let changing = |name| mark(&record, name).is_some_and(|its| mark(&hot, name).as_ref() != Some(&its));
    if target == to || is_half_written(pod) && pod.revision() == to {
        return true;
    }
    is_target(target, pod) && record.is_some() && modified.iter().all(changing)
}

/// Reads the record of the last hot patch, if any.
fn hot_record(pod: &Pod) -> Option<Record> {
    Record::read(pod.annotation(names::pod::HOT_PATCH_STATE))
}

/// Reads the record of the last in-place update, if any.
pub fn record(pod: &Pod) -> Option<Record> {
    Record::read(pod.annotation(names::pod::IN_PLACE_STATE))
}

/// Builds the mark of a container. A container not replaced since its last mark keeps the image of that mark.
fn mark(container: &Container, before: Option<&ContainerMark>) -> ContainerMark {
    let same = before.filter(|mark| mark.container_id.as_deref() == Some(&container.container_id));
    ContainerMark {
        spec_image: match same {
            Some(mark) => mark.spec_image.clone(),
            None => Some(container.image.clone()),
        },
        image: Some(container.running_image.clone()),
        image_id: container.image_id.clone(),
        container_id: Some(container.container_id.clone()),
        restart_count: Some(container.restarts),
    }
}

fn as_now(container: &Container) -> ContainerNow {
    ContainerNow {
        image: container.running_image.clone(),
        image_id: container.image_id.clone(),
        container_id: container.container_id.clone(),
        ready: container.ready,
        running_since: match &container.state {
            ContainerState::Running { since } => Some(since.unwrap_or(Timestamp::MIN)),
            ContainerState::Unknown | ContainerState::Waiting { .. } | ContainerState::Terminated => None,
        },
    }
}

#[cfg(test)]
mod tests;
