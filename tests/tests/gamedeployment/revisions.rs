//! Revisions: one for each distinct template, kept up to a limit, and reused under their old names.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use kube::ResourceExt;
use kube::api::{ListParams, ObjectMeta, PostParams};
use operator_tests::fleet::{condition, game};
use operator_tests::{Fleet, assert_has};
use serde_json::json;
use shared_api::names::pod::REVISION;
use test_kit::eventually;

use crate::fleet;

async fn recorded(fleet: &Fleet<'_>) -> BTreeMap<String, i64> {
    let list = fleet.revisions().list(&ListParams::default()).await.unwrap();
    let revisions = list.items.iter();
    revisions
        .map(|revision| (revision.name_any(), revision.revision))
        .collect()
}

/// Waits until exactly these revisions exist.
async fn until_recorded(fleet: &Fleet<'_>, wanted: &[&String]) {
    let wanted: BTreeSet<String> = wanted.iter().map(|name| (*name).clone()).collect();
    eventually(operator_tests::SOON, || async {
        let now = recorded(fleet).await;
        if now.keys().cloned().collect::<BTreeSet<_>>() == wanted {
            Ok(())
        } else {
            Err(now)
        }
    })
    .await;
}

/// Updates all pods, and returns their new revision.
async fn roll(fleet: &Fleet<'_>, image: &str, replicas: usize) -> String {
    fleet.set_image(image).await;
    let status = fleet.settled(replicas).await;
    fleet.all_run(image, replicas).await;
    status.update_revision.unwrap()
}

async fn labels(fleet: &Fleet<'_>) -> BTreeSet<String> {
    let pods = fleet.all_pods().await.into_values();
    pods.map(|pod| pod.labels()[REVISION].clone()).collect()
}

/// Characters that only Go escapes: to the API server, another encoding is a change of an immutable field.
#[tokio::test]
async fn a_template_with_any_letters_can_be_gone_back_to() {
    let fleet = fleet("letters").await;
    let words = "a < b && c > d \u{2028} \u{2029} \"quoted\" \\ \u{1f3ae}";
    let template = json!({ "template": { "metadata": { "annotations": { "words": words } } } });
    fleet.launch(&game(2, template)).await;
    let first = fleet.settled(2).await.update_revision.unwrap();
    let second = roll(&fleet, "game:v2", 2).await;
    let again = roll(&fleet, "game:v1", 2).await;
    assert_eq!(again, first);
    let numbers = recorded(&fleet).await;
    assert!(numbers[&first] > numbers[&second], "{numbers:?}");
    fleet.quiet().await;
}

#[tokio::test]
async fn a_template_that_means_the_same_restarts_nothing_and_records_nothing() {
    let fleet = fleet("same-template").await;
    let resources = json!({ "template": { "spec": { "containers": [{
        "name": "game", "image": "game:v1", "ports": [{ "containerPort": 9091 }],
        "resources": { "requests": { "memory": "1Gi", "cpu": "100m" } }
    }] } } });
    fleet.launch(&game(2, resources)).await;
    fleet.settled(2).await;
    let before = (fleet.all_pods().await, recorded(&fleet).await);
    // The template with the API server's defaults, in Go's notation, and with other spellings of the same
    // amounts.
    let mut same = game(2, json!({}));
    same["spec"]["template"] = json!({
        "metadata": { "creationTimestamp": null, "labels": { "app": operator_tests::fleet::GAME } },
        "spec": {
            "restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler",
            "terminationGracePeriodSeconds": 30, "securityContext": {},
            "containers": [{
                "name": "game", "image": "game:v1", "imagePullPolicy": "IfNotPresent",
                "ports": [{ "containerPort": 9091, "protocol": "TCP" }],
                "resources": { "requests": { "cpu": "0.1", "memory": "1024Mi" } },
                "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"
            }]
        }
    });
    let _ = fleet.kubectl(&["replace", "--filename", "-"], &same.to_string());
    let status = fleet.settled(2).await;
    assert_eq!(status.updated_ready_replicas, 2);
    assert_eq!(status.observed_generation, Some(2));
    assert_eq!((fleet.all_pods().await, recorded(&fleet).await), before);
    assert_eq!(fleet.nodes.terminations().len(), 0);
}

