//! Unknown names, missing permissions, unreachable clusters: each error names the remedy.

use operator_tests::assert_has;
use operator_tests::fleet::{GAME, game};
use serde_json::json;

use crate::fleet;
use crate::plugin::Plugin;

#[tokio::test]
async fn each_mistake_is_answered_with_what_to_do() {
    let fleet = fleet("plugin").await;
    let plugin = Plugin { fleet: &fleet };
    let namespace = &fleet.namespace;
    assert_eq!(
        plugin.refused("get arean").await,
        format!(
            "error: no GameDeployment named \"arean\" in namespace {namespace}: the namespace has no GameDeployments; \
             use -n to select another namespace\n"
        )
    );
    fleet.launch(&game(1, json!({}))).await;
    for command in ["get", "status", "retry", "pause", "undo", "history", "why"] {
        let said = plugin.refused(&format!("{command} arean")).await;
        let words = format!("no GameDeployment named \"arean\" in namespace {namespace}; available: {GAME}");
        assert!(said.contains(&words), "{command}: {said}");
    }
    let said = plugin.refused("why arean").await;
    assert_has(&said, "no Pod named \"arean\"");
    let said = plugin.refused("get hr/arean").await;
    assert_eq!(
        said,
        "error: hr/arean is not of kind GameDeployment; use gd/NAME or NAME\n"
    );
    let said = plugin.run("hook get nobody").await;
    assert_eq!(said.code, 64, "{said:?}");

    rights_are_named(&plugin).await;
    let said = plugin.refused("list --context nowhere").await;
    assert_has(&said, "available contexts: test");
    let said = plugin.refused("list --kubeconfig /does/not/exist").await;
    assert_has(&said, "set --kubeconfig or KUBECONFIG");
    let said = plugin.refused(&format!("scale {GAME}")).await;
    assert_has(&said, "--replicas <NUMBER>");
    let said = plugin
        .refused(&format!("scale {GAME} --replicas 0 --current-replicas 5"))
        .await;
    let unchanged = format!("spec.replicas of {GAME} is 1, not 5; nothing was changed");
    assert_has(&said, &unchanged);
    fleet.settled(1).await;
}

/// Checks that a permission error names the missing permission.
async fn rights_are_named(plugin: &Plugin<'_>) {
    let namespace = &plugin.fleet.namespace;
    let said = plugin.refused(&format!("get {GAME} --as jane")).await;
    assert_eq!(
        said,
        format!(
            "error: \"jane\" is not allowed to get gamedeployments.tkex.tencent.com in namespace {namespace}; ask an \
             administrator for a Role that allows \"get\" on gamedeployments.tkex.tencent.com, and for a RoleBinding. \
             To check the permission: kubectl auth can-i get gamedeployments.tkex.tencent.com -n {namespace}\n"
        )
    );
    let said = plugin.refused("list -A --as jane --as-group players").await;
    assert!(
        said.contains("is not allowed to list gamedeployments.tkex.tencent.com in all namespaces"),
        "{said}"
    );
    let said = plugin
        .ok("list -o name --as jane --as-group system:masters")
        .await;
    assert_eq!(said, format!("gamedeployment.tkex.tencent.com/{GAME}\n"));
}
