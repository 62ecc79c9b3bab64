//! Tests that every documented reason has a paragraph, and a command if a person must act.

use kube::ResourceExt;
use shared_api::reason::WorkloadCondition;

use super::*;
use crate::view::samples;

/// Returns the reasons in `docs/game-deployments.md`, each with the cell about its condition.
fn documented() -> Vec<(String, String)> {
    let page = include_str!("../../../docs/game-deployments.md");
    let (_, table) = page.split_once("## Reasons\n").unwrap();
    let (table, _) = table.split_once("\n## ").unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        (cells[0].trim_matches('`').to_owned(), cells[1].to_owned())
    })
    .collect()
}

#[test]
fn every_reason_of_the_documents_has_an_answer() {
    let reasons = documented();
    assert!(reasons.len() > 20, "{reasons:?}");
    let mut conditions = 0;
    for (reason, about) in reasons {
        // Of the other conditions, one that needs a person shows it.
        let is_summary = about.starts_with(WorkloadCondition::LifecycleHooksSucceeded.as_str());
        if about.contains("event") || is_summary {
            continue;
        }
        conditions += 1;
        let kind = [
            "RemovalsGuarded",
            "HooksResolved",
            "InvalidSpec",
            "ScaleBlocked",
            "UpdateBlocked",
            "Available",
            "Progressing",
        ]
        .into_iter()
        .find(|kind| about.contains(kind))
        .unwrap_or("ScaleBlocked");
        let turns_false = ["Available", "Progressing", "HooksResolved", "RemovalsGuarded"].contains(&kind);
        let others = ["False", "Unknown"].into_iter();
        let status = others
            .filter(|_| turns_false)
            .find(|status| about.contains(status));
        let status = status.unwrap_or("True");
        let snapshot = samples::with_condition(kind, status, &reason, "the words of the operator");
        let answer = super::game(&snapshot);
        // These conditions need no explanation when they are True.
        let plain = ["Available", "HooksResolved", "RemovalsGuarded"].contains(&kind);
        let content = [
            "MinimumPodsAvailable",
            "RolloutComplete",
            "HooksResolved",
            "RemovalsGuarded",
        ]
        .contains(&reason.as_str());
        assert_eq!(
            answer.next.is_empty() && !plain,
            content && !plain,
            "{reason}: {answer:?}"
        );
        if !plain || status != "True" {
            assert!(
                answer.text().contains("he words of the operator"),
                "{reason}: {answer:?}"
            );
        }
        for answer in [answer, super::pod(&snapshot, &snapshot.pods[2])] {
            assert!(answer.text().ends_with(['.', '!', '?']), "{reason}: {answer:?}");
            for next in &answer.next {
                assert!(next.command.starts_with("kubectl "), "{reason}: {next}");
            }
        }
    }
    assert!(conditions > 15);
}

fn of_pod(snapshot: &Snapshot, name: &str) -> String {
    let pod = snapshot.pods.iter().find(|pod| pod.name_any() == name).unwrap();
    shown(&super::pod(snapshot, pod))
}

/// Formats an explanation as it is printed.
fn shown(explanation: &Explanation) -> String {
    let Explanation {
        paragraphs,
        next,
        runbook,
    } = explanation;
    let next = next.iter().map(ToString::to_string);
    let lines: Vec<String> = paragraphs
        .iter()
        .cloned()
        .chain(next)
        .chain(runbook.clone())
        .collect();
    lines.join("\n")
}

#[test]
fn an_incomplete_removal_guard_is_restored() {
    let message = "the removal guard does not review all evictions and deletions of the pods: webhook \
                   evictions.hookgate.tkex.tencent.com is missing";
    let snapshot = samples::with_condition("RemovalsGuarded", "False", "RemovalsNotGuarded", message);
    let answer = super::game(&snapshot);
    assert!(
        answer
            .text()
            .contains("If the message names webhooks, upgrade the chart"),
        "{answer:?}"
    );
    let start = "kubectl get validatingwebhookconfigurations ";
    let commands = answer.commands();
    assert!(
        commands.iter().any(|command| command.starts_with(start)),
        "{answer:?}"
    );
}

