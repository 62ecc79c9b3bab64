//! The availability floor: the number of serving and recoverable pods that may go at once.

use serde_json::{Value, json};

use super::tests::*;
use super::*;
use crate::plan::GatedWrite;
use crate::samples::status;

fn no_image() -> (&'static str, Value) {
    let waiting = json!({"name": "game", "image": "game:v1", "imageID": "", "restartCount": 0, "ready": false,
        "state": {"waiting": {"reason": "ImagePullBackOff"}}});
    (CONTAINERS, json!([waiting]))
}

/// An unready container that has been running since this time.
fn with(mut container: Value, since: &str) -> Value {
    container["ready"] = json!(false);
    container["state"]["running"]["startedAt"] = json!(since);
    container
}

#[test]
fn pods_that_are_not_well_for_a_moment_go_one_at_a_time() {
    let min_ready = [("/spec/minReadySeconds", json!(30))];
    for (pods, spec, gone) in [
        (pods("blips", 10, &[blips()]), ten(&[]), 1),
        (pods("ready", 10, &[just_ready()]), ten(&min_ready), 1),
        // Two pods are missing for good: no pod that may recover goes.
        (pods("blips", 8, &[blips()]), ten(&[]), 0),
        // Pods that never served go immediately and use no budget.
        (pods("new", 10, &[never_served()]), ten(&[]), 10),
        (pods("bad", 10, &[blips(), no_image()]), ten(&[]), 10),
    ] {
        let plan = plan(&spec, &pods);
        assert_eq!(
            deleted(&plan).len(),
            gone,
            "{} of {}: {plan:#?}",
            pods[0].name,
            pods.len()
        );
    }
}

/// Annotations of a pod whose in-place update has just finished.
fn updated_in_place() -> (&'static str, Value) {
    let record =
        json!({"revision": "old", "updateTimestamp": "2024-05-31T23:59:00Z", "lastContainerStatuses": {}});
    (
        "/metadata/annotations",
        json!({"inplace-update-state": record.to_string()}),
    )
}

#[test]
fn pods_whose_update_in_place_has_just_ended_go_one_at_a_time_too() {
    let in_place = ("/spec/updateStrategy/type", json!("InplaceUpdate"));
    let spec = ten(&[in_place, ("/spec/minReadySeconds", json!(30))]);
    let plan = plan(&spec, &pods("ready", 10, &[just_ready(), updated_in_place()]));
    let begun = |action: &Action| {
        matches!(
            action,
            Action::Gated(GatedWrite::SetNotReady(..) | GatedWrite::WriteUpdate(..))
        )
    };
    assert_eq!(count(&plan, begun), 1, "{plan:#?}");
}

#[test]
fn pods_that_blip_after_a_hot_patch_go_one_at_a_time_too() {
    let patched = |at: &str| {
        let mark =
            json!({"imageID": "sha256:0", "containerID": "zero", "image": "game:v0", "restartCount": 0});
        let record =
            json!({"revision": "old", "updateTimestamp": at, "lastContainerStatuses": {"game": mark}});
        (
            "/metadata/annotations",
            json!({"hotpatch-update-state": record.to_string()}),
        )
    };
    let waiting = json!({"name": "game", "image": "game:v1", "imageID": "sha256:1", "containerID": "one",
        "restartCount": 3, "ready": false, "state": {"waiting": {"reason": "CrashLoopBackOff"}}});
    let crashes = (CONTAINERS, json!([waiting]));
    for (pods, gone) in [
        // Their containers were replaced in January, and the pods became unready in May.
        (vec![patched("2024-01-01T00:00:20Z"), blips()], 1),
        (vec![patched("2024-01-01T00:00:20Z"), blips(), crashes.clone()], 1),
        // These pods have not been ready since the patch.
        (
            vec![
                patched("2024-05-31T23:59:45Z"),
                blips(),
                (CONTAINERS, json!([with(status("one"), "2024-05-31T23:59:55Z")])),
            ],
            10,
        ),
    ] {
        let plan = plan(&ten(&[]), &self::pods("patched", 10, &pods));
        assert_eq!(deleted(&plan).len(), gone, "{plan:#?}");
    }
}

#[test]
fn a_blip_takes_nothing_from_those_that_serve() {
    let mut all = pods("well", 8, &[]);
    all.extend(pods("blips", 2, &[blips()]));
    let plan = plan(&ten(&[]), &all);
    assert_eq!(
        deleted(&plan),
        ["blips-0"],
        "the floor of available pods is reached already"
    );
}

#[test]
fn a_new_pod_has_to_prove_itself_before_others_go_in_its_stead() {
    let min_ready = [("/spec/minReadySeconds", json!(30))];
    for (service, gone) in [
        (just_ready(), 0),
        (blips(), 0),
        (ready("True", "2024-05-01T00:00:00Z"), 1),
    ] {
        let mut all = pods("old", 9, &[just_ready()]);
        all.extend(pods("new", 1, &[updated(), service]));
        let plan = plan(&ten(&min_ready), &all);
        assert_eq!(deleted(&plan).len(), gone, "{plan:#?}");
    }
}

#[test]
fn an_update_in_place_takes_pods_that_blip_one_at_a_time_too() {
    let in_place = ("/spec/updateStrategy/type", json!("InplaceUpdate"));
    let plan = plan(&ten(&[in_place]), &pods("blips", 10, &[blips()]));
    let begun = |action: &Action| {
        matches!(
            action,
            Action::Gated(GatedWrite::SetNotReady(..) | GatedWrite::WriteUpdate(..))
        )
    };
    assert_eq!(count(&plan, begun), 1, "{plan:#?}");
}
