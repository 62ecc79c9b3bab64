//! While an updated pod is unhealthy, no update starts; a surplus pod still goes.

use serde_json::json;
use shared_api::Phase;

use super::*;
use crate::gate::Run;
use crate::samples::{self, finish, object, pod};

/// Pods whose selection is recorded while the `PostInplace` hook of the only updated pod has failed.
fn selected(replicas: usize) -> Vec<String> {
    let hook = json!({ "hook": { "templateName": "ask" } });
    let object = object(&[
        ("/spec/replicas", json!(replicas)),
        ("/spec/updateStrategy/maxUnavailable", json!(1)),
        ("/spec/preInplaceUpdateStrategy", hook.clone()),
        ("/spec/postInplaceUpdateStrategy", hook),
    ]);
    let since = "2024-01-01T00:01:00Z";
    let conditions = ["Ready", "InPlaceUpdateReady"]
        .map(|name| json!({ "type": name, "status": "True", "lastTransitionTime": since }));
    let record = json!({ "revision": "new", "lastContainerStatuses": {} }).to_string();
    let updated = pod(
        "fleet-new",
        &[
            ("/metadata/labels/controller-revision-hash", json!("new")),
            ("/metadata/annotations/inplace-update-state", json!(record)),
            ("/status/conditions", json!(conditions)),
        ],
    );
    let pods = [updated, pod("fleet-old", &[])];
    let decided = |runs: &[Run]| samples::decided(&object, &pods, runs);
    let plan = decided(&[]);
    let mut created = plan.actions.iter().filter_map(|action| match action {
        Action::CreateRun(new) if new.kind() == Some(crate::hook_kind::HookKind::PostInplace) => {
            Some(new.render())
        }
        _ => None,
    });
    let mut run = created.next().unwrap();
    finish(&mut run, "healthy", Phase::Failed, 0);
    let recorded = decided(&[Run::read(&run)]).actions.into_iter();
    let recorded = recorded.filter_map(|action| match action {
        Action::RecordSelection(pod, ..) => Some(pod.name),
        _ => None,
    });
    recorded.collect()
}

#[test]
fn a_surplus_pod_goes_while_updates_are_suspended() {
    assert_eq!(selected(1), ["fleet-old"], "replicas require it");
    assert!(selected(2).is_empty(), "it would be an update");
}
