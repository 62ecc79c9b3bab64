use serde_json::{Value, json};

use super::*;

/// Returns the entries as the chart renders them, after the defaults of an API server.
fn rendered() -> Value {
    let enabled = json!({ "matchLabels": { REMOVAL_GUARD: "Enabled" } });
    let guarded = json!({ "matchLabels": { REMOVAL_GUARD: REMOVAL_GUARD_ASK } });
    let webhook = |name: &str, objects: &Value, operation: &str, resource: &str, scope: &str| {
        json!({
            "name": format!("{name}.hookgate.tkex.tencent.com"), "failurePolicy": "Fail", "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "clientConfig": {}, "timeoutSeconds": 5,
            "namespaceSelector": enabled, "objectSelector": objects,
            "rules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "resources": [resource], "operations": [operation],
                "scope": scope,
            }],
        })
    };
    let (all, namespaced) = (json!({}), "Namespaced");
    json!([
        webhook("validate", &all, "CREATE", "gamedeployments", namespaced),
        webhook("removals", &guarded, "DELETE", "pods", namespaced),
        webhook("evictions", &all, "CREATE", "pods/eviction", namespaced),
        webhook("namespaces", &all, "DELETE", "namespaces", "Cluster"),
        webhook("removal-guard-labels", &guarded, "UPDATE", "pods", namespaced),
    ])
}

/// Compares the entries with this value at a JSON pointer.
fn changed(path: &str, value: Value) -> GuardEntries {
    let mut webhooks = rendered();
    if let Some(field) = webhooks.pointer_mut(path) {
        *field = value;
    } else {
        let (object, field) = path.rsplit_once('/').unwrap();
        webhooks.pointer_mut(object).unwrap()[field] = value;
    }
    of(&webhooks)
}

fn of(webhooks: &Value) -> GuardEntries {
    let configuration = serde_json::from_value(json!({ "webhooks": webhooks })).unwrap();
    GuardEntries::of(Some(&configuration))
}

fn incomplete(words: &str) -> GuardEntries {
    GuardEntries::Incomplete(words.to_owned())
}

#[test]
fn the_entries_of_the_chart_are_complete_and_may_review_more() {
    assert_eq!(of(&rendered()), GuardEntries::Complete);
    let condition = json!([{ "name": "is-not-terminating", "expression": "true" }]);
    let wide = json!([{
        "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*", "pods/*", "*/*"], "operations": ["*"], "scope": "*",
    }]);
    for (path, value) in [
        ("/1/matchConditions", condition),
        ("/1/timeoutSeconds", json!(30)),
        ("/1/objectSelector", json!({})),
        ("/1/rules/0/operations", json!(["CREATE", "DELETE"])),
        ("/1/rules/0/scope", Value::Null),
        ("/2/namespaceSelector", json!({})),
        ("/2/namespaceSelector", Value::Null),
        ("/2/rules", wide.clone()),
        ("/3/rules", wide),
        ("/1/rules/0/resources", json!(["pods/*"])),
        ("/1/rules/0/resources", json!(["*"])),
        ("/2/rules/0/resources", json!(["pods/*"])),
        ("/2/rules/0/resources", json!(["*/eviction"])),
        ("/2/rules/0/resources", json!(["*/*"])),
        (
            "/0",
            json!({ "name": "x", "sideEffects": "None", "admissionReviewVersions": [], "clientConfig": {} }),
        ),
    ] {
        assert_eq!(
            changed(path, value.clone()),
            GuardEntries::Complete,
            "{path} {value}"
        );
    }
}

