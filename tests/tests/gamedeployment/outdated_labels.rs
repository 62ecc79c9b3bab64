//! Labels that a pod has exactly as long as it waits for the hook before its update.

use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use kube::core::WatchEvent;
use operator_tests::Fleet;
use operator_tests::fleet::{hooked, one_of, pod_of};
use operator_tests::merge;
use serde_json::{Value, json};
use shared_api::HookRun;
use shared_api::names::hook_run_annotation;
use shared_api::names::pod::{CHOSEN_FOR, QUESTION, REVISION, SKIP_HOOK};

use crate::draining_labels::{FORMER, LABEL, corrections, label, launch, lobby, record, states};
use crate::fleet;
use crate::seen::{self, Seen};

fn field(labels: Value) -> Value {
    json!({ "updateStrategy": { "outdatedLabels": labels } })
}

/// Part of a spec with a hook before updates in place only.
fn pre_in_place() -> Value {
    json!({ "preInplaceUpdateStrategy": { "hook": { "templateName": "empty" } } })
}

/// Part of a spec with this hook and an outdated label.
fn gated() -> Value {
    let mut spec = field(json!({ LABEL: "false" }));
    merge(&mut spec, pre_in_place());
    spec
}

fn is_labelled(pod: &Pod) -> bool {
    label(pod, LABEL) == Some("false")
}

fn question(pod: &Pod) -> Option<&str> {
    pod.annotations().get(QUESTION).map(String::as_str)
}

fn version(object: &impl ResourceExt) -> u64 {
    object.resource_version().unwrap().parse().unwrap()
}

/// Asserts that each state of a pod has both the label and its record, or neither, and neither after a change of its
/// revision. The write that sets them also notes the question before an update in place. Returns how often they were
/// set, removed at the same revision, and removed with a new one.
async fn changes(pods: &Seen<Pod>) -> [u64; 3] {
    let mut known: BTreeMap<String, Pod> = BTreeMap::new();
    let mut changes = [0; 3];
    for pod in states(pods).await {
        let is_asked = is_labelled(&pod);
        let about = format!("{:#?}", pod.metadata);
        assert_eq!(record(&pod), is_asked.then_some(FORMER), "{about}");
        assert!(
            !is_asked || question(&pod).is_some_and(|text| text.starts_with("in-place:")),
            "{about}"
        );
        let mut before = match known.entry(pod.name_any()) {
            Entry::Occupied(before) => before,
            Entry::Vacant(first) => {
                first.insert(pod);
                continue;
            }
        };
        let is_updated = label(before.get(), REVISION) != label(&pod, REVISION);
        assert!(!is_updated || !is_asked, "{about}");
        match (is_labelled(before.get()), is_asked) {
            (false, true) => {
                assert_ne!(question(before.get()), question(&pod), "{about}");
                changes[0] += 1;
            }
            (true, false) if is_updated => changes[2] += 1,
            (true, false) => changes[1] += 1,
            (false, false) | (true, true) => {}
        }
        before.insert(pod);
    }
    changes
}

/// Returns the number of noted questions, of corrections of labels, and of updates in place.
async fn written(fleet: &Fleet<'_>) -> [u64; 3] {
    let mut counts = [0; 3];
    for (count, action) in counts
        .iter_mut()
        .zip(["note_question", "label_draining_pod", "update_pod"])
    {
        *count = fleet.written(action).await;
    }
    counts
}

/// Asserts that the pod of each HookRun had the label and the question before the HookRun was created. Returns the pods
/// of all HookRuns.
async fn assert_labelled_before_asked(pods: &Seen<Pod>, runs: &Seen<HookRun>) -> Vec<String> {
    let (runs, states) = (runs.up_to_now().await, states(pods).await);
    let mut asked = Vec::new();
    for event in runs {
        let WatchEvent::Added(run) = event else {
            continue;
        };
        let name = pod_of(&run);
        let is_before = |pod: &&Pod| pod.name_any() == name && version(*pod) < version(&run);
        let pod = states.iter().rfind(is_before).unwrap();
        assert!(is_labelled(pod), "{:#?}", pod.metadata);
        let noted = run.annotations().get(hook_run_annotation::QUESTION);
        assert_eq!(question(pod), noted.map(String::as_str));
        asked.push(name);
    }
    asked
}