#[test]
fn every_reason_that_needs_a_person_has_a_section_in_the_runbook() {
    let runbook = include_str!("../../../docs/runbook.md");
    let game = samples::complete().game;
    let reasons = WorkloadReason::ALL.iter().copied();
    let missing: Vec<WorkloadReason> = reasons
        .filter(|reason| remedy::needs_person(*reason, &game))
        .filter(|reason| !runbook.contains(&format!("\n### {reason}\n")))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn a_person_who_must_act_gets_a_link() {
    let link = |snapshot: &Snapshot| super::game(snapshot).runbook.unwrap_or_default();
    let page = "https://github.com/hookgate/hookgate/blob/main/docs/runbook.md";
    assert_eq!(link(&samples::refused()), format!("{page}#hookunsuccessful"));
    assert_eq!(link(&samples::blocked()), format!("{page}#hooktemplatemissing"));
    let unresolved = samples::unresolved("HookTemplateInvalid");
    assert_eq!(link(&unresolved), format!("{page}#hooktemplateinvalid"));
    assert_eq!(link(&samples::paused()), format!("{page}#paused"));
    assert_eq!(link(&samples::complete()), "");
    assert_eq!(link(&samples::running()), "");
}

#[test]
fn a_pod_whose_hook_failed() {
    insta::assert_snapshot!(of_pod(&samples::refused(), "arena-x7k2p"));
}

#[test]
fn a_pod_whose_hook_waits_for_the_notice() {
    let explained = |snapshot: &Snapshot| {
        let mut pods = snapshot.pods.iter();
        let pod = pods.find(|pod| pod.name_any() == "arena-x7k2p").unwrap();
        super::pod(snapshot, pod)
    };
    let text = |snapshot: &Snapshot| explained(snapshot).text();
    let mut snapshot = samples::notified();
    let words = "Pod arena-x7k2p is waiting: it is selected for deletion, and its PreDelete hook is waiting for the \
                 notice (HookRun notice-hook-arena-7d4b9c-x7k2p-finish-0123456789abcdef), at most 30 s. The hook runs \
                 after the first measurement of the notice, whatever its result. The pod keeps running and stays in \
                 service.";
    assert_eq!(text(&snapshot), words);
    let get = "kubectl game hook get notice-hook-arena-7d4b9c-x7k2p-finish-0123456789abcdef";
    assert_eq!(explained(&snapshot).commands()[0], get);
    let other = samples::notified();
    let of_another_selection = {
        let mut snapshot = samples::notified();
        let notes = snapshot.runs[0].annotations_mut();
        notes.insert(
            "tkex.tencent.com/choice".to_owned(),
            "delete@2026-01-01T00:00:00Z".to_owned(),
        );
        snapshot
    };
    snapshot.now = "2026-01-02T10:00:20Z".parse().unwrap();
    for without_wait in [&snapshot, &of_another_selection] {
        let text = text(without_wait);
        assert!(
            text.starts_with("Pod arena-x7k2p is waiting to be deleted"),
            "{text}"
        );
    }
    // Once the hook runs, it explains the pod, and the notice does not.
    let mut running = samples::running();
    running.runs.insert(0, other.runs.into_iter().next().unwrap());
    let text = text(&running);
    let begun = "Pod arena-x7k2p is waiting: it is selected for deletion, and its PreDelete hook is running (HookRun \
                 pre-delete-hook-arena-7d4b9c-x7k2p-empty).";
    assert!(text.starts_with(begun), "{text}");
}

#[test]
fn a_pod_whose_hook_is_running() {
    insta::assert_snapshot!(of_pod(&samples::running(), "arena-x7k2p"));
}

#[test]
fn a_pod_whose_hook_cannot_run() {
    let answers = [
        (
            "HookTemplateMissing",
            "its hook cannot run, because HookTemplate empty does not exist; create it",
        ),
        (
            "HookArgumentsUnresolved",
            "its hook cannot run, because HookTemplate empty needs a value for argument room; set it in the workload's \
             hook.args or in the template",
        ),
        (
            "HookRunNameInvalid",
            "its hook cannot run, because HookRun a-b-c already exists but does not belong to this workload; delete it",
        ),
        (
            "PodAddressMissing",
            "its hook cannot run, because the hook uses PodIP, but the pod has no IP address yet",
        ),
    ];
    let answers = answers.map(|(reason, message)| {
        let mut snapshot = samples::because(reason, message);
        if reason == "HookRunNameInvalid" {
            let status = snapshot.game.status.as_mut().unwrap();
            status.pre_delete_hook_condition[0].conflicting_hook_run = Some("a-b-c".to_owned());
        }
        of_pod(&snapshot, "arena-x7k2p")
    });
    insta::assert_snapshot!(answers.join("\n\n"));
}

#[test]
fn a_pod_that_waits_for_no_hook() {
    let old = |reason: &str, kind: &str, status: &str, message: &str| {
        of_pod(
            &samples::with_condition(kind, status, reason, message),
            "arena-x7k2p",
        )
    };
    let mut words = vec![
        of_pod(&samples::complete(), "arena-x7k2p"),
        of_pod(&samples::paused(), "arena-x7k2p"),
        of_pod(&samples::canary("PausedByCanaryPauseStep", true), "arena-x7k2p"),
        of_pod(&samples::canary("PausedByStepBasedHook", true), "arena-x7k2p"),
        old(
            "RollingOut",
            "Progressing",
            "True",
            "2 of 3 pods are updated; 1 pod is waiting because maxUnavailable is reached: arena-x7k2p",
        ),
        old(
            "RolloutComplete",
            "Progressing",
            "True",
            "2 of 3 pods are at the update revision; the rest are held back by spec.updateStrategy.partition",
        ),
        old(
            "WaitingForDeletion",
            "Progressing",
            "True",
            "2 of 3 pods are updated; the rest will be updated when they are deleted",
        ),
        old(
            "NotInPlaceUpdatable",
            "UpdateBlocked",
            "True",
            "pods cannot be updated in place: spec.containers[0].env differs",
        ),
        old(
            "InPlaceStalled",
            "UpdateBlocked",
            "True",
            "pod arena-x7k2p: container game is waiting: ImagePullBackOff; fix the image, or revert the template",
        ),
        old(
            "InvalidSpec",
            "InvalidSpec",
            "True",
            "spec.selector: must not be empty, because an empty selector matches all pods in the namespace",
        ),
    ];
    let mut unseen = samples::complete();
    unseen.game.metadata.generation = Some(4);
    words.push(of_pod(&unseen, "arena-x7k2p"));
    let mut ending = samples::complete();
    ending.pods[2].metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
        samples::now(),
    ));
    words.push(of_pod(&ending, "arena-x7k2p"));
    insta::assert_snapshot!(words.join("\n\n"));
}

