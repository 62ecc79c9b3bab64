use serde_json::json;
use shared_api::names::workload::ASK_BEFORE_REMOVAL;

use super::*;

fn request(kind: (&str, &str), old: &Value) -> AdmissionRequest {
    let (group, kind) = kind;
    serde_json::from_value(json!({
        "uid": "u", "kind": { "group": group, "version": "v1", "kind": kind }, "operation": "DELETE",
        "name": "game", "namespace": "games", "userInfo": { "username": "jane" }, "oldObject": old
    }))
    .unwrap()
}

fn workload(label: Option<&str>, spec: i64, status: i64) -> AdmissionRequest {
    let labels = label.map_or(json!({}), |value| json!({ DELETION_ALLOW: value }));
    let old = json!({
        "metadata": { "name": "game", "generation": 3, "labels": labels },
        "spec": { "replicas": spec }, "status": { "replicas": status, "observedGeneration": 3 }
    });
    request((GROUP, "GameDeployment"), &old)
}

fn is_allowed(request: &AdmissionRequest) -> bool {
    judge(request, &["robot".to_owned()]) == PendingDecision::Given(AdmissionDecision::Allowed(Vec::new()))
}

#[test]
fn a_workload_goes_with_always_and_with_cascading_once_it_is_empty() {
    let cases = [
        (None, 0, 0, false),
        (None, 3, 3, false),
        (Some("Always"), 3, 3, true),
        (Some("Cascading"), 3, 3, false),
        // Pods that still wait for their hook may have players.
        (Some("Cascading"), 0, 2, false),
        (Some("Cascading"), 3, 0, false),
        (Some("Cascading"), 0, 0, true),
        (Some("always"), 0, 0, false),
    ];
    for (label, spec, status, allowed) in cases {
        let request = workload(label, spec, status);
        assert_eq!(is_allowed(&request), allowed, "{label:?} {spec} {status}");
    }
}

#[test]
fn a_status_that_is_behind_counts_for_nothing() {
    let mut request = workload(Some("Cascading"), 0, 0);
    request.old_object["metadata"]["generation"] = json!(4);
    assert!(!is_allowed(&request));
    request.old_object["status"] = Value::Null;
    assert!(!is_allowed(&request));
    request.old_object["metadata"]["generation"] = Value::Null;
    assert!(!is_allowed(&request));
}

#[test]
fn the_refusal_says_why_and_gives_the_command() {
    let said = |request: &AdmissionRequest| match judge(request, &[]) {
        PendingDecision::UnlessNamespaceEnds { namespace, refusal } => {
            assert_eq!(namespace, "games");
            refusal
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(
        said(&workload(None, 3, 2)),
        "deletion of GameDeployment game is refused: its pods (spec.replicas 3, status.replicas 2) would be deleted \
         or orphaned without running their hooks, and it has no label io.tencent.bcs.dev/deletion-allow. To allow the \
         deletion: kubectl label gamedeployment game --namespace games io.tencent.bcs.dev/deletion-allow=Always \
         --overwrite"
    );
    let cascading = said(&workload(Some("Cascading"), 0, 2));
    assert!(cascading.contains("status.replicas 2)") && cascading.contains("Scale it to 0"));
    assert!(said(&workload(Some("Never"), 0, 2)).contains("deletion-allow is \"Never\""));
    let old = json!({ "metadata": { "labels": { DELETION_ALLOW: "Cascading" } } });
    let template = said(&request((GROUP, "HookTemplate"), &old));
    assert!(
        template.contains("so their gates would stay closed") && template.contains("label hooktemplate game"),
        "{template}"
    );
}

#[test]
fn a_refusal_says_whether_the_operator_would_run_the_hooks() {
    let ours = || json!(["foregroundDeletion", ASK_BEFORE_REMOVAL]);
    let hook = || json!({ "hook": { "templateName": "empty", "args": [] }, "retry": true });
    for (finalizers, policy, strategy, runs_hooks) in [
        (ours(), json!("Ask"), hook(), true),
        (json!(["foregroundDeletion"]), json!("Ask"), hook(), false),
        (Value::Null, json!("Ask"), hook(), false),
        (ours(), json!("Unguarded"), hook(), false),
        (ours(), Value::Null, hook(), false),
        (
            ours(),
            json!("Ask"),
            json!({ "hook": null, "retry": true }),
            false,
        ),
        (ours(), json!("Ask"), Value::Null, false),
    ] {
        let end = if runs_hooks {
            "deleted once their PreDelete hooks succeed"
        } else {
            "deleted or orphaned without running their hooks"
        };
        let words = format!("its pods (spec.replicas 3, status.replicas 2) would be {end}");
        for label in [None, Some("Cascading")] {
            let mut asking = workload(label, 3, 2);
            let old = &mut asking.old_object;
            old["metadata"]["finalizers"] = finalizers.clone();
            old["spec"]["disruption"] = json!({ "policy": policy });
            old["spec"]["preDeleteUpdateStrategy"] = strategy.clone();
            // As http passes it on, and as a whole.
            let read: GuardedObject = serde_json::from_str(&old.to_string()).unwrap();
            let mut skimmed = asking.clone();
            skimmed.old_object = serde_json::to_value(read).unwrap();
            for request in [asking, skimmed] {
                let PendingDecision::UnlessNamespaceEnds { refusal, .. } = judge(&request, &[]) else {
                    panic!("not refused");
                };
                assert!(refusal.contains(&words), "{refusal}");
            }
        }
    }
}

#[test]
fn a_definition_goes_with_always_and_with_cascading_once_nothing_is_left() {
    let kind = ("apiextensions.k8s.io", "CustomResourceDefinition");
    let definition = |group: &str, label: &str| {
        let old = json!({
            "metadata": { "labels": { DELETION_ALLOW: label } },
            "spec": { "group": group, "names": { "plural": "games" }, "versions": [{ "name": "v1", "served": true }] }
        });
        let mut request = request(kind, &old);
        request.namespace = None;
        request
    };
    assert!(is_allowed(&definition("another.example", "")));
    assert!(is_allowed(&definition(GROUP, "Always")));
    let PendingDecision::Given(AdmissionDecision::Forbidden(refusal)) = judge(&definition(GROUP, ""), &[])
    else {
        panic!("not refused");
    };
    let command =
        "kubectl label customresourcedefinition game io.tencent.bcs.dev/deletion-allow=Always --overwrite";
    assert!(refusal.ends_with(command), "{refusal}");
    let ruling = judge(&definition(GROUP, "Cascading"), &[]);
    assert!(
        matches!(&ruling, PendingDecision::UnlessNoObjects { version, plural, .. } if (version.as_str(), plural.as_str()) == ("v1", "games")),
        "{ruling:?}"
    );
}

#[test]
fn what_is_no_deletion_of_ours_is_not_held_up() {
    let refused = workload(None, 3, 3);
    assert!(!is_allowed(&refused));
    let mut exempt = refused.clone();
    exempt.user_info.username = Some("robot".to_owned());
    let mut update = refused.clone();
    update.operation = "UPDATE".to_owned();
    let mut status = refused.clone();
    status.sub_resource = Some("status".to_owned());
    let mut ends = refused.clone();
    ends.old_object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let mut other = refused.clone();
    other.kind.group = "apps".to_owned();
    for request in [exempt, update, status, ends, other] {
        assert!(is_allowed(&request), "{request:?}");
    }
}

#[test]
fn a_deletion_that_does_not_say_of_what_is_refused() {
    let request = request((GROUP, "GameDeployment"), &Value::Null);
    assert!(!is_allowed(&request));
}
