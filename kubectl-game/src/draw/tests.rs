//! Pictures of workloads and HookRuns, as terminals of several kinds show them.

use kube::ResourceExt;
use shared_api::Phase;

use super::*;
use crate::cluster::{ListResult, Snapshot, UnreadableObject};
use crate::view::run::RunView;
use crate::view::{GameView, revision, samples, strategy};

fn style(paint: Paint, width: Option<usize>) -> Style {
    Style {
        paint,
        width,
        height: None,
        cuts: true,
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
fn a_failed_hook_in_letters_of_ascii() {
    insta::assert_snapshot!(tree(&samples::refused(), style(Paint::PLAIN, Some(80))));
}

#[test]
fn a_failed_hook_with_signs_and_without_colours() {
    insta::assert_snapshot!(tree(&samples::refused(), style(Paint::of(false, true), Some(80))));
}

#[test]
fn a_failed_hook_in_colours() {
    let drawn = tree(&samples::refused(), style(Paint::of(true, true), Some(80)));
    insta::assert_snapshot!(drawn.replace('\x1b', "ESC"));
}

#[test]
fn a_hook_that_is_running() {
    insta::assert_snapshot!(tree(&samples::running(), style(Paint::of(false, true), Some(80))));
}

#[test]
fn candidates_are_counted_and_each_has_its_scout() {
    let snapshot = samples::searching();
    let style = style(Paint::of(false, true), Some(100));
    let drawn = tree(&snapshot, style);
    for words in [
        "3 updated, 1 waiting, 2 candidates\n",
        "waiting for 1 more idle pod",
        "arena-x7k2p  ◌ PreDelete",
        "arena-b4n8c  ◌ Candidate",
        "◇ Scout      ◌ Running",
        "scout-hook-arena-7d4b9c-q9w5d-empty\n",
    ] {
        assert!(drawn.contains(words), "{words}: {drawn}");
    }
    assert!(!drawn.contains("Next:"), "{drawn}");
    let run = run::lines(&RunView::of(&snapshot.runs[1]), style).join("\n");
    assert!(run.contains("Hook:       Scout for pod arena-b4n8c\n"), "{run}");
    let runs: Vec<RunView> = snapshot.runs.iter().map(RunView::of).collect();
    let table = lists::runs(&runs, &[], false, Style { width: None, ..style }).join("\n");
    assert!(table.contains("  Scout  "), "{table}");
}

#[test]
fn a_notice_is_shown_as_such_and_holds_no_pod() {
    let snapshot = samples::notified();
    let style = style(Paint::of(false, true), Some(100));
    let drawn = tree(&snapshot, style);
    for words in [
        "arena-x7k2p  ◌ Selected",
        "◇ Notice     ◌ Pending",
        "notice-hook-arena-7d4b9c-x7k2p-finish-0123456789abcdef\n",
    ] {
        assert!(drawn.contains(words), "{words}: {drawn}");
    }
    assert!(!drawn.contains("waiting"), "{drawn}");
    let runs: Vec<RunView> = snapshot.runs.iter().map(RunView::of).collect();
    let run = run::lines(&runs[0], style).join("\n");
    assert!(run.contains("Hook:       Notice for pod arena-x7k2p\n"), "{run}");
    let table = lists::runs(&runs, &[], false, Style { width: None, ..style }).join("\n");
    assert!(table.contains("  Notice  "), "{table}");
}

#[test]
fn candidates_for_the_update_have_scouts_of_their_hook() {
    let snapshot = samples::searching_to_update();
    let style = style(Paint::of(false, true), Some(100));
    let drawn = tree(&snapshot, style);
    // Without the spaces that align the columns.
    let words_of = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = drawn.lines().map(words_of).collect();
    for words in [
        "1 updated, 2 candidates",
        "□ arena-x7k2p ✔ Ready",
        "□ arena-b4n8c ◌ Candidate",
        "◇ ScoutInplace ◌ Running",
        "scout-inplace-hook-arena-5f6d8b-q9w5d-empty",
    ] {
        assert!(lines.iter().any(|line| line.contains(words)), "{words}: {drawn}");
    }
    assert!(!drawn.contains("Next:"), "{drawn}");
    let run = run::lines(&RunView::of(&snapshot.runs[0]), style).join("\n");
    assert!(
        run.contains("Hook:       ScoutInplace for pod arena-b4n8c\n"),
        "{run}"
    );
}

#[test]
fn a_candidate_whose_hook_ended_without_success_says_so() {
    let style = style(Paint::of(false, true), Some(100));
    for (phase, shown) in [
        (Phase::Failed, "✖ HookFailed"),
        (Phase::Error, "⚠ HookError"),
        (Phase::Inconclusive, "? HookInconclusive"),
        (Phase::Successful, "◌ Candidate"),
        (Phase::Running, "◌ Candidate"),
    ] {
        let mut snapshot = samples::searching();
        let status = snapshot.runs[1].status.as_mut().unwrap();
        status.phase = phase;
        let drawn = tree(&snapshot, style);
        let line = drawn.lines().find(|line| line.contains("□ arena-b4n8c")).unwrap();
        assert!(line.contains(shown), "{phase}: {line}");
    }
}

#[test]
fn a_hook_that_cannot_run() {
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
        "InplaceUpdate, maxUnavailable 20%, rolling back to arena-5f6d8b\n",
        "3 available, 2 to roll back\n",
        "✖ RolloutAborted",
        "✖ aborted",
    ] {
        assert!(drawn.contains(words), "{words}: {drawn}");
    }
    assert_eq!(role(&drawn, "# revision 2"), Some("aborted"));
    assert_eq!(role(&drawn, "# revision 1"), Some("current"));
    let next = "Next:\n  kubectl game retry arena  # restart the rollout\n  kubectl game undo arena  # roll back the \
                template\n\nNAME";
    assert!(drawn.contains(next), "{drawn}");
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
        "InplaceUpdate, maxUnavailable 20%, rolling back to arena-5f6d8b"
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
        tree(&samples::running(), style(Paint::of(true, true), Some(width)));
    }
    insta::assert_snapshot!(tree(&samples::running(), style(Paint::of(false, true), Some(60))));
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
    let drawn = timeless(&samples::running());
    assert!(!drawn.contains("next ") && !drawn.contains("2m"), "{drawn}");
}

