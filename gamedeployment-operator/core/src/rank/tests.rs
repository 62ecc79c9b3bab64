use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::samples::{FakeCluster, pod, status};

const COST: &str = "/metadata/annotations/controller.kubernetes.io~1pod-deletion-cost";

/// Properties of a pod in a table.
struct Entry {
    what: &'static str,
    over: Vec<(&'static str, Value)>,
    approved: bool,
}

fn entry(what: &'static str, over: &[(&'static str, Value)]) -> Entry {
    Entry {
        what,
        over: over.to_vec(),
        approved: false,
    }
}

fn named(entry: &Entry, name: &str) -> Pod {
    pod(name, &entry.over)
}

fn rank<'a>(entry: &Entry, pod: &'a Pod, around: &FakeCluster, order: CostOrder) -> Rank<'a> {
    Rank::new(pod, around, entry.approved, order)
}

/// Asserts that each entry goes before the next, regardless of the pods' names.
fn assert_order(entries: &[Entry], around: &FakeCluster, order: CostOrder) {
    for (first, second) in entries.iter().zip(entries.iter().skip(1)) {
        for (a, b) in [("a", "b"), ("b", "a")] {
            let (one, two) = (named(first, a), named(second, b));
            let (one, two) = (
                rank(first, &one, around, order),
                rank(second, &two, around, order),
            );
            assert!(one < two, "{} goes before {}", first.what, second.what);
        }
    }
}

fn ready_at(text: &str) -> Vec<(&'static str, Value)> {
    let ready = json!([{"type": "Ready", "status": "True", "lastTransitionTime": text}]);
    vec![("/status/conditions", ready)]
}

#[test]
fn those_go_first_that_serve_least() {
    let unassigned = [
        ("/spec/nodeName", Value::Null),
        ("/status/phase", json!("Pending")),
    ];
    let not_ready = ("/status/conditions", json!([]));
    let entries = [
        entry("unassigned", &unassigned),
        entry(
            "pending",
            &[("/status/phase", json!("Pending")), not_ready.clone()],
        ),
        entry(
            "unknown",
            &[("/status/phase", json!("Unknown")), not_ready.clone()],
        ),
        entry("not ready", &[not_ready]),
        entry("ready", &[]),
    ];
    assert_order(&entries, &FakeCluster::default(), CostOrder::Unset);
}

#[test]
fn a_pod_that_serves_less_goes_first_whatever_it_costs() {
    let around = FakeCluster {
        costs: vec![("dear", 900.0)],
        ..FakeCluster::default()
    };
    let entries = [
        entry(
            "not ready and dear",
            &[
                ("/status/conditions", json!([])),
                (COST, json!("900")),
                ("/spec/nodeName", json!("dear")),
            ],
        ),
        entry("ready and cheap", &[(COST, json!("-900"))]),
    ];
    assert_order(&entries, &around, CostOrder::Unset);
}

#[test]
fn costs_of_pods_decide_in_the_order_that_the_workload_says_and_pods_without_go_last() {
    let cost = |text: &str| entry("a pod with a cost", &[(COST, json!(text))]);
    let ascending = [
        cost("-5.5"),
        cost("0"),
        cost(" 3 "),
        cost("20"),
        entry("no cost", &[]),
    ];
    assert_order(&ascending, &FakeCluster::default(), CostOrder::Unset);
    let descending = [
        cost("20"),
        cost("3"),
        cost("0"),
        cost("-5.5"),
        entry("no cost", &[]),
    ];
    assert_order(&descending, &FakeCluster::default(), CostOrder::Descending);
}

#[test]
fn a_cost_that_is_no_number_counts_as_none() {
    for text in ["", "much", "NaN", "1,5"] {
        let (odd, none) = (entry("odd", &[(COST, json!(text))]), entry("none", &[]));
        let around = FakeCluster::default();
        let (one, two) = (named(&odd, "a"), named(&none, "a"));
        assert_eq!(
            rank(&odd, &one, &around, CostOrder::Unset),
            rank(&none, &two, &around, CostOrder::Unset),
            "{text:?}"
        );
    }
}

#[test]
fn cheap_nodes_are_emptied_first_in_either_order_of_the_pods_costs() {
    let around = FakeCluster {
        costs: vec![("cheap", -1.0), ("dear", 7.0)],
        ..FakeCluster::default()
    };
    for order in [CostOrder::Unset, CostOrder::Ascending, CostOrder::Descending] {
        let entries = [
            entry("on a cheap node", &[("/spec/nodeName", json!("cheap"))]),
            entry("on a dear node", &[("/spec/nodeName", json!("dear"))]),
            entry("on a node without cost", &[]),
        ];
        assert_order(&entries, &around, order);
    }
}

