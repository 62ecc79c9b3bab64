//! Tests of the explanations of searches for idle pods.

use kube::ResourceExt;
use serde_json::json;
use shared_api::game_deployment::{FirstIdleStatus, IdleSearchStatus};

use super::*;
use crate::view::samples;

const RANKED: &str =
    r#"kubectl patch gd arena --type=merge -p '{"spec":{"scaleStrategy":{"selectionPolicy":"Ranked"}}}'"#;
const RANKED_UPDATE: &str =
    r#"kubectl patch gd arena --type=merge -p '{"spec":{"updateStrategy":{"selectionPolicy":"Ranked"}}}'"#;

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
         running the hooks of 2 candidates. Continues automatically. No action needed. Selection policy FirstIdle: the \
         PreDelete hooks of 2 candidates are running, 1 pod is selected for deletion, and 1 more idle pod is needed. A \
         candidate whose hook succeeds is selected; its hook then runs again, and the pod is deleted only \
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
    let scale = IdleSearchStatus {
        candidates: 1,
        selected: 2,
        needed: 0,
    };
    status.first_idle = Some(FirstIdleStatus {
        scale: Some(scale),
        update: None,
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
    let mut ended = samples::searching_to_update();
    ended.game.status.as_mut().unwrap().first_idle = None;
    for snapshot in [samples::running(), samples::complete(), samples::refused(), ended] {
        let answer = super::game(&snapshot);
        assert!(!answer.text().contains("FirstIdle"), "{answer:?}");
        assert!(!answer.commands().contains(&RANKED), "{answer:?}");
        assert!(!answer.commands().contains(&RANKED_UPDATE), "{answer:?}");
    }
}

#[test]
fn a_candidate_is_not_selected_and_stays_until_its_own_hook_succeeds() {
    let mut snapshot = samples::searching();
    let answer = of_pod(&snapshot, "arena-b4n8c");
    assert_eq!(
        answer.text(),
        "Pod arena-b4n8c is a candidate for deletion, and is not selected. Its PreDelete hook is running only to find \
         out whether the pod is idle (HookRun scout-hook-arena-7d4b9c-b4n8c-empty). Metric players: last measurement \
         Failed: \"3\" does not satisfy asInt(result) == 0. The pod stays in service. If the hook succeeds, the pod \
         may be selected; its hook then runs again, and the pod is deleted only after that run succeeds."
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
    let stays = "The pods stay in service, and are selected only if too few other pods may turn out to be idle. Their \
                 hooks are rerun only after a retry, or after a change of the hook or the pod.";
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

#[test]
fn candidates_whose_hook_is_not_measured_are_named_with_the_remedy() {
    let mut snapshot = samples::searching();
    // The next measurement is due 20s after the last one, and has 30s.
    snapshot.now = "2026-01-02T10:00:45Z".parse().unwrap();
    let answer = super::game(&snapshot);
    assert!(!answer.text().contains("not being measured"), "{answer:?}");

    snapshot.now = "2026-01-02T10:00:46Z".parse().unwrap();
    let words = "HookRun scout-hook-arena-7d4b9c-b4n8c-empty still has no measurement 30s after it was due: \
                 hook-operator is not running, is overloaded, or does not handle namespace games; check its pods and \
                 its flags --namespace and --shard. ";
    let continues = " Continues automatically once hook-operator starts measuring the HookRun.";
    let look = "kubectl get deploy,pods -A -l app.kubernetes.io/name=hook-operator";

    let answer = super::game(&snapshot);
    let begun = "The PreDelete hooks of 2 candidates (arena-b4n8c, arena-q9w5d) are not being measured. For example, \
                 pod arena-b4n8c: ";
    assert!(answer.text().contains(&format!("{begun}{words}")), "{answer:?}");
    assert!(answer.text().ends_with(continues), "{answer:?}");
    assert!(answer.commands().contains(&look), "{answer:?}");
    assert!(answer.runbook.unwrap().ends_with("#hooknottakenup"));

    let answer = of_pod(&snapshot, "arena-b4n8c");
    let begun = "Pod arena-b4n8c is a candidate for deletion, and is not selected. Its PreDelete hook is not being \
                 measured. ";
    assert!(
        answer.text().starts_with(&format!("{begun}{words}")),
        "{answer:?}"
    );
    assert!(answer.text().ends_with(continues), "{answer:?}");
    assert_eq!(answer.commands()[0], look);
    assert!(answer.runbook.unwrap().ends_with("#hooknottakenup"));
}

/// Returns the snapshot of an update that searches for idle pods, with this progress.
fn updating(candidates: i32, selected: i32, needed: i32) -> Snapshot {
    let mut snapshot = samples::searching_to_update();
    let status = snapshot.game.status.as_mut().unwrap();
    status.first_idle.as_mut().unwrap().update = Some(IdleSearchStatus {
        candidates,
        selected,
        needed,
    });
    snapshot
}

#[test]
fn a_search_for_pods_to_update_says_how_many_can_be_updated_and_how_it_is_ended() {
    let snapshot = samples::searching_to_update();
    let answer = super::game(&snapshot);
    assert_eq!(
        answer.text(),
        "arena is being updated (RollingOut): 1 of 3 pods are updated; waiting for 1 more idle pod to update: running the hooks \
         of 2 candidates. Continues automatically. No action needed. Selection policy FirstIdle for the update: the \
         PreInplace hooks of 2 candidates are running, no pod is selected for the update, and 1 more pod can be \
         updated now if it is idle. A candidate whose hook succeeds is selected; its hook then runs again, and the \
         pod is updated only after that run succeeds. If that run finds that the pod is busy, a candidate whose hook \
         succeeds is selected in its place."
    );
    assert_eq!(answer.commands(), ["kubectl game get arena -w", RANKED_UPDATE]);
    assert!(super::commands(&snapshot).is_empty(), "no action is needed");

    let text = super::game(&updating(1, 2, 3)).text();
    let words = "the PreInplace hook of 1 candidate is running, 2 pods are selected for the update, and 3 more pods \
                 can be updated now if they are idle. ";
    assert!(text.contains(words), "{text}");
}

#[test]
fn a_search_goes_on_while_no_further_pod_can_be_updated() {
    for (candidates, hooks) in [
        (2, "the PreInplace hooks of 2 candidates are running"),
        (0, "no candidate's hook is running"),
    ] {
        let answer = super::game(&updating(candidates, 1, 0));
        let words = format!(
            "{hooks}, 1 pod is selected for the update, and no further pod can be updated now. Once a slot is free, a \
             candidate whose hook has succeeded is selected; its hook then runs again, and the pod is updated only \
             after that run succeeds."
        );
        assert!(answer.text().ends_with(&words), "{answer:?}");
        assert!(!answer.commands().contains(&RANKED_UPDATE), "{answer:?}");
    }
}

#[test]
fn the_hook_of_an_update_is_the_one_that_is_responsible_for_it() {
    let mut snapshot = samples::searching_to_update();
    let strategy = snapshot.game.spec.update_strategy.as_mut().unwrap();
    strategy.type_ = Some("RollingUpdate".to_owned());
    let text = super::game(&snapshot).text();
    assert!(text.contains("the PreDelete hooks of 2 candidates"), "{text}");
    let strategy = snapshot.game.spec.update_strategy.as_mut().unwrap();
    strategy.type_ = Some("InplaceUpdate".to_owned());
    let fallback = json!({ "fallback": "Recreate" });
    strategy.in_place_update_strategy = serde_json::from_value(fallback).unwrap();
    let text = super::game(&snapshot).text();
    assert!(text.contains("the PreInplace hooks of 2 candidates"), "{text}");
    // No candidate can be updated in place.
    let of_deletion = samples::running().runs.remove(0);
    snapshot.runs = ["b4n8c", "q9w5d"]
        .map(|instance| samples::scout(&of_deletion, instance))
        .into();
    let text = super::game(&snapshot).text();
    assert!(text.contains("the PreDelete hooks of 2 candidates"), "{text}");
}

#[test]
fn both_searches_are_explained() {
    let mut snapshot = samples::searching_to_update();
    let scale = samples::searching()
        .game
        .status
        .unwrap()
        .first_idle
        .unwrap()
        .scale;
    snapshot.game.spec.replicas = Some(1);
    let status = snapshot.game.status.as_mut().unwrap();
    status.first_idle.as_mut().unwrap().scale = scale;
    let answer = super::game(&snapshot);
    for words in [
        "Selection policy FirstIdle: the PreDelete hooks of 2 candidates",
        "Selection policy FirstIdle for the update: the PreInplace hooks of 2 candidates",
    ] {
        assert!(answer.text().contains(words), "{answer:?}");
    }
    let scale = "kubectl game scale arena --replicas 3";
    assert_eq!(answer.commands()[1..], [scale, RANKED, RANKED_UPDATE]);
    assert!(super::commands(&snapshot).is_empty(), "no action is needed");

    // The scout of the update says nothing about a deletion.
    let text = of_pod(&snapshot, "arena-b4n8c").text();
    assert!(
        text.starts_with("Pod arena-b4n8c is a candidate for the update, and"),
        "{text}"
    );
    let scout = samples::scout(&samples::running().runs[0], "b4n8c");
    snapshot.runs.push(scout);
    let text = of_pod(&snapshot, "arena-b4n8c").text();
    assert!(
        text.contains("Pod arena-b4n8c is a candidate for the update, and"),
        "{text}"
    );
    assert!(
        text.contains("Pod arena-b4n8c is a candidate for deletion, and"),
        "{text}"
    );

    // With one hook for both, a scout of this hook may serve both, unless pods are updated in place.
    snapshot.game.spec.pre_inplace_update_strategy = None;
    let text = of_pod(&snapshot, "arena-b4n8c").text();
    assert!(!text.contains("for deletion and for the update"), "{text}");
    let strategy = snapshot.game.spec.update_strategy.as_mut().unwrap();
    strategy.type_ = Some("RollingUpdate".to_owned());
    snapshot.runs.drain(..2);
    let text = of_pod(&snapshot, "arena-b4n8c").text();
    assert!(
        text.starts_with(
            "Pod arena-b4n8c is a candidate for deletion and for the update, and is not selected."
        ),
        "{text}"
    );
    assert!(
        text.ends_with("the pod is deleted or updated only after that run succeeds."),
        "{text}"
    );
}

#[test]
fn a_candidate_for_the_update_stays_until_its_own_hook_succeeds() {
    let mut snapshot = samples::searching_to_update();
    let answer = of_pod(&snapshot, "arena-b4n8c");
    assert_eq!(
        answer.text(),
        "Pod arena-b4n8c is a candidate for the update, and is not selected. Its PreInplace hook is running only to \
         find out whether the pod is idle (HookRun scout-inplace-hook-arena-5f6d8b-b4n8c-empty). Metric players: last \
         measurement Failed: \"3\" does not satisfy asInt(result) == 0. The pod stays in service. If the hook \
         succeeds, the pod may be selected; its hook then runs again, and the pod is updated only after that run \
         succeeds."
    );
    let watch = "kubectl game hook get scout-inplace-hook-arena-5f6d8b-b4n8c-empty -w";
    assert_eq!(answer.commands(), [watch]);

    let status = snapshot.runs[0].status.as_mut().unwrap();
    status.phase = shared_api::Phase::Successful;
    let text = of_pod(&snapshot, "arena-b4n8c").text();
    let words = "so it can be selected once a slot of maxUnavailable is free. Its hook then runs again, and the pod \
                 is updated only after that run succeeds. Until then, it stays in service.";
    assert!(text.ends_with(words), "{text}");
}

#[test]
fn candidates_for_the_update_whose_hook_does_not_succeed_are_retried() {
    let mut snapshot = samples::searching_to_update();
    let failed = samples::refused().runs.remove(0);
    snapshot.runs = ["b4n8c", "q9w5d"]
        .map(|instance| samples::in_place_scout(&failed, instance))
        .into();
    let answer = super::game(&snapshot);
    let words = "The PreInplace hooks of 2 candidates (arena-b4n8c, arena-q9w5d) did not succeed. For example, pod \
                 arena-b4n8c: HookRun scout-inplace-hook-arena-5f6d8b-b4n8c-empty is Failed: ";
    assert!(answer.text().contains(words), "{answer:?}");
    let retry = "kubectl game retry arena --hook pre-inplace";
    assert!(answer.commands().contains(&retry), "{answer:?}");
    assert_eq!(of_pod(&snapshot, "arena-q9w5d").commands()[0], retry);
}
