//! Tests that every body yields an `AdmissionReview` with the uid of its request, or is rejected as
//! malformed. Nothing makes the program panic.

#![allow(clippy::unwrap_used, reason = "a test may end so")]

use admission::authors;
use admission::guard::{self, PendingDecision};
use admission::removal::entries::GuardEntries;
use admission::removal::recent::RecentDenials;
use admission::removal::{self, Recording, RemovalDecision};
use admission::review::{self, AdmissionDecision, AdmissionRequest};
use admission::validate;
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Generates any JSON, with meaningful words among its strings and keys.
fn any_json() -> impl Strategy<Value = Value> {
    let word = prop_oneof![
        Just("Always".to_owned()),
        Just("Cascading".to_owned()),
        Just("20%".to_owned()),
        Just("{{ args.PodIP }}".to_owned()),
        Just("asInt(result) < 30".to_owned()),
        ".{0,12}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((word.clone(), inner), 0..4)
                .prop_map(|fields| { Value::Object(fields.into_iter().collect()) }),
        ]
    })
}

fn objects() -> [Value; 7] {
    let hook = json!({
        "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "HookRun", "metadata": { "name": "run", "labels": {} },
        "spec": {
            "policy": "Ordered", "args": [{ "name": "PodIP", "value": "10.0.0.1" }], "timeoutSeconds": 60,
            "metrics": [{
                "name": "web", "interval": "5s", "count": 3, "failureLimit": 1, "successCondition": "result < 30",
                "provider": { "web": {
                    "url": "http://{{ args.PodIP }}:9091", "jsonPath": "{$.age}", "method": "POST", "body": "x",
                    "headers": [{ "key": "A", "value": "b" }]
                } }
            }]
        }
    });
    let game = json!({
        "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "GameDeployment",
        "metadata": { "name": "game", "generation": 1, "labels": {}, "annotations": {
            "tkex.bkbcs.tencent.com/gamedeployment-index-on": "true",
            "tkex.bkbcs.tencent.com/gamedeployment-index-range": "{\"podStartIndex\":0,\"podEndIndex\":4}"
        } },
        "spec": {
            "replicas": 1, "selector": { "matchLabels": { "app": "game" } },
            "template": { "metadata": { "labels": { "app": "game" } }, "spec": { "containers": [{ "name": "game" }] } },
            "updateStrategy": { "type": "InplaceUpdate", "maxSurge": 1, "canary": { "steps": [{ "partition": 1 }] } },
            "preDeleteUpdateStrategy": { "hook": { "templateName": "t" } }
        },
        "status": { "replicas": 0, "observedGeneration": 1 }
    });
    let definition = json!({
        "metadata": { "name": "games", "labels": {} },
        "spec": {
            "group": "tkex.tencent.com", "names": { "plural": "games" }, "versions": [{ "name": "v1", "served": true }]
        }
    });
    let action = json!({
        "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "HookAction", "metadata": { "name": "freeze" },
        "action": { "exec": { "command": ["freeze.sh", "now"] } }, "actionTimeoutSeconds": 60, "quoteAnswers": true
    });
    let execution = json!({
        "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "ExecutionHook", "metadata": { "name": "freeze" },
        "spec": { "actionName": "freeze", "parallelism": 8, "podSelection": {
            "podContainerSelector": { "podSelector": { "matchLabels": { "app": "game" } }, "containerList": ["game"] }
        } }
    });
    let owner = json!({
        "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "GameDeployment", "name": "game", "uid": "a", "controller": true
    });
    let pod = json!({
        "metadata": {
            "name": "game-0", "uid": "b", "labels": { "tkex.tencent.com/removal-guard": "Ask" }, "annotations": {},
            "ownerReferences": [owner]
        },
        "spec": { "nodeName": "node-0" }, "status": { "phase": "Running" }
    });
    let namespace = json!({ "metadata": { "name": "games", "deletionTimestamp": null } });
    [hook, game, definition, action, execution, pod, namespace]
}

