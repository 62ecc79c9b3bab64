//! Tests of the value for the eviction responder: flag and permissions are set together, and not by default.

use serde_json::{Value, json};
use shared_api::names::eviction::GROUP;

use crate::{documents, of_kind, rendered};

const OPERATOR: &str = "gamedeployment-operator";

/// Returns the operator's object of this kind.
fn of_operator<'a>(documents: &'a [Value], kind: &str) -> &'a Value {
    let found = of_kind(documents, kind).into_iter();
    let mut found = found.filter(|one| one["metadata"]["name"] == OPERATOR);
    found.next().unwrap()
}

/// Whether the operator starts with the flag.
fn is_enabled(documents: &[Value]) -> bool {
    let deployment = of_operator(documents, "Deployment");
    let args = &deployment["spec"]["template"]["spec"]["containers"][0]["args"];
    args.as_array().unwrap().contains(&json!("--eviction-responder"))
}

/// Returns the rules for Evictions among all rules of all roles of this kind, with the names of the roles.
fn rules(documents: &[Value], kind: &str) -> Vec<Value> {
    let of_role = |role: &Value| -> Vec<Value> {
        let name = role["metadata"]["name"].clone();
        let rules = role["rules"].as_array().unwrap().iter();
        let rules = rules.filter(|rule| rule["apiGroups"] == json!([GROUP]));
        rules.map(|rule| json!([name, rule])).collect()
    };
    of_kind(documents, kind).into_iter().flat_map(of_role).collect()
}

#[test]
fn the_flag_and_the_permissions_are_set_together() {
    let rule = |resource: &str, verbs: &[&str]| {
        let rule = json!({ "apiGroups": [GROUP], "resources": [resource], "verbs": verbs });
        json!([OPERATOR, rule])
    };
    let wanted = [
        rule("evictions", &["list", "watch"]),
        rule("evictions/status", &["patch"]),
    ];
    for (namespaced, kind, other) in [(false, "ClusterRole", "Role"), (true, "Role", "ClusterRole")] {
        for (responds, wanted) in [(false, &[][..]), (true, &wanted[..])] {
            let values =
                format!("namespaced={namespaced},gameDeploymentOperator.evictionResponder={responds}");
            let documents = rendered(&["--set", &values]);
            assert_eq!(is_enabled(&documents), responds, "{values}");
            assert_eq!(rules(&documents, kind), wanted, "{values}");
            assert!(rules(&documents, other).is_empty(), "{values}");
        }
    }
}

#[test]
fn it_is_off_by_default() {
    let documents = rendered(&[]);
    assert!(!is_enabled(&documents));
    assert!(rules(&documents, "ClusterRole").is_empty());
}

/// Each shard responds to the Evictions of its own namespaces.
#[test]
fn every_shard_has_the_flag() {
    let values = "gameDeploymentOperator.evictionResponder=true,gameDeploymentOperator.shards=3";
    let documents = rendered(&["--set", values]);
    let deployments = of_kind(&documents, "Deployment").into_iter();
    let with_flag = deployments.filter(|one| one.to_string().contains("--eviction-responder"));
    let mut names: Vec<&str> = with_flag
        .map(|one| one["metadata"]["name"].as_str().unwrap())
        .collect();
    names.sort_unstable();
    assert_eq!(names, [0, 1, 2].map(|shard| format!("{OPERATOR}-shard-{shard}")));
}

/// Without the chart, the permissions come from a manifest that grants nothing else, and whose objects
/// `install.yaml` and `rbac.yaml` do not replace.
#[test]
fn the_manifest_grants_the_same_permissions() {
    let plain = documents(include_str!("../../../deploy/rbac-evictions.yaml"));
    let roles = of_kind(&plain, "ClusterRole");
    let bindings = of_kind(&plain, "ClusterRoleBinding");
    assert_eq!((plain.len(), roles.len(), bindings.len()), (2, 1, 1));
    let with = rendered(&["--set", "gameDeploymentOperator.evictionResponder=true"]);
    let wanted = rules(&with, "ClusterRole").into_iter();
    let wanted: Vec<Value> = wanted.map(|rule| rule[1].clone()).collect();
    assert_eq!(roles[0]["rules"], json!(wanted));

    let default = documents(include_str!("../../../deploy/rbac.yaml"));
    let default = of_operator(&default, "ClusterRoleBinding");
    assert_eq!(bindings[0]["subjects"], default["subjects"]);
    assert_eq!(bindings[0]["roleRef"]["name"], roles[0]["metadata"]["name"]);
    for object in plain {
        assert_ne!(object["metadata"]["name"], OPERATOR);
    }
}
