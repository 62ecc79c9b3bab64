//! Notices in tests: a template that calls the game server of the pod, and the calls that the server received.

use serde_json::{Value, json};

use super::{Fleet, hooked};
use crate::merge;

/// Path of the game servers that the notices of [`finish`] call.
pub const FINISH: &str = "/finish";

/// Builds a notice that calls the pod itself once. Any response with a status of 2xx is a success.
pub fn finish() -> Value {
    let url = format!("http://{{{{ args.PodIP }}}}:9091{FINISH}");
    json!({
        "args": [{ "name": "PodIP" }],
        "metrics": [{
            "name": "finish", "consecutiveErrorLimit": 0,
            "provider": { "web": { "url": url, "method": "POST" } }
        }]
    })
}

/// Builds the part of a spec that runs the templates of a hook and of a notice before a pod is deleted.
pub fn noticed(hook: &str, notice: &str) -> Value {
    let mut spec = hooked(hook);
    let notice = json!({ "notice": { "templateName": notice } });
    merge(&mut spec["preDeleteUpdateStrategy"], notice);
    spec
}

impl Fleet<'_> {
    /// Returns the number of notices that a pod has received.
    pub fn notices(&self, pod: &str) -> usize {
        self.nodes.pod(pod).counts(FINISH).received
    }

    /// Asserts that the servers of the current pods have received no request.
    ///
    /// # Panics
    /// If one has.
    pub async fn assert_no_requests(&self) {
        for pod in self.names().await {
            let requests = self.nodes.pod(&pod).requests();
            assert!(requests.is_empty(), "{pod}: {requests:?}");
        }
    }

    /// Asserts that a pod received one notice, and after it requests of its hook, but nothing else.
    ///
    /// # Panics
    /// If it did not.
    #[track_caller]
    pub fn assert_noticed_first(&self, pod: &str) {
        let requests = self.nodes.pod(pod).requests();
        let calls = requests
            .iter()
            .map(|one| (one.method.as_str(), one.path.as_str()));
        let calls: Vec<(&str, &str)> = calls.collect();
        let is_right = calls.split_first().is_some_and(|(first, others)| {
            let of_hook = |call: &(&str, &str)| *call == ("GET", "/");
            *first == ("POST", FINISH) && !others.is_empty() && others.iter().all(of_hook)
        });
        assert!(is_right, "{pod}: {calls:?}");
    }
}