/// Builds a well-formed review.
fn review(object: usize, operation: usize, both: bool) -> Value {
    let kinds = [
        ("tkex.tencent.com", "HookRun"),
        ("tkex.tencent.com", "GameDeployment"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        ("tkex.tencent.com", "HookAction"),
        ("tkex.tencent.com", "ExecutionHook"),
        ("", "Pod"),
        ("", "Namespace"),
    ];
    let operations = ["CREATE", "UPDATE", "DELETE"];
    let (group, kind) = kinds[object];
    let object = objects()[object].clone();
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "a-b-c", "kind": { "group": group, "version": "v1", "kind": kind },
            "operation": operations[operation], "name": "n", "namespace": "games",
            "userInfo": { "username": "jane" },
            "object": object, "oldObject": if both { object.clone() } else { Value::Null }
        }
    })
}

/// Replaces one value of a document.
fn replace_one(document: &mut Value, mut number: usize, other: &Value) -> Result<(), usize> {
    if number == 0 {
        *document = other.clone();
        return Ok(());
    }
    number -= 1;
    let inner: Vec<&mut Value> = match document {
        Value::Object(fields) => fields.values_mut().collect(),
        Value::Array(items) => items.iter_mut().collect(),
        _ => Vec::new(),
    };
    for value in inner {
        match replace_one(value, number, other) {
            Ok(()) => return Ok(()),
            Err(left) => number = left,
        }
    }
    Err(number)
}

