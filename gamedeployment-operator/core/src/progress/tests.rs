use jiff::Timestamp;
use serde_json::json;
use shared_api::names::pod as names;

use super::{InPlacePhase, Record, in_place_phase, is_under_way};
use crate::pod::Pod;
use crate::samples::{pod, status};

const RUNNING: &str = r#"{"running": {"startedAt": "2024-05-01T00:00:05Z"}}"#;
const CRASHED: &str = r#"{"waiting": {"reason": "CrashLoopBackOff"}}"#;

/// A pod whose `side` was updated to `old` at midnight and that is out of service for an update of `game` to
/// `new`.
fn updated_before(id: &str, image: &str, ready: bool, state: &str) -> Pod {
    let mut side = status(id);
    side["name"] = json!("side");
    side["image"] = json!(image);
    side["imageID"] = json!(format!("sha256:{image}"));
    side["ready"] = json!(ready);
    side["state"] = serde_json::from_str(state).unwrap();
    let mark = json!({"imageID": "sha256:side:v0", "containerID": "before", "image": "side:v0", "specImage": "side:v0"});
    let record = json!({
        "revision": "old", "updateTimestamp": "2024-05-01T00:00:00Z", "lastContainerStatuses": {"side": mark},
    });
    pod(
        "a",
        &[
            (
                "/metadata/annotations/inplace-update-state",
                json!(record.to_string()),
            ),
            (
                "/spec/containers",
                json!([{"name": "game", "image": "game:v1"}, {"name": "side", "image": "side:v1"}]),
            ),
            (
                "/spec/readinessGates",
                json!([{"conditionType": "InPlaceUpdateReady"}]),
            ),
            (
                "/status/conditions",
                json!([{"type": "InPlaceUpdateReady", "status": "False", "message": "new"}]),
            ),
            ("/status/containerStatuses", json!([status("one"), side])),
        ],
    )
}

#[test]
fn a_container_that_runs_an_earlier_update_is_asked_about_before_it_changes_again() {
    let table = [
        // Container ID, image, readiness and state; whether the earlier update is still changing it.
        ("before", "side:v0", true, RUNNING, true),
        ("before", "side:v0", false, CRASHED, true),
        ("after", "side:v1", true, RUNNING, false),
        ("after", "side:v1", false, RUNNING, false),
        ("after", "side:v1", false, CRASHED, false),
        // It crashed before the kubelet saw the write.
        ("after", "side:v0", false, CRASHED, true),
    ];
    for (id, image, ready, container, changes) in table {
        let before = updated_before(id, image, ready, container);
        let at: Timestamp = "2024-05-01T00:00:04Z".parse().unwrap();
        let record = Record::new(&before, "new", ["game".to_owned()].iter(), at);
        assert!(record.last_container_statuses.contains_key("game"));
        let mut written = before.clone();
        written
            .labels
            .insert(names::REVISION.to_owned(), "new".to_owned());
        let state = names::IN_PLACE_STATE.to_owned();
        written.annotations.insert(state, record.text());
        let goes_on = |container: &str| is_under_way(&written, "newest", &[container.to_owned()]);
        assert!(goes_on("game"));
        assert_eq!(goes_on("side"), changes, "{id} {image} {ready} {container}");
    }
}

#[test]
fn a_hot_patch_awaits_what_an_earlier_one_still_changes_and_approves_none_of_it() {
    for (id, image, awaited) in [("before", "side:v0", true), ("after", "side:v1", false)] {
        let mut pod = updated_before(id, image, true, RUNNING);
        let at: Timestamp = "2024-05-01T00:00:04Z".parse().unwrap();
        let record = pod.annotations.remove(names::IN_PLACE_STATE).unwrap();
        pod.annotations.insert(names::HOT_PATCH_STATE.to_owned(), record);
        pod.in_place.as_mut().unwrap().ready = true;
        let record = Record::new(&pod, "new", ["game".to_owned()].iter(), at);
        assert_eq!(record.last_container_statuses.contains_key("side"), awaited);
        pod.labels.insert(names::REVISION.to_owned(), "new".to_owned());
        // `game` already has its new container.
        let game = &mut pod.containers[0];
        game.container_id = "another".to_owned();
        game.image = "game:v2".to_owned();
        game.running_image = "game:v2".to_owned();
        let mut patched = pod.clone();
        patched
            .annotations
            .insert(names::HOT_PATCH_STATE.to_owned(), record.text());
        let changes = matches!(in_place_phase(&patched, at), InPlacePhase::Written { .. });
        assert_eq!(changes, awaited);
        // The same with an in-place update following the hot patch.
        pod.annotations
            .insert(names::IN_PLACE_STATE.to_owned(), record.text());
        pod.in_place.as_mut().unwrap().ready = false;
        let changes = matches!(in_place_phase(&pod, at), InPlacePhase::Written { .. });
        assert_eq!(changes, awaited);
        assert!(is_under_way(&pod, "newest", &["game".to_owned()]));
        assert!(!is_under_way(&pod, "newest", &["side".to_owned()]));
    }
}
