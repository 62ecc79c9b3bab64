//! Scale-down with a failing hook: the tree shows it, `why` names it, `status` exits with 1; a retry without
//! players completes it.

use std::collections::BTreeSet;

use operator_tests::fleet::{GAME, empty_now, game, hooked, until_empty};
use operator_tests::{SOON, assert_has};
use serde_json::json;
use test_kit::eventually;

use crate::fleet;
use crate::plugin::{Plugin, next};

#[tokio::test]
async fn a_failed_hook_is_shown_explained_and_retried() {
    let fleet = fleet("plugin").await;
    let plugin = Plugin { fleet: &fleet };
    fleet.hook("empty", empty_now()).await;
    fleet.launch(&game(3, hooked("empty"))).await;
    let said = plugin.ok(&format!("status {GAME} --timeout 60s")).await;
    assert!(
        said.ends_with("complete: RolloutComplete: all pods are at the update revision\n"),
        "{said}"
    );
    fleet.nodes.every_pod().set_players(3);
    let said = plugin.ok(&format!("scale {GAME} --replicas 2")).await;
    let words = "3 → 2 pods. 1 pod will be deleted once its PreDelete hook (HookTemplate empty) succeeds";
    assert_has(&said, words);
    let blocked = plugin.obeys(&format!("{} --timeout 60s", next(&said))).await;
    assert_eq!(blocked.code, 1, "{blocked:?}");
    let last = blocked.out.lines().last().unwrap();
    assert!(last.starts_with("blocked: HookUnsuccessful: pod "), "{last}");

    let marked = fleet.marked().await;
    let pod = marked.iter().next().unwrap();
    let runs = fleet.until_runs(|runs| runs.len() == 1).await;
    let run = runs[0].metadata.name.clone().unwrap();
    is_shown(&plugin, pod, &run).await;
    let command = is_explained(&plugin, pod, &run).await;
    assert_eq!(fleet.nodes.terminations().len(), 0);

    fleet.nodes.every_pod().set_players(0);
    let retried = plugin.obeys(&command).await;
    assert_eq!(retried.code, 0, "{retried:?}");
    let words = format!("{GAME}: rerunning the PreDelete hook of {pod}.\n");
    assert!(retried.out.starts_with(&words), "{retried:?}");
    let said = plugin.ok(&format!("status {GAME} --timeout 60s")).await;
    assert_has(&said, "complete: ");
    fleet.settled(2).await;
    assert_eq!(fleet.nodes.terminated_pods(), marked);
    let refused = plugin.refused(&format!("retry {GAME}")).await;
    assert_has(
        &refused,
        &format!("nothing to retry: no hook of {GAME} has failed"),
    );
    plugin.ok(&format!("retry {GAME} --force")).await;
    fleet.settled(2).await;
}

/// Checks that the tree shows the pod, its run and its message.
async fn is_shown(plugin: &Plugin<'_>, pod: &str, run: &str) {
    let tree = plugin.ok(&format!("get gd/{GAME}")).await;
    let line = |words: &str| {
        let mut lines = tree.lines();
        lines
            .find(|line| line.contains(words))
            .unwrap_or_else(|| panic!("{tree}"))
    };
    assert!(line(&format!("-o {pod}")).contains("x PreDelete"), "{tree}");
    let shown = line("* PreDelete");
    assert!(shown.contains("x Failed"), "{tree}");
    assert!(shown.contains("players: 1/1 x1 last \"3\""), "{tree}");
    let mut lines = tree.lines().map(|line| line.trim_start_matches(['|', ' ']));
    assert!(lines.any(|line| line == run), "{tree}");
    assert_eq!(tree.matches("+ Ready").count(), 2, "{tree}");
    assert_has(&tree, "\"3\" does not satisfy asInt(result) == 0");
}

