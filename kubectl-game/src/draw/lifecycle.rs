//! Rollout with lifecycle hooks: a bar of its updated pods, marks at the points of the hooks, and a line for each hook.

use gamedeployment_core::workload::Trigger;
use shared_api::game_deployment::LifecycleHookPhase;

use super::Style;
use super::table::{self, Cell, Note, Row};
use super::text::width;
use crate::view::GameView;
use crate::view::lifecycle::LifecycleHookView;

/// Maximum number of cells between the ends of the bar.
const MAX_CELLS: usize = 40;
/// Minimum number of cells. A narrower terminal gets neither the bar nor its marks.
const MIN_CELLS: usize = 8;
/// Columns of the two ends of the bar.
const ENDS: usize = 2;

/// Renders the rollout of a workload; nothing without lifecycle hooks.
pub(super) fn lines(view: &GameView, style: Style) -> Vec<String> {
    let hooks = &view.lifecycle_hooks;
    if hooks.is_empty() {
        return vec![];
    }
    let mut lines = progress(view, style);
    let rows: Vec<Row> = hooks.iter().map(|hook| hook_row(hook, style)).collect();
    lines.extend(table::lines(&[], &rows, style));
    lines
}

/// Draws the bar with its numbers, and the marks below it.
fn progress(view: &GameView, style: Style) -> Vec<String> {
    let counts = view.counts;
    let numbers = format!("{}/{} {}", counts.updated, counts.desired, view.updated_word());
    let Some(cells) = cells(&numbers, style) else {
        return vec![numbers];
    };
    let bar = Bar {
        cells,
        replicas: usize::try_from(counts.desired).unwrap_or_default(),
    };
    let updated = usize::try_from(counts.updated).unwrap_or_default();
    let mut lines = vec![format!("{} {numbers}", bar.drawn(updated, style))];
    let marks = bar.marks(&view.lifecycle_hooks, style);
    lines.extend((!marks.is_empty()).then_some(marks));
    lines
}

/// Returns the number of cells that fit beside the numbers; `None` if there are too few.
fn cells(numbers: &str, style: Style) -> Option<usize> {
    let others = ENDS + 1 + width(numbers);
    let room = style
        .width
        .map_or(MAX_CELLS, |columns| columns.saturating_sub(others));
    (room >= MIN_CELLS).then_some(room.min(MAX_CELLS))
}

/// Bar of a rollout.
#[derive(Debug, Clone, Copy)]
struct Bar {
    /// Cells between its ends.
    cells: usize,
    /// Number of updated pods that fills it.
    replicas: usize,
}

impl Bar {
    fn drawn(self, updated: usize, style: Style) -> String {
        let filled = self.filled(updated);
        let full = style.sign("█", "#").repeat(filled);
        let rest = style.sign("░", "-").repeat(self.cells.saturating_sub(filled));
        format!("[{full}{rest}]")
    }

    /// Returns the number of cells that this many updated pods fill.
    fn filled(self, updated: usize) -> usize {
        let product = self.cells.saturating_mul(updated);
        let filled = product.checked_div(self.replicas).unwrap_or_default();
        filled.min(self.cells)
    }

    /// Returns the column of a hook's point. A point between the ends is at the last cell that its pods fill: the bar
    /// reaches the mark when these pods are updated.
    fn column(self, hook: &LifecycleHookView) -> Option<usize> {
        Some(match hook.trigger? {
            Trigger::Pre | Trigger::Mid => 0,
            Trigger::Progress(_) => self.filled(hook.pods.unwrap_or_default()).max(1),
            Trigger::Post => self.cells + 1,
        })
    }

    /// Draws a mark at the point of each hook. Several hooks at one column have one mark, of the worst phase.
    fn marks(self, hooks: &[LifecycleHookView], style: Style) -> String {
        let mark = |column: usize| {
            let here = hooks.iter().filter(|hook| self.column(hook) == Some(column));
            let worst = here.map(|hook| hook.phase).max_by_key(|phase| severity(*phase));
            worst.map_or_else(|| " ".to_owned(), |phase| style.paint.symbol(phase.into()))
        };
        let marks: String = (0..self.cells + ENDS).map(mark).collect();
        marks.trim_end().to_owned()
    }
}