#[test]
fn a_run_by_itself() {
    let runs = [samples::refused(), samples::running()].map(|snapshot| {
        let run = RunView::of(&snapshot.runs[0]);
        run::lines(&run, style(Paint::of(false, true), Some(80))).join("\n")
    });
    insta::assert_snapshot!(runs.join("\n\n"));
}

/// Returns a workload of 24 pods: four whose hook failed, two whose hook has errors, and 18 that are ready.
fn two_reasons() -> Snapshot {
    let mut snapshot = samples::many(samples::refused(), 6);
    let erring = samples::erroring("HookErrors", "Unreachable", "connection refused by 10.0.0.7:9091");
    snapshot.game.spec.replicas = Some(18);
    let status = snapshot.game.status.as_mut().unwrap();
    for number in [
        &mut status.replicas,
        &mut status.ready_replicas,
        &mut status.available_replicas,
        &mut status.updated_replicas,
    ] {
        *number = 24;
    }
    snapshot.pods.retain(|pod| pod.name_any() != "arena-x7k2p");
    let entry = &erring.game.status.as_ref().unwrap().pre_delete_hook_condition[0];
    for place in [4, 5] {
        let known = &mut status.pre_delete_hook_condition[place];
        (known.phase, known.reason, known.message) =
            (entry.phase, entry.reason.clone(), entry.message.clone());
        snapshot.runs[place].status.clone_from(&erring.runs[0].status);
        snapshot.runs[place].spec.clone_from(&erring.runs[0].spec);
    }
    for number in snapshot.pods.len()..24 {
        let ready = samples::pod(
            &format!("arena-ready{number}"),
            "arena-7d4b9c",
            serde_json::json!({}),
        );
        snapshot.pods.push(ready);
    }
    snapshot
}

#[test]
fn terminals_show_what_waits_and_what_to_do() {
    let snapshot = two_reasons();
    for (width, height) in [(80, 24), (120, 40), (60, 30)] {
        let style = Style {
            height: Some(height),
            ..style(Paint::of(false, true), Some(width))
        };
        let drawn = tree(&snapshot, style);
        assert!(drawn.lines().count() <= height, "{width}x{height}: {drawn}");
        for words in ["HookUnsuccessful", "failing with", "\nNext:\n", "18 pods"] {
            assert!(drawn.contains(words), "{width}x{height}: {words}: {drawn}");
        }
        insta::assert_snapshot!(format!("{width}x{height}"), drawn);
    }
}

/// Returns the rows below the header of the tree. The message of the state names pods, too.
fn rows(snapshot: &Snapshot, height: Option<usize>) -> String {
    let style = style(Paint::of(false, true), Some(100));
    let drawn = tree(snapshot, Style { height, ..style });
    let (_, rows) = drawn.split_once("\nNAME").unwrap();
    rows.to_owned()
}

