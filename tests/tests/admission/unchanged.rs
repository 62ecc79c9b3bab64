//! Existing errors block no change that does not make them worse.

use kube::api::{Api, Patch, PatchParams};
use operator_tests::assert_has;
use operator_tests::fleet::{GAME, game};
use serde_json::json;
use shared_api::GameDeployment;

use crate::installation::{Installation, bad_template};
use crate::shared;

/// Creates a namespace with a bad GameDeployment and a bad HookTemplate, then installs the component.
async fn with_bad_objects() -> (Installation<'static>, crate::installation::Replica) {
    let installation = Installation::new(shared().await).await;
    let mut bad = game(1, json!({ "minReadySeconds": -3 }));
    bad["metadata"]["finalizers"] = json!(["example.com/test"]);
    installation.must(&["create", "--filename", "-"], &bad.to_string());
    installation.must(&["create", "--filename", "-"], &bad_template("bad").to_string());
    let replica = installation.replica(&[]);
    installation.configure(replica.tls, &json!({})).await;
    replica.ready().await;
    installation.asked().await;
    (installation, replica)
}

const KNOWN: &str = "spec.minReadySeconds: -3 must be greater than or equal to 0";

#[tokio::test]
async fn an_update_is_refused_for_what_it_makes_wrong_alone() {
    let (installation, _replica) = with_bad_objects().await;
    let said = installation.must(&["label", "gamedeployment", GAME, "a=b"], "");
    assert!(
        said.contains(&format!("Warning: pre-existing problem, allowed: {KNOWN}")),
        "{said}"
    );
    let said = installation.must(&["label", "hooktemplate", "bad", "a=b"], "");
    assert_has(&said, "metrics[0].successCondition");
    let patch = |spec: serde_json::Value| {
        let patch = json!({ "spec": spec }).to_string();
        ["patch", "gamedeployment", GAME, "--type=merge", "--patch", &patch].map(str::to_owned)
    };
    let worse = patch(json!({ "revisionHistoryLimit": -1 }));
    let words = installation.refused(&worse.each_ref().map(String::as_str), "");
    assert_eq!(
        words,
        "spec.revisionHistoryLimit: -1 must be greater than or equal to 0"
    );
    let other = patch(json!({ "minReadySeconds": -4 }));
    let words = installation.refused(&other.each_ref().map(String::as_str), "");
    assert_eq!(
        words,
        "spec.minReadySeconds: -4 must be greater than or equal to 0"
    );
    let elsewhere = patch(json!({ "replicas": 2 }));
    installation.must(&elsewhere.each_ref().map(String::as_str), "");
    installation.must(&["scale", "--replicas=3", &format!("gamedeployment/{GAME}")], "");
    let right = patch(json!({ "minReadySeconds": 3 }));
    let said = installation.must(&right.each_ref().map(String::as_str), "");
    assert!(!said.contains("Warning"), "{said}");
    let back = patch(json!({ "minReadySeconds": -3 }));
    assert_eq!(
        installation.refused(&back.each_ref().map(String::as_str), ""),
        KNOWN
    );
}

#[tokio::test]
async fn statuses_and_finalizers_of_bad_objects_can_be_written() {
    let (installation, replica) = with_bad_objects().await;
    let games: Api<GameDeployment> =
        Api::namespaced(installation.control_plane.client(), &installation.namespace);
    let status = Patch::Merge(json!({ "status": { "replicas": 1 } }));
    let asked = replica.metric("hookgate_admission_requests_total", &[]).await;
    let written = games
        .patch_status(GAME, &PatchParams::default(), &status)
        .await
        .unwrap();
    assert_eq!(written.status.unwrap().replicas, 1);
    assert_eq!(
        replica.metric("hookgate_admission_requests_total", &[]).await,
        asked,
        "nobody is asked about statuses"
    );
    let allow = format!("{}=Always", shared_api::names::workload::DELETION_ALLOW);
    installation.must(&["label", "gamedeployment", GAME, &allow], "");
    installation.must(&["delete", "gamedeployment", GAME, "--wait=false"], "");
    let finalizers = r#"{"metadata":{"finalizers":null}}"#;
    let said = installation.must(
        &[
            "patch",
            "gamedeployment",
            GAME,
            "--type=merge",
            "--patch",
            finalizers,
        ],
        "",
    );
    assert!(
        !said.contains("Warning"),
        "what is being deleted is not judged: {said}"
    );
    assert!(games.get_opt(GAME).await.unwrap().is_none());
}
