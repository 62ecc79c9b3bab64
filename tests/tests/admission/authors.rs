//! A hook with a Job needs an author who may create Jobs.

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

/// Grants a user of the namespace these verbs.
async fn grant(installation: &Installation<'_>, user: &str, name: &str, group: &str, resources: &[&str]) {
    let rbac = "rbac.authorization.k8s.io";
    let granted = json!({ "apiGroups": [group], "resources": resources, "verbs": ["create", "get", "patch", "update"] });
    let metadata = json!({ "name": name, "namespace": installation.namespace });
    let role = json!({ "apiVersion": format!("{rbac}/v1"), "kind": "Role", "metadata": metadata, "rules": [granted] });
    let binding = json!({ "apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding", "metadata": metadata,
        "roleRef": { "apiGroup": rbac, "kind": "Role", "name": name },
        "subjects": [{ "apiGroup": rbac, "kind": "User", "name": user }] });
    for manifest in [role, binding] {
        installation.must(&["apply", "--filename", "-"], &manifest.to_string());
    }
    let resource = if group.is_empty() {
        resources[0].to_owned()
    } else {
        format!("{}.{group}", resources[0])
    };
    eventually(SOON, || async {
        installation.kubectl(&["auth", "can-i", "patch", &resource, "--as", user], "")
    })
    .await;
}

#[tokio::test]
async fn nobody_gains_jobs_by_a_hook() {
    let flags = ["--workload-operator-user", OPERATOR];
    let (installation, _replica) = Installation::running(shared().await, &flags).await;
    let hooks = ["hooktemplates", "hookruns", "gamedeployments"];
    for (user, name) in [("alice", "alice"), ("bob", "bob"), (OPERATOR, "operator")] {
        grant(&installation, user, name, "tkex.tencent.com", &hooks).await;
    }
    grant(&installation, "bob", "bob-jobs", "batch", &["jobs"]).await;
    let apply = |user: &str, hook: &Value| {
        let command = ["apply", "--as", user, "--filename", "-"];
        installation.kubectl(&command, &hook.to_string())
    };
    for kind in ["HookTemplate", "HookRun"] {
        let refused = apply("alice", &with_job(kind, "alices", "check:v1")).unwrap_err();
        let words = format!(
            "spec.metrics[0].provider.job: \"alice\" may not create Jobs (batch) in namespace {}",
            installation.namespace
        );
        assert!(refused.contains(&words), "{refused}");
        apply("alice", &hook(kind, "web", "result.ok")).unwrap();
        apply("bob", &with_job(kind, "bobs", "check:v1")).unwrap();
        let command = ["label", kind, "bobs", "team=arena", "--as", "alice"];
        installation.kubectl(&command, "").unwrap();
        apply("alice", &with_job(kind, "bobs", "evil:v1")).unwrap_err();
        let turned = apply("alice", &with_job(kind, "web", "evil:v1")).unwrap_err();
        assert!(turned.contains("may not create Jobs"), "{turned}");
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
        refused.contains("spec.lifecycleHooks[0].jobSpec: \"alice\" may not create Jobs"),
        "{refused}"
    );
    apply("bob", &game("check:v1", 1)).unwrap();
    apply("alice", &game("check:v1", 2)).unwrap();
    apply("alice", &game("evil:v1", 2)).unwrap_err();
    // It copies a template whose author was asked.
    apply(OPERATOR, &with_job("HookRun", "copied", "check:v1")).unwrap();
    let refused = apply(OPERATOR, &with_job("HookTemplate", "own", "check:v1")).unwrap_err();
    assert!(refused.contains("may not create Jobs"), "{refused}");
}
