//! Removal requests that have expired since the last status.

use std::collections::BTreeMap;

use shared_api::GameDeploymentStatus;
use shared_api::names::pod::REMOVAL_REQUESTED;
use shared_api::reason::WorkloadReason;
use shared_api::removal_request::RemovalRequests;

use super::Findings;
use crate::facts::{Facts, PodFacts};
use crate::gate::PodRef;
use crate::plan::Warning;
use crate::plural::form;

/// Returns a warning for each pod whose last requests have expired since the old status, unless it is selected for
/// another reason.
pub(super) fn warnings(
    facts: &Facts<'_>,
    findings: &Findings<'_>,
    old: &GameDeploymentStatus,
) -> Vec<Warning> {
    let mut listed: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for entry in &old.removal_requests {
        listed.entry(&entry.pod_uid).or_default().push(&entry.requester);
    }
    if listed.is_empty() {
        return Vec::new();
    }
    let warning = |pod: &PodFacts<'_>| {
        let requesters = listed.get(pod.pod.uid.as_str())?;
        let mut selected = findings.pods.iter();
        if selected.any(|selected| selected.facts.pod.uid == pod.pod.uid) {
            return None;
        }
        let recorded = RemovalRequests::parse(pod.pod.annotation(REMOVAL_REQUESTED)?).ok()?;
        let valid_for = facts.workload.disruption.request_expiration;
        let is_expired = |requester: &&&str| {
            let request = recorded.of(requester);
            request.is_some_and(|request| request.expires(valid_for) <= facts.now)
        };
        let expired: Vec<&str> = requesters.iter().filter(is_expired).copied().collect();
        let fit = |one, many| form(expired.len(), one, many);
        let message = format!(
            "the removal {} of {} {} not repeated in time and {} expired; pod {} is kept",
            fit("request", "requests"),
            expired.join(", "),
            fit("was", "were"),
            fit("has", "have"),
            pod.pod.name
        );
        (!expired.is_empty()).then(|| Warning {
            pod: Some(PodRef::of(pod.pod)),
            reason: WorkloadReason::RemovalRequestExpired,
            message,
        })
    };
    facts.pods.iter().filter_map(warning).collect()
}

#[cfg(test)]
mod tests;
