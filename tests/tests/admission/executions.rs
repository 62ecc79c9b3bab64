//! An action in running containers needs an author who may run commands in them, and is checked before it is stored.

use admission::authors;
use admission::review::AdmissionRequest;
use cel::{Context, Program, to_value};
use operator_tests::SOON;
use serde_json::{Value, json};
use test_kit::eventually;

use crate::authors::{commands, grant, pods, writes};
use crate::deploy;
use crate::installation::Installation;
use crate::shared;

/// Returns the same documents as the chart renders them for API servers that select the writes that a webhook is called
/// for.
fn documents_of_chart(name: &str, namespace: &str) -> Vec<Value> {
    deploy::of_chart("1.28.0", "admission.enabled=true", name, namespace)
}

/// Returns an object of a kind with these fields beside its metadata.
fn object(kind: &str, name: &str, fields: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "tkex.tencent.com/v1alpha1", "kind": kind, "metadata": { "name": name }
    });
    operator_tests::merge(&mut object, fields.clone());
    object
}

fn action(name: &str, command: &str) -> Value {
    let fields =
        json!({ "action": { "exec": { "command": ["freeze.sh", command] } }, "callTimeoutSeconds": 5 });
    object("HookAction", name, &fields)
}

fn execution(name: &str, action: &str) -> Value {
    let names = json!([{ "podName": "arena-0", "containerNames": ["game"] }]);
    let spec = json!({ "actionName": action, "podSelection": { "podContainerNamesList": names } });
    object("ExecutionHook", name, &json!({ "spec": spec }))
}

/// Lets all users write both kinds, and bob run commands in all pods.
async fn granted(installation: &Installation<'_>) {
    for user in ["alice", "bob", "carol", "dave"] {
        let rule = writes(&["hookactions", "executionhooks"]);
        grant(installation, user, user, rule).await;
    }
    // Pods are not their subresource, one verb is not the other, and one pod is not all of them.
    let all_but_commands = pods(&["create", "get"], &[]);
    grant(installation, "alice", "alices-pods", all_but_commands).await;
    grant(installation, "bob", "bob-runs", commands(&["create"], &[])).await;
    grant(installation, "carol", "carol-gets", commands(&["get"], &[])).await;
    let one_pod = commands(&["create"], &["arena-0"]);
    grant(installation, "dave", "daves-pod", one_pod).await;
}

fn patch(
    installation: &Installation<'_>,
    user: &str,
    object: &str,
    change: &Value,
) -> Result<String, String> {
    let change = change.to_string();
    let command = ["patch", object, "--type=merge", "--patch", &change, "--as", user];
    installation.kubectl(&command, "")
}

#[tokio::test]
async fn nobody_runs_commands_by_an_execution_hook() {
    let (installation, _replica) = Installation::running(shared().await, &[]).await;
    granted(&installation).await;
    let refused = |field: &str, user: &str, said: Result<String, String>| {
        let words = format!(
            "{field}: {user:?} is not allowed to create pods/exec in namespace {}, which ExecutionHooks need to run \
             an action in containers; ask an administrator for permission to create pods/exec",
            installation.namespace
        );
        let said = said.unwrap_err();
        assert!(said.contains(&words), "{said}");
    };
    for (field, made) in [
        ("action", action("freeze", "now")),
        ("spec", execution("freeze", "freeze")),
    ] {
        let create = |user: &str| {
            let command = ["create", "--as", user, "--filename", "-"];
            installation.kubectl(&command, &made.to_string())
        };
        for user in ["alice", "carol", "dave"] {
            refused(field, user, create(user));
        }
        create("bob").unwrap();
    }
    // The action of an ExecutionHook need not exist yet.
    let unknown = execution("early", "none").to_string();
    let create = ["create", "--as", "alice", "--filename", "-"];
    refused("spec", "alice", installation.kubectl(&create, &unknown));
    let change = |user: &str, object: &str, change: &Value| patch(&installation, user, object, change);
    for free in [
        json!({ "metadata": { "labels": { "team": "arena" } } }),
        json!({ "metadata": { "finalizers": ["example.com/test"] } }),
        json!({ "callTimeoutSeconds": 7, "actionTimeoutSeconds": 60 }),
    ] {
        change("alice", "hookaction/freeze", &free).unwrap();
    }
    for acting in [
        json!({ "quoteAnswers": true }),
        json!({ "action": { "exec": { "command": ["freeze.sh", "never"] } } }),
    ] {
        refused("action", "alice", change("alice", "hookaction/freeze", &acting));
        change("bob", "hookaction/freeze", &acting).unwrap();
    }
    let hook = "executionhook/freeze";
    for free in [
        json!({ "metadata": { "labels": { "team": "arena" } } }),
        json!({ "metadata": { "finalizers": ["example.com/test"] } }),
        json!({ "spec": { "terminate": true } }),
    ] {
        change("alice", hook, &free).unwrap();
    }
    // Two webhooks refuse this to alice, and either may answer first.
    let other = json!({ "spec": { "actionName": "stop" } });
    change("alice", hook, &other).unwrap_err();
    let said = change("bob", hook, &other).unwrap_err();
    assert!(said.contains("spec: only terminate may be changed"), "{said}");
    // A finalizer keeps an object that others still use.
    for object in ["hookaction/freeze", hook] {
        installation.must(&["delete", object, "--wait=false"], "");
    }
    let acting = json!({ "action": { "exec": { "command": ["freeze.sh", "later"] } } });
    refused("action", "alice", change("alice", "hookaction/freeze", &acting));
    for object in ["hookaction/freeze", hook] {
        change("alice", object, &json!({ "metadata": { "finalizers": null } })).unwrap();
    }
}

