//! A user lets one pod bypass its hook.

use std::collections::BTreeSet;

use kube::ResourceExt;
use operator_tests::assert_has;
use operator_tests::fleet::{GAME, empty_now, game, hooked};

use crate::fleet;
use crate::plugin::Plugin;
use crate::terminal::{terminal, until};

#[tokio::test]
async fn a_pod_passes_when_a_person_insists_and_no_other_does() {
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

    nothing_happens_unless_it_is_meant(&plugin, pod).await;
    assert_eq!(fleet.marked().await, marked);

    let said = plugin
        .ok(&format!("skip pod/{pod} --reason 'the event is over' --yes"))
        .await;
    assert_has(&said, "it will be deleted or updated without being asked");
    assert!(
        said.contains("tkex.tencent.com/skip-hook-reason-"),
        "how to take it back: {said}"
    );
    fleet.until_pods(|pods| pods.len() == 2).await;
    // Kubernetes 1.20 cannot report the user's identity, so the plugin uses the kubeconfig's user.
    fleet
        .told("no hook was asked; reason: the event is over; by: ")
        .await;
    let gone = plugin.ok(&format!("why {pod}")).await;
    assert_has(&gone, &format!("Pod {pod} was deleted "));
    assert!(
        gone.contains("ago, because annotation tkex.tencent.com/skip-hook names this pod"),
        "{gone}"
    );
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::from([pod.clone()]));
    fleet.quiet().await;
    let tree = plugin.ok(&format!("get {GAME}")).await;
    assert_eq!(tree.matches("x Failed").count(), 1, "{tree}");
}

/// Checks that the pod stays unchanged without a typed or given confirmation.
async fn nothing_happens_unless_it_is_meant(plugin: &Plugin<'_>, pod: &str) {
    let unsure = plugin
        .refused(&format!("skip {pod} --reason 'the event is over'"))
        .await;
    assert_has(&unsure, "whoever plays on it is thrown out");
    assert!(
        unsure.ends_with("Nobody can be asked here whether it is meant: add --yes\n"),
        "{unsure}"
    );
    let empty = plugin.refused(&format!("skip {pod} --reason ' ' --yes")).await;
    assert_has(&empty, "--reason has no words");
    let mut asked = terminal(plugin.fleet, &["skip", pod, "--reason", "the event is over"]);
    until(&asked, |shown| {
        shown.contains("is thrown out") && shown.ends_with("Type yes to go on:")
    })
    .await;
    asked.types("no");
    assert_eq!(asked.ended(), 2, "{}", asked.transcript());
    assert!(
        asked.transcript().contains("nothing was changed"),
        "{}",
        asked.transcript()
    );
    let untouched = plugin.fleet.pods().get(pod).await.unwrap();
    assert!(
        !untouched.annotations().contains_key("tkex.tencent.com/skip-hook"),
        "{untouched:?}"
    );
}
