//! Names of pods whose removal was requested. `kubectl drain` repeats an eviction by the pod's name, and would evict a
//! successor of that name, so no new pod gets the name for some time.

use std::collections::HashMap;
use std::time::Duration;

use gamedeployment_core::pod::Pod;
use shared_api::names::pod::REMOVAL_REQUESTED;

use super::sweep::Sweep;
use crate::NamespacedName;

/// Time for which a name is not used again, from the last event of the pod with a request.
const RESERVED_FOR: Duration = Duration::from_mins(15);

/// Names of pods with removal requests, and the times of their last events.
#[derive(Debug, Default)]
pub(super) struct RequestedNames {
    seen: HashMap<NamespacedName, Duration>,
    sweep: Sweep,
}

impl RequestedNames {
    /// Reserves the name of a pod with removal requests.
    pub(super) fn observe(&mut self, key: &NamespacedName, pod: &Pod, now: Duration) {
        if pod.annotation(REMOVAL_REQUESTED).is_none() {
            return;
        }
        self.seen.insert(key.clone(), now);
        if self.sweep.is_due(self.seen.len()) {
            self.seen.retain(|_, at| is_reserved(*at, now));
            self.sweep.done(self.seen.len());
        }
    }

    /// Returns whether a new pod must not get this name.
    pub(super) fn contains(&self, key: &NamespacedName, now: Duration) -> bool {
        self.seen.get(key).is_some_and(|at| is_reserved(*at, now))
    }
}

fn is_reserved(at: Duration, now: Duration) -> bool {
    now.saturating_sub(at) < RESERVED_FOR
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1 as api;
    use serde_json::json;

    use super::*;

    fn key(name: &str) -> NamespacedName {
        ("games".to_owned(), name.to_owned())
    }

    fn pod(annotations: &serde_json::Value) -> Pod {
        let pod =
            json!({ "metadata": { "name": "a", "annotations": annotations }, "spec": { "containers": [] } });
        let pod: api::Pod = serde_json::from_value(pod).unwrap();
        Pod::read(&pod)
    }

    #[test]
    fn the_name_of_a_pod_with_requests_is_reserved_for_some_time() {
        let mut names = RequestedNames::default();
        let requested = pod(&json!({ REMOVAL_REQUESTED: "{\"v\":1,\"requests\":[]}" }));
        let at = Duration::from_secs(1000);
        names.observe(&key("a"), &requested, at);
        names.observe(&key("b"), &pod(&json!({})), at);
        assert!(names.contains(&key("a"), at) && !names.contains(&key("b"), at));
        let later = at + RESERVED_FOR;
        assert!(!names.contains(&key("a"), later));
        for number in 0..1000 {
            names.observe(&key(&number.to_string()), &requested, later);
        }
        assert!(!names.seen.contains_key(&key("a")), "expired names are dropped");
        assert_eq!(names.seen.len(), 1000);
    }
}
