use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ContainerStatus;
use serde_json::json;

use super::Progress::{CheckAgainAt, Done, Waiting};
use super::*;

/// Seconds after the write.
fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000).unwrap() + SignedDuration::from_secs(second)
}

fn mark(image: &str, image_id: &str, container_id: &str) -> ContainerMark {
    ContainerMark {
        image_id: image_id.to_owned(),
        container_id: Some(container_id.to_owned()),
        restart_count: Some(0),
        image: Some(image.to_owned()),
    }
}

fn of_the_original(image_id: &str) -> ContainerMark {
    serde_json::from_value(json!({"imageID": image_id})).unwrap()
}

fn now(image: &str, image_id: &str, container_id: &str, since: i64) -> ContainerNow {
    ContainerNow {
        image: image.to_owned(),
        image_id: image_id.to_owned(),
        container_id: container_id.to_owned(),
        ready: true,
        running_since: Some(at(since)),
    }
}

const A: &str = "docker.io/library/game@sha256:aa";
const B: &str = "docker.io/library/game@sha256:bb";

/// Name, mark, wanted image, status, seconds after the write, and the answer.
type Row = (
    &'static str,
    ContainerMark,
    &'static str,
    ContainerNow,
    i64,
    Progress,
);

fn check(rows: Vec<Row>) {
    for (name, mark, wanted, now, second, expected) in rows {
        assert_eq!(
            finished(&mark, wanted, &now, at(0), at(second)),
            expected,
            "{name}"
        );
    }
}

#[test]
fn a_new_container_of_the_new_image_is_done_at_once() {
    check(vec![
        (
            "the plain case",
            mark("game:v1", A, "1"),
            "game:v2",
            now("docker.io/library/game:v2", B, "2", 3),
            4,
            Done,
        ),
        (
            "the id alone",
            mark("game:v1", A, "1"),
            "game:v2",
            now("mirror/game:v2", B, "2", 3),
            4,
            Done,
        ),
        (
            "no name in the status",
            mark("game:v1", A, "1"),
            "game:v2",
            now("", B, "2", 3),
            4,
            Done,
        ),
        (
            "same digest, name shown",
            mark("game:v1", A, "1"),
            "game:v2",
            now("game:v2", A, "2", 3),
            4,
            Done,
        ),
        (
            "latest by default",
            mark("game:v1", A, "1"),
            "game",
            now("docker.io/library/game:latest", A, "2", 3),
            4,
            Done,
        ),
        (
            "a registry with a port",
            mark("r.io:5000/game:v1", "", "1"),
            "r.io:5000/game:v2",
            now("r.io:5000/game:v2", "", "2", 3),
            4,
            Done,
        ),
        (
            "a digest that was asked for",
            mark("game:v1", A, "1"),
            "game@sha256:bb",
            now("sha256:0123", B, "2", 3),
            4,
            Done,
        ),
        (
            "a digest under the same tag",
            mark("game:v1", A, "1"),
            "game:v1@sha256:bb",
            now("game:v1", B, "2", 3),
            4,
            Done,
        ),
        (
            "the first container of all",
            mark("game:v1", "", ""),
            "game:v2",
            now("game:v2", B, "1", 3),
            4,
            Done,
        ),
    ]);
}

#[test]
fn what_does_not_run_or_is_not_new_is_waited_for() {
    let stopped = ContainerNow {
        running_since: None,
        ..now("game:v2", B, "2", 3)
    };
    let unready = ContainerNow {
        ready: false,
        ..now("game:v2", B, "2", 3)
    };
    let nothing = ContainerNow {
        ready: true,
        ..ContainerNow::default()
    };
    let crashed_before = now("game:v1", A, "2", -90);
    check(vec![
        (
            "the old container",
            mark("game:v1", A, "1"),
            "game:v2",
            now("game:v1", A, "1", -900),
            60,
            Waiting,
        ),
        (
            "the old one under the new name",
            mark("game:v1", A, "1"),
            "game:v2",
            now("game:v2", A, "1", -900),
            60,
            Waiting,
        ),
        (
            "not running",
            mark("game:v1", A, "1"),
            "game:v2",
            stopped,
            60,
            Waiting,
        ),
        (
            "not ready",
            mark("game:v1", A, "1"),
            "game:v2",
            unready,
            60,
            Waiting,
        ),
        (
            "no status",
            mark("game:v1", A, "1"),
            "game:v2",
            nothing,
            60,
            Waiting,
        ),
        (
            "restarted long before the write",
            mark("game:v1", A, "1"),
            "game:v2",
            crashed_before,
            60,
            Waiting,
        ),
    ]);
}

