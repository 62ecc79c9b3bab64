//! Pictures of workloads and HookRuns, as terminals of several kinds show them.

use kube::ResourceExt;

use super::*;
use crate::cluster::{ListResult, Snapshot, UnreadableObject};
use crate::view::run::RunView;
use crate::view::{GameView, revision, samples, strategy};

fn style(paint: Paint, width: Option<usize>) -> Style {
    Style {
        paint,
        width,
        now: Some(samples::now()),
    }
}

fn tree(snapshot: &Snapshot, style: Style) -> String {
    let lines = game::lines(&GameView::of(snapshot), style);
    if let Some(width) = style.width {
        for line in &lines {
            let bare: String = line
                .split('\x1b')
                .map(|part| part.split_once('m').map_or(part, |(_, rest)| rest))
                .collect();
            let bare = if line.contains('\x1b') { bare } else { line.clone() };
            assert!(
                text::width(&bare) <= width,
                "{} columns: {bare}",
                text::width(&bare)
            );
        }
    }
    lines.join("\n")
}

#[test]
fn a_hook_that_said_no_in_letters_of_ascii() {
    insta::assert_snapshot!(tree(&samples::refused(), style(Paint::PLAIN, Some(80))));
}

#[test]
fn a_hook_that_said_no_with_signs_and_without_colours() {
    insta::assert_snapshot!(tree(&samples::refused(), style(Paint::of(false, true), Some(80))));
}

#[test]
fn a_hook_that_said_no_in_colours() {
    let drawn = tree(&samples::refused(), style(Paint::of(true, true), Some(80)));
    insta::assert_snapshot!(drawn.replace('\x1b', "ESC"));
}

#[test]
fn a_hook_that_is_being_asked() {
    insta::assert_snapshot!(tree(&samples::asking(), style(Paint::of(false, true), Some(80))));
}

#[test]
fn a_hook_that_cannot_be_asked() {
    insta::assert_snapshot!(tree(&samples::blocked(), style(Paint::of(false, true), Some(80))));
}

#[test]
fn a_file_gets_whole_lines() {
    insta::assert_snapshot!(tree(&samples::refused(), style(Paint::PLAIN, None)));
}

#[test]
fn an_update_that_is_paused_with_two_revisions() {
    insta::assert_snapshot!(tree(&samples::paused(), style(Paint::of(false, true), Some(80))));
}

/// Returns the role in the first line that contains this text.
fn role(lines: &str, row: &str) -> Option<&'static str> {
    let line = lines.lines().find(|line| line.contains(row))?;
    ["aborted", "current", "update", "previous", "old"]
        .into_iter()
        .find(|role| line.split_whitespace().any(|word| word == *role))
}

#[test]
fn pods_of_an_aborted_rollout_go_back() {
    let style = style(Paint::of(false, true), Some(80));
    let mut snapshot = samples::rolled_back();
    let drawn = tree(&snapshot, style);
    for words in [
        "InplaceUpdate, maxUnavailable 20%, goes back to arena-5f6d8b\n",
        "3 available, 2 to go back\n",
        "✖ RolloutAborted",
        "✖ aborted",
    ] {
        assert!(drawn.contains(words), "{words}: {drawn}");
    }
    assert_eq!(role(&drawn, "# revision 2"), Some("aborted"));
    assert_eq!(role(&drawn, "# revision 1"), Some("current"));
    let next = "Next:\n  kubectl game retry arena  # begin the rollout again\n  kubectl game undo arena  # restore the \
                earlier template";
    assert!(drawn.ends_with(next), "{drawn}");
    let history = lists::history(&revision::history(&snapshot), style).join("\n");
    assert_eq!(role(&history, "arena-7d4b9c"), Some("aborted"));
    assert_eq!(role(&history, "arena-5f6d8b"), Some("current"));

    // Its revision stays in the picture when no pod has it.
    snapshot.pods.retain(|pod| pod.name_any() == "arena-x7k2p");
    let drawn = tree(&snapshot, style);
    assert_eq!(role(&drawn, "# revision 2"), Some("aborted"));
}

