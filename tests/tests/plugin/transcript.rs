//! `get -w` on a terminal, through a scale-down whose hook fails first.

use operator_tests::fleet::{GAME, empty_now, game, hooked};

use crate::fleet;
use crate::plugin::Plugin;
use crate::terminal::{terminal, until};

#[tokio::test]
async fn the_tree_is_redrawn_in_place_and_stays_when_it_ends() {
    let fleet = fleet("plugin").await;
    fleet.hook("empty", empty_now()).await;
    fleet.launch(&game(3, hooked("empty"))).await;
    fleet.nodes.every_pod().set_players(3);
    let mut terminal = terminal(&fleet, &["get", GAME, "-w"]);
    until(&terminal, |shown| {
        shown.contains("✔ RolloutComplete") && shown.matches("✔ Ready").count() == 3
    })
    .await;
    let plugin = Plugin { fleet: &fleet };
    plugin.ok(&format!("scale {GAME} --replicas 2")).await;
    let lines = until(&terminal, |shown| {
        shown.contains("✖ HookUnsuccessful") && shown.contains("✖ PreDelete") && shown.contains("last \"3\"")
    })
    .await;
    assert!(
        lines
            .iter()
            .any(|line| line.contains("◇ PreDelete") && line.contains("✖ Failed")),
        "{lines:?}"
    );
    assert!(
        lines.contains(&format!(
            "  kubectl game retry {GAME} -n {}  # rerun the hook",
            fleet.namespace
        )),
        "{lines:?}"
    );

    terminal.resize(40, 72);
    let narrow =
        |shown: &str| shown.contains("✖ Failed") && shown.lines().all(|line| line.chars().count() <= 72);
    until(&terminal, narrow).await;
    terminal.resize(6, 72);
    until(&terminal, |shown| {
        shown.contains("more lines; enlarge the window")
    })
    .await;
    terminal.resize(40, 100);
    until(&terminal, |shown| {
        shown.contains("✖ Failed") && !shown.contains("more lines")
    })
    .await;

    fleet.nodes.every_pod().set_players(0);
    plugin.ok(&format!("retry {GAME}")).await;
    until(&terminal, |shown| {
        shown.contains("✔ RolloutComplete")
            && shown.contains("2 desired, 2 current")
            && !shown.contains("PreDelete")
    })
    .await;
    assert_eq!(terminal.interrupt(), 0, "{}", terminal.transcript());
    let transcript = terminal.transcript();
    // Once at the beginning, and once for each size: nothing else clears the screen.
    assert_eq!(transcript.matches("\x1b[2J").count(), 4, "{transcript:?}");
    assert_eq!(transcript.matches("\x1b[?1049h").count(), 1);
    assert!(transcript.contains("\x1b[31m"), "colours: {transcript:?}");
    let (_, after) = transcript.split_once("\x1b[?7h\x1b[?25h\x1b[?1049l").unwrap();
    assert!(
        after.contains("✔ RolloutComplete") && after.matches("✔ Ready").count() == 2,
        "{after}"
    );
    fleet.settled(2).await;
}

#[tokio::test]
async fn tables_are_redrawn_as_well_and_without_colours_where_nobody_wants_them() {
    let fleet = fleet("plugin").await;
    fleet.hook("empty", empty_now()).await;
    fleet.launch(&game(2, hooked("empty"))).await;
    let games = terminal(&fleet, &["list", "-w", "--no-color"]);
    let runs = terminal(&fleet, &["hook", "list", "-w", "--failing", "--no-color"]);
    until(&games, |shown| shown.contains("✔ RolloutComplete")).await;
    until(&runs, |shown| shown.starts_with("NAME")).await;
    fleet.nodes.every_pod().set_players(1);
    fleet.scale(1);
    until(&games, |shown| shown.contains("✖ HookUnsuccessful")).await;
    until(&runs, |shown| shown.contains("✖ Failed")).await;
    for mut terminal in [games, runs] {
        assert_eq!(terminal.interrupt(), 0, "{}", terminal.transcript());
        let transcript = terminal.transcript();
        assert!(!transcript.contains("\x1b[3"), "{transcript:?}");
    }
    fleet.quiet().await;
}