/// Waits until hooks run for this many pods, and returns the pods.
async fn asked_pods(fleet: &Fleet<'_>, count: usize) -> BTreeSet<String> {
    fleet.asked(count).await.into_values().collect()
}

#[tokio::test]
async fn a_pod_leaves_its_service_before_its_hook_runs_and_returns_with_its_update() {
    let fleet = fleet("outdated-labels").await;
    // Each pod is out of service for a while before it is updated. It keeps the label until then.
    let grace = json!({ "updateStrategy": { "inPlaceUpdateStrategy": { "gracePeriodSeconds": 1 } } });
    let mut spec = gated();
    merge(&mut spec, grace);
    launch(&fleet, 5, spec).await;
    let (all, before) = (fleet.names().await, fleet.uids().await);
    assert_eq!(lobby(&fleet).await, all);
    let (pods, runs) = (seen::pods(&fleet).await, Seen::of(fleet.runs()).await);
    fleet.set_image("game:v2").await;
    let asked = asked_pods(&fleet, 2).await;
    fleet.quiet().await;
    assert_eq!(lobby(&fleet).await, all.difference(&asked).cloned().collect());
    assert_eq!(written(&fleet).await, [2, 0, 0]);
    assert_eq!(fleet.nodes.terminations().len(), 0);

    // One pod is empty: it is updated and returns, and the next one leaves.
    let first = asked.first().unwrap().clone();
    fleet.nodes.pod(&first).set_players(0);
    fleet
        .until(|status| status.updated_ready_replicas == 1 && status.pre_inplace_hook_condition.len() == 2)
        .await;
    let asked = asked_pods(&fleet, 2).await;
    fleet.quiet().await;
    assert!(!asked.contains(&first));
    assert_eq!(lobby(&fleet).await, all.difference(&asked).cloned().collect());
    assert_eq!(written(&fleet).await, [3, 0, 1]);
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::from([first]));

    fleet.nodes.every_pod().set_players(0);
    fleet.settled(5).await;
    fleet.all_run("game:v2", 5).await;
    assert_eq!(lobby(&fleet).await, all);
    assert_eq!(changes(&pods).await, [5, 0, 5]);
    assert_eq!(written(&fleet).await, [5, 0, 5]);
    let asked = assert_labelled_before_asked(&pods, &runs).await;
    assert_eq!(asked.len(), 5);
    assert_eq!(asked.into_iter().collect::<BTreeSet<_>>(), all);
    // The containers restarted, but no pod was deleted.
    assert_eq!(fleet.uids().await, before);
    assert_eq!(fleet.nodes.terminations().len(), 5);
}

#[tokio::test]
async fn the_labels_of_a_new_template_take_precedence() {
    let fleet = fleet("outdated-labels").await;
    let mut spec = hooked("empty");
    merge(&mut spec, field(json!({ LABEL: "false" })));
    launch(&fleet, 2, spec).await;
    let before = fleet.uids().await;
    let pods = seen::pods(&fleet).await;
    let template = json!({ "metadata": { "labels": { LABEL: "yes" } } });
    fleet.set(json!({ "template": template })).await;
    fleet.asked(2).await;
    assert!(fleet.all_pods().await.values().all(is_labelled));
    assert!(fleet.marked().await.is_empty());
    fleet.nodes.every_pod().set_players(0);
    let is_updated = |pod: &Pod| label(pod, LABEL) == Some("yes") && record(pod).is_none();
    fleet.until_pods(|pods| pods.values().all(is_updated)).await;
    fleet.settled(2).await;
    assert_eq!(changes(&pods).await, [2, 0, 2]);
    assert_eq!(written(&fleet).await, [2, 0, 2]);
    assert_eq!(fleet.uids().await, before);
    assert_eq!(fleet.nodes.terminations().len(), 0);
}

/// Waits until no pod has a record of labels and nothing is in progress, and asserts that the Service selects all pods.
async fn assert_all_return(fleet: &Fleet<'_>, all: &BTreeSet<String>) {
    fleet
        .until_pods(|pods| pods.values().all(|pod| record(pod).is_none()))
        .await;
    fleet.settled(all.len()).await;
    assert_eq!(lobby(fleet).await, *all);
}