#[test]
fn no_canary_step_counts_on_the_way_back() {
    let mut game = samples::canary("RolloutAborted", false).game;
    assert!(strategy(&game).contains("canary step 2 of 3"));
    let status = game.status.get_or_insert_default();
    status.rollback = samples::rolled_back().game.status.unwrap().rollback;
    assert_eq!(
        strategy(&game),
        "InplaceUpdate, maxUnavailable 20%, goes back to arena-5f6d8b"
    );
    // A rollback of an earlier template is over.
    game.status.get_or_insert_default().update_revision = Some("another".to_owned());
    assert!(strategy(&game).contains("canary step 2 of 3"));
}

#[test]
fn everything_is_as_it_should_be() {
    insta::assert_snapshot!(tree(
        &samples::complete(),
        style(Paint::of(false, true), Some(80))
    ));
}

#[test]
fn a_narrow_terminal_cuts_and_breaks() {
    for width in [44, 60, 72] {
        tree(&samples::asking(), style(Paint::of(true, true), Some(width)));
    }
    insta::assert_snapshot!(tree(&samples::asking(), style(Paint::of(false, true), Some(60))));
}

#[test]
fn a_rollout_with_lifecycle_hooks_fits_narrow_terminals() {
    for width in [44, 60, 72] {
        for paint in [Paint::PLAIN, Paint::of(true, true)] {
            let drawn = tree(&samples::smoke_test(), style(paint, Some(width)));
            assert!(drawn.contains("\nRollout:    ["), "{drawn}");
        }
    }
}

#[test]
fn what_changes_with_the_time_alone_can_be_left_out() {
    let timeless = |snapshot: &Snapshot| {
        let style = Style {
            now: None,
            ..style(Paint::PLAIN, None)
        };
        tree(snapshot, style)
    };
    let drawn = timeless(&samples::asking());
    assert!(!drawn.contains("next ") && !drawn.contains("2m"), "{drawn}");
}

#[test]
fn a_run_by_itself() {
    let runs = [samples::refused(), samples::asking()].map(|snapshot| {
        let run = RunView::of(&snapshot.runs[0]);
        run::lines(&run, style(Paint::of(false, true), Some(80))).join("\n")
    });
    insta::assert_snapshot!(runs.join("\n\n"));
}

#[test]
fn tables_of_workloads_runs_and_revisions() {
    let style = style(Paint::of(false, true), Some(80));
    let games = ListResult {
        objects: vec![
            samples::refused().game,
            samples::complete().game,
            samples::paused().game,
        ],
        unreadable: vec![UnreadableObject::new("games", "broken", "invalid type")],
    };
    let runs = [samples::refused(), samples::asking()].map(|snapshot| RunView::of(&snapshot.runs[0]));
    let tables = [
        lists::games(&games, false, style),
        lists::games(&games, true, Style { width: None, ..style }),
        lists::runs(&runs, &[], false, style),
        lists::history(&revision::history(&samples::paused()), style),
    ];
    insta::assert_snapshot!(tables.map(|lines| lines.join("\n")).join("\n\n"));
}

#[test]
fn a_run_shows_its_last_error_and_its_request() {
    let style = style(Paint::PLAIN, None);
    let error = "connection refused by 10.0.0.7:9091";
    let snapshot = samples::erroring("HookErrors", "Unreachable", error);
    let run = RunView::of(&snapshot.runs[0]);
    let table = lists::runs(std::slice::from_ref(&run), &[], false, style).join("\n");
    let words = "players: 0/1 !160 next 0s error: connection refused by 10.0.0.7:9091";
    assert!(table.ends_with(words), "{table}");
    let lines = run::lines(&run, style);
    assert!(
        lines.iter().any(|line| line == "  GET http://10.0.0.7:9091"),
        "{lines:?}"
    );
    assert!(
        lines
            .iter()
            .any(|line| line.ends_with(words.trim_start_matches("players: "))),
        "{lines:?}"
    );
    // The value of a measurement without an error is shown as before.
    let refused = RunView::of(&samples::refused().runs[0]);
    let table = lists::runs(&[refused], &[], false, style).join("\n");
    assert!(table.ends_with("players: 1/1 x1 last \"3\""), "{table}");
}

