//! A hook that acts in the cluster needs an author who may do the same.

use operator_tests::SOON;
use serde_json::{Value, json};
use test_kit::eventually;

use crate::installation::{Installation, hook};
use crate::shared;

const OPERATOR: &str = "system:serviceaccount:hookgate:gamedeployment-operator";

/// Hook with a Job.
fn with_job(kind: &str, name: &str, image: &str) -> Value {
    let mut hook = hook(kind, name, "true");
    let pod = json!({ "restartPolicy": "Never", "containers": [{ "name": "check", "image": image }] });
    hook["spec"] = json!({ "metrics": [{ "name": "check", "provider": { "job": { "spec": { "template": { "spec": pod } } } } }] });
    hook
}

/// Rule of a Role.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule<'a> {
    group: &'a str,
    resources: &'a [&'a str],
    verbs: &'a [&'a str],
    /// Names of the only objects; empty for all.
    names: &'a [&'a str],
}

/// Lets a user write these kinds of hooks and workloads.
pub(crate) fn writes<'a>(resources: &'a [&'a str]) -> Rule<'a> {
    Rule {
        group: "tkex.tencent.com",
        resources,
        verbs: &["create", "get", "patch", "update"],
        names: &[],
    }
}

/// Lets a user do this to pods.
pub(crate) fn pods<'a>(verbs: &'a [&'a str], names: &'a [&'a str]) -> Rule<'a> {
    Rule {
        group: "",
        resources: &["pods"],
        verbs,
        names,
    }
}

/// Lets a user run commands in pods, by connections of these verbs.
pub(crate) fn commands<'a>(verbs: &'a [&'a str], names: &'a [&'a str]) -> Rule<'a> {
    Rule {
        resources: &["pods/exec"],
        ..pods(verbs, names)
    }
}

/// Grants a user of the namespace a rule, and waits until the API server knows it.
pub(crate) async fn grant(installation: &Installation<'_>, user: &str, name: &str, rule: Rule<'_>) {
    let Rule {
        group,
        resources,
        verbs,
        names,
    } = rule;
    let rbac = "rbac.authorization.k8s.io";
    let granted =
        json!({ "apiGroups": [group], "resources": resources, "verbs": verbs, "resourceNames": names });
    let metadata = json!({ "name": name, "namespace": installation.namespace });
    let rights = json!({ "apiVersion": format!("{rbac}/v1"), "kind": "Role", "metadata": metadata, "rules": [granted] });
    let binding = json!({ "apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding", "metadata": metadata,
        "roleRef": { "apiGroup": rbac, "kind": "Role", "name": name },
        "subjects": [{ "apiGroup": rbac, "kind": "User", "name": user }] });
    for manifest in [rights, binding] {
        installation.must(&["apply", "--filename", "-"], &manifest.to_string());
    }
    let of_group = if group.is_empty() {
        String::new()
    } else {
        format!(".{group}")
    };
    let object = names.first().map(|name| format!("/{name}"));
    let (plural, subresource) = resources[0].split_once('/').unwrap_or((resources[0], ""));
    let resource = format!("{plural}{of_group}{}", object.unwrap_or_default());
    let subresource = format!("--subresource={subresource}");
    let can_i = ["auth", "can-i", verbs[0], &resource, &subresource, "--as", user];
    eventually(SOON, || async { installation.kubectl(&can_i, "") }).await;
}

#[tokio::test]
async fn nobody_gains_jobs_by_a_hook() {
    let flags = ["--workload-operator-user", OPERATOR];
    let (installation, _replica) = Installation::running(shared().await, &flags).await;
    let hooks = ["hooktemplates", "hookruns", "gamedeployments"];
    for (user, name) in [("alice", "alice"), ("bob", "bob"), (OPERATOR, "operator")] {
        grant(&installation, user, name, writes(&hooks)).await;
    }
    let jobs = Rule {
        group: "batch",
        resources: &["jobs"],
        verbs: &["create"],
        names: &[],
    };
    grant(&installation, "bob", "bob-jobs", jobs).await;
    let apply = |user: &str, hook: &Value| {
        let command = ["apply", "--as", user, "--filename", "-"];
        installation.kubectl(&command, &hook.to_string())
    };
    for kind in ["HookTemplate", "HookRun"] {
        let refused = apply("alice", &with_job(kind, "alices", "check:v1")).unwrap_err();
        let words = format!(
            "spec.metrics[0].provider.job: \"alice\" is not allowed to create Jobs (batch) in namespace {}",
            installation.namespace
        );
        assert!(refused.contains(&words), "{refused}");
        apply("alice", &hook(kind, "web", "result.ok")).unwrap();
        apply("bob", &with_job(kind, "bobs", "check:v1")).unwrap();
        let command = ["label", kind, "bobs", "team=arena", "--as", "alice"];
        installation.kubectl(&command, "").unwrap();
        apply("alice", &with_job(kind, "bobs", "evil:v1")).unwrap_err();
        let turned = apply("alice", &with_job(kind, "web", "evil:v1")).unwrap_err();
        assert!(turned.contains("is not allowed to create Jobs"), "{turned}");
    }
    let game = |image: &str, replicas: u32| {
        let hook = with_job("HookTemplate", "unused", image);
        let job = &hook["spec"]["metrics"][0]["provider"]["job"]["spec"];
        let mut game = operator_tests::fleet::game(replicas.try_into().unwrap(), json!({}));
        game["spec"]["lifecycleHooks"] =
            json!([{ "name": "check", "trigger": { "type": "Post" }, "jobSpec": job }]);
        game
    };
    let refused = apply("alice", &game("check:v1", 1)).unwrap_err();
    assert!(
        refused.contains("spec.lifecycleHooks[0].jobSpec: \"alice\" is not allowed to create Jobs"),
        "{refused}"
    );
    apply("bob", &game("check:v1", 1)).unwrap();
    apply("alice", &game("check:v1", 2)).unwrap();
    apply("alice", &game("evil:v1", 2)).unwrap_err();
    // It copies a template whose author was asked.
    apply(OPERATOR, &with_job("HookRun", "copied", "check:v1")).unwrap();
    let refused = apply(OPERATOR, &with_job("HookTemplate", "own", "check:v1")).unwrap_err();
    assert!(refused.contains("is not allowed to create Jobs"), "{refused}");
}

/// Hook that reads or patches an object.
fn with_object(kind: &str, name: &str, function: &str, target: &Value) -> Value {
    let mut hook = hook(kind, name, "true");
    let mut fields = json!([{ "path": "metadata.annotations.games.example.com/players", "value": "0" }]);
    if function == "patch" {
        fields[0]["path"] = json!("metadata.annotations.games.example.com/drain");
    }
    let provider = json!({ "function": function, "target": target, "fields": fields });
    hook["spec"] = json!({
        "args": [{ "name": "PodName", "value": "arena-0" }],
        "metrics": [{ "name": "object", "provider": { "kubernetes": provider } }]
    });
    hook
}

/// Lets alice read and patch one pod, bob read all pods, and carol patch all pods. Carol may not read HookTemplates.
async fn granted(installation: &Installation<'_>) {
    let hooks = ["hooktemplates", "hookruns"];
    for (user, name) in [("alice", "alice"), ("bob", "bob"), (OPERATOR, "operator")] {
        grant(installation, user, name, writes(&hooks)).await;
    }
    grant(installation, "carol", "carol", writes(&["hookruns"])).await;
    grant(
        installation,
        "alice",
        "alices-pod",
        pods(&["get", "patch"], &["arena-0"]),
    )
    .await;
    grant(installation, "bob", "bob-reads", pods(&["get"], &[])).await;
    grant(installation, "carol", "carol-patches", pods(&["patch"], &[])).await;
}

#[tokio::test]
async fn nobody_reads_or_patches_objects_by_a_hook() {
    let flags = ["--workload-operator-user", OPERATOR];
    let (installation, _replica) = Installation::running(shared().await, &flags).await;
    granted(&installation).await;
    let apply = |user: &str, hook: &Value| {
        let command = ["apply", "--as", user, "--filename", "-"];
        installation.kubectl(&command, &hook.to_string())
    };
    let may_not = |user: &str, action: &str| {
        let namespace = &installation.namespace;
        format!(
            "spec.metrics[0].provider.kubernetes: {user:?} is not allowed to {action} in namespace {namespace}, which the hook"
        )
    };
    let no_target = json!({});
    let named = json!({ "name": "arena-0" });
    let other = json!({ "name": "arena-1" });
    let template = json!({ "group": "tkex.tencent.com", "kind": "HookTemplate", "name": "arena" });
    for (user, function, target, missing) in [
        ("alice", "get", &no_target, Some("get pods")),
        ("alice", "get", &other, Some("get pods \"arena-1\"")),
        ("alice", "get", &named, None),
        ("alice", "patch", &no_target, Some("patch pods")),
        ("alice", "patch", &named, None),
        ("bob", "get", &no_target, None),
        ("bob", "get", &other, None),
        ("bob", "patch", &named, Some("patch pods \"arena-0\"")),
        ("bob", "get", &template, None),
        ("carol", "get", &no_target, Some("get pods")),
        ("carol", "patch", &no_target, None),
        (
            "carol",
            "get",
            &template,
            Some("get hooktemplates.tkex.tencent.com \"arena\""),
        ),
        // It copies a HookTemplate whose author was checked.
        (OPERATOR, "get", &no_target, None),
    ] {
        let create = ["create", "--dry-run=server", "--as", user, "--filename", "-"];
        let run = with_object("HookRun", "run", function, target).to_string();
        let said = installation.kubectl(&create, &run);
        match missing {
            None => assert!(said.is_ok(), "{user} {function} {target}: {said:?}"),
            Some(action) => {
                let refused = said.unwrap_err();
                assert!(refused.contains(&may_not(user, action)), "{refused}");
            }
        }
    }
    let of_bob = with_object("HookTemplate", "bobs", "get", &no_target);
    apply("bob", &of_bob).unwrap();
    let command = ["label", "hooktemplate", "bobs", "team=arena", "--as", "alice"];
    installation.kubectl(&command, "").unwrap();
    let mut slower = of_bob.clone();
    slower["spec"]["metrics"][0]["interval"] = json!("10s");
    apply("alice", &slower).unwrap();
    let mut quoted = slower.clone();
    quoted["spec"]["metrics"][0]["quoteAnswers"] = json!(true);
    let mut argument = slower.clone();
    argument["spec"]["args"][0]["value"] = json!("arena-1");
    for changed in [quoted, argument] {
        let refused = apply("alice", &changed).unwrap_err();
        assert!(refused.contains(&may_not("alice", "get pods")), "{refused}");
        apply("bob", &changed).unwrap();
    }
    let refused = apply(OPERATOR, &with_object("HookTemplate", "own", "get", &no_target)).unwrap_err();
    assert!(refused.contains(&may_not(OPERATOR, "get pods")), "{refused}");
}

#[tokio::test]
async fn a_kind_that_is_open_or_not_served_is_not_read_by_a_hook() {
    let (installation, _replica) = Installation::running(shared().await, &[]).await;
    let hooks = ["hooktemplates", "hookruns"];
    grant(&installation, "bob", "bob", writes(&hooks)).await;
    grant(&installation, "bob", "bob-reads", pods(&["get"], &[])).await;
    let anything = Rule {
        group: "*",
        resources: &["*"],
        verbs: &["get"],
        names: &[],
    };
    grant(&installation, "dave", "dave", writes(&hooks)).await;
    grant(&installation, "dave", "dave-reads", anything).await;
    let create = |user: &str, hook: &Value| {
        let command = ["create", "--dry-run=server", "--as", user, "--filename", "-"];
        installation.kubectl(&command, &hook.to_string())
    };
    let mut open = with_object("HookTemplate", "open", "get", &json!({}));
    open["spec"]["args"] = json!([{ "name": "PodName" }, { "name": "Kind" }]);
    let refused = create("bob", &open).unwrap_err();
    assert!(
        refused.contains("\"bob\" is not allowed to get * in namespace"),
        "{refused}"
    );
    create("dave", &open).unwrap();
    open["spec"]["args"][1]["value"] = json!("Pod");
    create("bob", &open).unwrap();
    for (group, kind, words) in [
        (
            "games.example.com",
            "Arena",
            "may get objects of kind \"Arena\" (API group \"games.example.com\")",
        ),
        (
            "tkex.tencent.com",
            "Arena",
            "may get objects of kind \"Arena\" (API group \"tkex.tencent.com\")",
        ),
        ("", "Node", "may get objects of the core kind \"Node\""),
    ] {
        let target = json!({ "group": group, "kind": kind, "name": "arena" });
        for user in ["bob", "dave"] {
            let refused = create(user, &with_object("HookRun", "run", "get", &target)).unwrap_err();
            let served = "the API server has no such namespaced kind";
            assert!(refused.contains(words) && refused.contains(served), "{refused}");
        }
    }
}

/// Hook that runs a command in the container of a pod.
fn with_command(kind: &str, name: &str, command: &str) -> Value {
    let mut hook = hook(kind, name, "true");
    let provider = json!({ "container": "game", "command": ["game-server", command] });
    hook["spec"] = json!({
        "args": [{ "name": "PodName", "value": "arena-0" }],
        "metrics": [{ "name": "command", "provider": { "exec": provider } }]
    });
    hook
}

#[tokio::test]
async fn nobody_runs_commands_by_a_hook() {
    let flags = ["--workload-operator-user", OPERATOR];
    let (installation, _replica) = Installation::running(shared().await, &flags).await;
    let hooks = ["hooktemplates", "hookruns"];
    for (user, name) in [
        ("alice", "alice"),
        ("bob", "bob"),
        ("carol", "carol"),
        ("dave", "dave"),
        (OPERATOR, "operator"),
    ] {
        grant(&installation, user, name, writes(&hooks)).await;
    }
    // Pods are not their subresource, one verb is not the other, and one pod is not all of them.
    grant(
        &installation,
        "alice",
        "alices-pods",
        pods(&["create", "get"], &[]),
    )
    .await;
    grant(&installation, "bob", "bob-runs", commands(&["create"], &[])).await;
    grant(&installation, "carol", "carol-gets", commands(&["get"], &[])).await;
    let one_pod = commands(&["create"], &["arena-0"]);
    grant(&installation, "dave", "daves-pod", one_pod).await;
    let apply = |user: &str, hook: &Value| {
        let command = ["apply", "--as", user, "--filename", "-"];
        installation.kubectl(&command, &hook.to_string())
    };
    let refused = |user: &str, hook: &Value| {
        let said = apply(user, hook).unwrap_err();
        let words = format!(
            "spec.metrics[0].provider.exec: {user:?} is not allowed to create pods/exec in namespace {}, which the \
             hook needs to run a command in a container; use another provider, or ask an administrator for permission \
             to create pods/exec",
            installation.namespace
        );
        assert!(said.contains(&words), "{said}");
    };
    for kind in ["HookTemplate", "HookRun"] {
        for user in ["alice", "carol", "dave"] {
            refused(user, &with_command(kind, user, "players"));
        }
        let of_bob = with_command(kind, "bobs", "players");
        apply("bob", &of_bob).unwrap();
        let command = ["label", kind, "bobs", "team=arena", "--as", "alice"];
        installation.kubectl(&command, "").unwrap();
        let mut slower = of_bob.clone();
        slower["spec"]["metrics"][0]["interval"] = json!("10s");
        apply("alice", &slower).unwrap();
        let mut quoted = slower.clone();
        quoted["spec"]["metrics"][0]["quoteAnswers"] = json!(true);
        let mut judged = slower.clone();
        judged["spec"]["metrics"][0]["successCondition"] = json!("result == 0");
        let mut argument = slower.clone();
        argument["spec"]["args"][0]["value"] = json!("arena-1");
        let mut other = slower.clone();
        other["spec"]["metrics"][0]["provider"]["exec"]["command"][1] = json!("stop");
        for changed in [quoted, judged, argument, other] {
            refused("alice", &changed);
            apply("bob", &changed).unwrap();
        }
        apply("alice", &hook(kind, "web", "result.ok")).unwrap();
        refused("alice", &with_command(kind, "web", "players"));
    }
    // It copies a HookTemplate whose author was checked.
    apply(OPERATOR, &with_command("HookRun", "copied", "players")).unwrap();
    refused(OPERATOR, &with_command("HookTemplate", "own", "players"));
}