#[test]
fn where_nothing_else_tells_a_new_container_is_watched_for_a_while() {
    let old = || mark("game:v1", A, "1");
    check(vec![
        (
            "same digest, old name",
            old(),
            "game:v2",
            now("game:v1", A, "2", 3),
            4,
            CheckAgainAt(at(8)),
        ),
        (
            "and after it",
            old(),
            "game:v2",
            now("game:v1", A, "2", 3),
            8,
            Done,
        ),
        (
            "a mirror's name",
            old(),
            "r.io/game:v2",
            now("mirror/game:v2", "mirror/game@sha256:aa", "2", 3),
            7,
            CheckAgainAt(at(8)),
        ),
        (
            "and after it",
            old(),
            "r.io/game:v2",
            now("mirror/game:v2", "mirror/game@sha256:aa", "2", 3),
            9,
            Done,
        ),
        (
            "a crash at the write",
            old(),
            "game:v2",
            now("game:v1", A, "2", -1),
            1,
            CheckAgainAt(at(5)),
        ),
        (
            "the old tag pulled anew",
            old(),
            "game:v2",
            now("game:v1", B, "2", 0),
            1,
            CheckAgainAt(at(5)),
        ),
        (
            "the old container could show the new name",
            mark("game:v2", A, "1"),
            "game:v2",
            now("game:v2", A, "2", 0),
            1,
            CheckAgainAt(at(5)),
        ),
        (
            "a tag is no digest",
            mark("game:v1", A, "1"),
            "game:v1@sha256:bb",
            now("game:v1", A, "2", 0),
            1,
            CheckAgainAt(at(5)),
        ),
        (
            "never started before",
            mark("game:v1", "", ""),
            "game:v2",
            now("game:v1", A, "1", 0),
            1,
            CheckAgainAt(at(5)),
        ),
        (
            "a node's clock is ahead",
            old(),
            "game:v2",
            now("game:v1", A, "2", 3600),
            2,
            CheckAgainAt(at(5)),
        ),
        (
            "and after it",
            old(),
            "game:v2",
            now("game:v1", A, "2", 3600),
            5,
            Done,
        ),
        (
            "a node's clock is behind",
            old(),
            "game:v2",
            now("game:v1", A, "2", -20),
            5,
            Done,
        ),
    ]);
}

#[test]
fn marks_of_the_original_are_understood() {
    check(vec![
        (
            "a new id",
            of_the_original(A),
            "game:v2",
            now("x", B, "2", 3),
            4,
            Done,
        ),
        (
            "the wanted name",
            of_the_original(A),
            "game:v2",
            now("docker.io/library/game:v2", A, "2", 3),
            4,
            Done,
        ),
        (
            "still the old one",
            of_the_original(A),
            "game:v2",
            now("game:v1", A, "1", -900),
            60,
            Waiting,
        ),
        (
            "a retag behind a mirror",
            of_the_original(A),
            "game:v2",
            now("mirror/x:v2", A, "2", 30),
            31,
            CheckAgainAt(at(35)),
        ),
        (
            "and after it",
            of_the_original(A),
            "game:v2",
            now("mirror/x:v2", A, "2", 30),
            35,
            Done,
        ),
        (
            "not ready",
            of_the_original(A),
            "game:v2",
            ContainerNow {
                ready: false,
                ..now("x", B, "2", 3)
            },
            4,
            Waiting,
        ),
        (
            "an empty mark",
            of_the_original(""),
            "game:v2",
            now("game:v1", A, "2", -900),
            60,
            Waiting,
        ),
    ]);
}

#[test]
fn marks_keep_their_form() {
    let text = json!({"imageID": A, "containerID": "containerd://1", "restartCount": 2, "image": "game:v1"});
    let mark = ContainerMark {
        restart_count: Some(2),
        ..mark("game:v1", A, "containerd://1")
    };
    assert_eq!(serde_json::to_value(&mark).unwrap(), text);
    assert_eq!(serde_json::from_value::<ContainerMark>(text).unwrap(), mark);
    assert_eq!(
        serde_json::to_value(of_the_original(A)).unwrap(),
        json!({"imageID": A})
    );
    assert_eq!(
        serde_json::from_value::<ContainerMark>(json!({})).unwrap(),
        ContainerMark::default()
    );
}

#[test]
fn a_status_is_read_for_the_mark_and_for_now() {
    let status: ContainerStatus = serde_json::from_value(json!({
        "name": "game", "image": "game:v1", "imageID": A, "containerID": "1", "ready": true, "restartCount": 4,
        "state": {"running": {"startedAt": at(3)}},
    }))
    .unwrap();
    let expected = ContainerMark {
        restart_count: Some(4),
        ..mark("game:v1", A, "1")
    };
    assert_eq!(ContainerMark::of(Some(&status)), expected);
    assert_eq!(ContainerNow::of(&status), now("game:v1", A, "1", 3));
    let waiting = ContainerStatus {
        state: None,
        container_id: None,
        ..status
    };
    assert_eq!(ContainerNow::of(&waiting).running_since, None);
    assert_eq!(
        ContainerMark::of(Some(&waiting)).container_id.as_deref(),
        Some("")
    );
    assert_eq!(ContainerMark::of(None), mark_of_nothing());
}

fn mark_of_nothing() -> ContainerMark {
    mark("", "", "")
}

#[test]
fn the_end_of_time_is_no_panic() {
    let now = ContainerNow {
        running_since: Some(Timestamp::MIN),
        ..now("game:v1", A, "2", 0)
    };
    for time in [Timestamp::MIN, Timestamp::MAX] {
        let _ = finished(&mark("game:v1", A, "1"), "game:v2", &now, time, time);
    }
    let now = ContainerNow {
        running_since: Some(Timestamp::MAX),
        ..now
    };
    assert_eq!(
        finished(&mark("game:v1", A, "1"), "game:v2", &now, at(0), Timestamp::MAX),
        Done
    );
}