#[tokio::test]
async fn a_pod_whose_update_is_cancelled_returns_with_one_write() {
    let fleet = fleet("outdated-labels").await;
    launch(&fleet, 2, gated()).await;
    let (all, before) = (fleet.names().await, fleet.uids().await);
    let pods = seen::pods(&fleet).await;
    fleet.set_image("game:v2").await;
    fleet.asked(2).await;
    assert!(lobby(&fleet).await.is_empty());
    fleet.set_image("game:v1").await;
    assert_all_return(&fleet, &all).await;
    assert_eq!(written(&fleet).await, [2, 2, 0]);

    fleet.set_image("game:v2").await;
    for (stop, resume) in [
        (json!({ "paused": true }), json!({ "paused": false })),
        (json!({ "partition": 2 }), json!({ "partition": 0 })),
    ] {
        fleet.asked(2).await;
        assert!(lobby(&fleet).await.is_empty());
        fleet.set(json!({ "updateStrategy": stop })).await;
        assert_all_return(&fleet, &all).await;
        fleet.set(json!({ "updateStrategy": resume })).await;
    }
    fleet.asked(2).await;
    assert_eq!(written(&fleet).await, [8, 6, 0]);
    assert_eq!(fleet.nodes.terminations().len(), 0);

    fleet.nodes.every_pod().set_players(0);
    assert_all_return(&fleet, &all).await;
    fleet.all_run("game:v2", 2).await;
    assert_eq!(changes(&pods).await, [8, 6, 2]);
    assert_eq!(written(&fleet).await, [8, 6, 2]);
    assert_eq!(fleet.uids().await, before);
}

#[tokio::test]
async fn a_pod_returns_while_the_failure_of_an_updated_one_stops_the_update() {
    let fleet = fleet("outdated-labels").await;
    fleet.hook("well", one_of("state", "well")).await;
    fleet.nodes.every_pod().set("state", json!("sick"));
    let mut spec = gated();
    merge(
        &mut spec,
        json!({ "postInplaceUpdateStrategy": { "hook": { "templateName": "well" } } }),
    );
    launch(&fleet, 2, spec).await;
    let all = fleet.names().await;
    let pods = seen::pods(&fleet).await;
    fleet.set_image("game:v2").await;
    let first = asked_pods(&fleet, 2).await.pop_first().unwrap();
    fleet.nodes.pod(&first).set_players(0);
    fleet.says("UpdateBlocked", "HookUnsuccessful").await;
    fleet
        .until_pods(|pods| pods.values().all(|pod| record(pod).is_none()))
        .await;
    fleet.quiet().await;
    assert_eq!(lobby(&fleet).await, all);
    assert_eq!(changes(&pods).await, [2, 1, 1]);
    // The hook after the update has a question as well.
    assert_eq!(written(&fleet).await, [3, 1, 1]);
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::from([first]));

    fleet.nodes.every_pod().set("state", json!("well"));
    fleet.nodes.every_pod().set_players(0);
    fleet.retry("postInplaceUpdateStrategy");
    fleet.settled(2).await;
    fleet.all_run("game:v2", 2).await;
    assert_eq!(lobby(&fleet).await, all);
    assert_eq!(changes(&pods).await, [3, 1, 2]);
}

