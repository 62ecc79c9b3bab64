//! Invalid specs: the status names every problem with its fix, and the operator touches nothing.

use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use operator_tests::fleet::{GAME, condition, game, hooked, until_empty};
use operator_tests::{Fleet, assert_has};
use serde_json::{Value, json};
use shared_api::GameDeployment;
use shared_api::names::workload::{INDEX_ON, INDEX_RANGE};

use crate::fleet;

const PROBLEMS: &str = r#"
    {"updateStrategy":{"maxUnavailable":0,"maxSurge":0}} => spec.updateStrategy.maxUnavailable: 0 is not allowed when maxSurge is 0; set maxUnavailable or maxSurge to at least 1
    {"updateStrategy":{"maxUnavailable":"some"}} => spec.updateStrategy.maxUnavailable: "some" must be a non-negative integer or a percentage such as 20%
    {"updateStrategy":{"partition":-1}} => spec.updateStrategy.partition: -1 must be a non-negative integer or a percentage such as 20%
    {"updateStrategy":{"maxSurge":"5.5%"}} => spec.updateStrategy.maxSurge: "5.5%" must be a non-negative integer or a percentage such as 20%
    {"minReadySeconds":-3} => spec.minReadySeconds: -3 must be greater than or equal to 0
    {"revisionHistoryLimit":-1} => spec.revisionHistoryLimit: -1 must be greater than or equal to 0
    {"scaleStrategy":{"createBatch":0}} => spec.scaleStrategy.createBatch: 0 is not allowed, because no pods could be created; set it to at least 1, or remove it
    {"scaleStrategy":{"firstIdle":{"candidates":"0%"}}} => spec.scaleStrategy.firstIdle.candidates: "0%" is not allowed, because no idle pods could be found; set it to at least 1, or remove it
    {"scaleStrategy":{"drainingLabels":{"app":"x"}}} => spec.scaleStrategy.drainingLabels[app]: must not be set, because spec.selector uses this label; use another one
    {"updateStrategy":{"outdatedLabels":{"app":"x"}}} => spec.updateStrategy.outdatedLabels[app]: must not be set, because spec.selector uses this label; use another one
    {"updateStrategy":{"inPlaceUpdateStrategy":{"fallback":"Restart"}}} => spec.updateStrategy.inPlaceUpdateStrategy.fallback: "Restart" must be Recreate, or unset
    {"updateStrategy":{"inPlaceUpdateStrategy":{"policy":"Sometimes"}}} => spec.updateStrategy.inPlaceUpdateStrategy.policy: "Sometimes" must be one of DisOrdered, OrderedReady, OrderedUpdated, or unset
    {"updateStrategy":{"canary":{"steps":[{"partition":1},{}]}}} => spec.updateStrategy.canary.steps[1]: must set at least one of partition, pause, hook
    {"updateStrategy":{"canary":{"steps":[{"pause":{"duration":-5}}]}}} => spec.updateStrategy.canary.steps[0].pause.duration: -5 must be greater than or equal to 0
    {"template":{"metadata":{"labels":{"app":"another"}}}} => spec.template.metadata.labels: do not match spec.selector (app=test-gamedeployment); add the missing labels
    {"template":{"spec":{"restartPolicy":"Never"}}} => spec.template.spec.restartPolicy: "Never" must be Always or unset, because pods of a GameDeployment run until they are deleted
"#;

/// Restores the valid spec and applies one error to it.
async fn make_wrong(fleet: &Fleet<'_>, right: &Value, wrong: &str) {
    let mut manifest = right.clone();
    operator_tests::merge(&mut manifest["spec"], serde_json::from_str(wrong).unwrap());
    set_spec(fleet, &manifest).await;
}

async fn set_spec(fleet: &Fleet<'_>, manifest: &Value) {
    let patch =
        serde_json::from_value(json!([{ "op": "replace", "path": "/spec", "value": manifest["spec"] }]))
            .unwrap();
    let patch: Patch<GameDeployment> = Patch::Json(patch);
    fleet
        .games()
        .patch(GAME, &PatchParams::default(), &patch)
        .await
        .unwrap();
}

#[tokio::test]
async fn every_problem_is_named_with_its_place_its_value_and_what_to_write() {
    let fleet = fleet("invalid-spec").await;
    let right = game(2, json!({}));
    fleet.launch(&right).await;
    fleet.settled(2).await;
    let before = fleet.all_pods().await;
    for line in PROBLEMS.trim().lines() {
        let (wrong, message) = line.trim().split_once(" => ").unwrap();
        make_wrong(&fleet, &right, wrong).await;
        let status = fleet
            .until(|status| condition(status, "InvalidSpec").is_some())
            .await;
        let found = condition(&status, "InvalidSpec").unwrap();
        // For template problems, the message also says what continues.
        let said = found.2.split("; until this is fixed").next();
        assert_eq!(found.0.as_str(), "True");
        assert_eq!(found.1.as_str(), "InvalidSpec");
        assert_eq!(said, Some(message));
        let progressing = condition(&status, "Progressing").unwrap();
        assert_eq!(progressing.0.as_str(), "False");
        assert_eq!(progressing.1.as_str(), "InvalidSpec");
    }
    // Annotations do not change the generation.
    set_spec(&fleet, &right).await;
    fleet.cleared("InvalidSpec").await;
    let annotations = json!({ INDEX_ON: "true", INDEX_RANGE: "{\"podStartIndex\":3,\"podEndIndex\":4}" });
    fleet
        .patch(json!({ "metadata": { "annotations": annotations } }))
        .await;
    let message = fleet.says("InvalidSpec", "InvalidSpec").await;
    assert!(
        message.ends_with(" has 1 index, but there are 2 replicas; widen the range"),
        "{message}"
    );
    fleet
        .patch(json!({ "metadata": { "annotations": { INDEX_RANGE: "from 1 to 5" } } }))
        .await;
    let remedy = "\"from 1 to 5\" must be {\"podStartIndex\":S,\"podEndIndex\":E} with 0 <= S < E";
    fleet.until_message("InvalidSpec", remedy).await;
    fleet.patch(json!({ "metadata": { "annotations": null } })).await;
    fleet.cleared("InvalidSpec").await;
    fleet.settled(2).await;
    assert_eq!(fleet.all_pods().await, before);
    assert_eq!(fleet.nodes.terminations().len(), 0);
}

