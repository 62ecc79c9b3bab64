use serde_json::{Value, json};
use shared_api::names::pod::SKIP_HOOK;

use super::*;

const EXIT: &str = "to delete the namespace without running the hooks: kubectl label namespace games \
                    tkex.tencent.com/removal-guard=Disabled --overwrite";

/// Returns a pod of the list, which has neither a spec nor a status, with these changes of its metadata.
fn listed(changes: Value) -> GuardedPod {
    let owner = json!({
        "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "GameDeployment", "name": "arena", "uid": "owner",
        "controller": true,
    });
    let mut metadata = json!({ "name": "arena-1", "uid": "pod", "ownerReferences": [owner] });
    for (field, value) in changes.as_object().unwrap() {
        metadata[field] = value.clone();
    }
    serde_json::from_value(json!({ "metadata": metadata })).unwrap()
}

fn decided(found: Result<KeptPods, &str>) -> AdmissionDecision {
    NamespaceDeletion::new("games").decide(&found.map_err(str::to_owned))
}

#[test]
fn a_listed_pod_depends_on_its_game_deployment_unless_it_is_terminating_or_skips_its_hooks() {
    for (changes, is_kept) in [
        (json!({}), true),
        (json!({ "deletionTimestamp": "2026-01-01T00:00:00Z" }), false),
        (json!({ "annotations": { SKIP_HOOK: "pod" } }), false),
        (json!({ "annotations": { SKIP_HOOK: "other" } }), true),
        (json!({ "annotations": { SKIP_HOOK: "" } }), true),
        (json!({ "ownerReferences": null }), false),
        (json!({ "ownerReferences": [] }), false),
    ] {
        let pod = listed(changes.clone());
        let owner = keeper(&pod).map(|owner| owner.name.as_str());
        assert_eq!(owner, is_kept.then_some("arena"), "{changes}");
    }
}

#[test]
fn pods_are_counted_until_the_last_page_or_until_there_are_enough() {
    let counted = |pods: usize, is_last: bool| {
        let mut kept = KeptPods::default();
        for number in 0..pods {
            kept.add(&listed(json!({ "name": format!("arena-{number}") })));
        }
        let has_ended = kept.ends_after(is_last);
        (has_ended, kept)
    };
    for (pods, is_last, has_ended) in [
        (0, true, true),
        (0, false, false),
        (499, false, false),
        (499, true, true),
        (500, false, true),
        (500, true, true),
    ] {
        let (found, kept) = counted(pods, is_last);
        assert_eq!(found, has_ended, "{pods} {is_last}");
        let first = if pods == 0 { "" } else { "arena-0" };
        let wanted = KeptPods {
            count: pods,
            first: first.to_owned(),
            has_more: !is_last,
        };
        assert_eq!(kept, wanted);
    }
}

#[test]
fn a_namespace_with_kept_pods_is_not_deleted_and_the_message_has_the_remedy_and_the_exit() {
    assert_eq!(
        decided(Ok(KeptPods::default())),
        AdmissionDecision::Allowed(Vec::new())
    );
    let first = "Delete the GameDeployments first: kubectl delete gamedeployments --all -n games";
    for (count, has_more, pods) in [
        (
            1,
            false,
            "1 guarded pod, arena-1, which would be deleted without running its PreDelete hook",
        ),
        (
            12,
            false,
            "12 guarded pods, for example arena-1, which would be deleted without running their PreDelete hooks",
        ),
        (
            540,
            true,
            "at least 540 guarded pods, for example arena-1, which would be deleted without running their PreDelete \
             hooks",
        ),
    ] {
        let kept = KeptPods {
            count,
            first: "arena-1".to_owned(),
            has_more,
        };
        let message = format!("namespace games has {pods}. {first}; {EXIT}");
        assert_eq!(decided(Ok(kept)), AdmissionDecision::Forbidden(message));
    }
}

#[test]
fn a_namespace_whose_pods_are_not_known_is_not_deleted() {
    let message = format!(
        "failed to check whether namespace games has guarded pods (no response within 4s); run the command again; \
         {EXIT}"
    );
    assert_eq!(
        decided(Err("no response within 4s")),
        AdmissionDecision::Forbidden(message)
    );
}

#[test]
fn a_namespace_is_terminating_only_if_it_has_a_deletion_timestamp() {
    let read = |text: &str| serde_json::from_str::<NamespaceObject>(text).ok();
    for (text, wanted) in [
        (
            r#"{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"}}"#,
            Some(true),
        ),
        (r#"{"metadata":{"deletionTimestamp":null}}"#, Some(false)),
        (r#"{"metadata":{}}"#, Some(false)),
        ("{}", Some(false)),
        (r#"{"metadata":{"deletionTimestamp":1}}"#, None),
        (r#"{"metadata":null}"#, None),
    ] {
        let found = read(text).map(|namespace| namespace.is_terminating());
        assert_eq!(found, wanted, "{text}");
    }
}