/// Handles a body like the program, except for the guard's requests to the API server.
fn check(body: &[u8]) -> Result<(), TestCaseError> {
    let received = match review::read(body) {
        Ok(received) => received,
        Err(error) => {
            prop_assert!(!error.to_string().is_empty());
            return Ok(());
        }
    };
    let uid = received.head().uid.clone();
    let judge = |request: &AdmissionRequest| match guard::judge(request, &[]) {
        PendingDecision::Given(verdict) => verdict,
        PendingDecision::UnlessNamespaceEnds { refusal, .. }
        | PendingDecision::UnlessNoObjects { refusal, .. } => AdmissionDecision::Forbidden(refusal),
    };
    let guarded = received
        .clone()
        .guarded()
        .map_or_else(|refused| refused, |request| judge(&request));
    let removed = match received.clone().removal() {
        Ok(review) => {
            let (recent, entries) = (RecentDenials::default(), GuardEntries::Complete);
            match removal::judge(review, &[], &recent, entries, Timestamp::UNIX_EPOCH) {
                RemovalDecision::Allowed => AdmissionDecision::Allowed(Vec::new()),
                RemovalDecision::Denied(denial) => denial,
                RemovalDecision::NeedsPod(removal) => removal.denial(&Recording::DryRun),
                RemovalDecision::NeedsNamespace(deletion) => deletion.decide(&Err("no response".to_owned())),
            }
        }
        Err(refused) => refused,
    };
    let finalized = received.finalizer_removal(&[]);
    let validated = match received.weigh().parse() {
        Ok(request) => {
            let rights = authors::needed(&request, &[]);
            prop_assert!(rights.iter().all(|right| !right.path.is_empty()));
            // The guard opens nothing that it would not open if it saw the whole object.
            if let (AdmissionDecision::Allowed(_), "DELETE") = (&guarded, request.operation.as_str()) {
                prop_assert_eq!(&guarded, &judge(&request));
            }
            validate::judge(&request)
        }
        Err(refused) => refused,
    };
    for verdict in [guarded, removed, validated].into_iter().chain(finalized) {
        let text = review::answer(&uid, &verdict).to_string();
        let answer: Value = serde_json::from_str(&text).unwrap_or_default();
        prop_assert_eq!(&answer["apiVersion"], "admission.k8s.io/v1");
        prop_assert_eq!(&answer["kind"], "AdmissionReview");
        let response = &answer["response"];
        prop_assert_eq!(response["uid"].as_str(), Some(uid.as_str()));
        let allowed = response["allowed"].as_bool();
        let message = response["status"]["message"].as_str().unwrap_or_default();
        prop_assert!(
            allowed.is_some() && (allowed == Some(true)) == message.is_empty(),
            "{}",
            text
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_json_is_answered_or_refused(body in any_json()) {
        check(body.to_string().as_bytes())?;
    }

    #[test]
    fn any_bytes_are_answered_or_refused(body in prop::collection::vec(any::<u8>(), 0..200)) {
        check(&body)?;
    }

    #[test]
    fn a_review_with_anything_in_it_is_answered_or_refused(
        (object, operation, both) in (0..7_usize, 0..3_usize, any::<bool>()),
        changes in prop::collection::vec((0..120_usize, any_json()), 0..4),
    ) {
        let mut review = review(object, operation, both);
        for (number, other) in changes {
            // The first few would replace the whole review.
            let _ = replace_one(&mut review, number + 3, &other);
        }
        check(review.to_string().as_bytes())?;
    }
}

#[test]
fn proper_reviews_are_answered() {
    for (object, operation) in [(0, 0), (1, 0), (2, 2), (3, 0), (3, 1), (4, 0), (4, 1)] {
        let review = review(object, operation, operation > 0).to_string();
        let received = review::read(review.as_bytes()).unwrap();
        let request = received.weigh().parse().unwrap();
        assert_eq!(validate::judge(&request), AdmissionDecision::Allowed(Vec::new()));
    }
}

#[test]
fn what_is_nested_without_end_is_refused() {
    let deep = "[".repeat(100_000);
    assert!(review::read(deep.as_bytes()).is_err());
    let deep = format!(
        "{{\"request\":{}1{}}}",
        "{\"a\":".repeat(50_000),
        "}".repeat(50_000)
    );
    assert!(review::read(deep.as_bytes()).is_err());
}

/// Returns a request for a HookTemplate with this label and these stored and new members beside it.
fn hook_template(operation: &str, label: &str, new: &str, old: &str) -> review::ReceivedRequest {
    let object = |more: &str| {
        let labels = r#"{"io.tencent.bcs.dev/deletion-allow":"#;
        format!(r#"{{"metadata":{{"name":"n","labels":{labels}"{label}"}}}},"spec":{{"metrics":[]}}{more}}}"#)
    };
    let body = format!(
        r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"u","operation":
        "{operation}","kind":{{"group":"tkex.tencent.com","kind":"HookTemplate"}},"namespace":"games",
        "object":{},"oldObject":{}}}}}"#,
        object(new),
        object(old)
    );
    review::read(body.as_bytes()).unwrap()
}

#[test]
fn an_object_that_no_parser_can_follow_is_judged_by_its_text() {
    let lists = |levels: usize, inner: &str| format!("{}{inner}{}", "[".repeat(levels), "]".repeat(levels));
    let hidden = (0..12).fold(String::new(), |inner, _| {
        lists(
            50,
            &json!({ "$serde_json::private::RawValue": inner }).to_string(),
        )
    });
    for (value, words) in [
        (lists(100_000, "1"), "it is nested more than 64 levels deep"),
        (
            hidden,
            "it has a key that starts with $serde_json, which is reserved",
        ),
    ] {
        let deep = format!(r#","x":{value}"#);
        for (label, wanted) in [("Always", true), ("Never", false)] {
            let request = hook_template("DELETE", label, "", &deep).guarded().unwrap();
            let decision = guard::judge(&request, &[]);
            let is_allowed = decision == PendingDecision::Given(AdmissionDecision::Allowed(Vec::new()));
            assert_eq!(is_allowed, wanted, "{label}: {decision:?}");
        }
        let refused = format!("the new object cannot be validated: {words}; simplify it");
        let refused = AdmissionDecision::Invalid(refused);
        let known = AdmissionDecision::Allowed(vec![format!("not validated: {words}")]);
        let (none, status) = (String::new(), deep.replacen("\"x\"", "\"status\"", 1));
        for (new, old, wanted) in [
            (&deep, &none, Some(refused)),
            (&deep, &deep, Some(known.clone())),
            (&status, &none, Some(known)),
            (&none, &deep, None),
        ] {
            let decided = hook_template("UPDATE", "Always", new, old).weigh().parse().err();
            assert_eq!(decided, wanted);
        }
    }
}

/// Returns an update of an object of this kind.
fn update(kind: &str, new: &str, old: &str) -> review::ReceivedRequest {
    let body = format!(
        r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"u","operation":"UPDATE",
        "kind":{{"group":"tkex.tencent.com","kind":"{kind}"}},"object":{new},"oldObject":{old}}}}}"#
    );
    review::read(body.as_bytes()).unwrap()
}

