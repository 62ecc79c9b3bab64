//! The size of the status: anyone who may write the status of HookRuns chooses their messages, and anyone who may patch
//! pods their removal requests.

use serde_json::json;
use shared_api::Phase;
use shared_api::names::pod::REMOVAL_REQUESTED;
use shared_api::removal_request::{MAX_REQUESTER_BYTES, MAX_REQUESTS, RemovalRequests, RemovalType};

use super::*;
use crate::gate::Run;
use crate::samples::{self, finish, object, pod, pod_to_delete};

/// The API server stores at most 1.5 MiB, with everything else.
const LIMIT: usize = 1 << 20;

#[test]
fn the_status_stays_small_whatever_hooks_say() {
    let hook = json!({ "hook": { "templateName": "ask" } });
    let mut object = object(&[
        ("/spec/replicas", json!(150)),
        ("/spec/updateStrategy/maxUnavailable", json!("100%")),
        ("/spec/updateStrategy/type", json!("InplaceUpdate")),
        ("/spec/preDeleteUpdateStrategy", hook.clone()),
        ("/spec/preInplaceUpdateStrategy", hook),
        ("/spec/disruption/policy", json!("Ask")),
    ]);
    let mut requests = RemovalRequests::default();
    for requester in 0..MAX_REQUESTS {
        let requester = format!("{requester}{}", "\"".repeat(MAX_REQUESTER_BYTES));
        let recorded = requests.record(&requester, RemovalType::Eviction, samples::now());
        recorded.unwrap();
    }
    let pods = (0..300).map(|at| {
        let name = format!("{}-{at}", "n".repeat(200));
        if at < 150 {
            let mut pod = pod_to_delete(&name);
            pod.annotations
                .insert(REMOVAL_REQUESTED.to_owned(), requests.text());
            pod
        } else {
            pod(&name, &[])
        }
    });
    let pods: Vec<Pod> = pods.collect();
    for letter in ["\"", "\\", "\u{1}", "\u{202e}", "é", "🎮"] {
        let plan = samples::decided(&object, &pods, &[]);
        let runs = samples::created_runs(plan).map(|mut run| {
            finish(&mut run, "healthy", Phase::Failed, 0);
            run.status.as_mut().unwrap().message = Some(letter.repeat(16 * 1024));
            Run::read(&run)
        });
        let runs: Vec<Run> = runs.collect();
        assert_eq!(runs.len(), 300);
        let status = samples::decided(&object, &pods, &runs).status.unwrap();
        let entries = [
            &status.pre_delete_hook_condition,
            &status.pre_inplace_hook_condition,
        ];
        assert_eq!(entries.map(Vec::len), [100, 100]);
        assert_eq!(status.removal_requests.len(), 100);
        let blocked = status.conditions.iter();
        let blocked = blocked.filter(|found| found.type_.ends_with("Blocked"));
        let messages: Vec<&str> = blocked.map(|found| found.message.as_str()).collect();
        assert_eq!(messages.len(), 2, "{messages:?}");
        for message in messages {
            assert!(
                message.ends_with("where UID is the pod's metadata.uid"),
                "the remedy is cut off: {message}"
            );
        }
        let bytes = serde_json::to_vec(&status).unwrap().len();
        assert!(bytes < LIMIT, "{letter:?}: {bytes}");
        object.status = None;
    }
}