/// Checks the explanation of a waiting pod, and of one that is not waiting. Returns the next command to type.
async fn is_explained(plugin: &Plugin<'_>, pod: &str, run: &str) -> String {
    let namespace = &plugin.fleet.namespace;
    let why = plugin.ok(&format!("why {pod}")).await;
    let words = format!(
        "Pod {pod} is waiting: it is selected for deletion, but its PreDelete hook did not succeed. HookRun {run} is \
         Failed: metric players Failed: \"3\" does not satisfy asInt(result) == 0"
    );
    assert!(why.starts_with(&words), "{why}");
    assert_eq!(plugin.ok(&format!("why pod/{pod}")).await, why);
    let names = plugin.fleet.names().await;
    let other = names.into_iter().find(|name| name != pod).unwrap();
    let content = plugin.ok(&format!("why {other}")).await;
    let words = format!("Pod {other} is not waiting: it is ready");
    assert!(content.starts_with(&words), "{content}");
    let game = plugin.ok(&format!("why gd/{GAME}")).await;
    assert_has(&game, &format!("kubectl game why pod/{pod} -n {namespace}"));
    let command = next(&why).to_owned();
    assert_eq!(
        command,
        format!("kubectl game retry {GAME} --hook pre-delete -n {namespace}")
    );
    command
}

#[tokio::test]
async fn a_scale_up_keeps_selected_pods_except_those_in_pods_to_delete() {
    let fleet = fleet("plugin").await;
    let plugin = Plugin { fleet: &fleet };
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(4, hooked("empty"))).await;
    fleet.nodes.every_pod().set_players(1);
    let pods = fleet.names().await;
    let selected = async |count: usize| {
        eventually(SOON, || async {
            let marked = fleet.marked().await;
            if marked.len() == count {
                Ok(marked)
            } else {
                Err(marked)
            }
        })
        .await
    };
    plugin.ok(&format!("scale {GAME} --replicas 1")).await;
    let before = selected(3).await;
    let said = plugin.ok(&format!("scale {GAME} --replicas 2")).await;
    let words = "1 → 2 pods. Pods that are waiting to be deleted are kept first; new pods are created only if more are \
                 needed.\n";
    assert_has(&said, words);
    let left = selected(2).await;
    assert!(left.is_subset(&before), "{left:?} {before:?}");
    let named = left.first().unwrap();
    fleet
        .set(json!({ "scaleStrategy": { "podsToDelete": [named] } }))
        .await;
    let said = plugin.ok(&format!("scale {GAME} --replicas 4")).await;
    assert_has(
        &said,
        "if more are needed. Pods in spec.scaleStrategy.podsToDelete are still deleted.\n",
    );
    fleet.until_marked(&BTreeSet::from([named.clone()])).await;
    fleet.quiet().await;
    assert_eq!(fleet.names().await, pods, "players stay, and no pod is created");
    fleet.nodes.pod(named).set_players(0);
    fleet.until_pods(|pods| !pods.contains_key(named)).await;
    fleet.settled(4).await;
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::from([named.clone()]));
}

#[tokio::test]
async fn what_does_not_complete_in_time_ends_with_3() {
    let fleet = fleet("plugin").await;
    let plugin = Plugin { fleet: &fleet };
    fleet.launch(&game(2, json!({}))).await;
    fleet.set(json!({ "updateStrategy": { "paused": true } })).await;
    fleet.set_image("game:v2").await;
    fleet.says("Progressing", "Paused").await;
    let late = plugin.run(&format!("status {GAME} --timeout 500ms")).await;
    assert_eq!(late.code, 3, "{late:?}");
    assert!(late.out.contains("waiting: Paused: "), "{late:?}");
    assert!(
        late.err
            .contains("not complete after 500ms; for details: kubectl game why gd/"),
        "{late:?}"
    );
    let now = plugin.run(&format!("status {GAME} --watch=false")).await;
    assert_eq!(now.code, 3, "{now:?}");
    assert!(now.err.starts_with("not complete; for details: "), "{now:?}");
}