/// Returns how bad a phase is, compared with others at the same column.
fn severity(phase: LifecycleHookPhase) -> u8 {
    match phase {
        LifecycleHookPhase::Successful => 0,
        LifecycleHookPhase::Waiting => 1,
        LifecycleHookPhase::Running => 2,
        LifecycleHookPhase::Ignored => 3,
        LifecycleHookPhase::Failed | LifecycleHookPhase::Error | LifecycleHookPhase::Inconclusive => 4,
    }
}

fn hook_row(hook: &LifecycleHookView, style: Style) -> Row {
    let message = hook.message.as_ref().filter(|_| is_explained(hook.phase));
    let note = message.filter(|text| !text.is_empty()).map(|text| Note {
        lead: "  ".to_owned(),
        text: text.clone(),
        faint: false,
    });
    Row {
        cells: vec![
            Cell::toned(hook.phase.into(), &hook.name),
            Cell::new(hook.point.clone()),
            Cell::new(state(hook, style)),
        ],
        notes: note.into_iter().collect(),
    }
}

/// Returns the phase with its age and attempts: `Running for 2m, 3 attempts`.
fn state(hook: &LifecycleHookView, style: Style) -> String {
    let mut words = hook.phase.to_string();
    let is_running = hook.phase == LifecycleHookPhase::Running;
    if let Some(started) = hook.started.filter(|_| is_running && style.now.is_some()) {
        words = format!("{words} for {}", style.age(Some(started)));
    }
    if hook.attempts > 1 {
        words = format!("{words}, {} attempts", hook.attempts);
    }
    words
}

