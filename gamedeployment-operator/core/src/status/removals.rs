//! Removal requests in the status.

use std::collections::BTreeMap;

use jiff::Timestamp;
use shared_api::game_deployment::RemovalRequestStatus;
use shared_api::removal_request::UnrecordedType;
use shared_api::time::Time;

use super::Findings;
use super::waiting::Waiting;
use crate::facts::{Facts, PodFacts};
use crate::plan::PodGroup;

/// Maximum number of entries in the status; `removalPendingReplicas` counts all pods. Each pod has at least one entry, if
/// there is room.
const MAX_ENTRIES: usize = 100;

/// A valid request.
struct Request<'f, 'a> {
    time: Time,
    pod: &'f PodFacts<'a>,
    requester: &'f str,
    type_: &'static str,
}

impl Request<'_, '_> {
    fn order(&self) -> (Time, &str, &str) {
        (self.time, self.pod.pod.name.as_str(), self.requester)
    }
}

/// Times of unrecorded requests in the last status: nothing else records when a node was cordoned.
struct FirstTimes<'f> {
    /// By the UID of the pod and the type of the request.
    listed: BTreeMap<(&'f str, &'f str), Time>,
    now: Timestamp,
}

impl<'f> FirstTimes<'f> {
    fn read(facts: &'f Facts<'_>) -> Self {
        let status = facts.view.object.status.as_ref();
        let entries = status.into_iter().flat_map(|status| &status.removal_requests);
        let unrecorded = entries.filter(|entry| UnrecordedType::named(&entry.type_).is_some());
        let time = |entry: &'f RemovalRequestStatus| {
            ((entry.pod_uid.as_str(), entry.type_.as_str()), entry.request_time)
        };
        Self {
            listed: unrecorded.map(time).collect(),
            now: facts.now,
        }
    }

    fn of(&self, pod: &PodFacts<'_>, type_: UnrecordedType) -> Time {
        let listed = self.listed.get(&(pod.pod.uid.as_str(), type_.as_str()));
        listed.copied().unwrap_or_else(|| Time::from(self.now))
    }
}

/// Returns the valid requests of a pod.
fn of_pod<'f, 'a>(pod: &'f PodFacts<'a>, first: &FirstTimes<'_>) -> Vec<Request<'f, 'a>> {
    let Some(removal) = pod.removal.as_deref() else {
        return Vec::new();
    };
    let recorded = removal.recorded.iter().map(|request| Request {
        time: request.request_time,
        pod,
        requester: &request.requester,
        type_: request.type_.as_str(),
    });
    let by_node = removal.by_node.as_ref().map(|request| Request {
        time: request
            .since
            .map_or_else(|| first.of(pod, request.type_), Time::from),
        pod,
        requester: &request.requester,
        type_: request.type_.as_str(),
    });
    let type_ = UnrecordedType::EvictionRequest;
    let by_eviction = removal.by_eviction.iter().flat_map(|by| {
        let time = by.since.map_or_else(|| first.of(pod, type_), Time::from);
        by.requesters.iter().map(move |requester| Request {
            time,
            pod,
            requester,
            type_: type_.as_str(),
        })
    });
    recorded.chain(by_node).chain(by_eviction).collect()
}

/// Returns the pods with a valid request, and the time of the oldest one.
pub(super) fn group(facts: &Facts<'_>) -> PodGroup {
    let first = FirstTimes::read(facts);
    let mut group = PodGroup::default();
    for pod in &facts.pods {
        let requests = of_pod(pod, &first);
        let oldest = requests.iter().map(|request| request.time.timestamp()).min();
        if oldest.is_some() {
            group.join(oldest);
        }
    }
    group
}

/// Returns the valid requests, oldest first. If there are too many, the later ones of pods with several are left out
/// first: the reason why a pod stays is in each of its entries.
pub(super) fn entries(
    facts: &Facts<'_>,
    findings: &Findings<'_>,
    waiting: &Waiting<'_>,
) -> Vec<RemovalRequestStatus> {
    let first = FirstTimes::read(facts);
    let mut requests = Vec::new();
    for pod in &facts.pods {
        let mut of_pod = of_pod(pod, &first);
        of_pod.sort_by(|one, other| one.order().cmp(&other.order()));
        requests.extend(of_pod.into_iter().enumerate());
    }
    requests.sort_by(|(place, one), (other_place, other)| {
        (*place > 0, one.order()).cmp(&(*other_place > 0, other.order()))
    });
    requests.truncate(MAX_ENTRIES);
    let mut requests: Vec<_> = requests.into_iter().map(|(_, request)| request).collect();
    requests.sort_by(|one, other| one.order().cmp(&other.order()));
    let entry = |request: Request<'_, '_>| RemovalRequestStatus {
        pod_name: request.pod.pod.name.clone(),
        pod_uid: request.pod.pod.uid.clone(),
        requester: request.requester.to_owned(),
        type_: request.type_.to_owned(),
        request_time: request.time,
        message: message(request.pod, findings, waiting),
    };
    requests.into_iter().map(entry).collect()
}

/// Returns why a pod whose removal is requested has not been deleted yet.
fn message(pod: &PodFacts<'_>, findings: &Findings<'_>, waiting: &Waiting<'_>) -> Option<String> {
    let mut hooks = waiting.entries.iter();
    if let Some(entry) = hooks.find(|entry| entry.pod.uid == pod.pod.uid) {
        return entry.condition.message.clone();
    }
    let mut selected = findings.pods.iter();
    let selected = selected.find(|selected| selected.facts.pod.uid == pod.pod.uid)?;
    (!selected.granted).then(|| {
        "waiting until enough other pods are available (spec.updateStrategy.maxUnavailable)".to_owned()
    })
}

#[cfg(test)]
mod tests;
