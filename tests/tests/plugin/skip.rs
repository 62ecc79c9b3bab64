//! A user skips the hook of one pod.

use std::collections::BTreeSet;

use kube::ResourceExt;
use operator_tests::assert_has;
use operator_tests::fleet::{GAME, empty_now, game, hooked};

use crate::fleet;
use crate::plugin::Plugin;
use crate::terminal::{terminal, until};

#[tokio::test]
async fn the_hook_of_one_pod_is_skipped_and_of_no_other() {
    let fleet = fleet("plugin").await;
    let plugin = Plugin { fleet: &fleet };
    fleet.hook("empty", empty_now()).await;
    fleet.launch(&game(3, hooked("empty"))).await;
    fleet.nodes.every_pod().set_players(1);
    plugin.ok(&format!("scale {GAME} --replicas 1")).await;
    fleet.until_runs(|runs| runs.len() == 2).await;
    fleet.says("ScaleBlocked", "HookUnsuccessful").await;
    fleet
        .until(|status| status.pre_delete_hook_condition.len() == 2)
        .await;
    let marked = fleet.marked().await;
    let pod = marked.iter().next().unwrap();

    nothing_happens_without_confirmation(&plugin, pod).await;
    assert_eq!(fleet.marked().await, marked);

    let said = plugin
        .ok(&format!("skip pod/{pod} --reason 'the event is over' --yes"))
        .await;
    assert_has(&said, "it will be deleted or updated without the hook");
    assert!(
        said.contains("tkex.tencent.com/skip-hook-reason-"),
        "how to undo it: {said}"
    );
    fleet.until_pods(|pods| pods.len() == 2).await;
    // Kubernetes 1.20 cannot report the user's identity, so the plugin uses the kubeconfig's user.
    fleet
        .told("hooks are skipped by annotation tkex.tencent.com/skip-hook; reason: the event is over; by: ")
        .await;
    let gone = plugin.ok(&format!("why {pod}")).await;
    assert_has(&gone, &format!("Pod {pod} was deleted "));
    assert!(
        gone.contains("ago, because its hooks are skipped by annotation tkex.tencent.com/skip-hook"),
        "{gone}"
    );
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::from([pod.clone()]));
    fleet.quiet().await;
    let tree = plugin.ok(&format!("get {GAME}")).await;
    assert_eq!(tree.matches("x Failed").count(), 1, "{tree}");
}

/// Checks that the pod stays unchanged without a typed or given confirmation.
async fn nothing_happens_without_confirmation(plugin: &Plugin<'_>, pod: &str) {
    let unsure = plugin
        .refused(&format!("skip {pod} --reason 'the event is over'"))
        .await;
    assert_has(&unsure, "players on it will be disconnected");
    assert!(
        unsure.ends_with(
            "Confirmation is required, but stdin is not a terminal; run the command again with --yes\n"
        ),
        "{unsure}"
    );
    let empty = plugin.refused(&format!("skip {pod} --reason ' ' --yes")).await;
    assert_has(&empty, "--reason must not be empty");
    let mut prompt = terminal(plugin.fleet, &["skip", pod, "--reason", "the event is over"]);
    until(&prompt, |shown| {
        shown.contains("will be disconnected") && shown.ends_with("Type yes to continue:")
    })
    .await;
    prompt.types("no");
    assert_eq!(prompt.ended(), 2, "{}", prompt.transcript());
    assert!(
        prompt.transcript().contains("nothing was changed"),
        "{}",
        prompt.transcript()
    );
    let untouched = plugin.fleet.pods().get(pod).await.unwrap();
    assert!(
        !untouched.annotations().contains_key("tkex.tencent.com/skip-hook"),
        "{untouched:?}"
    );
}