#[test]
fn a_pod_whose_hooks_are_skipped_says_so() {
    let mut snapshot = samples::complete();
    snapshot.pods[2] = samples::pod(
        "arena-x7k2p",
        "arena-7d4b9c",
        serde_json::json!({ "tkex.tencent.com/skip-hook": "u-x7k2p" }),
    );
    assert!(of_pod(&snapshot, "arena-x7k2p").contains("Its hooks are skipped"));
    snapshot.pods[2].metadata.uid = Some("another".to_owned());
    assert!(of_pod(&snapshot, "arena-x7k2p").contains("its value is not the pod's UID"));
}

#[test]
fn a_workload_says_everything_that_needs_a_person() {
    insta::assert_snapshot!(shown(&super::game(&samples::refused())));
}

#[test]
fn an_aborted_rollout_is_restarted_or_gets_another_template() {
    let ends = |snapshot: &Snapshot, words: &str, next: &[&str]| {
        let answer = super::game(snapshot);
        assert!(answer.text().ends_with(words), "{answer:?}");
        assert_eq!(answer.commands(), next);
    };
    let (retry, undo) = ("kubectl game retry arena", "kubectl game undo arena");
    let mut snapshot = samples::rolled_back();
    let or = "fix the template, or roll it back.";
    ends(
        &snapshot,
        &format!("arena-5f6d8b. Restart the rollout, {or}"),
        &[retry, undo],
    );
    let status = snapshot.game.status.as_mut().unwrap();
    for condition in &mut status.conditions {
        if condition.reason == "RolloutAborted" {
            condition.reason = "LifecycleHookAborted".to_owned();
        }
    }
    let by_hook = format!("Fix the cause and restart the rollout, {or}");
    ends(&snapshot, &by_hook, &[retry, undo]);
    snapshot.game.spec.update_strategy.get_or_insert_default().paused = Some(true);
    let paused = format!("No pod is rolled back until the update is resumed. {by_hook}");
    ends(&snapshot, &paused, &["kubectl game resume arena", retry, undo]);
    // Without a rollback, the hook alone is rerun.
    let status = snapshot.game.status.as_mut().unwrap();
    status.rollback = None;
    let held = "Fix the cause and rerun the hook, fix the template, or roll back.";
    let hook = format!("{retry} --lifecycle NAME");
    ends(&snapshot, held, &[hook.as_str(), undo]);
}