#[tokio::test]
async fn nothing_is_touched_until_it_is_corrected_and_then_all_goes_on() {
    let fleet = fleet("invalid-spec").await;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(3, hooked("empty"))).await;
    fleet.nodes.every_pod().set_players(1);
    fleet.scale(2);
    let asked = fleet.asked(1).await;
    let run = fleet.until_runs(|runs| runs.len() == 1).await.remove(0);
    let wrong = json!({ "replicas": 0, "minReadySeconds": -1, "updateStrategy": { "partition": "x", "maxUnavailable": 0 } });
    fleet.set(wrong).await;
    fleet.set_image("game:v2").await;
    let message = fleet.says("InvalidSpec", "InvalidSpec").await;
    let paths = [
        "spec.minReadySeconds: ",
        "spec.updateStrategy.partition: ",
        "spec.updateStrategy.maxUnavailable: ",
    ];
    assert!(
        paths.iter().all(|path| message.contains(path)),
        "all at once: {message}"
    );
    fleet.told("InvalidSpec spec.updateStrategy.maxUnavailable").await;
    assert_eq!(fleet.blocked("InvalidSpec").await, 1);
    // The hook may succeed: nothing follows from it.
    fleet.nodes.every_pod().set_players(0);
    fleet
        .until_runs(|runs| {
            runs.len() == 1 && runs[0].status.as_ref().is_some_and(|s| s.completed_at.is_some())
        })
        .await;
    let other = fleet
        .names()
        .await
        .into_iter()
        .find(|name| !asked.values().any(|pod| pod == name))
        .unwrap();
    fleet.delete_pod(&other).await;
    let status = fleet
        .until(|status| (status.replicas, status.ready_replicas) == (2, 2))
        .await;
    fleet.quiet().await;
    assert!(condition(&status, "ScaleBlocked").is_none());
    assert_eq!(fleet.names().await.len(), 2, "also nobody is replaced");
    assert_eq!(
        fleet.runs().get(&run.name_any()).await.unwrap().metadata.uid,
        run.metadata.uid
    );
    let right = json!({ "replicas": 1, "minReadySeconds": 0, "updateStrategy": { "partition": 0, "maxUnavailable": 1 } });
    fleet.set(right).await;
    let status = fleet.settled(1).await;
    assert_eq!(condition(&status, "InvalidSpec"), None);
    fleet.all_run("game:v2", 1).await;
    assert_eq!(fleet.blocked("InvalidSpec").await, 0);
}

#[tokio::test]
async fn a_workload_that_is_born_wrong_comes_to_life_when_it_is_corrected() {
    let fleet = fleet("invalid-spec").await;
    fleet.apply(&game(
        2,
        json!({ "selector": { "matchLabels": { "app": "another" } } }),
    ));
    let message = fleet.says("InvalidSpec", "InvalidSpec").await;
    assert_has(&message, "do not match spec.selector (app=another)");
    fleet.quiet().await;
    assert_eq!(fleet.all_pods().await.len(), 0);
    fleet
        .set(json!({ "template": { "metadata": { "labels": { "app": "another" } } } }))
        .await;
    let status = fleet.settled(2).await;
    assert_eq!(condition(&status, "InvalidSpec"), None);
}

#[tokio::test]
async fn what_cannot_even_be_read_says_so_and_heals() {
    let fleet = fleet("unreadable").await;
    if !operator_tests::stores_wide_integers(fleet.control_plane, &fleet.namespace) {
        return;
    }
    fleet.launch(&game(2, json!({}))).await;
    fleet.settled(2).await;
    let before = fleet.names().await;
    // The oldest API server accepts it.
    let wait = |seconds: u64| {
        let patch = json!({ "spec": { "minReadySeconds": seconds, "replicas": 1 } }).to_string();
        fleet.kubectl(
            &["patch", "gamedeployment", GAME, "--type=merge", "--patch", &patch],
            "",
        )
    };
    let _ = wait(5_000_000_000);
    fleet
        .told("InvalidSpec the GameDeployment cannot be parsed: ")
        .await;
    let shown = fleet.kubectl(&["get", "gamedeployment", GAME, "--output", "yaml"], "");
    for words in [
        "type: InvalidSpec",
        "type: Available",
        "updatedReadyReplicas: 2",
        "5000000000",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert_eq!(
        fleet.metric("hookgate_gamedeployment_unreadable_total", "").await,
        1
    );
    assert_eq!(fleet.names().await, before);

    let _ = wait(0);
    fleet.settled(1).await;
    fleet.cleared("InvalidSpec").await;
}
