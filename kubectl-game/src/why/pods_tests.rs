//! Tests of pods that do not start: each cause once, with its pods, the words of the scheduler or kubelet, and commands
//! that can be run as printed.

use gamedeployment_core::pod::Pod;
use k8s_openapi::api::core::v1 as api;
use kube::ResourceExt;
use serde_json::{Value, json};
use shared_api::names::pod::REVISION;

use super::{Explanation, Snapshot};
use crate::view::samples;
use crate::view::state::undo_target;

/// Message of a scheduler.
const NO_NODE: &str = "0/3 nodes are available: 3 Insufficient memory.";

/// Message of a kubelet.
const NO_IMAGE: &str = "Back-off pulling image \"game:v2\"";

const DESCRIBE: &str = "kubectl describe pod arena-a";
const UNDO: &str = "kubectl game undo arena";
const SET_IMAGE: &str = "kubectl game set image arena game=IMAGE";

/// Builds a pod of the update revision with this status.
fn pod(name: &str, status: Value) -> api::Pod {
    let mut pod = samples::pod(name, "arena-7d4b9c", json!({}));
    pod.status = Some(serde_json::from_value(status).unwrap());
    pod
}

/// Builds a pod that no node fits.
fn pending(name: &str, why: &str) -> api::Pod {
    let scheduled =
        json!({ "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why });
    let mut pod = pod(name, json!({ "phase": "Pending", "conditions": [scheduled] }));
    pod.spec.as_mut().unwrap().node_name = None;
    pod
}

/// Builds a pod whose container waits for this reason.
fn waiting(name: &str, container: &str, reason: &str, message: &str) -> api::Pod {
    let status = json!({
        "name": container, "image": "game:v2", "imageID": "", "ready": false, "restartCount": 0,
        "state": { "waiting": { "reason": reason, "message": message } }
    });
    let ready = json!({ "type": "Ready", "status": "False" });
    let status = json!({ "phase": "Pending", "conditions": [ready], "containerStatuses": [status] });
    let mut pod = pod(name, status);
    container.clone_into(&mut pod.spec.as_mut().unwrap().containers[0].name);
    pod
}

/// Adds pods to a workload that is complete, or whose condition `Available` is False.
fn with(pods: impl IntoIterator<Item = api::Pod>, is_available: bool) -> Snapshot {
    let mut snapshot = samples::complete();
    snapshot.pods.extend(pods);
    let count = i32::try_from(snapshot.pods.len()).unwrap();
    snapshot.game.spec.replicas = Some(count);
    let status = snapshot.game.status.as_mut().unwrap();
    (status.replicas, status.available_replicas) = (count, 3);
    if !is_available {
        let mut conditions = status.conditions.iter_mut();
        let available = conditions.find(|found| found.type_ == "Available").unwrap();
        (available.status, available.reason) = ("False".to_owned(), "MinimumPodsUnavailable".to_owned());
        available.message =
            "fewer than 4 pods are available; pod arena-a: the words of the operator".to_owned();
    }
    snapshot
}

/// Turns a snapshot into one whose rollout is under way: all ready pods are at the earlier revision.
fn rolling_out(snapshot: Snapshot) -> Snapshot {
    let mut snapshot = started(snapshot);
    for pod in &mut snapshot.pods {
        if Pod::read(pod).is_ready() {
            pod.labels_mut()
                .insert(REVISION.to_owned(), "arena-5f6d8b".to_owned());
        }
    }
    snapshot
}

/// Turns a snapshot into one whose rollout is under way: all ready pods are updated.
fn started(mut snapshot: Snapshot) -> Snapshot {
    let status = snapshot.game.status.as_mut().unwrap();
    status.current_revision = Some("arena-5f6d8b".to_owned());
    let mut conditions = status.conditions.iter_mut();
    let progressing = conditions.find(|found| found.type_ == "Progressing").unwrap();
    progressing.reason = "RollingOut".to_owned();
    progressing.message = "1 of 3 pods are updated".to_owned();
    snapshot
}

/// Turns a snapshot into one whose in-place update does not finish, with this message.
fn stalled(mut snapshot: Snapshot, message: &str) -> Snapshot {
    let blocked = json!({
        "type": "UpdateBlocked", "status": "True", "reason": "InPlaceStalled",
        "lastTransitionTime": "2026-01-02T09:58:00Z", "message": message
    });
    let status = snapshot.game.status.as_mut().unwrap();
    status.conditions.push(serde_json::from_value(blocked).unwrap());
    snapshot
}

/// Checks the rules for explanations, and the section of the runbook. Returns the text.
fn checked(answer: &Explanation, commands: &[&str], runbook: &str) -> String {
    assert_eq!(answer.commands(), commands, "{answer:?}");
    assert!(!answer.commands()[0].contains("IMAGE"), "{answer:?}");
    let link = answer.runbook.clone().unwrap_or_default();
    assert!(link.ends_with(&format!("#{runbook}")), "{answer:?}");
    let text = answer.text();
    for words in ["is not waiting:", "No action needed", "This clears"] {
        assert!(!text.contains(words), "{words}: {text}");
    }
    text
}

#[test]
fn pods_without_a_node_are_named_once_with_the_words_of_the_scheduler() {
    let pods = || [pending("arena-a", NO_NODE), pending("arena-b", NO_NODE)];
    for (is_available, headline) in [
        (
            true,
            "arena has pods that fail to start: 3 of 5 pods are available.",
        ),
        (
            false,
            "arena has too few available pods (MinimumPodsUnavailable): 3 of 5.",
        ),
    ] {
        let answer = super::game(&with(pods(), is_available));
        let text = checked(&answer, &[DESCRIBE], "minimumpodsunavailable");
        let words = format!("{headline} 2 pods (arena-a, arena-b) cannot be scheduled: {NO_NODE} Add a node");
        assert!(text.starts_with(&words), "{text}");
        assert_eq!(text.matches(NO_NODE).count(), 1, "{text}");
        assert!(
            text.ends_with("The rollout of arena is complete: all pods are at the update revision."),
            "{text}"
        );
        assert_eq!(answer.next[0].purpose, "show its events");
    }
}

#[test]
fn pods_that_a_new_template_leaves_without_a_node_can_be_rolled_back() {
    let snapshot = rolling_out(with([pending("arena-a", NO_NODE)], true));
    let answer = super::game(&snapshot);
    let text = checked(
        &answer,
        &[DESCRIBE, UNDO, "kubectl game get arena -w"],
        "minimumpodsunavailable",
    );
    assert!(
        text.contains("Pod arena-a cannot be scheduled: 0/3") && text.contains("or roll back."),
        "{text}"
    );
    assert!(
        text.ends_with("arena is being updated (RollingOut): 1 of 3 pods are updated."),
        "{text}"
    );
}

#[test]
fn pods_with_different_messages_show_that_of_the_first() {
    let pods = [
        pending("arena-a", NO_NODE),
        pending("arena-b", "0/3 nodes are available"),
    ];
    let text = super::game(&with(pods, true)).text();
    assert!(
        text.contains(&format!(
            "2 pods (arena-a, arena-b) cannot be scheduled. For example, pod arena-a: {NO_NODE}"
        )),
        "{text}"
    );
}

#[test]
fn a_new_image_that_cannot_be_pulled_is_rolled_back_first() {
    let pods = ["arena-a", "arena-b"].map(|name| waiting(name, "game", "ImagePullBackOff", NO_IMAGE));
    let answer = super::game(&rolling_out(with(pods, false)));
    let commands = [UNDO, SET_IMAGE, DESCRIBE, "kubectl game get arena -w"];
    let text = checked(&answer, &commands, "minimumpodsunavailable");
    let words = format!(
        "2 pods (arena-a, arena-b) fail to start: container game is waiting: ImagePullBackOff: {NO_IMAGE}. Roll back, \
         or set"
    );
    assert!(text.contains(&words), "{text}");
    let purposes: Vec<&str> = answer.next[..3]
        .iter()
        .map(|next| next.purpose.as_str())
        .collect();
    assert_eq!(
        purposes,
        ["roll back", "set an image that can be pulled", "show its events"]
    );
}

#[test]
fn without_an_earlier_revision_or_with_ready_pods_of_the_same_no_undo_is_suggested() {
    let refused = || waiting("arena-a", "game", "ErrImagePull", "not found");
    let mut first = rolling_out(with([refused()], true));
    first.revisions.remove(0);
    let scaled = with([refused()], true);
    for (snapshot, commands) in [
        (first, vec![DESCRIBE, SET_IMAGE, "kubectl game get arena -w"]),
        (scaled, vec![DESCRIBE, SET_IMAGE]),
    ] {
        let text = checked(&super::game(&snapshot), &commands, "minimumpodsunavailable");
        assert!(text.contains("or access to the registry."), "{text}");
    }
    // The revision counts as complete as soon as each pod has it.
    let mut whole = with([refused()], false);
    whole
        .pods
        .retain(|pod| pod.metadata.name.as_deref() == Some("arena-a"));
    assert_eq!(super::game(&whole).commands()[0], UNDO);
}

#[test]
fn ready_pods_of_the_revision_move_the_undo_to_the_end() {
    let node = || pending("arena-a", NO_NODE);
    let image = || waiting("arena-a", "game", "ImagePullBackOff", NO_IMAGE);
    let crash = || waiting("arena-a", "game", "CrashLoopBackOff", "back-off 10s");
    let other = || waiting("arena-a", "game", "CreateContainerConfigError", "no such secret");
    let logs = "kubectl logs arena-a -c game --previous";
    for (pod, commands, advice) in [
        (
            node(),
            vec![DESCRIBE, UNDO],
            "lower the template's resource requests, or roll back.",
        ),
        (
            image(),
            vec![DESCRIBE, SET_IMAGE, UNDO],
            "set another image, or roll back.",
        ),
        (
            crash(),
            vec![logs, DESCRIBE, UNDO],
            "Check the last output of the container and fix the cause, or roll back.",
        ),
        (other(), vec![DESCRIBE, UNDO], "Fix the cause, or roll back."),
    ] {
        let answer = super::game(&started(with([pod], true)));
        let commands: Vec<&str> = commands
            .into_iter()
            .chain(["kubectl game get arena -w"])
            .collect();
        let text = checked(&answer, &commands, "minimumpodsunavailable");
        assert!(text.contains(advice), "{text}");
    }
    // A pod of another revision does not show that this one starts.
    for (pod, first) in [
        (image(), UNDO),
        (crash(), UNDO),
        (other(), UNDO),
        (node(), DESCRIBE),
    ] {
        let answer = super::game(&rolling_out(with([pod], true)));
        assert_eq!(answer.commands()[0], first, "{answer:?}");
    }
}

#[test]
fn an_undo_is_suggested_only_if_its_target_exists() {
    let refused = || waiting("arena-a", "game", "ErrImagePull", "not found");
    let mut third = rolling_out(with([refused()], true));
    // The revision between the two was broken, too.
    let mut second = third.revisions[0].clone();
    second.metadata.name = Some("arena-6c8f77".to_owned());
    let template = second.data.as_mut().unwrap();
    template.0["spec"]["template"]["spec"]["containers"][0]["image"] = json!("game:v1.5");
    third.revisions.insert(1, second);
    assert_eq!(undo_target(&third.game).as_deref(), Some("arena-5f6d8b"));
    assert_eq!(super::game(&third).commands()[0], UNDO);
    third.revisions.remove(0);
    let answer = super::game(&third);
    assert!(!answer.commands().contains(&UNDO), "{answer:?}");

    assert_eq!(undo_target(&samples::complete().game), None);
    let mut aborted = samples::rolled_back().game;
    aborted.status.as_mut().unwrap().current_revision = None;
    assert_eq!(undo_target(&aborted).as_deref(), Some("arena-5f6d8b"));
    aborted.metadata.generation = Some(4);
    assert_eq!(undo_target(&aborted), None);
}

#[test]
fn the_container_that_waits_is_named_even_if_a_shell_would_run_its_name() {
    let mut snapshot = rolling_out(with(
        [waiting("arena-a", "proxy", "ErrImagePull", "not found")],
        true,
    ));
    assert!(
        super::game(&snapshot)
            .commands()
            .contains(&"kubectl game set image arena proxy=IMAGE")
    );
    snapshot.pods.pop();
    let crashed = waiting("arena-a", "x;y", "CrashLoopBackOff", "back-off 10s");
    snapshot.pods.push(crashed);
    let answer = super::game(&snapshot);
    let logs = "kubectl logs arena-a -c 'x;y' --previous";
    assert_eq!(answer.commands()[..3], [UNDO, logs, DESCRIBE]);
}

#[test]
fn an_update_in_place_that_is_stuck_is_explained_by_its_pods() {
    let pods = ["arena-a", "arena-b"].map(|name| waiting(name, "game", "ImagePullBackOff", NO_IMAGE));
    let message = format!(
        "pod arena-a: container game is waiting: ImagePullBackOff: {NO_IMAGE}; fix the image, or revert the \
         template, pod arena-b: the same"
    );
    let snapshot = stalled(rolling_out(with(pods, true)), &message);
    let answer = super::game(&snapshot);
    let text = checked(&answer, &[UNDO, SET_IMAGE, DESCRIBE], "inplacestalled");
    let words = format!(
        "The update of arena is blocked and needs attention (InPlaceStalled). 2 pods (arena-a, arena-b) fail to start: \
         container game is waiting: ImagePullBackOff: {NO_IMAGE}."
    );
    assert!(text.starts_with(&words), "{text}");
    assert_eq!(text.matches(NO_IMAGE).count(), 1, "{text}");

    let of_pod = super::pod(&snapshot, snapshot.pods.last().unwrap());
    let commands = [UNDO, SET_IMAGE, "kubectl describe pod arena-b"];
    let text = checked(&of_pod, &commands, "inplacestalled");
    let words = "Pod arena-b is waiting (InPlaceStalled): container game is waiting: ImagePullBackOff: ";
    assert!(text.starts_with(words), "{text}");
}

#[test]
fn a_pod_that_is_stuck_without_an_error_is_explained_beside_one_with_an_error() {
    let refused = waiting("arena-a", "game", "ImagePullBackOff", NO_IMAGE);
    let mut silent = waiting("arena-b", "game", "ContainerCreating", "");
    let out_of_service = json!([
        { "type": "Ready", "status": "False" }, { "type": "InPlaceUpdateReady", "status": "False" }
    ]);
    silent.status.as_mut().unwrap().conditions = serde_json::from_value(out_of_service).unwrap();
    assert!(Pod::read(&silent).is_out_of_service());
    let message = format!(
        "pod arena-a: container game is waiting: ImagePullBackOff: {NO_IMAGE}, pod arena-b: its update has not \
         finished after 5 min"
    );
    let answer = super::game(&stalled(rolling_out(with([refused, silent], true)), &message));
    let text = answer.text();
    assert!(
        text.contains("pod arena-b: its update has not finished"),
        "{text}"
    );
    assert!(text.contains("Pod arena-a fails to start: "), "{text}");
    for command in ["kubectl describe pod arena-b", DESCRIBE, UNDO] {
        assert!(answer.commands().contains(&command), "{command}: {answer:?}");
    }
}

#[test]
fn pods_that_are_not_ready_are_named_beside_one_that_reports_an_error() {
    let refused = || waiting("arena-a", "game", "ErrImagePull", "not found");
    let creating = |name| waiting(name, "game", "ContainerCreating", "");
    let pods = || [refused(), creating("arena-b"), creating("arena-c")];
    let answer = super::game(&with(pods(), false));
    let commands = [DESCRIBE, SET_IMAGE, "kubectl describe pod arena-b"];
    let text = checked(&answer, &commands, "minimumpodsunavailable");
    assert!(text.contains("Pod arena-a fails to start: "), "{text}");
    let words = "2 pods (arena-b, arena-c) are not ready: their containers are still starting or failing their \
                 readiness probes.";
    assert!(text.contains(words), "{text}");
    // Enough pods are available.
    let text = super::game(&with(pods(), true)).text();
    assert!(!text.contains("arena-b"), "{text}");
}

#[test]
fn a_pod_is_explained_as_its_workload_is() {
    let snapshot = with([pending("arena-a", NO_NODE), pending("arena-b", NO_NODE)], true);
    let answer = super::pod(&snapshot, snapshot.pods.last().unwrap());
    let text = checked(
        &answer,
        &["kubectl describe pod arena-b"],
        "minimumpodsunavailable",
    );
    let words = format!("Pod arena-b cannot be scheduled: {NO_NODE} ");
    assert!(
        text.starts_with(&words) && text.ends_with("It is not waiting for a hook."),
        "{text}"
    );
}

#[test]
fn pods_that_only_start_are_named_while_too_few_are_available() {
    let creating = |name| waiting(name, "game", "ContainerCreating", "");
    let answer = super::game(&with([creating("arena-a"), creating("arena-b")], false));
    let text = answer.text();
    let words = "2 pods (arena-a, arena-b) are not ready: their containers are still starting or failing their \
                 readiness probes.";
    assert!(text.contains(words), "{text}");
    assert!(text.contains("the words of the operator"), "{text}");
    assert_eq!(answer.commands(), [DESCRIBE]);
    let quiet = super::game(&with([creating("arena-a")], true));
    assert!(quiet.text().starts_with("arena is not waiting: "), "{quiet:?}");
    assert!(quiet.next.is_empty(), "{quiet:?}");
}
