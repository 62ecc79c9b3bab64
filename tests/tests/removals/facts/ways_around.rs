//! Writes that end a pod's containers or its guard without deleting or evicting it.

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::reviewer::{Reviewer, deletions, denial, updates};

#[tokio::test]
async fn a_deadline_or_another_image_is_an_update_and_no_deletion() {
    let reviewer = Reviewer::with(vec![deletions(), updates()]).await;
    reviewer.create_running_pod("game", json!({})).await;
    reviewer.clear();
    let patches = [
        json!({ "spec": { "activeDeadlineSeconds": 3600 } }),
        json!({ "spec": { "containers": [{ "name": "game", "image": "game:v2" }] } }),
    ];
    for patch in &patches {
        let patch = Patch::Strategic(patch);
        let pods = reviewer.pods();
        pods.patch("game", &PatchParams::default(), &patch).await.unwrap();
    }
    let is_spec = |review: &&Value| review["oldObject"]["spec"] != review["object"]["spec"];
    let reviews = reviewer.reviews();
    let changes: Vec<&Value> = reviews.iter().filter(is_spec).collect();
    assert_eq!(changes.len(), 2);
    assert!(changes.iter().all(|review| review["operation"] == "UPDATE"));
    reviewer.respond_with(|review| (review["operation"] == "UPDATE").then(|| denial(403, "guarded")));
    let sooner = Patch::Merge(json!({ "spec": { "activeDeadlineSeconds": 1 } }));
    let pods = reviewer.pods();
    let error = pods.patch("game", &PatchParams::default(), &sooner).await;
    assert!(
        error
            .unwrap_err()
            .to_string()
            .contains("denied the request: guarded")
    );
    reviewer.respond_with(|_| None);
}

/// A guard can therefore always be removed by a cluster administrator, and cannot protect itself.
#[tokio::test(flavor = "multi_thread")]
async fn webhook_configurations_are_never_reviewed() {
    let configurations = json!({
        "name": "configurations.example.com",
        "rules": [{
            "apiGroups": ["admissionregistration.k8s.io"], "apiVersions": ["*"],
            "operations": ["*"], "resources": ["*"],
        }],
    });
    let reviewer = Reviewer::with(vec![deletions(), configurations]).await;
    reviewer.respond_with(|_| Some(denial(403, "the guard stays")));
    let configuration = reviewer.configuration();
    let configuration = ["validatingwebhookconfiguration", configuration.as_str()];
    for command in [["annotate"].as_slice(), &["delete"]] {
        let mut arguments = [command, &configuration].concat();
        arguments.extend((command == ["annotate"]).then_some("room=7"));
        let (succeeded, output) = reviewer.kubectl(&arguments);
        assert!(succeeded, "{output}");
    }
    assert_eq!(reviewer.reviews(), Vec::<Value>::new());
}
