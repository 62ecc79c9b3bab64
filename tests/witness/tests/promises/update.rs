//! Tests of in-place updates.

use serde_json::{Value, json};

use crate::log::{Call, HOOKS, Log, NEW, OPERATOR};

fn of(hook: &str, kind: &str) -> Log {
    let hook_of = json!({ "hook": { "templateName": "empty" } });
    let strategy = json!({ "type": kind, "maxUnavailable": 1 });
    let mut log = Log::of(json!({ "replicas": 1, "updateStrategy": strategy, hook: hook_of }));
    log.pod("a");
    log
}

fn out(to: &str) -> Value {
    json!({ "status": { "conditions": [
        { "type": "Ready", "status": "True" },
        { "type": "InPlaceUpdateReady", "status": "False", "reason": "StartInPlaceUpdate", "message": to }] } })
}

fn images() -> Value {
    json!({
        "metadata": { "labels": { "controller-revision-hash": NEW } },
        "spec": { "containers": [{ "name": "game", "image": "game:v2" }] },
    })
}

fn ask(log: &mut Log, to: &str, kind: &str) {
    let special = json!({ "metadata": { "labels": { "hookrun-type": kind } } });
    log.ask(&format!("{kind}-{to}"), "a", &format!("in-place:{to}"), special);
    log.say_yes(HOOKS, &format!("{kind}-{to}"));
}

#[test]
fn a_pod_is_taken_out_and_changed_when_its_hook_said_yes() {
    let mut log = of("preInplaceUpdateStrategy", "InplaceUpdate");
    ask(&mut log, NEW, "pre-inplace-step");
    log.patch("a", "status", out(NEW));
    log.patch("a", "", images());
    log.is_clean();
}

#[test]
fn the_hook_before_deletions_stands_in_for_the_one_before_updates() {
    let mut log = of("preDeleteUpdateStrategy", "InplaceUpdate");
    ask(&mut log, NEW, "pre-delete-step");
    log.patch("a", "status", out(NEW));
    log.is_clean();

    let mut log = of("preInplaceUpdateStrategy", "InplaceUpdate");
    ask(&mut log, NEW, "pre-delete-step");
    log.patch("a", "status", out(NEW));
    log.is_caught("is of the type \"pre-delete-step\"");
}

#[test]
fn a_verdict_for_another_revision_takes_no_pod_out() {
    let mut log = of("preInplaceUpdateStrategy", "InplaceUpdate");
    ask(&mut log, "arena-9", "pre-inplace-step");
    log.patch("a", "status", out(NEW));
    log.is_caught("was asked for \"in-place:arena-9\"");
}

#[test]
fn a_pod_that_nobody_asked_about_is_not_taken_out() {
    let mut log = of("preInplaceUpdateStrategy", "InplaceUpdate");
    log.patch("a", "status", out(NEW));
    log.is_caught("no HookRun speaks of it");
}

#[test]
fn what_is_begun_for_one_revision_is_not_gone_on_with_for_another() {
    let mut log = of("preInplaceUpdateStrategy", "InplaceUpdate");
    ask(&mut log, NEW, "pre-inplace-step");
    log.patch("a", "status", out(NEW));
    log.patch("a", "status", out("arena-3"));
    log.is_caught("without a verdict for in-place:arena-3");
}

#[test]
fn what_is_written_already_may_be_written_over() {
    let mut log = of("preInplaceUpdateStrategy", "InplaceUpdate");
    ask(&mut log, NEW, "pre-inplace-step");
    log.patch("a", "status", out(NEW));
    log.patch("a", "", images());
    log.patch("a", "status", out("arena-3"));
    log.is_clean();
}

#[test]
fn images_of_a_pod_in_service_change_only_by_a_hot_patch() {
    let mut log = of("preDeleteUpdateStrategy", "HotPatchUpdate");
    log.patch("a", "", images());
    log.is_clean();

    let mut log = of("preDeleteUpdateStrategy", "InplaceUpdate");
    log.patch("a", "", images());
    log.is_caught("while it was in service");
}

#[test]
fn an_answer_of_metadata_alone_leaves_the_rest_as_it_was() {
    let mut log = of("preDeleteUpdateStrategy", "InplaceUpdate");
    let mut part = log.object("pods", "a")["metadata"].clone();
    part["resourceVersion"] = json!("200");
    let part = json!({ "kind": "PartialObjectMetadata", "metadata": part });
    log.line(Call("collector", "patch", "pods", ""), "a", Value::Null, part);
    let adopted = |image: &str| {
        json!({ "metadata": { "name": "a", "uid": "uid-of-a", "resourceVersion": "201" },
            "spec": { "nodeName": "node", "containers": [{ "name": "game", "image": image }] } })
    };
    let request = json!({ "metadata": { "uid": "uid-of-a", "resourceVersion": "200" } });
    let call = Call(OPERATOR, "patch", "pods", "");
    log.line(call, "a", request.clone(), adopted("game:v1"));
    log.is_clean();
    log.lines.pop();
    log.line(call, "a", request, adopted("game:v2"));
    log.is_caught("from [(\"game\", \"game:v1\")] to [(\"game\", \"game:v2\")]");
}