#[test]
fn the_node_decides_before_the_pod_as_in_the_original() {
    let around = FakeCluster {
        costs: vec![("cheap", 1.0), ("dear", 2.0)],
        ..FakeCluster::default()
    };
    let entries = [
        entry(
            "dear, on a cheap node",
            &[("/spec/nodeName", json!("cheap")), (COST, json!("9"))],
        ),
        entry(
            "cheap, on a dear node",
            &[("/spec/nodeName", json!("dear")), (COST, json!("1"))],
        ),
    ];
    assert_order(&entries, &around, CostOrder::Unset);
}

#[test]
fn a_pod_whose_hook_has_said_yes_goes_before_one_that_is_still_to_be_asked() {
    let approved = Entry {
        approved: true,
        ..entry("approved", &[])
    };
    let cheaper = entry("cheaper", &[(COST, json!("1"))]);
    let newer = entry("newer", &ready_at("2024-05-01T00:00:00Z"));
    assert_order(
        &[cheaper, approved, newer],
        &FakeCluster::default(),
        CostOrder::Unset,
    );
}

#[test]
fn the_newest_goes_first_among_equals_and_then_one_that_crashed_more() {
    let mut crashed = status("one");
    crashed["restartCount"] = json!(3);
    let created = |at: &str| ("/metadata/creationTimestamp", json!(at));
    let entries = [
        entry("ready since May", &ready_at("2024-05-01T00:00:00Z")),
        entry("ready since April", &ready_at("2024-04-01T00:00:00Z")),
        entry("restarted", &[("/status/containerStatuses", json!([crashed]))]),
        entry("created in January", &[created("2024-01-01T00:00:00Z")]),
        entry("created in December", &[created("2023-12-01T00:00:00Z")]),
    ];
    assert_order(&entries, &FakeCluster::default(), CostOrder::Unset);
}

#[test]
fn names_decide_among_pods_that_are_alike() {
    let (one, around) = (entry("a pod", &[]), FakeCluster::default());
    let (a, b) = (named(&one, "a"), named(&one, "b"));
    assert!(rank(&one, &a, &around, CostOrder::Unset) < rank(&one, &b, &around, CostOrder::Unset));
}

/// Builds a pod from a few bytes, each of which determines one property.
fn any_pod(code: [u8; 9]) -> Pod {
    let pick = |at: usize, from: &[&str]| from[usize::from(code[at]) % from.len()].to_owned();
    let ready = json!([{"type": "Ready", "status": pick(2, &["True", "False"]),
        "lastTransitionTime": pick(3, &["2024-01-01T00:00:00Z", "2024-02-01T00:00:00Z"])}]);
    let mut container = status("one");
    container["restartCount"] = json!(code[4] % 3);
    let over = [
        ("/spec/nodeName", json!(pick(0, &["", "cheap", "dear", "other"]))),
        (
            "/status/phase",
            json!(pick(1, &["Pending", "Unknown", "Running"])),
        ),
        ("/status/conditions", ready),
        ("/status/containerStatuses", json!([container])),
        (COST, json!(pick(5, &["1", "-0", "0", "NaN", "inf", "-inf", "x"]))),
        (
            "/metadata/creationTimestamp",
            json!(pick(6, &["2024-01-01T00:00:00Z", "2023-01-01T00:00:00Z"])),
        ),
    ];
    pod(&pick(7, &["a", "b"]), &over)
}

fn any_rank(pod: &Pod, code: [u8; 9]) -> Rank<'_> {
    let around = FakeCluster {
        costs: vec![("cheap", -0.0), ("dear", f64::NAN)],
        ..FakeCluster::default()
    };
    Rank::new(pod, &around, code[8] % 2 == 1, CostOrder::Unset)
}

proptest! {
    #![proptest_config(crate::samples::config())]

    /// The order is total and transitive: sorting has one result, regardless of the initial order.
    #[test]
    fn ranks_are_a_total_order(codes in any::<[[u8; 9]; 3]>()) {
        let pods = codes.map(any_pod);
        let [a, b, c] = std::array::from_fn(|at| any_rank(&pods[at], codes[at]));
        prop_assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
        prop_assert!(a.name == b.name || a != b && a.cmp(&b) != Ordering::Equal);
        if a <= b && b <= c {
            prop_assert!(a <= c);
        }
    }
}

#[test]
fn a_pod_without_a_cost_costs_nothing_by_the_rule_of_kubernetes() {
    let entries = [
        entry("-5", &[(COST, json!("-5"))]),
        entry("none", &[]),
        entry("100, busy", &[(COST, json!("100"))]),
    ];
    assert_order(
        &entries,
        &FakeCluster::default(),
        CostOrder::read(Some("kubernetes")),
    );
    let unset = [entry("100", &[(COST, json!("100"))]), entry("none", &[])];
    assert_order(&unset, &FakeCluster::default(), CostOrder::read(None));
}
