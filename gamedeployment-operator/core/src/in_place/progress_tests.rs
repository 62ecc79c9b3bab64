use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ContainerStatus;
use serde_json::json;

use super::*;

/// Returns the time this many seconds after the write.
fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000).unwrap() + SignedDuration::from_secs(second)
}

const A: &str = "docker.io/library/game@sha256:aa";
const B: &str = "docker.io/library/game@sha256:bb";

fn mark(image: &str, image_id: &str, container_id: &str) -> ContainerMark {
    ContainerMark {
        image_id: image_id.to_owned(),
        container_id: Some(container_id.to_owned()),
        restart_count: Some(0),
        image: Some(image.to_owned()),
        spec_image: None,
    }
}

/// A container with image `game:v1`, content A and ID 1.
fn old() -> ContainerMark {
    mark("game:v1", A, "1")
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

/// Row format: name, wanted image; image, imageID (A and B stand for the constants) and containerID of the
/// status; seconds from the write to the container's start and to the check; `done`, `waiting`, or when to
/// check again.
fn check(mark: &ContainerMark, table: &str) {
    for row in table.trim().lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [name, wanted, image, id, container, since, second, expected] = cells[..] else {
            panic!("{row}");
        };
        let id = match id {
            "A" => A,
            "B" => B,
            other => other,
        };
        let number = |text: &str| text.parse::<i64>().unwrap();
        let expected = match expected {
            "done" => Progress::Done,
            "waiting" => Progress::Waiting,
            time => Progress::CheckAgainAt(at(number(time))),
        };
        let now = now(image, id, container, number(since));
        let found = finished(mark, wanted, &now, at(0), at(number(second)));
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn a_new_container_of_the_new_image_is_done_at_once() {
    check(
        &old(),
        "the plain case      | game:v2           | docker.io/library/game:v2     | B | 2 | 3 | 4 | done
         the id alone        | game:v2           | mirror/game:v2                | B | 2 | 3 | 4 | done
         no name             | game:v2           |                               | B | 2 | 3 | 4 | done
         same content, named | game:v2           | game:v2                       | A | 2 | 3 | 4 | done
         latest by default   | game              | docker.io/library/game:latest | A | 2 | 3 | 4 | done
         a digest asked for  | game@sha256:bb    | sha256:0123                   | B | 2 | 3 | 4 | done
         under the same tag  | game:v1@sha256:bb | game:v1                       | B | 2 | 3 | 4 | done",
    );
    check(
        &mark("r.io:5000/game:v1", "", "1"),
        "a registry's port   | r.io:5000/game:v2 | r.io:5000/game:v2             |   | 2 | 3 | 4 | done",
    );
    check(
        &mark("game:v1", "", ""),
        "never ran before    | game:v2           | game:v2                       | B | 1 | 3 | 4 | done",
    );
    // The status of a container that has not started names the image that it waits for.
    check(
        &mark("game:v2", "", ""),
        "changed back before | game:v2           | game:v2                       | B | 1 | 3 | 4 | done",
    );
}

#[test]
fn what_is_not_new_or_does_not_run_is_waited_for() {
    check(
        &old(),
        "the old container   | game:v2 | game:v1 | A | 1 | -900 | 60 | waiting
         under the new name  | game:v2 | game:v2 | A | 1 | -900 | 60 | waiting
         restarted before    | game:v2 | game:v1 | A | 2 |  -90 | 60 | waiting
         without a container | game:v2 | game:v2 | B |   |    3 | 60 | waiting",
    );
    let new = now("game:v2", B, "2", 3);
    let stopped = ContainerNow {
        running_since: None,
        ..new.clone()
    };
    let unready = ContainerNow { ready: false, ..new };
    for now in [stopped, unready, ContainerNow::default()] {
        assert_eq!(
            finished(&old(), "game:v2", &now, at(0), at(60)),
            Progress::Waiting
        );
    }
}

#[test]
fn where_nothing_else_tells_a_new_container_is_watched_for_a_while() {
    check(
        &old(),
        "same content, old name    | game:v2           | game:v1        | A                     | 2 |    3 | 4 | 8
         and after it              | game:v2           | game:v1        | A                     | 2 |    3 | 8 | done
         a mirror                  | r.io/game:v2      | mirror/game:v2 | mirror/game@sha256:aa | 2 |    3 | 7 | 8
         and after it              | r.io/game:v2      | mirror/game:v2 | mirror/game@sha256:aa | 2 |    3 | 9 | done
         a crash before the write  | game:v2           | game:v1        | A                     | 2 |   -1 | 1 | 5
         the old tag, pulled anew  | game:v2           | game:v1        | B                     | 2 |    0 | 1 | 5
         a tag is no digest        | game:v1@sha256:bb | game:v1        | A                     | 2 |    0 | 1 | 5
         a node's clock is ahead   | game:v2           | game:v1        | A                     | 2 | 3600 | 2 | 5
         and after it              | game:v2           | game:v1        | A                     | 2 | 3600 | 5 | done
         a node's clock is behind  | game:v2           | game:v1        | A                     | 2 |  -20 | 5 | done",
    );
    check(
        &mark("game:v2", A, "1"),
        "the old one had this name | game:v2           | game:v2        | A                     | 2 |    0 | 1 | 5",
    );
    check(
        &mark("game:v1", "", ""),
        "never ran before          | game:v2           | game:v1        | A                     | 1 |    0 | 1 | 5",
    );
}

#[test]
fn marks_of_the_original_are_understood() {
    check(
        &of_the_original(A),
        "a new id              | game:v2 | x                         | B | 2 |    3 |  4 | done
         the wanted name       | game:v2 | docker.io/library/game:v2 | A | 2 |    3 |  4 | done
         still the old one     | game:v2 | game:v1                   | A | 1 | -900 | 60 | waiting
         a retag on a mirror   | game:v2 | mirror/x:v2               | A | 2 |   30 | 31 | 35
         and after it          | game:v2 | mirror/x:v2               | A | 2 |   30 | 35 | done",
    );
    check(
        &of_the_original(""),
        "without any id        | game:v2 | game:v1                   | A | 2 | -900 | 60 | waiting",
    );
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
    let empty = serde_json::from_value::<ContainerMark>(json!({})).unwrap();
    assert_eq!(empty, ContainerMark::default());
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
        ..old()
    };
    assert_eq!(ContainerMark::of(Some(&status)), expected);
    assert_eq!(ContainerNow::of(&status), now("game:v1", A, "1", 3));
    let waiting = ContainerStatus {
        state: None,
        container_id: None,
        ..status
    };
    assert_eq!(ContainerNow::of(&waiting).running_since, None);
    let mark_of_waiting = ContainerMark::of(Some(&waiting));
    assert_eq!(mark_of_waiting.container_id.as_deref(), Some(""));
    assert_eq!(ContainerMark::of(None), mark("", "", ""));
}

#[test]
fn the_ends_of_time_are_no_panic() {
    for since in [Timestamp::MIN, Timestamp::MAX] {
        for time in [Timestamp::MIN, at(0), Timestamp::MAX] {
            let now = ContainerNow {
                running_since: Some(since),
                ..now("game:v1", A, "2", 0)
            };
            let _ = finished(&old(), "game:v2", &now, time, time);
        }
    }
    let now = now("game:v1", A, "2", 3);
    let end = finished(&old(), "game:v2", &now, Timestamp::MAX, Timestamp::MAX);
    assert_eq!(end, Progress::Waiting, "it started long before the write");
}