#[test]
fn each_missing_or_narrowed_entry_is_named() {
    let domain = "hookgate.tkex.tencent.com";
    for (path, value, words) in [
        ("/1/name", json!("other"), "removals.DOMAIN is missing"),
        (
            "/2/failurePolicy",
            json!("Ignore"),
            "evictions.DOMAIN has failurePolicy Ignore instead of Fail",
        ),
        (
            "/2/rules/0/resources",
            json!(["pods", "*"]),
            "evictions.DOMAIN has no rule for the operation CREATE of pods/eviction",
        ),
        (
            "/1/rules/0/resources",
            json!(["*/eviction", "nodes/*"]),
            "removals.DOMAIN has no rule for the operation DELETE of pods",
        ),
        (
            "/1/rules/0/operations",
            json!(["CREATE"]),
            "removals.DOMAIN has no rule for the operation DELETE of pods",
        ),
        (
            "/3/rules/0/scope",
            json!("Namespaced"),
            "namespaces.DOMAIN has no rule for the operation DELETE of namespaces",
        ),
        (
            "/3/rules",
            json!([]),
            "namespaces.DOMAIN has no rule for the operation DELETE of namespaces",
        ),
        (
            "/2/namespaceSelector/matchLabels/team",
            json!("blue"),
            "evictions.DOMAIN has a different namespaceSelector than removal-guard-labels.DOMAIN",
        ),
        (
            "/3/namespaceSelector/matchExpressions",
            json!([{ "key": "team", "operator": "Exists" }]),
            "namespaces.DOMAIN has a different namespaceSelector than removal-guard-labels.DOMAIN",
        ),
        (
            "/1/namespaceSelector/matchLabels",
            json!({ REMOVAL_GUARD: "Disabled" }),
            "removals.DOMAIN has a different namespaceSelector than removal-guard-labels.DOMAIN",
        ),
        (
            "/1/objectSelector/matchLabels/app",
            json!("arena"),
            "removals.DOMAIN has a different objectSelector",
        ),
        (
            "/1/objectSelector/matchExpressions",
            json!([{ "key": "app", "operator": "Exists" }]),
            "removals.DOMAIN has a different objectSelector",
        ),
        (
            "/2/objectSelector",
            json!({ "matchLabels": { REMOVAL_GUARD: REMOVAL_GUARD_ASK } }),
            "evictions.DOMAIN has a different objectSelector",
        ),
        (
            "/4/failurePolicy",
            json!("Ignore"),
            "removal-guard-labels.DOMAIN has failurePolicy Ignore instead of Fail",
        ),
    ] {
        let wanted = format!("webhook {}", words.replace("DOMAIN", domain));
        assert_eq!(changed(path, value), incomplete(&wanted), "{path}");
    }
}

#[test]
fn all_entries_may_be_narrowed_to_the_same_namespaces() {
    let mut webhooks = rendered();
    for webhook in webhooks.as_array_mut().unwrap() {
        webhook["namespaceSelector"]["matchLabels"]["team"] = json!("blue");
    }
    assert_eq!(of(&webhooks), GuardEntries::Complete);
}

#[test]
fn an_entry_may_select_more_namespaces_than_that_of_the_check() {
    let key = "kubernetes.io/metadata.name";
    let system = |values: Value| json!([{ "key": key, "operator": "NotIn", "values": values }]);
    let mut webhooks = rendered();
    // As if a platform excluded its namespaces from webhooks for namespaced resources.
    for number in [1, 2, 4] {
        webhooks[number]["namespaceSelector"]["matchExpressions"] =
            system(json!(["kube-system", "kube-public"]));
    }
    assert_eq!(of(&webhooks), GuardEntries::Complete);
    webhooks[2]["namespaceSelector"]["matchExpressions"] = system(json!(["kube-public", "kube-system"]));
    assert_eq!(of(&webhooks), GuardEntries::Complete, "order of values");
    webhooks[2]["namespaceSelector"]["matchExpressions"] = system(json!(["games"]));
    assert_ne!(of(&webhooks), GuardEntries::Complete, "other values");
}

#[test]
fn a_label_may_be_spelled_as_an_expression() {
    let is = |key: &str, value: &str| {
        let expression = json!({ "key": key, "operator": "In", "values": [value] });
        json!({ "matchExpressions": [expression] })
    };
    for (path, selector) in [
        ("/2/namespaceSelector", is(REMOVAL_GUARD, "Enabled")),
        ("/4/namespaceSelector", is(REMOVAL_GUARD, "Enabled")),
        ("/1/objectSelector", is(REMOVAL_GUARD, REMOVAL_GUARD_ASK)),
    ] {
        assert_eq!(changed(path, selector), GuardEntries::Complete, "{path}");
    }
}

#[test]
fn without_a_configuration_all_entries_are_missing() {
    let GuardEntries::Incomplete(words) = GuardEntries::of(None) else {
        panic!("complete");
    };
    assert_eq!(words.matches(" is missing").count(), 4, "{words}");
}

#[test]
fn entries_are_unknown_until_they_are_read() {
    let known = KnownEntries::default();
    assert_eq!(known.get(), GuardEntries::Unknown);
    known.set(GuardEntries::Complete);
    assert_eq!(known.get(), GuardEntries::Complete);
    known.set(incomplete("x"));
    assert_eq!(known.get(), incomplete("x"));
}
