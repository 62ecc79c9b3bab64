//! Tests of tables, `-o` and HookRuns.

use operator_tests::assert_has;
use operator_tests::fleet::{GAME, empty_now, game, hooked, until_empty};
use shared_api::Phase;

use crate::fleet;
use crate::plugin::Plugin;

#[tokio::test]
async fn workloads_and_runs_are_listed_as_tables_and_for_programs() {
    let fleet = fleet("plugin").await;
    let plugin = Plugin { fleet: &fleet };
    let none = plugin.run("list").await;
    assert_eq!((none.code, none.out.as_str()), (0, ""), "{none:?}");
    assert!(
        none.err.starts_with("no GameDeployments in namespace "),
        "{none:?}"
    );
    fleet.hook("empty", empty_now()).await;
    fleet.launch(&game(2, hooked("empty"))).await;
    fleet.nodes.every_pod().set_players(1);
    fleet.scale(1);
    fleet.says("ScaleBlocked", "HookUnsuccessful").await;

    let table = plugin.ok("list").await;
    let rows: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(
        rows[0],
        [
            "NAME", "STRATEGY", "STATUS", "DESIRED", "CURRENT", "READY", "UPDATED", "WAITING", "AGE"
        ]
    );
    assert_eq!(
        rows[1][..9],
        [
            GAME,
            "InplaceUpdate",
            "x",
            "HookUnsuccessful",
            "1",
            "2",
            "2",
            "2",
            "1"
        ]
    );
    let everywhere = plugin.ok("list -A").await;
    assert!(everywhere.starts_with("NAMESPACE"), "{everywhere}");
    assert!(
        everywhere.lines().any(|line| line.starts_with(&fleet.namespace)),
        "{everywhere}"
    );
    programs_read_it(&plugin).await;
}

/// Tests `-o` and HookRuns.
async fn programs_read_it(plugin: &Plugin<'_>) {
    let list = plugin.json("list").await;
    assert_eq!(list["kind"], "List");
    assert_eq!(list["items"][0]["kind"], "GameDeployment");
    assert_eq!(list["items"][0]["metadata"]["name"], GAME);
    let name = format!("gamedeployment.tkex.tencent.com/{GAME}\n");
    assert_eq!(plugin.ok("list -o name").await, name);
    assert_eq!(plugin.ok(&format!("get {GAME} -o name")).await, name);
    let tree = plugin.json(&format!("get {GAME}")).await;
    assert_eq!(tree["state"]["word"], "HookUnsuccessful");
    let pods = tree["revisions"][0]["pods"].as_array().unwrap();
    let run = pods
        .iter()
        .find_map(|pod| pod["runs"][0]["name"].as_str())
        .unwrap();

    let failing = plugin.ok("hook list --failing").await;
    assert!(failing.lines().nth(1).unwrap().starts_with(run), "{failing}");
    assert_has(&failing, "PreDelete");
    assert_has(&failing, "x Failed");
    let one = plugin.json(&format!("hook get {run}")).await;
    assert_eq!(one["kind"], "HookRun");
    assert_eq!(one["status"]["phase"], "Failed");
    let shown = plugin.ok(&format!("hook get hookrun/{run}")).await;
    assert_has(&shown, "x Failed, FailureLimitExceeded");
    assert_eq!(
        plugin.ok("hook list -o name").await,
        format!("hookrun.tkex.tencent.com/{run}\n")
    );
    let final_ = plugin.run(&format!("hook terminate {run}")).await;
    assert_eq!(final_.code, 64, "{final_:?}");
    assert!(
        final_.err.contains("is already Failed, and its verdict is final"),
        "{final_:?}"
    );
}

#[tokio::test]
async fn a_run_that_polls_without_end_is_terminated() {
    let fleet = fleet("plugin").await;
    let plugin = Plugin { fleet: &fleet };
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(2, hooked("empty"))).await;
    fleet.nodes.every_pod().set_players(1);
    fleet.scale(1);
    let asked = fleet.asked(1).await;
    let (run, pod) = asked.iter().next().unwrap();
    let why = plugin.ok(&format!("why {pod}")).await;
    assert!(
        why.contains(&format!("its PreDelete hook is running (HookRun {run})")),
        "{why}"
    );
    let nothing = plugin.run("hook list --failing").await;
    assert!(
        nothing.err.starts_with("no failing HookRuns in namespace "),
        "{nothing:?}"
    );
    // Without a terminal, it prints block by block, up to the verdict.
    let watch = format!("hook get {run} -w");
    let watching = plugin.run(&watch);
    let ending = async {
        let ended = plugin.ok(&format!("hook terminate {run}")).await;
        assert_has(&ended, "The gate stays closed, and the pod is kept.");
    };
    let (watched, ()) = tokio::join!(watching, ending);
    assert_eq!(watched.code, 0, "{watched:?}");
    assert!(watched.out.contains("? Inconclusive, Terminated"), "{watched:?}");
    let phase = |run: &shared_api::HookRun| run.status.as_ref().map(|status| status.phase);
    fleet
        .until_runs(|runs| runs.iter().all(|run| phase(run) == Some(Phase::Inconclusive)))
        .await;
    fleet.says("ScaleBlocked", "HookUnsuccessful").await;
    assert_eq!(fleet.nodes.terminations().len(), 0);
}
