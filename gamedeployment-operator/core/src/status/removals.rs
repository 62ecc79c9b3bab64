//! Removal requests in the status.

use shared_api::game_deployment::RemovalRequestStatus;
use shared_api::removal_request::RemovalRequest;

use super::Findings;
use super::waiting::Waiting;
use crate::facts::{Facts, PodFacts};
use crate::plan::PodGroup;
use crate::removal::Removal;

/// Maximum number of entries in the status; `removalPendingReplicas` counts all pods.
const MAX_ENTRIES: usize = 100;

/// Returns the pods with a valid request, and the time of the oldest one.
pub(super) fn group(facts: &Facts<'_>) -> PodGroup {
    let mut group = PodGroup::default();
    for removal in facts.pods.iter().filter_map(|pod| pod.removal.as_deref()) {
        let requests = removal.requests().iter();
        let first = requests.map(|request| request.request_time.timestamp()).min();
        if first.is_some() {
            group.join(first);
        }
    }
    group
}

/// Returns the valid requests, oldest first.
pub(super) fn entries(
    facts: &Facts<'_>,
    findings: &Findings<'_>,
    waiting: &Waiting<'_>,
) -> Vec<RemovalRequestStatus> {
    let mut requests: Vec<_> = (facts.pods.iter())
        .flat_map(|pod| {
            let requests = pod.removal.as_deref().map_or(&[][..], Removal::requests);
            requests.iter().map(move |request| (pod, request))
        })
        .collect();
    requests.sort_by_key(|(pod, request)| (request.request_time, &pod.pod.name, &request.requester));
    requests.truncate(MAX_ENTRIES);
    let entry = |(pod, request): (&PodFacts<'_>, &RemovalRequest)| RemovalRequestStatus {
        pod_name: pod.pod.name.clone(),
        pod_uid: pod.pod.uid.clone(),
        requester: request.requester.clone(),
        type_: request.type_.as_str().to_owned(),
        request_time: request.request_time,
        message: message(pod, findings, waiting),
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
