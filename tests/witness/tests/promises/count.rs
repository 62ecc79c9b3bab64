//! Tests of the limits: never too many pods, never too few available.

use serde_json::{Value, json};

use crate::log::{Call, Log, NEW, SOMEBODY};

fn of(replicas: u64, strategy: Value) -> Log {
    Log::of(json!({ "replicas": replicas, "updateStrategy": strategy }))
}

fn three(strategy: Value) -> Log {
    let mut log = of(3, strategy);
    for name in ["a", "b", "c"] {
        log.pod(name);
    }
    log.wait(60_000);
    log
}

#[test]
fn as_many_pods_as_replicas_and_surge_may_exist_and_not_one_more() {
    let mut log = of(2, json!({ "maxSurge": "30%" }));
    for name in ["a", "b", "c"] {
        log.newborn(name);
    }
    log.is_clean();
    log.newborn("d");
    log.is_caught("the 4th of at most 3");
}

#[test]
fn recreate_may_take_all_pods_and_creates_none_beside_another_revision() {
    let mut log = three(json!({ "type": "Recreate" }));
    for name in ["a", "b", "c"] {
        log.delete(name);
    }
    for name in ["a", "b"] {
        log.kubelet(name, json!({ "status": { "phase": "Failed" } }));
    }
    let mut beside = log.clone();
    beside.newborn_of("d", NEW);
    beside.is_caught(
        "pod d (uid-of-d) of arena-2 was created beside pod c (uid-of-c) of arena-1, with type Recreate",
    );
    log.kubelet("c", json!({ "status": { "phase": "Succeeded" } }));
    log.newborn_of("d", NEW);
    log.is_clean();
}

#[test]
fn a_type_that_has_just_changed_need_not_be_known() {
    for (wait, is_known) in [(1_000, false), (3_000, true)] {
        let mut log = of(3, json!({ "type": "RollingUpdate" }));
        log.pod("a");
        log.edit(json!({ "updateStrategy": { "type": "Recreate" } }));
        log.wait(wait);
        log.newborn_of("b", NEW);
        if is_known {
            log.is_caught("beside pod a");
        } else {
            log.is_clean();
        }
    }
}

#[test]
fn a_pod_that_goes_makes_room() {
    let mut log = of(1, json!({ "maxUnavailable": 1 }));
    log.pod("a");
    log.delete("a");
    log.newborn("b");
    log.kubelet("b", json!({ "status": { "phase": "Failed" } }));
    log.newborn("c");
    // No kubelet runs it: it is gone at once, and the response has no revision of its own.
    let last = log.object("pods", "c");
    let request = log.preconditions("c");
    log.line(
        Call(crate::log::OPERATOR, "delete", "pods", ""),
        "c",
        request,
        last,
    );
    log.newborn("d");
    log.is_clean();
    log.newborn("e");
    log.is_caught("the others: d");
}

#[test]
fn a_lower_number_is_known_after_two_seconds() {
    let lowered = |wait: i64| {
        let mut log = of(2, json!({}));
        log.newborn("a");
        log.edit(json!({ "replicas": 1 }));
        log.wait(wait);
        log.newborn("b");
        log
    };
    lowered(1000).is_clean();
    lowered(2500).is_caught("the 2th of at most 1");
}

#[test]
fn a_change_of_the_scale_is_a_change_of_the_spec() {
    let mut log = of(1, json!({}));
    log.newborn("a");
    let scale = json!({ "kind": "Scale", "spec": { "replicas": 2 },
        "metadata": { "name": "arena", "uid": "uid-of-arena", "resourceVersion": "103" } });
    // The revision of the scale is set by hand.
    log.line(
        Call(SOMEBODY, "patch", "gamedeployments", "scale"),
        "arena",
        json!({}),
        scale,
    );
    log.wait(5000);
    log.kubelet("a", json!({}));
    log.newborn("b");
    log.is_clean();
    log.newborn("c");
    log.is_caught("the 3th of at most 2");
}

#[test]
fn available_pods_are_taken_down_to_the_floor_and_no_further() {
    let mut log = three(json!({ "maxUnavailable": 2 }));
    log.delete("a");
    log.delete("b");
    log.is_clean();
    log.delete("c");
    log.is_caught("deleted pod c (uid-of-c), which was available, though at most 1 pods");
}

#[test]
fn a_pod_that_is_taken_out_of_service_counts_as_taken() {
    let out = json!({ "status": { "conditions": [
        { "type": "InPlaceUpdateReady", "status": "False", "reason": "StartInPlaceUpdate", "message": "arena-2" }] } });
    let mut log = three(json!({ "maxUnavailable": 1 }));
    log.patch("a", "status", out.clone());
    log.is_clean();
    log.patch("b", "status", out);
    log.is_caught("took out of service pod b");
}

#[test]
fn a_pod_that_is_not_available_needs_no_room() {
    let mut log = three(json!({ "maxUnavailable": 0, "maxSurge": 1 }));
    log.kubelet(
        "a",
        json!({ "status": { "conditions": [{ "type": "Ready", "status": "False" }] } }),
    );
    log.delete("a");
    log.is_clean();
}

#[test]
fn a_loss_that_nobody_could_know_of_is_forgiven_for_a_second() {
    let lost = |wait: i64| {
        let mut log = three(json!({ "maxUnavailable": 1 }));
        log.kubelet(
            "a",
            json!({ "status": { "conditions": [{ "type": "Ready", "status": "False" }] } }),
        );
        log.wait(wait);
        log.delete("b");
        log
    };
    lost(500).is_clean();
    lost(1500).is_caught("at most 2 pods were in the last 1s and 2 must stay");
}

#[test]
fn what_the_operator_took_itself_is_not_forgiven() {
    let mut log = three(json!({ "maxUnavailable": 1 }));
    log.delete("a");
    log.delete("b");
    log.is_caught("deleted pod b");
}

#[test]
fn a_pod_is_available_when_it_has_been_ready_for_long_enough() {
    let mut log = Log::of(
        json!({ "replicas": 1, "minReadySeconds": 90_000, "updateStrategy":
        { "maxUnavailable": 0, "maxSurge": 1 } }),
    );
    log.pod("a");
    log.delete("a");
    log.is_clean();

    let mut log = Log::of(json!({ "replicas": 1, "minReadySeconds": 60, "updateStrategy":
        { "maxUnavailable": 0, "maxSurge": 1 } }));
    log.pod("a");
    log.delete("a");
    log.is_caught("deleted pod a");
}