#[test]
fn detail_is_lost_only_as_far_as_necessary() {
    let snapshot = two_reasons();
    let style = style(Paint::of(false, true), Some(100));
    let height = tree(&snapshot, style).lines().count();
    let all = rows(&snapshot, None);
    for pod in &snapshot.pods {
        assert!(all.contains(&pod.name_any()), "{all}");
    }
    assert_eq!(rows(&snapshot, Some(height)), all);
    // Shows ready pods as one row from here on, and all others until nothing fits.
    let mut detail = all;
    for height in (0..height).rev() {
        let rows = rows(&snapshot, Some(height));
        assert!(rows.contains("□ 18 pods"), "{height}: {rows}");
        assert!(rows.lines().count() <= detail.lines().count(), "{height}: {rows}");
        for number in 0..6 {
            assert!(rows.contains(&format!("arena-{number}")), "{height}: {rows}");
        }
        detail = rows;
    }
    let (_, below) = detail.split_once("# revision 2").unwrap();
    let rows: Vec<&str> = below.lines().skip(1).collect();
    assert_eq!(rows.len(), 3, "{detail}");
    for (row, (count, words)) in rows.iter().zip([
        ("2 pods", "HookErrors: arena-4, arena-5"),
        ("4 pods", "HookUnsuccessful: arena-0, arena-1, arena-2, arena-3"),
        ("18 pods", "--all-pods lists them"),
    ]) {
        assert!(row.contains(count) && row.ends_with(words), "{detail}");
    }
}

#[test]
fn a_pod_that_needs_attention_is_never_folded() {
    let mut snapshot = two_reasons();
    let ready = |name: &str| samples::pod(name, "arena-7d4b9c", serde_json::json!({}));
    let skips = |name: &str| {
        let mut pod = ready(name);
        let uid = pod.metadata.uid.clone().unwrap();
        pod.annotations_mut()
            .insert(shared_api::names::pod::SKIP_HOOK.to_owned(), uid);
        pod
    };
    let unready = |name: &str| {
        let mut pod = ready(name);
        for condition in pod.status.as_mut().unwrap().conditions.iter_mut().flatten() {
            condition.status = "False".to_owned();
        }
        pod
    };
    let terminating = |name: &str| {
        let mut pod = ready(name);
        pod.metadata.deletion_timestamp = pod.metadata.creation_timestamp.clone();
        pod
    };
    let selected = samples::refused().pods.into_iter();
    let selected = selected.filter(|pod| pod.name_any() == "arena-x7k2p");
    // Names of which states alternate.
    snapshot.pods.extend([
        skips("arena-p1"),
        unready("arena-p2"),
        skips("arena-p3"),
        unready("arena-p4"),
        terminating("arena-p5"),
    ]);
    snapshot.pods.extend(selected);
    let drawn = rows(&snapshot, Some(0));
    for (state, info) in [
        ("18 pods", "--all-pods lists them"),
        ("2 pods      ✔ Ready", "hooks skipped: arena-p1, arena-p3"),
        ("2 pods      ⚠ NotReady", "arena-p2, arena-p4"),
        ("arena-p5    · Terminating", "ready 1/1"),
        ("arena-x7k2p  ◌ Selected", "ready 1/1"),
    ] {
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut lines = drawn.lines();
        assert!(
            lines.any(|line| words(line).contains(&words(state)) && line.ends_with(info)),
            "{state}: {drawn}"
        );
    }
}

#[test]
fn a_pod_beyond_those_that_the_status_names_is_not_folded_while_its_hook_runs() {
    let mut snapshot = two_reasons();
    let status = snapshot.game.status.as_mut().unwrap();
    status.pre_delete_hook_condition.truncate(5);
    let drawn = rows(&snapshot, Some(0));
    assert!(drawn.contains("□ 18 pods"), "{drawn}");
    assert!(drawn.contains("□ arena-5 "), "{drawn}");
}

#[test]
fn steps_of_a_canary_are_counted_from_1() {
    let mut snapshot = samples::refused();
    let run = &mut snapshot.runs[0];
    let labels = run.labels_mut();
    labels.remove("tkex.tencent.com/pod-uid");
    labels.insert("canary-step-index".to_owned(), "2".to_owned());
    labels.insert("gamedeployment-type".to_owned(), "CanaryStep".to_owned());
    run.spec.args = None;
    let run = RunView::of(run);
    assert_eq!(run.step, Some(3));
    let style = style(Paint::PLAIN, None);
    let hook = run.hook();
    assert!(hook.ends_with(" 3"), "{hook}");
    let table = lists::runs(std::slice::from_ref(&run), &[], false, style).join("\n");
    assert!(table.contains(&hook), "{table}");
    let shown = run::lines(&run, style);
    assert!(
        shown.iter().any(|line| *line == format!("Hook:       {hook}")),
        "{shown:?}"
    );
    let drawn = tree(&snapshot, style);
    assert!(drawn.contains(&format!("* {hook}")), "{drawn}");
}

