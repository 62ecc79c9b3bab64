//! Tests of the explanations of a search for idle pods.

use kube::ResourceExt;
use serde_json::json;
use shared_api::game_deployment::FirstIdleStatus;

use super::*;
use crate::view::samples;

const RANKED: &str =
    r#"kubectl patch gd arena --type=merge -p '{"spec":{"scaleStrategy":{"selectionPolicy":"Ranked"}}}'"#;

/// Returns the explanation of the pod with this name.
fn of_pod(snapshot: &Snapshot, name: &str) -> Explanation {
    let pod = snapshot.pods.iter().find(|pod| pod.name_any() == name);
    super::pod(snapshot, pod.unwrap())
}

/// Gives the scouts the state of the run of another snapshot.
fn with_scouts_of(other: &Snapshot) -> Snapshot {
    let mut snapshot = samples::searching();
    let scouts = ["b4n8c", "q9w5d"].map(|instance| samples::scout(&other.runs[0], instance));
    snapshot.runs.truncate(1);
    snapshot.runs.extend(scouts);
    snapshot
}

#[test]
fn a_search_says_how_many_pods_it_has_found_and_how_it_is_ended() {
    let mut snapshot = samples::searching();
    let answer = super::game(&snapshot);
    assert_eq!(
        answer.text(),
        "arena is scaling (Scaling): deleting 2 pods; running the hook of arena-x7k2p; waiting for 1 more idle pod: \
         running the hooks of 2 candidates. Continues automatically. No action needed. Scale-down with selection policy \
         FirstIdle: the PreDelete hooks of 2 candidates are running, 1 pod is selected for deletion, and 1 more idle pod \
         is needed. A candidate whose hook succeeds is selected; its hook then runs again, and the pod is deleted only \
         after that run succeeds. All other candidates are kept."
    );
    let (watch, scale) = (
        "kubectl game get arena -w",
        "kubectl game scale arena --replicas 3",
    );
    assert_eq!(answer.commands(), [watch, scale, RANKED]);
    assert_eq!(answer.runbook, None);
    assert!(super::commands(&snapshot).is_empty(), "no action is needed");

    let status = snapshot.game.status.as_mut().unwrap();
    status.surge_replicas = 1;
    status.first_idle = Some(FirstIdleStatus {
        candidates: 1,
        selected: 2,
        needed: 0,
    });
    let answer = super::game(&snapshot);
    let words = "the PreDelete hook of 1 candidate is running, 2 pods are selected for deletion, and no more are \
                 needed. If the hook of a selected pod finds that it is busy, a candidate whose hook succeeds is \
                 selected in its place.";
    assert!(answer.text().ends_with(words), "{answer:?}");
    assert_eq!(
        answer.commands(),
        [watch],
        "pods of an update are surplus as well"
    );
}

#[test]
fn a_search_is_also_explained_while_the_scale_down_is_blocked() {
    let mut snapshot = samples::refused();
    snapshot.game.status.as_mut().unwrap().first_idle = samples::searching().game.status.unwrap().first_idle;
    let answer = super::game(&snapshot);
    assert!(
        answer
            .text()
            .starts_with("Scaling of arena is blocked and needs attention (HookUnsuccessful)."),
        "{answer:?}"
    );
    assert!(answer.text().contains("1 more idle pod is needed"), "{answer:?}");
    assert_eq!(answer.commands()[0], "kubectl game retry arena");
    assert!(answer.next.last().unwrap().is_skip(), "{answer:?}");
}

#[test]
fn without_a_search_nothing_is_said_about_one() {
    for snapshot in [samples::running(), samples::complete(), samples::refused()] {
        let answer = super::game(&snapshot);
        assert!(!answer.text().contains("FirstIdle"), "{answer:?}");
        assert!(!answer.commands().contains(&RANKED), "{answer:?}");
    }
}

