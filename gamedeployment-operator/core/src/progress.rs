//! Where an in-place update of one pod stands. All of it is written on the pod: whoever takes over goes on.
//!
//! 1. The condition `InPlaceUpdateReady` becomes False; its message names the revision (out of service,
//!    [`InPlacePhase::Grace`]).
//! 2. After `gracePeriodSeconds` one write changes images, metadata and the revision's label, and records in an
//!    annotation what the containers were before ([`InPlacePhase::Written`]).
//! 3. When every changed container shows that it runs the new image, the condition becomes True
//!    ([`InPlacePhase::Idle`]).

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use shared_api::names;

use crate::in_place::{ContainerMark, ContainerNow, NEVER_SO_LATE, Progress, finished};
use crate::pod::{Container, Pod, State};

/// What is recorded on a pod when its images are written. The original's form reads as well.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// The revision that was written.
    #[serde(default)]
    pub revision: String,
    /// When it was written, if the record says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_timestamp: Option<Timestamp>,
    /// The containers that it changes, as they were before.
    #[serde(default)]
    pub last_container_statuses: BTreeMap<String, ContainerMark>,
}

impl Record {
    /// What is to be recorded when these containers of a pod are changed. What an earlier update has changed and that
    /// does not run yet stays to be waited for; what runs was approved for that update alone.
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

    /// The marks of the containers that have not run what was written. One that has, and crashed since, is not awaited.
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

    /// What names this update among those of the pod.
    pub fn mark(&self) -> String {
        let at = self.update_timestamp.unwrap_or(Timestamp::MIN);
        format!("{} {at}", self.revision)
    }

    /// The annotation's text.
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    fn read(text: Option<&str>) -> Option<Self> {
        serde_json::from_str(text?).ok()
    }
}

/// Where an in-place update of a pod stands.
#[derive(Debug, Clone, PartialEq)]
pub enum InPlacePhase {
    /// None is going on.
    Idle,
    /// The pod is out of service, or was never put into it, for no update at all.
    OutOfService,
    /// Out of service for this revision; nothing is changed yet.
    Grace {
        /// The revision that it is out of service for.
        to: String,
        /// When the pod went out of service, as its condition says.
        since: Option<Timestamp>,
    },
    /// Images are written; the containers do not all run them yet.
    Written {
        /// When they were written, as the record on the pod says.
        since: Option<Timestamp>,
        /// When to look again though nothing happens.
        look: Option<Timestamp>,
        /// What the kubelet complains of.
        complaint: Option<String>,
    },
    /// Everything runs; the pod is to be put back into service.
    Finished,
}

/// Where an in-place update of this pod stands.
pub fn in_place_phase(pod: &Pod, now: Timestamp) -> InPlacePhase {
    let Some(condition) = &pod.in_place else {
        // A fresh pod is not ready before somebody says that no update is going on.
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

/// Whether the original has begun an update of this pod: it puts the label first and the images later.
pub fn is_half_written(pod: &Pod) -> bool {
    pod.is_out_of_service() && pod.annotation(names::pod::IN_PLACE_GRACE).is_some()
}

/// Whether the condition speaks of the revision that the pod has; the original's condition speaks of none.
fn is_target(target: &str, pod: &Pod) -> bool {
    target.is_empty() || target == pod.revision()
}

/// A pod without the readiness gate is updated while it is in service.
fn in_service(pod: &Pod, now: Timestamp) -> InPlacePhase {
    let written = record(pod).filter(|record| {
        !pod.has_readiness_gate && record.revision == pod.revision() && !is_noted(record, pod)
    });
    match written {
        Some(record) => advance(pod, &record, now),
        None => hot_patch(pod, now),
    }
}

/// Whether it is noted on the pod that this update is finished. Older releases noted only when one was.
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
    match hot_record(pod).filter(|record| record.revision == pod.revision()) {
        Some(record) => match advance(pod, &record, now) {
            InPlacePhase::Finished => InPlacePhase::Idle,
            // Nobody notes that a hot patch is finished: a pod that has served since is no part of an update.
            _ if has_served_since(pod, &record, now) => InPlacePhase::Idle,
            other => other,
        },
        None => InPlacePhase::Idle,
    }
}

/// Whether a pod that is not ready was so with its new containers.
fn has_served_since(pod: &Pod, record: &Record, now: Timestamp) -> bool {
    let Some(unready) = pod.unready_since else {
        return false;
    };
    let written = record.update_timestamp.unwrap_or(Timestamp::MIN);
    let long_after = written
        .checked_add(NEVER_SO_LATE)
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

/// Whether an update of the pod to `to` was approved and begun, and this is its next step: the pod is out of service
/// for that very revision, or images were written and only containers that are being changed anyway change again.
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
    // What a hot patch changes is awaited with the update, and nobody has approved its restart.
    let hot = hot_record(pod);
    let changing = |name| mark(&record, name).is_some_and(|its| mark(&hot, name).as_ref() != Some(&its));
    if target == to || is_half_written(pod) && pod.revision() == to {
        return true;
    }
    is_target(target, pod) && record.is_some() && modified.iter().all(changing)
}

/// The hot patch that was written last, if one was.
fn hot_record(pod: &Pod) -> Option<Record> {
    Record::read(pod.annotation(names::pod::HOT_PATCH_STATE))
}

/// The update that was written last, if one was.
pub fn record(pod: &Pod) -> Option<Record> {
    Record::read(pod.annotation(names::pod::IN_PLACE_STATE))
}

/// The mark of a container. One that has not been replaced since it was marked last is still of the image before that.
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
            State::Running { since } => Some(since.unwrap_or(Timestamp::MIN)),
            State::Unknown | State::Waiting { .. } | State::Terminated => None,
        },
    }
}

#[cfg(test)]
mod tests;