/// The configuration is that of the chart for Kubernetes 1.28 and newer.
#[tokio::test]
async fn without_an_answer_no_command_is_stored() {
    let control_plane = shared().await;
    let mut installation = Installation::new(control_plane).await;
    installation.documents = documents_of_chart(&installation.name, &installation.namespace);
    let replica = installation.replica(&[]);
    installation
        .configure(replica.tls, &json!({ "timeoutSeconds": 3 }))
        .await;
    replica.ready().await;
    installation.asked().await;
    granted(&installation).await;
    let create = |user: &str, object: &Value| {
        let command = ["create", "--as", user, "--filename", "-"];
        installation.kubectl(&command, &object.to_string())
    };
    eventually(SOON, || async {
        match create("alice", &action("probe", "now")) {
            Err(said) if said.contains("is not allowed to create pods/exec") => Ok(()),
            other => Err(other),
        }
    })
    .await;
    create("bob", &action("freeze", "now")).unwrap();
    create("bob", &execution("freeze", "freeze")).unwrap();
    replica.process.pause().unwrap();
    for user in ["alice", "bob"] {
        for object in [action("late", "now"), execution("late", "freeze")] {
            let said = create(user, &object).unwrap_err();
            let failed = "failed calling webhook \"authors.hookgate.tkex.tencent.com\"";
            assert!(said.contains(failed), "{said}");
        }
    }
    // Older API servers have no conditions: `the_api_server_asks_for_each_write_that_needs_a_right` evaluates them.
    if control_plane.minor_version() >= 28 {
        for free in [
            json!({ "metadata": { "labels": { "team": "arena" } } }),
            json!({ "spec": { "terminate": true } }),
        ] {
            patch(&installation, "alice", "executionhook/freeze", &free).unwrap();
        }
    }
    replica.process.resume().unwrap();
    let ended = json!({ "spec": { "terminate": true } });
    eventually(SOON, || async {
        patch(&installation, "alice", "executionhook/freeze", &ended)
    })
    .await;
    let stored = installation.must(&["get", "hookactions,executionhooks", "--output=name"], "");
    assert_eq!(stored.lines().count(), 2, "{stored}");
}

/// Returns whether the API server calls the webhook for authors, by the conditions of the chart.
fn is_asked(conditions: &Value, request: &Value) -> bool {
    let mut context = Context::default();
    for (name, value) in [
        ("request", request),
        ("object", &request["object"]),
        ("oldObject", &request["oldObject"]),
    ] {
        context.add_variable(name, to_value(value).unwrap()).unwrap();
    }
    let holds = |condition: &Value| {
        let expression = condition["expression"].as_str().unwrap();
        let value = Program::compile(expression).unwrap().execute(&context);
        match value.unwrap_or_else(|error| panic!("{expression}: {error}")) {
            cel::Value::Bool(holds) => holds,
            other => panic!("{expression}: {other:?}"),
        }
    };
    conditions.as_array().unwrap().iter().all(holds)
}

