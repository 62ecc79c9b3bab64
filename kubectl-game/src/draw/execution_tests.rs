//! Pictures of ExecutionHooks.

use kube::ResourceExt;
use serde_json::json;

use super::Style;
use super::execution::{bar, lines, list};
use crate::cluster::UnreadableObject;
use crate::paint::Paint;
use crate::view::execution::{ContainerCounts, ContainerState, ExecutionView, Stage};
use crate::view::execution_samples::{executing, failed, hook, status, unseen, waiting};
use crate::view::samples::now;

const STYLE: Style = Style {
    paint: Paint::PLAIN,
    width: Some(60),
    height: None,
    cuts: true,
    now: None,
};

fn bar_of(succeeded: i32, failed: i32, total: i32) -> String {
    let counts = ContainerCounts {
        total,
        succeeded,
        failed,
    };
    bar(counts, STYLE)
}

#[test]
fn a_bar_is_full_only_when_every_container_has_ended() {
    assert_eq!(bar_of(0, 0, 0), "[----------] 0/0 succeeded, 0 failed");
    assert_eq!(bar_of(412, 3, 1000), "[####------] 412/1000 succeeded, 3 failed");
    assert_eq!(bar_of(998, 1, 1000), "[#########-] 998/1000 succeeded, 1 failed");
    assert_eq!(bar_of(998, 2, 1000), "[##########] 998/1000 succeeded, 2 failed");
    assert_eq!(
        bar_of(-1, 9, 2),
        "[##########] -1/2 succeeded, 9 failed",
        "no panic"
    );
    let signs = Style {
        paint: Paint::of(false, true),
        ..STYLE
    };
    let counts = ContainerCounts {
        total: 2,
        succeeded: 1,
        failed: 0,
    };
    assert_eq!(bar(counts, signs), "[█████░░░░░] 1/2 succeeded, 0 failed");
}

/// Builds a hook with a container in each state.
fn mixed() -> ExecutionView {
    let mut mixed = status(
        "Unknown",
        "Executing",
        "the action succeeded in 1 of 5 containers and failed in 1",
    );
    mixed["total"] = json!(5);
    mixed["succeeded"] = json!(1);
    mixed["failed"] = json!(1);
    let error = |reason: &str, message: &str, at: &str| json!({ "errorType": "Error", "reason": reason, "message": message, "timestamp": at });
    let (early, late) = ("2026-01-02T09:57:01Z", "2026-01-02T09:57:02.5Z");
    mixed["hookStatuses"] = json!([
        { "podName": "arena-a", "containerName": "game" },
        { "podName": "arena-b", "containerName": "game", "timestamp": late, "attempts": 1,
          "error": error("ExitCode", "exited with code 3", early) },
        { "podName": "arena-c", "containerName": "game", "timestamp": early, "attempts": 1,
          "error": error("CallTimedOut", "did not finish within 2s", late) },
        { "podName": "arena-d", "containerName": "game", "timestamp": early, "attempts": 1, "succeed": true },
        { "podName": "arena-e", "containerName": "game", "timestamp": early, "attempts": 4, "succeed": false,
          "error": error("PodGone", "the pod was \u{1b}[31mdeleted, and this message is longer than the terminal", late) },
    ]);
    ExecutionView::of(&hook(mixed))
}

#[test]
fn a_hook_is_shown_with_the_containers_that_have_not_succeeded_failed_ones_first() {
    let style = Style {
        now: Some(now()),
        ..STYLE
    };
    assert_eq!(
        lines(&mixed(), style).join("\n"),
        "\
Name:       freeze-x7k2p
Namespace:  games
Action:     freeze
Progress:   [####------] 1/5 succeeded, 1 failed
Status:     - Executing, age 5m
            the action succeeded in 1 of 5 containers and
            failed in 1

POD      CONTAINER  STATE       ATTEMPTS  ERROR
arena-e  game       x Failed    4         PodGone: the pod was  [31mdeleted, and this message is longer than the terminal
arena-c  game       ! Retrying  1         CallTimedOut: did not finish within 2s
arena-b  game       - Running   1         ExitCode: exited with code 3
arena-a  game       o Waiting   0"
    );
}

#[test]
fn of_many_containers_some_dozens_are_shown() {
    let pods: Vec<String> = (0..42).map(|number| format!("arena-{number}")).collect();
    let pods: Vec<&str> = pods.iter().map(String::as_str).collect();
    let shown = lines(&failed(0, &pods), STYLE);
    let rows = shown.iter().filter(|line| line.contains("x Failed ")).count();
    assert_eq!((rows, shown.last().unwrap().as_str()), (30, "and 12 more"));
}

#[test]
fn a_hook_that_hook_operator_has_not_seen_names_what_to_check() {
    let shown = lines(&unseen(), STYLE);
    assert_eq!(
        shown[4..],
        [
            "Status:     o Unseen, age ",
            "            hook-operator has not observed this",
            "            ExecutionHook yet; check that the operator is",
            "            running: kubectl get deploy,pods -A -l",
            "            app.kubernetes.io/name=hook-operator"
        ]
    );
}

#[test]
fn hooks_are_listed_with_their_counts_and_reasons() {
    let hooks = [
        executing(1, &["arena-a"]),
        failed(3, &["arena-a"]),
        waiting("ActionNotFound", "there is none"),
        unseen(),
    ];
    let stages: Vec<Stage> = hooks.iter().map(|hook| hook.stage).collect();
    assert_eq!(
        stages,
        [Stage::Executing, Stage::Failed, Stage::Waiting, Stage::Unseen]
    );
    let broken = UnreadableObject::new("games", "broken", "spec: no");
    let style = Style {
        now: Some(now()),
        width: None,
        ..STYLE
    };
    assert_eq!(
        list(&hooks, &[broken], true, style).join("\n"),
        "\
NAMESPACE  NAME          ACTION  SUCCEEDED  FAILED  TOTAL  REASON            AGE
games      freeze-x7k2p  freeze  1          1       4      - Executing       5m
games      freeze-x7k2p  freeze  3          1       4      x ActionFailed    5m
games      freeze-x7k2p  freeze  0          0       0      ! ActionNotFound  5m
games      freeze-x7k2p  freeze  0          0       0      o Unseen          5m
games      broken                                          x Unreadable"
    );
}

#[test]
fn a_hook_that_succeeded_has_no_container_to_show() {
    let mut ended = status(
        "True",
        "ActionSucceeded",
        "the action succeeded in 1 of 1 containers",
    );
    ended["hookStatuses"] =
        json!([{ "podName": "arena-a", "containerName": "game", "attempts": 1, "succeed": true }]);
    let hook = hook(ended);
    assert_eq!(hook.name_any(), "freeze-x7k2p");
    let view = ExecutionView::of(&hook);
    assert_eq!((view.stage, view.containers.len()), (Stage::Succeeded, 0));
    assert_eq!(view.failed().count(), 0);
    assert_eq!(
        mixed().failed().map(|one| one.state).collect::<Vec<_>>(),
        [ContainerState::Failed]
    );
}