/// Returns the workloads of a table whose names and states are long.
fn long_names() -> ListResult<shared_api::GameDeployment> {
    let mut objects = vec![samples::complete().game; 30];
    objects.push(samples::unresolved("HookTemplateMissing").game);
    objects.push(samples::refused().game);
    for (number, game) in objects.iter_mut().enumerate() {
        game.metadata.name = Some(format!("battleground-{number:02}"));
    }
    ListResult {
        objects,
        unreadable: vec![],
    }
}

#[test]
fn a_name_is_whole_as_long_as_other_columns_can_go() {
    let games = long_names();
    let style_of = |width| style(Paint::of(false, true), Some(width));
    for width in [120, 80, 60] {
        for line in lists::games(&games, true, style_of(width)) {
            assert!(text::width(&line) <= width, "{width}: {line}");
            assert!(
                line.contains("battleground-") || line.starts_with("NAMESPACE"),
                "{width}: {line}"
            );
        }
    }
    for (width, columns) in [
        (
            120,
            "NAME STRATEGY STATUS DESIRED CURRENT READY UPDATED WAITING AGE",
        ),
        (90, "NAME STATUS DESIRED CURRENT READY UPDATED WAITING AGE"),
        (80, "NAME STATUS DESIRED READY UPDATED WAITING AGE"),
        (60, "NAME STATUS DESIRED READY WAITING"),
        (40, "NAME STATUS WAITING"),
    ] {
        let style = style(Paint::of(false, true), Some(width));
        let table = lists::games(&games, false, style);
        let header: Vec<&str> = table[0].split_whitespace().collect();
        assert_eq!(header.join(" "), columns, "{width}");
        for (line, game) in table[1..].iter().zip(&games.objects) {
            assert!(text::width(line) <= width, "{width}: {line}");
            assert!(
                line.starts_with(&format!("{} ", game.name_any())),
                "{width}: {line}"
            );
        }
    }
    // For a table that is not redrawn, nothing is cut.
    let style = Style {
        cuts: false,
        ..style(Paint::PLAIN, Some(30))
    };
    let table = lists::games(&games, false, style);
    assert!(
        table.iter().any(|line| line.contains("HookTemplateMissing")),
        "{table:?}"
    );
}

#[test]
fn workloads_that_need_attention_come_first_if_not_all_fit() {
    let games = long_names();
    let names = |height| {
        let style = style(Paint::PLAIN, Some(80));
        let table = lists::games(&games, false, Style { height, ..style });
        let names = table[1..].iter().map(|line| line[..15].to_owned());
        names.collect::<Vec<_>>()
    };
    let by_name: Vec<String> = games.objects.iter().map(ResourceExt::name_any).collect();
    assert_eq!(names(None), by_name);
    assert_eq!(names(Some(33)), by_name);
    assert_eq!(
        names(Some(32))[..3],
        ["battleground-30", "battleground-31", "battleground-00"]
    );
}

#[test]
fn runs_without_success_come_first_if_not_all_fit() {
    let erring = samples::erroring("HookErrors", "Unreachable", "connection refused");
    let mut runs: Vec<RunView> = [samples::running(), erring, samples::running(), samples::refused()]
        .iter()
        .map(|snapshot| RunView::of(&snapshot.runs[0]))
        .collect();
    for (run, name) in runs.iter_mut().zip(["a", "b", "c", "d"]) {
        run.name = name.to_owned();
    }
    let broken = [UnreadableObject::new("games", "e", "invalid type")];
    let names = |height| {
        let style = style(Paint::PLAIN, Some(80));
        let table = lists::runs(&runs, &broken, false, Style { height, ..style });
        table[1..]
            .iter()
            .map(|line| line[..1].to_owned())
            .collect::<String>()
    };
    assert_eq!(names(None), "eabcd");
    assert_eq!(names(Some(6)), "eabcd");
    assert_eq!(names(Some(5)), "edbac");
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
    let runs = [samples::refused(), samples::running()].map(|snapshot| RunView::of(&snapshot.runs[0]));
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
    let said = "hook spec invalid: metrics[0].successCondition: unexpected `=`; did you mean `==`? (1:15)";
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
        (samples::running(), false),
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
        "x HookTemplateMissing for 2m\n            spec.preDeleteUpdateStrategy.hook: HookTemplate empty is";
    assert!(drawn.contains(words), "{drawn}");
}

#[test]
fn purposes_of_commands_fit_narrow_terminals() {
    let snapshot = samples::erroring("HookErrors", "Unreachable", "connection refused by 10.0.0.7:9091");
    for width in [44, 60, 72] {
        let drawn = tree(&snapshot, style(Paint::PLAIN, Some(width)));
        let (_, next) = drawn.split_once("\nNext:\n").unwrap();
        assert!(
            next.starts_with("  kubectl edit hooktemplate empty\n    # fix "),
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
        drawn.contains("! HookRun broken cannot be parsed: invalid type: map, expected a"),
        "{drawn}"
    );
}