#[test]
fn the_api_server_asks_for_each_write_that_needs_a_right() {
    let documents = documents_of_chart("a", "b");
    let mut webhooks = documents
        .iter()
        .filter_map(|document| document["webhooks"].as_array())
        .flatten();
    let of_authors = |webhook: &&Value| webhook["name"] == "authors.hookgate.tkex.tencent.com";
    let webhook = webhooks.find(of_authors).unwrap();
    assert_eq!(webhook["failurePolicy"], "Fail");
    let (made, hook) = (action("freeze", "now"), execution("freeze", "freeze"));
    let with = |object: &Value, change: Value| {
        let mut object = object.clone();
        operator_tests::merge(&mut object, change);
        object
    };
    let shown = with(&made, json!({ "quoteAnswers": true }));
    let empty = object("HookAction", "freeze", &json!({}));
    let ended = with(&hook, json!({ "spec": { "terminate": true } }));
    let few = with(&hook, json!({ "spec": { "parallelism": 1 } }));
    let labels = json!({ "metadata": { "labels": { "team": "arena" }, "finalizers": [] } });
    let finalized = with(
        &hook,
        json!({ "spec": { "podSelection": { "podContainerSelector": {} } } }),
    );
    let web = crate::installation::hook("HookTemplate", "web", "true");
    for (object, old, wanted) in [
        (&made, &Value::Null, true),
        (&empty, &Value::Null, true),
        (&hook, &Value::Null, true),
        (&with(&made, labels.clone()), &made, false),
        (&with(&made, json!({ "callTimeoutSeconds": 9 })), &made, false),
        (&action("freeze", "never"), &made, true),
        (&empty, &made, true),
        (&made, &empty, true),
        (&shown, &made, true),
        (&made, &shown, true),
        (&with(&shown, json!({ "quoteAnswers": false })), &shown, true),
        (&with(&shown, labels.clone()), &shown, false),
        (&with(&hook, labels), &hook, false),
        (&ended, &hook, false),
        (&hook, &ended, false),
        (
            &with(&ended, json!({ "spec": { "terminate": false } })),
            &ended,
            false,
        ),
        (&few, &hook, true),
        (&hook, &few, true),
        (&with(&few, json!({ "spec": { "parallelism": 2 } })), &few, true),
        (&with(&ended, json!({ "spec": { "unknown": 1 } })), &hook, true),
        (&finalized, &hook, true),
        (&web, &Value::Null, false),
    ] {
        let operation = if old.is_null() { "CREATE" } else { "UPDATE" };
        let request = json!({
            "uid": "u", "kind": { "group": "tkex.tencent.com", "version": "v1alpha1", "kind": object["kind"] },
            "operation": operation, "namespace": "games", "userInfo": { "username": "alice" },
            "object": object, "oldObject": old,
        });
        let asked = is_asked(&webhook["matchConditions"], &request);
        assert_eq!(asked, wanted, "{old} -> {object}");
        let request: AdmissionRequest = serde_json::from_value(request).unwrap();
        let needed = authors::needed(&request, &[]);
        assert_eq!(!needed.is_empty(), wanted, "{old} -> {object}");
    }
}

#[tokio::test]
async fn a_misspelt_field_is_refused_by_its_name() {
    let (installation, _replica) = Installation::running(shared().await, &[]).await;
    let mut misspelt = action("freeze", "now");
    misspelt["action"]["actionTimeoutSeconds"] = json!(60);
    misspelt["action"]["exec"]["comand"] = json!(["freeze.sh"]);
    let mut everywhere = execution("freeze", "freeze");
    everywhere["spec"]["podSelection"] = json!({ "podContainerSelector": {
        "podSelector": { "matchLabels": { "app": "game" } }, "containerLists": ["game"]
    } });
    everywhere["spec"]["paralellism"] = json!(1);
    for (object, problems) in [
        (
            &misspelt,
            [
                "action.exec.comand: unknown field; did you mean command?",
                "action.actionTimeoutSeconds: must be at the top level, next to action",
            ],
        ),
        (
            &everywhere,
            [
                "spec.paralellism: unknown field; did you mean parallelism?",
                "spec.podSelection.podContainerSelector.containerLists: unknown field; did you mean containerList?",
            ],
        ),
    ] {
        let create = ["create", "--validate=false", "--filename", "-"];
        let said = installation.refused(&create, &object.to_string());
        assert!(problems.iter().all(|problem| said.contains(problem)), "{said}");
    }
    for object in [action("freeze", "now"), execution("freeze", "freeze")] {
        installation.must(&["create", "--filename", "-"], &object.to_string());
    }
}