#[test]
fn a_change_that_decisions_depend_on_does_not_hide_behind_many_labels() {
    let labels: Vec<String> = (0..100_000).map(|number| format!(r#""l{number}":"""#)).collect();
    let many = format!(r#"{{"labels":{{{}}}}}"#, labels.join(","));
    let few = r#"{"labels":{"a":"b"}}"#.to_owned();
    let owned = many.replacen('{', r#"{"ownerReferences":[{"uid":"u"}],"#, 1);
    let object = |metadata: &str, members: &str| format!(r#"{{"metadata":{metadata},{members}}}"#);
    let (one, other) = (
        r#""spec":{"a":1},"action":{"a":1}"#,
        r#""spec":{"a":2},"action":{"a":1}"#,
    );
    let action = r#""spec":{"a":1},"action":{"a":2}"#;
    for kind in [
        "GameDeployment",
        "HookTemplate",
        "HookRun",
        "HookAction",
        "ExecutionHook",
    ] {
        let is_compared = ["HookRun", "ExecutionHook"].contains(&kind);
        // Whether the decision is made without a look at the objects, and allows the update.
        for (new, old, wanted) in [
            (object(&many, one), object(&few, one), Some(true)),
            (object(&few, one), object(&many, one), Some(true)),
            (object(&many, other), object(&few, one), Some(false)),
            (object(&many, action), object(&few, one), Some(false)),
            (object(&many, action), object(&many, one), Some(false)),
            (object(&owned, one), object(&many, one), Some(false)),
            (
                object(&few, other),
                object(&many, one),
                is_compared.then_some(false),
            ),
            (object(&few, other), object(&few, one), None),
        ] {
            let decided = update(kind, &new, &old).weigh().parse().err();
            let is_allowed = decided.map(|decision| matches!(decision, AdmissionDecision::Allowed(_)));
            assert_eq!(is_allowed, wanted, "{kind}: {new:.80}");
        }
    }
}

#[test]
fn fields_that_are_not_the_guards_keep_no_object() {
    for spec in [
        r#"{"group":5}"#,
        r#"{"versions":{}}"#,
        r#"{"names":[1],"replicas":"x"}"#,
    ] {
        for (label, wanted) in [("Always", true), ("Cascading", false)] {
            let more = format!(r#","status":{{"replicas":[]}},"other":{spec}"#);
            let mut request = hook_template("DELETE", label, "", &more).guarded().unwrap();
            assert_eq!(request.old_object["status"]["replicas"], Value::Null);
            let decision = guard::judge(&request, &[]);
            assert_eq!(matches!(decision, PendingDecision::Given(_)), wanted, "{spec}");
            request.kind.kind = "GameDeployment".to_owned();
            let decision = guard::judge(&request, &[]);
            assert_eq!(matches!(decision, PendingDecision::Given(_)), wanted, "{spec}");
        }
    }
}
