//! Without a running hook-operator, the status reports it within 40 s, with the command that shows it.

use std::time::{Duration, Instant};

use operator_tests::fleet::{GAME, empty_now, game, hooked};

use crate::fleet;
use crate::plugin::Plugin;

#[tokio::test]
async fn a_run_that_nobody_measures_names_hook_operator_within_forty_seconds() {
    let mut fleet = fleet("plugin").await;
    fleet.hook("empty", empty_now()).await;
    fleet.launch(&game(2, hooked("empty"))).await;
    fleet.hooks = None;
    let begun = Instant::now();
    fleet.scale(1);
    let runs = fleet.until_runs(|runs| runs.len() == 1).await;
    let run = runs[0].metadata.name.clone().unwrap();
    let plugin = Plugin { fleet: &fleet };
    let why = loop {
        let why = plugin.ok(&format!("why {GAME}")).await;
        if why.contains("HookNotTakenUp") {
            break why;
        }
        assert!(begun.elapsed() < Duration::from_secs(40), "{why}");
        tokio::time::sleep(Duration::from_millis(500)).await;
    };
    let look = "kubectl get deploy,pods -A -l app.kubernetes.io/name=hook-operator";
    for words in [
        run.as_str(),
        "hook-operator is not running",
        "--namespace",
        "--shard",
        look,
    ] {
        assert!(why.contains(words), "{words}: {why}");
    }
    fleet.told("HookNotTakenUp").await;
    let status = fleet.until(|status| status.hook_pending_replicas == 1).await;
    let pod = &status.pre_delete_hook_condition[0].pod_name;
    for said in [
        plugin.ok(&format!("why pod/{pod}")).await,
        plugin.ok(&format!("hook get {run}")).await,
        plugin.ok("hook list").await,
    ] {
        assert!(said.contains("hook-operator is not running"), "{said}");
        assert!(said.contains("app.kubernetes.io/name=hook-operator"), "{said}");
    }
    let status = plugin.run(&format!("status {GAME} --timeout 5s")).await;
    assert_eq!(status.code, 1, "{status:?}");
    assert!(status.out.contains("HookNotTakenUp"), "{status:?}");
    fleet.start_hooks().await;
    fleet.cleared("ScaleBlocked").await;
    fleet.settled(1).await;
}
