use serde_json::{Value, json};

use super::*;
use crate::claim::claim;
use crate::history;
use crate::pod::Pod;
use crate::revision::Revision;
use crate::samples::{FakeCluster, object, pod, revisions, view};
use crate::workload::Workload;

const MARK: &str = "/metadata/annotations/io.tencent.bcs.dev~1game-pod-deleting";
const CHOSEN: &str = "/metadata/annotations/tkex.tencent.com~1chosen-for";
const COST: &str = "/metadata/annotations/controller.kubernetes.io~1pod-deletion-cost";
const REVISION: &str = "/metadata/labels/controller-revision-hash";

/// A pod with a deletion cost: the lower, the earlier it goes.
fn costing(name: &str, cost: u32, over: &[(&str, Value)]) -> Pod {
    let mut all = vec![(COST, json!(cost.to_string()))];
    all.extend_from_slice(over);
    pod(name, &all)
}

fn updated(name: &str, cost: u32) -> Pod {
    costing(name, cost, &[(REVISION, json!("new"))])
}

fn chosen(name: &str, cost: u32, text: &str) -> Pod {
    costing(name, cost, &[(MARK, json!("true")), (CHOSEN, json!(text))])
}

fn diff(delete: usize, delete_old: usize) -> ScaleDiff {
    ScaleDiff {
        delete,
        delete_old,
        ..ScaleDiff::default()
    }
}

/// Returns the names of the pods to delete, and those among them that are surplus.
fn selected(pods: &[Pod], named: &[&str], diff: ScaleDiff) -> (Vec<String>, Vec<String>) {
    let object = object(&[("/spec/scaleStrategy", json!({"podsToDelete": named}))]);
    let (around, revisions) = (FakeCluster::default(), revisions());
    let pods: Vec<&Pod> = pods.iter().collect();
    let revisions: Vec<&Revision> = revisions.iter().collect();
    let view = view(&object, &pods, &revisions, &around);
    let workload = Workload::read(&object).unwrap();
    let (own, _) = claim(&view, &workload);
    let (history, _) = history::resolve_revisions(&view, &workload, &[], &own);
    let now = "2024-06-01T00:00:00Z".parse().unwrap();
    let facts = Facts::new(&view, &workload, history.unwrap(), &own.active, now);
    let gate = Gate::new(&workload, &around, &[], &pods, now);
    let (selection, _) = select(&facts, &gate, diff);
    let sorted = |surplus: bool| {
        let goes = |selection: &Selection| selection.surplus || !surplus;
        let goes = selection
            .iter()
            .filter(|pod| pod.selection.as_ref().is_some_and(goes));
        let mut list: Vec<String> = goes.map(|pod| pod.facts.pod.name.clone()).collect();
        list.sort();
        list
    };
    (sorted(false), sorted(true))
}

#[track_caller]
fn assert_selected(pods: &[Pod], named: &[&str], diff: ScaleDiff, all: &[&str], surplus: &[&str]) {
    let (found, found_surplus) = selected(pods, named, diff);
    assert_eq!(found, all);
    assert_eq!(found_surplus, surplus, "surplus");
}

#[test]
fn those_go_that_rank_first_and_no_more_than_there_are_too_many() {
    let pods = [costing("a", 3, &[]), costing("b", 1, &[]), costing("c", 2, &[])];
    assert_selected(&pods, &[], diff(0, 0), &[], &[]);
    assert_selected(&pods, &[], diff(2, 2), &["b", "c"], &["b", "c"]);
    assert_selected(&pods, &[], diff(9, 9), &["a", "b", "c"], &["a", "b", "c"]);
}

#[test]
fn a_named_pod_goes_before_all_others_and_counts_against_what_is_too_many() {
    let pods = [
        costing("a", 3, &[]),
        costing("b", 1, &[]),
        chosen("c", 2, "delete@2024-05-01T00:00:00Z"),
    ];
    assert_selected(&pods, &["a"], diff(1, 1), &["a"], &["a"]);
    assert_selected(&pods, &["a"], diff(2, 2), &["a", "c"], &["a", "c"]);
}

#[test]
fn a_named_pod_goes_also_where_there_are_not_too_many() {
    let pods = [costing("a", 3, &[]), costing("b", 1, &[])];
    assert_selected(&pods, &["a", "nobody"], diff(0, 0), &["a"], &[]);
    assert_selected(&pods, &["a", "b"], diff(1, 1), &["a", "b"], &["b"]);
}

#[test]
fn a_choice_that_was_made_stays_whatever_ranks_first_now() {
    let pods = [
        costing("a", 1, &[]),
        chosen("b", 9, "delete@2024-05-01T00:00:00Z"),
    ];
    assert_selected(&pods, &[], diff(1, 1), &["b"], &["b"]);
    // The original operator's mark records neither the intent nor the time.
    let pods = [costing("a", 1, &[]), costing("b", 9, &[(MARK, json!("true"))])];
    assert_selected(&pods, &[], diff(1, 1), &["b"], &["b"]);
    // A selection that ends when the pod is no longer named does not last.
    let replaced = [
        costing("a", 1, &[]),
        chosen("b", 9, "delete@2024-05-01T00:00:00Z;replaced"),
    ];
    assert_selected(&replaced, &[], diff(1, 1), &["a"], &["a"]);
    assert_selected(&replaced, &["b"], diff(1, 1), &["b"], &["b"]);
}

#[test]
fn of_those_chosen_before_the_ones_chosen_last_are_let_go_first() {
    let pods = [
        chosen("a", 1, "delete@2024-05-03T00:00:00Z"),
        chosen("b", 2, "delete@2024-05-01T00:00:00Z"),
        chosen("c", 3, "delete@2024-05-02T00:00:00Z"),
    ];
    assert_selected(&pods, &[], diff(1, 1), &["b"], &["b"]);
    assert_selected(&pods, &[], diff(2, 2), &["b", "c"], &["b", "c"]);
}

#[test]
fn a_pod_chosen_to_be_recreated_is_not_chosen_to_be_deleted() {
    let pods = [
        costing("a", 1, &[]),
        chosen("b", 9, "recreate:new@2024-05-01T00:00:00Z"),
    ];
    assert_selected(&pods, &[], diff(1, 1), &["a"], &["a"]);
}

#[test]
fn old_pods_go_first_as_far_as_the_arithmetic_asks_for_them() {
    let pods = [
        costing("a", 8, &[]),
        costing("b", 9, &[]),
        updated("c", 1),
        updated("d", 2),
    ];
    assert_selected(&pods, &[], diff(1, 1), &["a"], &["a"]);
    assert_selected(&pods, &[], diff(2, 1), &["a", "c"], &["a", "c"]);
    assert_selected(&pods, &[], diff(2, 0), &["c", "d"], &["c", "d"]);
    // A partition does not keep more pods than wanted.
    assert_selected(&pods, &[], diff(3, 0), &["a", "c", "d"], &["a", "c", "d"]);
}

#[test]
fn old_pods_that_were_named_or_chosen_before_count_as_old_ones_that_go() {
    let old = "delete@2024-05-01T00:00:00Z";
    let pods = [costing("a", 1, &[]), chosen("b", 9, old), updated("c", 5)];
    assert_selected(&pods, &[], diff(2, 1), &["b", "c"], &["b", "c"]);
    let pods = [costing("a", 1, &[]), costing("b", 9, &[]), updated("c", 5)];
    assert_selected(&pods, &["b"], diff(2, 1), &["b", "c"], &["b", "c"]);
}