#[tokio::test]
async fn labels_of_a_pod_to_update_follow_the_spec_and_undo_the_changes_of_others() {
    let mut fleet = fleet("outdated-labels").await;
    launch(&fleet, 1, gated()).await;
    fleet.set_image("game:v2").await;
    let name = asked_pods(&fleet, 1).await.pop_first().unwrap();
    let one = [Some("false"), None];
    assert_eq!(corrections(&fleet, &name, one, Some(FORMER)).await, 0);

    fleet
        .set(field(json!({ LABEL: "outdated", "region": "none" })))
        .await;
    let both = Some(r#"{"accepts-players":"true","region":null}"#);
    let values = [Some("outdated"), Some("none")];
    assert_eq!(corrections(&fleet, &name, values, both).await, 1);

    let edit = Patch::Merge(json!({ "metadata": { "labels": { LABEL: "true" } } }));
    let edited = fleet.pods().patch(&name, &PatchParams::default(), &edit).await;
    assert_eq!(label(&edited.unwrap(), LABEL), Some("true"));
    assert_eq!(corrections(&fleet, &name, values, both).await, 2);
    assert_eq!(fleet.written("note_question").await, 1);

    // The hook runs again for another revision. Meanwhile, the pod keeps the labels.
    let pods = seen::pods(&fleet).await;
    let runs = fleet.until_runs(|runs| runs.len() == 1).await;
    fleet.set_image("game:v3").await;
    fleet
        .until_runs(|now| now.len() == 1 && now[0].metadata.uid != runs[0].metadata.uid)
        .await;
    fleet.asked(1).await;
    assert_eq!(corrections(&fleet, &name, values, both).await, 2);
    assert_eq!(fleet.written("note_question").await, 2);
    let has_both = |pod: &Pod| [label(pod, LABEL), label(pod, "region")] == values && record(pod) == both;
    assert!(states(&pods).await.iter().all(has_both));

    let runs = fleet.until_runs(|runs| runs.len() == 1).await;
    fleet.set(field(json!(null))).await;
    assert_eq!(corrections(&fleet, &name, [Some("true"), None], None).await, 3);
    fleet.set(field(json!({ LABEL: "false" }))).await;
    assert_eq!(corrections(&fleet, &name, one, Some(FORMER)).await, 4);
    assert_eq!(fleet.written("note_question").await, 2);
    fleet.start_workloads().await;
    assert_eq!(corrections(&fleet, &name, one, Some(FORMER)).await, 0);
    let same = |now: &[HookRun]| now.len() == 1 && now[0].metadata.uid == runs[0].metadata.uid;
    fleet.until_runs(same).await;
    assert_eq!(fleet.nodes.terminations().len(), 0);

    fleet.nodes.every_pod().set_players(0);
    fleet.settled(1).await;
    fleet.all_run("game:v3", 1).await;
    assert_eq!(corrections(&fleet, &name, [Some("true"), None], None).await, 0);
}

/// Values of the label that both fields set, of the one for deletions and of the one for updates, and the record.
type Values<'p> = ([Option<&'p str>; 3], Option<&'p str>);

const KEPT: Values<'static> = ([Some("true"), None, None], None);
const ASKED: Values<'static> = (
    [Some("outdated"), None, Some("old")],
    Some(r#"{"accepts-players":"true","pool":null}"#),
);
const RECREATED: Values<'static> = (
    [Some("outdated"), Some("none"), Some("old")],
    Some(r#"{"accepts-players":"true","pool":null,"region":null}"#),
);
const DELETED: Values<'static> = (
    [Some("draining"), Some("none"), None],
    Some(r#"{"accepts-players":"true","region":null}"#),
);

/// Part of a spec with the labels of both fields, a hook before deletions, and updates of this type.
fn with_both(update: &str) -> Value {
    let mut spec = hooked("empty");
    merge(
        &mut spec,
        json!({
            "scaleStrategy": { "drainingLabels": { LABEL: "draining", "region": "none" } },
            "updateStrategy": {
                "type": update,
                "maxUnavailable": 1,
                "outdatedLabels": { LABEL: "outdated", "pool": "old" }
            }
        }),
    );
    spec
}

fn values(pod: &Pod) -> Values<'_> {
    ([LABEL, "region", "pool"].map(|key| label(pod, key)), record(pod))
}

