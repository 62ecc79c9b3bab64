//! Termination: when and why a pod ended for good.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1 as api;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::condition;

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
        let disruption =
            condition(Some(&status), "DisruptionTarget").filter(|condition| condition.status == "True");
        let has_reason = status.reason.as_ref().is_some_and(|reason| !reason.is_empty());
        let mut words = texts([&status.reason, &status.message]);
        if let Some(disruption) = disruption.filter(|_| words.is_empty()) {
            words = texts([&disruption.reason, &disruption.message]);
        }
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
            is_disruption: has_reason || disruption.is_some(),
        }
    }
}

/// Returns the texts that are not empty.
fn texts(all: [&Option<String>; 2]) -> Vec<&str> {
    let all = all.into_iter().flatten().map(String::as_str);
    all.filter(|text| !text.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_words_of_the_status_precede_those_of_the_disruption() {
        let condition =
            json!([{ "type": "DisruptionTarget", "status": "True", "reason": "Gone", "message": "no node" }]);
        let ended = json!([{ "name": "game", "image": "", "imageID": "", "ready": false, "restartCount": 0,
            "state": { "terminated": { "exitCode": 1, "reason": "Error" } } }]);
        for (status, why, is_disruption) in [
            (
                json!({ "reason": "Evicted", "message": "low" }),
                "Evicted: low",
                true,
            ),
            (
                json!({ "reason": "Evicted", "conditions": condition }),
                "Evicted",
                true,
            ),
            (json!({ "message": "low", "conditions": condition }), "low", true),
            (
                json!({ "reason": "", "conditions": condition }),
                "Gone: no node",
                true,
            ),
            (json!({ "message": "low" }), "low", false),
            (
                json!({ "containerStatuses": ended }),
                "a container exited with code 1 (Error)",
                false,
            ),
            (Value::Null, "no reason was reported", false),
        ] {
            let pod: api::Pod = serde_json::from_value(json!({ "metadata": {}, "status": status })).unwrap();
            let read = Termination::read(&pod);
            assert_eq!(
                (read.why.as_str(), read.is_disruption),
                (why, is_disruption),
                "{status}"
            );
        }
    }
}