#[test]
fn a_candidate_is_not_selected_and_stays_until_its_own_hook_succeeds() {
    let mut snapshot = samples::searching();
    let answer = of_pod(&snapshot, "arena-b4n8c");
    assert_eq!(
        answer.text(),
        "Pod arena-b4n8c is a candidate for the scale-down, and is not selected for deletion. Its PreDelete hook is \
         running only to find out whether the pod is idle (HookRun scout-hook-arena-7d4b9c-b4n8c-empty). Metric players: last \
         measurement Failed: \"3\" does not satisfy asInt(result) == 0. The pod stays in service. If the hook succeeds, \
         the pod may be selected; its hook then runs again, and the pod is deleted only after that run succeeds."
    );
    let watch = "kubectl game hook get scout-hook-arena-7d4b9c-b4n8c-empty -w";
    assert_eq!(answer.commands(), [watch]);

    let status = snapshot.runs[1].status.as_mut().unwrap();
    status.phase = shared_api::Phase::Successful;
    let text = of_pod(&snapshot, "arena-b4n8c").text();
    assert!(text.contains("has succeeded (HookRun scout-hook-"), "{text}");
    assert!(text.contains("Its hook then runs again"), "{text}");

    // A scout that is being deleted says nothing about its pod.
    let deleted = serde_json::from_value(json!("2026-01-02T09:59:00Z")).unwrap();
    snapshot.runs[1].metadata.deletion_timestamp = deleted;
    let text = of_pod(&snapshot, "arena-b4n8c").text();
    assert!(text.starts_with("Pod arena-b4n8c is not waiting"), "{text}");
}

#[test]
fn a_selected_pod_is_explained_by_its_hook_and_not_by_its_scout() {
    let mut snapshot = samples::searching();
    let scout = samples::scout(&snapshot.runs[0], "x7k2p");
    snapshot.runs.insert(0, scout);
    let text = of_pod(&snapshot, "arena-x7k2p").text();
    let begun = "Pod arena-x7k2p is waiting: it is selected for deletion, and its PreDelete hook is running (HookRun \
                 pre-delete-hook-arena-7d4b9c-x7k2p-empty).";
    assert!(text.starts_with(begun), "{text}");
}

#[test]
fn candidates_whose_hook_does_not_succeed_are_named_with_the_remedy() {
    let snapshot = with_scouts_of(&samples::refused());
    let answer = super::game(&snapshot);
    let words = "The PreDelete hooks of 2 candidates (arena-b4n8c, arena-q9w5d) did not succeed. For example, pod \
                 arena-b4n8c: HookRun scout-hook-arena-7d4b9c-b4n8c-empty is Failed: ";
    assert!(answer.text().contains(words), "{answer:?}");
    let stays = "The pods stay in service, and are selected only if too few other pods may be idle. Their hooks are \
                 rerun only after a retry, or after a change of the hook.";
    assert!(answer.text().ends_with(stays), "{answer:?}");
    let retry = "kubectl game retry arena --hook pre-delete";
    assert!(answer.commands().contains(&retry), "{answer:?}");

    let answer = of_pod(&snapshot, "arena-q9w5d");
    assert!(
        answer
            .text()
            .contains("Its PreDelete hook did not succeed. HookRun scout-hook-"),
        "{answer:?}"
    );
    assert_eq!(answer.commands()[0], retry);
    assert!(!answer.next.iter().any(Next::is_skip), "{answer:?}");
}

#[test]
fn candidates_whose_hook_keeps_failing_with_errors_need_no_retry() {
    let message = "connection refused by 10.0.0.7:9091";
    let answer = super::game(&with_scouts_of(&samples::erroring(
        "HookErrors",
        "Unreachable",
        message,
    )));
    let words = "The PreDelete hooks of 2 candidates (arena-b4n8c, arena-q9w5d) keep failing with errors.";
    assert!(answer.text().contains(words), "{answer:?}");
    assert!(answer.text().contains("No retry is needed: "), "{answer:?}");
    let few = super::game(&with_scouts_of(&samples::erroring(
        "Measuring",
        "Unreachable",
        message,
    )));
    assert!(!few.text().contains("arena-q9w5d"), "{few:?}");
}