/// Asserts that in each state, a pod has the labels of its recorded selection, or, without one, one of these
/// combinations.
async fn assert_follow_selection(pods: &Seen<Pod>, unselected: &[Values<'_>]) {
    for pod in states(pods).await {
        let selection = pod.annotations().get(CHOSEN_FOR).map(String::as_str);
        let is_right = match selection {
            Some(text) if text.starts_with("recreate:") => values(&pod) == RECREATED,
            Some(_) => values(&pod) == DELETED,
            None => unselected.contains(&values(&pod)),
        };
        assert!(is_right, "{:#?}", pod.metadata);
    }
}

#[tokio::test]
async fn a_pod_to_recreate_has_the_labels_of_both_fields_and_a_surplus_one_only_those_of_deletions() {
    let fleet = fleet("outdated-labels").await;
    launch(&fleet, 2, with_both("RollingUpdate")).await;
    let (all, none) = (fleet.names().await, BTreeSet::new());
    let pods = seen::pods(&fleet).await;
    fleet.set_image("game:v2").await;
    let selected = asked_pods(&fleet, 1).await;
    assert_eq!(fleet.marked().await, selected);
    let name = selected.first().unwrap();
    assert_eq!(values(&fleet.all_pods().await[name]), RECREATED);
    fleet.set_image("game:v1").await;
    fleet.until_marked(&none).await;
    assert_all_return(&fleet, &all).await;

    fleet.scale(1);
    let selected = asked_pods(&fleet, 1).await;
    assert_eq!(fleet.marked().await, selected);
    let name = selected.first().unwrap();
    assert_eq!(values(&fleet.all_pods().await[name]), DELETED);
    fleet.scale(2);
    fleet.until_marked(&none).await;
    assert_all_return(&fleet, &all).await;
    assert_eq!(fleet.nodes.terminations().len(), 0);

    fleet.set_image("game:v2").await;
    fleet.asked(1).await;
    fleet.nodes.every_pod().set_players(0);
    fleet.all_run("game:v2", 2).await;
    fleet.settled(2).await;
    assert_eq!(fleet.nodes.terminated_pods(), all);
    assert_follow_selection(&pods, &[KEPT]).await;
    assert_eq!(fleet.written("mark_pod").await, 4);
    assert_eq!(fleet.written("unmark_pod").await, 2);
    assert_eq!(fleet.written("label_draining_pod").await, 0);
}

#[tokio::test]
async fn selecting_a_pod_to_update_for_deletion_replaces_its_labels() {
    let fleet = fleet("outdated-labels").await;
    launch(&fleet, 2, with_both("InplaceUpdate")).await;
    let before = fleet.uids().await;
    let pods = seen::pods(&fleet).await;
    fleet.set_image("game:v2").await;
    let asked = asked_pods(&fleet, 1).await;
    let name = asked.first().unwrap();
    assert_eq!(values(&fleet.all_pods().await[name]), ASKED);
    fleet
        .set(json!({ "scaleStrategy": { "podsToDelete": [name] } }))
        .await;
    fleet.until_marked(&asked).await;
    assert_eq!(values(&fleet.all_pods().await[name]), DELETED);
    fleet.quiet().await;
    fleet
        .set(json!({ "scaleStrategy": { "podsToDelete": [] } }))
        .await;
    fleet.until_marked(&BTreeSet::new()).await;
    let is_asked = |pod: &&Pod| values(pod) == ASKED;
    fleet
        .until_pods(|pods| pods.values().filter(is_asked).count() == 1)
        .await;
    fleet.asked(1).await;
    assert_eq!(fleet.nodes.terminations().len(), 0);

    fleet.nodes.every_pod().set_players(0);
    fleet.all_run("game:v2", 2).await;
    fleet.settled(2).await;
    assert!(fleet.all_pods().await.values().all(|pod| values(pod) == KEPT));
    assert_follow_selection(&pods, &[KEPT, ASKED]).await;
    assert_eq!(fleet.written("mark_pod").await, 1);
    assert_eq!(fleet.written("unmark_pod").await, 1);
    assert_eq!(fleet.written("label_draining_pod").await, 0);
    assert_eq!(fleet.uids().await, before);
}

/// Updates both busy pods to this image, with this change of the spec.
async fn update(fleet: &Fleet<'_>, spec: Value, image: &str) {
    fleet.set(spec).await;
    fleet.set_image(image).await;
    fleet.all_run(image, 2).await;
    fleet.settled(2).await;
}

#[tokio::test]
async fn a_pod_whose_update_needs_no_hook_never_has_the_label() {
    let fleet = fleet("outdated-labels").await;
    launch(&fleet, 2, field(json!({ LABEL: "false" }))).await;
    let pods = seen::pods(&fleet).await;
    update(&fleet, json!({}), "game:v2").await;
    for (name, uid) in fleet.uids().await {
        fleet.annotate(&name, json!({ SKIP_HOOK: uid })).await;
    }
    update(&fleet, pre_in_place(), "game:v3").await;
    assert_eq!(fleet.written("update_pod").await, 4);
    let rolling = json!({
        "preInplaceUpdateStrategy": null,
        "updateStrategy": { "type": "RollingUpdate" }
    });
    update(&fleet, rolling, "game:v4").await;
    let mut hot = pre_in_place();
    merge(
        &mut hot,
        json!({ "updateStrategy": { "type": "HotPatchUpdate" } }),
    );
    update(&fleet, hot, "game:v5").await;
    for pod in states(&pods).await {
        let shown = (label(&pod, LABEL), record(&pod));
        assert_eq!(shown, (Some("true"), None), "{:#?}", pod.metadata);
    }
    for action in [
        "note_question",
        "create_hook_run",
        "mark_pod",
        "label_draining_pod",
    ] {
        assert_eq!(fleet.written(action).await, 0, "{action}");
    }
}