#[test]
fn pods_of_an_aborted_rollout_wait_and_those_that_are_back_do_not() {
    let snapshot = samples::rolled_back();
    let waits = of_pod(&snapshot, "arena-b4n8c");
    assert!(
        waits.starts_with("Pod arena-b4n8c is waiting (RolloutAborted): "),
        "{waits}"
    );
    let is_back = of_pod(&snapshot, "arena-x7k2p");
    assert!(
        is_back.starts_with("Pod arena-x7k2p is not waiting: it is ready and at its target revision"),
        "{is_back}"
    );
}

#[test]
fn a_deletion_waits_for_the_hooks_of_guarded_pods() {
    let words = "the GameDeployment is being deleted; 3 pods are left";
    let deleted = samples::with_condition("Progressing", "True", "Deleting", words);
    let deleted = samples::being_deleted(deleted, true);
    let answer = super::game(&deleted);
    assert_eq!(
        answer.text(),
        format!(
            "arena is waiting (Deleting): {words}. Each pod will be deleted once its PreDelete hook succeeds, and \
             the GameDeployment after its last pod."
        )
    );
    assert_eq!(answer.commands(), ["kubectl game get arena -w"]);
    assert_eq!(
        of_pod(&deleted, "arena-b4n8c"),
        "Pod arena-b4n8c is waiting: its GameDeployment is being deleted, but gamedeployment-operator has not selected \
         it for deletion yet.\nkubectl game get arena -w"
    );
    let refused = super::game(&samples::being_deleted(samples::refused(), true));
    assert!(
        refused.text().starts_with(
            "The deletion of arena is blocked and needs attention (HookUnsuccessful). The PreDelete hook"
        ),
        "{refused:?}"
    );
    let mut unseen = deleted;
    unseen.game.metadata.generation = Some(4);
    let answer = super::game(&unseen);
    assert!(
        answer
            .text()
            .starts_with("arena is being deleted, and is waiting for the operator: "),
        "{answer:?}"
    );
}

#[test]
fn a_deletion_without_the_finalizer_runs_no_hooks() {
    let mut collected = samples::being_deleted(samples::running(), false);
    let words = "arena is being deleted; the garbage collector will delete its pods without running their hooks. Its \
                 deletion waits until these finalizers are removed: foregroundDeletion.";
    let answer = super::game(&collected);
    assert_eq!((answer.text().as_str(), answer.next.len()), (words, 0));
    assert_eq!(of_pod(&collected, "arena-x7k2p"), words);
    let orphaned = ["tkex.tencent.com/ask-before-removal", "orphan"];
    collected.game.metadata.finalizers = Some(orphaned.map(str::to_owned).into());
    let kept = "arena is being deleted; its pods are kept, without an owner. Its deletion waits until these finalizers \
                are removed: tkex.tencent.com/ask-before-removal, orphan.";
    assert_eq!(super::game(&collected).text(), kept);
}

#[test]
fn the_hook_of_a_pod_on_its_way_back_is_retried_without_the_rollout() {
    let mut snapshot = samples::refused();
    let rollback = samples::rolled_back().game.status.unwrap().rollback;
    snapshot.game.status.as_mut().unwrap().rollback = rollback;
    assert_eq!(
        super::game(&snapshot).commands(),
        [
            "kubectl game retry arena --hook pre-delete",
            "kubectl game why pod/arena-x7k2p",
            "kubectl game skip arena-x7k2p --reason 'WHY'"
        ]
    );
}

#[test]
fn a_pod_that_is_gone() {
    let at = |text: &str| text.parse().unwrap();
    let note = "pod arena-x7k2p: HookRun pre-delete-hook-a is Successful";
    let answer = super::gone(
        "arena-x7k2p",
        Some(at("2026-01-01T00:00:00Z")),
        note,
        at("2026-01-01T00:00:05Z"),
    );
    assert_eq!(
        answer.text(),
        "Pod arena-x7k2p was deleted 5s ago, because HookRun pre-delete-hook-a is Successful."
    );
}
