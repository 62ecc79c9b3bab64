//! Termination: when and why a pod ended for good.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1 as api;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// A pod that ended within this time of its start counts as ended at once.
pub const CRASH_WINDOW: SignedDuration = SignedDuration::from_secs(60);

/// End of a pod whose containers have ended for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Termination {
    /// End time, as far as reported.
    pub at: Timestamp,
    /// Whether the pod ended within [`CRASH_WINDOW`] of its start, or never started.
    pub within_crash_window: bool,
    /// Reason in the kubelet's words.
    pub why: String,
    /// Whether the kubelet or the control plane ended the pod, rather than its containers.
    pub is_disruption: bool,
}

impl Termination {
    pub(super) fn read(pod: &api::Pod) -> Self {
        let status = pod.status.clone().unwrap_or_default();
        let started = status.start_time.as_ref().map(|Time(at)| *at);
        let created = pod.metadata.creation_timestamp.as_ref().map(|Time(at)| *at);
        let containers = status.container_statuses.iter().flatten();
        let ended = containers.filter_map(|container| container.state.as_ref()?.terminated.as_ref());
        let conditions = status.conditions.iter().flatten();
        let changed = conditions.filter_map(|condition| condition.last_transition_time.as_ref());
        let finished = ended.clone().filter_map(|ended| ended.finished_at.as_ref());
        let times = finished.chain(changed).map(|Time(at)| *at);
        let at = times
            .chain(started)
            .chain(created)
            .max()
            .unwrap_or(Timestamp::MIN);
        let disrupted = status
            .conditions
            .iter()
            .flatten()
            .find(|condition| condition.type_ == "DisruptionTarget" && condition.status == "True");
        let words = [status.reason.as_ref(), status.message.as_ref()];
        let words_of_condition = [
            disrupted.and_then(|one| one.reason.as_ref()),
            disrupted.and_then(|one| one.message.as_ref()),
        ];
        let has_reason = words[0].is_some_and(|reason| !reason.is_empty());
        let words = if has_reason { words } else { words_of_condition };
        let words = words.into_iter().flatten().filter(|text| !text.is_empty());
        let words: Vec<&str> = words.map(String::as_str).collect();
        let why = if words.is_empty() {
            let mut ended = ended.map(|ended| {
                let reason = ended.reason.as_deref().unwrap_or("no reason");
                format!("a container exited with code {} ({reason})", ended.exit_code)
            });
            ended
                .next()
                .unwrap_or_else(|| "no reason was reported".to_owned())
        } else {
            words.join(": ")
        };
        Self {
            at,
            within_crash_window: started.is_none_or(|started| at.duration_since(started) < CRASH_WINDOW),
            why,
            is_disruption: has_reason || disrupted.is_some(),
        }
    }
}