/// Returns whether the message of a hook in this phase is shown. A success needs no explanation.
fn is_explained(phase: LifecycleHookPhase) -> bool {
    match phase {
        LifecycleHookPhase::Successful => false,
        LifecycleHookPhase::Waiting
        | LifecycleHookPhase::Running
        | LifecycleHookPhase::Ignored
        | LifecycleHookPhase::Failed
        | LifecycleHookPhase::Error
        | LifecycleHookPhase::Inconclusive => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::cluster::Snapshot;
    use crate::draw::game;
    use crate::paint::Paint;
    use crate::view::samples::{
        self, at, lifecycle_entry as entry, lifecycle_hook as hook, lifecycle_hooks, smoke_test,
    };

    fn signs() -> Paint {
        Paint::of(false, true)
    }

    fn style(paint: Paint, width: Option<usize>) -> Style {
        Style {
            paint,
            width,
            height: None,
            cuts: true,
            now: Some(samples::now()),
        }
    }

    fn drawn(snapshot: &Snapshot, paint: Paint, width: Option<usize>) -> Vec<String> {
        lines(&GameView::of(snapshot), style(paint, width))
    }

    /// Draws a bar of 40 cells with 5 of 10 pods.
    fn half() -> String {
        format!("[{}{}] 5/10 updated", "█".repeat(20), "░".repeat(20))
    }

    /// Draws marks, each after this number of blanks.
    fn marks(marks: &[(usize, &str)]) -> String {
        let parts = marks
            .iter()
            .flat_map(|(blanks, mark)| [" ".repeat(*blanks), (*mark).to_owned()]);
        parts.collect()
    }

    fn post() -> Value {
        json!({ "type": "Post" })
    }

    #[test]
    fn hooks_are_at_their_points_of_the_bar() {
        let expected = [
            half(),
            marks(&[(0, "✔"), (19, "◌"), (20, "○")]),
            "✔ migrate     Pre   Successful".to_owned(),
            "◌ smoke-test  50%   Running for 2m".to_owned(),
            "  waiting for the verdict of HookRun".to_owned(),
            "  lifecycle-arena-7d4b9c-2-smoke-test-1".to_owned(),
            "○ announce    Post  Waiting".to_owned(),
        ];
        assert_eq!(drawn(&smoke_test(), signs(), Some(68)), expected);
    }

    #[test]
    fn a_file_gets_letters_of_ascii() {
        let expected = [
            format!("[{}{}] 5/10 updated", "#".repeat(20), "-".repeat(20)),
            marks(&[(0, "+"), (19, "-"), (20, "o")]),
            "+ migrate     Pre   Successful".to_owned(),
            "- smoke-test  50%   Running for 2m".to_owned(),
            "  waiting for the verdict of HookRun lifecycle-arena-7d4b9c-2-smoke-test-1".to_owned(),
            "o announce    Post  Waiting".to_owned(),
        ];
        assert_eq!(drawn(&smoke_test(), Paint::PLAIN, None), expected);
    }

    #[test]
    fn marks_and_hooks_have_the_colours_of_their_phases() {
        let colours = drawn(&smoke_test(), Paint::of(true, true), None);
        let marks = marks(&[
            (0, "\x1b[32m✔\x1b[0m"),
            (19, "\x1b[36m◌\x1b[0m"),
            (20, "\x1b[2m○\x1b[0m"),
        ]);
        assert_eq!((&colours[0], &colours[1]), (&half(), &marks));
        assert_eq!(colours[2], "\x1b[32m✔ migrate   \x1b[0m  Pre   Successful");
    }

    #[test]
    fn the_bar_is_below_the_state_of_the_workload() {
        let lines = game::lines(&GameView::of(&smoke_test()), style(signs(), Some(80)));
        let status = lines
            .iter()
            .position(|line| line.starts_with("Status: "))
            .unwrap();
        let expected = [
            "            lifecycle hook smoke-test (50%): waiting for its verdict".to_owned(),
            format!("Rollout:    {}", half()),
            format!("            {}", marks(&[(0, "✔"), (19, "◌"), (20, "○")])),
            "            ✔ migrate     Pre   Successful".to_owned(),
        ];
        assert_eq!(lines[status + 1..status + 5], expected);
    }

    #[test]
    fn a_workload_without_lifecycle_hooks_has_no_bar() {
        let none = lifecycle_hooks(&json!([]), &json!([]));
        assert_eq!(drawn(&none, signs(), Some(68)), Vec::<String>::new());
        for snapshot in [
            samples::complete(),
            samples::refused(),
            samples::rolled_back(),
            none,
        ] {
            let lines = game::lines(&GameView::of(&snapshot), style(signs(), Some(80)));
            assert!(!lines.iter().any(|line| line.contains("Rollout:")), "{lines:?}");
        }
    }

    #[test]
    fn each_phase_has_its_symbol_and_says_what_needs_words() {
        for (phase, sign, plain, is_explained) in [
            ("Waiting", "○", "o", true),
            ("Running", "◌", "-", true),
            ("Successful", "✔", "+", false),
            ("Ignored", "⚠", "!", true),
            ("Failed", "✖", "x", true),
            ("Error", "✖", "x", true),
            ("Inconclusive", "✖", "x", true),
        ] {
            let hooks = json!([hook("smoke-test", at(json!("50%")))]);
            let because = json!({ "attempts": 3, "message": "be\u{1b}[2Jcause" });
            let snapshot = lifecycle_hooks(&hooks, &json!([entry("smoke-test", phase, because)]));
            for (paint, sign) in [(signs(), sign), (Paint::PLAIN, plain)] {
                let lines = drawn(&snapshot, paint, Some(68));
                let mut expected = vec![
                    marks(&[(20, sign)]),
                    format!("{sign} smoke-test  50%  {phase}, 3 attempts"),
                ];
                expected.extend(is_explained.then(|| "  be [2Jcause".to_owned()));
                assert_eq!(lines[1..], expected);
            }
        }
    }

    #[test]
    fn points_of_progress_are_between_those_of_pre_and_post() {
        let hooks = json!([
            hook("zero", at(json!(0))),
            hook("half", at(json!("50%"))),
            hook("many", at(json!(12))),
            hook("post", post()),
            hook("later", json!({ "type": "Later" })),
        ]);
        let expected = [
            half(),
            marks(&[(0, "○"), (19, "○"), (19, "○"), (0, "○")]),
            "○ zero   Pre      Waiting".to_owned(),
            "○ half   50%      Waiting".to_owned(),
            "○ many   12 pods  Waiting".to_owned(),
            "○ post   Post     Waiting".to_owned(),
            "○ later  ?        Waiting".to_owned(),
        ];
        let lines = drawn(&lifecycle_hooks(&hooks, &json!([])), signs(), None);
        assert_eq!(lines, expected);
    }

    #[test]
    fn hooks_without_a_valid_point_have_no_mark() {
        let hooks = json!([hook("later", json!({ "type": "Later" }))]);
        let lines = drawn(&lifecycle_hooks(&hooks, &json!([])), signs(), None);
        assert_eq!(lines, [half(), "○ later  ?  Waiting".to_owned()]);
    }

    #[test]
    fn the_worst_phase_marks_a_column() {
        let hooks = json!([
            hook("migrate", json!({ "type": "Pre" })),
            hook("stop", json!({ "type": "Mid" })),
            hook("share", at(json!("50%"))),
            hook("number", at(json!(5))),
            hook("tell", post()),
            hook("count", post()),
        ]);
        let entries = json!([
            entry("migrate", "Successful", json!({})),
            entry("stop", "Running", json!({})),
            entry("share", "Failed", json!({})),
            entry("number", "Ignored", json!({})),
            entry("tell", "Waiting", json!({})),
            entry("count", "Successful", json!({})),
        ]);
        let lines = drawn(&lifecycle_hooks(&hooks, &entries), signs(), None);
        assert_eq!(lines[1], marks(&[(0, "◌"), (19, "✖"), (20, "○")]));
    }

    #[test]
    fn the_bar_has_the_room_beside_its_numbers() {
        let snapshot = smoke_test();
        let narrow = drawn(&snapshot, signs(), Some(32));
        assert_eq!(narrow[0], "[████████░░░░░░░░░] 5/10 updated");
        assert_eq!(narrow[1], marks(&[(0, "✔"), (7, "◌"), (9, "○")]));
        let least = drawn(&snapshot, signs(), Some(23));
        assert_eq!(least[0], "[████░░░░] 5/10 updated");
        let none = drawn(&snapshot, signs(), Some(22));
        assert_eq!(none[0], "5/10 updated");
        assert!(none[1].starts_with("✔ migrate"), "{none:?}");
        for columns in [22, 23, 32, 48, 68] {
            for line in drawn(&snapshot, signs(), Some(columns)) {
                assert!(width(&line) <= columns, "{columns} columns: {line}");
            }
        }
    }

    #[test]
    fn a_bar_is_never_longer_than_its_ends() {
        let bar = Bar {
            cells: 40,
            replicas: 10,
        };
        let filled = [0, 1, 5, 9, 10, 11, usize::MAX].map(|updated| bar.filled(updated));
        assert_eq!(filled, [0, 4, 20, 36, 40, 40, 40]);
        let empty = Bar { replicas: 0, ..bar };
        assert_eq!([0, 3].map(|updated| empty.filled(updated)), [0, 0]);
    }

    #[test]
    fn without_pods_a_point_of_progress_is_after_the_first_end() {
        let mut snapshot = smoke_test();
        snapshot.game.spec.replicas = Some(0);
        let lines = drawn(&snapshot, signs(), None);
        assert_eq!(lines[0], format!("[{}] 5/0 updated", "░".repeat(40)));
        assert_eq!(lines[1], marks(&[(0, "✔"), (0, "◌"), (39, "○")]));
    }

    #[test]
    fn the_bar_of_a_rollback_shows_the_pods_that_are_left() {
        let hooks = json!([hook("smoke-test", at(json!("50%"))), hook("announce", post())]);
        let failed = json!({ "attempts": 1, "message": "HookRun lifecycle-1 is Failed" });
        let mut snapshot = lifecycle_hooks(&hooks, &json!([entry("smoke-test", "Failed", failed)]));
        let status = snapshot.game.status.get_or_insert_default();
        status.rollback = samples::rolled_back().game.status.unwrap().rollback;
        status.updated_replicas = 2;
        let expected = [
            format!("[{}{}] 2/10 to roll back", "█".repeat(8), "░".repeat(32)),
            marks(&[(20, "✖"), (20, "○")]),
            "✖ smoke-test  50%   Failed".to_owned(),
            "  HookRun lifecycle-1 is Failed".to_owned(),
            "○ announce    Post  Waiting".to_owned(),
        ];
        assert_eq!(drawn(&snapshot, signs(), None), expected);
    }

    #[test]
    fn an_age_can_be_left_out() {
        let timeless = Style {
            now: None,
            ..style(signs(), None)
        };
        let lines = lines(&GameView::of(&smoke_test()), timeless);
        assert_eq!(lines[3], "◌ smoke-test  50%   Running");
    }
}