#[test]
fn a_run_that_was_not_measured_is_listed_with_its_message() {
    let style = style(Paint::PLAIN, None);
    let said = "hook spec invalid: metrics[0].successCondition: unexpected `=` (1:15)";
    let metric = serde_json::json!({ "name": "players" });
    let invalid = samples::ended("Error", "InvalidSpec", said, metric);
    let table = |snapshot: &Snapshot| {
        let run = RunView::of(&snapshot.runs[0]);
        lists::runs(&[run], &[], false, style).join("\n")
    };
    let listed = table(&invalid);
    assert!(
        listed.ends_with(said) && !listed.contains("players: 0"),
        "{listed}"
    );
    let endless = table(&samples::endless());
    assert!(endless.contains("metric players has neither count"), "{endless}");
}

#[test]
fn runs_without_success_and_runs_with_trouble_are_failing() {
    let error = |reason: &str| samples::erroring(reason, "Unreachable", "connection refused");
    let table = [
        (samples::refused(), true),
        (samples::ended_in_error("Timeout", "timed out"), true),
        (error("HookErrors"), true),
        (error("HookCannotSucceed"), true),
        (samples::endless(), true),
        (error("Measuring"), false),
        (samples::asking(), false),
    ];
    for (snapshot, expected) in table {
        let run = &snapshot.runs[0];
        assert_eq!(lists::is_failing(run), expected, "{:?}", run.status);
    }
}

#[test]
fn a_workload_with_a_hook_that_cannot_run_is_listed_with_the_reason() {
    let games = ListResult {
        objects: vec![samples::unresolved("HookTemplateMissing").game],
        unreadable: vec![],
    };
    let listed = lists::games(&games, false, style(Paint::PLAIN, None)).join("\n");
    assert!(listed.contains("x HookTemplateMissing"), "{listed}");
    let drawn = tree(
        &samples::unresolved("HookTemplateMissing"),
        style(Paint::PLAIN, Some(80)),
    );
    let words =
        "x HookTemplateMissing for 2m\n            spec.preDeleteUpdateStrategy.hook: HookTemplate empty has";
    assert!(drawn.contains(words), "{drawn}");
}

#[test]
fn purposes_of_commands_fit_narrow_terminals() {
    let snapshot = samples::erroring("HookErrors", "Unreachable", "connection refused by 10.0.0.7:9091");
    for width in [44, 60, 72] {
        let drawn = tree(&snapshot, style(Paint::PLAIN, Some(width)));
        let (_, next) = drawn.split_once("\nNext:\n").unwrap();
        assert!(
            next.starts_with("  kubectl edit hooktemplate empty\n    # if "),
            "{next}"
        );
    }
}

#[test]
fn the_picture_as_json() {
    let view = GameView::of(&samples::refused());
    insta::assert_snapshot!(document::structured(&view, document::OutputFormat::Json).unwrap());
}

#[test]
fn a_run_that_cannot_be_read_is_not_left_out_in_silence() {
    let mut snapshot = samples::complete();
    snapshot.unreadable = vec![UnreadableObject::new(
        "games",
        "broken",
        "invalid type: map, expected a sequence",
    )];
    let drawn = tree(&snapshot, style(Paint::PLAIN, Some(80)));
    assert!(
        drawn.contains("! HookRun broken cannot be read: invalid type: map, expected a"),
        "{drawn}"
    );
}