#[tokio::test]
async fn an_old_template_gets_its_old_revision_back() {
    let fleet = fleet("rollback").await;
    fleet.launch(&game(2, json!({}))).await;
    let one = fleet.settled(2).await.update_revision.unwrap();
    let two = roll(&fleet, "game:v2", 2).await;
    assert_eq!(
        recorded(&fleet).await,
        BTreeMap::from([(one.clone(), 1), (two.clone(), 2)])
    );
    assert_eq!(roll(&fleet, "game:v1", 2).await, one);
    assert_eq!(
        recorded(&fleet).await,
        BTreeMap::from([(one.clone(), 3), (two, 2)])
    );
    assert_eq!(labels(&fleet).await, BTreeSet::from([one]));
    let status = fleet.status().await;
    assert_eq!(status.current_revision, status.update_revision);
    assert_eq!(status.collision_count, Some(0));
}

#[tokio::test]
async fn no_more_revisions_are_kept_than_wanted_besides_those_in_use() {
    let fleet = fleet("history-limit").await;
    fleet.launch(&game(2, json!({ "revisionHistoryLimit": 2 }))).await;
    let mut names = vec![fleet.settled(2).await.update_revision.unwrap()];
    for image in ["game:v2", "game:v3", "game:v4", "game:v5"] {
        names.push(roll(&fleet, image, 2).await);
    }
    until_recorded(&fleet, &[&names[2], &names[3], &names[4]]).await;
    // The partition keeps a pod at the fully rolled out revision, so the revision is in use.
    let spec = json!({ "revisionHistoryLimit": 0, "updateStrategy": { "partition": 1 } });
    fleet.set(spec).await;
    until_recorded(&fleet, &[&names[4]]).await;
    for image in ["game:v6", "game:v7"] {
        fleet.set_image(image).await;
        let status = fleet.until(|status| status.updated_ready_replicas == 1).await;
        let update = status.update_revision.unwrap();
        until_recorded(&fleet, &[&names[4], &update]).await;
        fleet.settled(2).await;
        assert_eq!(labels(&fleet).await, BTreeSet::from([names[4].clone(), update]));
    }
    fleet.set(json!({ "updateStrategy": { "partition": 0 } })).await;
    let last = fleet.settled(2).await.update_revision.unwrap();
    until_recorded(&fleet, &[&last]).await;
}

#[tokio::test]
async fn a_name_that_is_taken_by_something_else_is_evaded() {
    let fleet = fleet("collision").await;
    fleet.launch(&game(1, json!({ "revisionHistoryLimit": 0 }))).await;
    let one = fleet.settled(1).await.update_revision.unwrap();
    let two = roll(&fleet, "game:v2", 1).await;
    roll(&fleet, "game:v1", 1).await;
    until_recorded(&fleet, &[&one]).await;
    let foreign = ControllerRevision {
        metadata: ObjectMeta {
            name: Some(two.clone()),
            ..ObjectMeta::default()
        },
        data: Some(RawExtension(json!({ "of": "something else" }))),
        revision: 7,
    };
    let foreign = fleet
        .revisions()
        .create(&PostParams::default(), &foreign)
        .await
        .unwrap();
    let other = roll(&fleet, "game:v2", 1).await;
    assert_ne!(other, two);
    let status = fleet.settled(1).await;
    assert_eq!(condition(&status, "UpdateBlocked"), None);
    assert_eq!(labels(&fleet).await, BTreeSet::from([other.clone()]));
    assert_eq!(
        fleet.revisions().get(&two).await.unwrap(),
        foreign,
        "it is nobody's business here"
    );
    // A revision keeps its name.
    let next = roll(&fleet, "game:v3", 1).await;
    until_recorded(&fleet, &[&two, &next]).await;
}

#[tokio::test]
async fn fields_of_the_template_that_nobody_here_knows_are_kept_and_tell_templates_apart() {
    let fleet = fleet("unknown-fields").await;
    fleet.launch(&game(1, json!({}))).await;
    let one = fleet.settled(1).await.update_revision.unwrap();
    let future = json!({ "spec": { "template": { "spec": { "fieldOfTheFuture": { "depth": [1, 2] } } } } });
    fleet.patch(future.clone()).await;
    let message = fleet.says("UpdateBlocked", "NotInPlaceUpdatable").await;
    assert_has(&message, "fieldOfTheFuture");
    let pointer = "/spec/template/spec/fieldOfTheFuture";
    let game = json!(fleet.game().await);
    assert_eq!(game.pointer(pointer), future.pointer(pointer));
    let update = fleet.status().await.update_revision.unwrap();
    assert_ne!(update, one);
    let revision = fleet.revisions().get(&update).await.unwrap();
    assert_eq!(revision.data.unwrap().0.pointer(pointer), future.pointer(pointer));
}
