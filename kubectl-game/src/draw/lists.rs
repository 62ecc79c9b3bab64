//! Tables of workloads, HookRuns and revisions.

use kube::ResourceExt;
use shared_api::{GameDeployment, HookRun, Phase};

use super::Style;
use super::run::{phase, summary};
use super::table::{self, Cell, Narrow, Row};
use crate::cluster::{ListResult, UnreadableObject};
use crate::paint::Tone;
use crate::view::revision::RevisionView;
use crate::view::run::RunView;
use crate::view::state::State;
use crate::view::{PodCounts, created};

/// Steps that make the table of workloads narrower. Names and states stay as long as possible.
const NARROW_GAMES: [Narrow; 8] = [
    Narrow::Drop("STRATEGY"),
    Narrow::Drop("CURRENT"),
    Narrow::Drop("UPDATED"),
    Narrow::Drop("AGE"),
    Narrow::Cut("STATUS", 14),
    Narrow::Drop("READY"),
    Narrow::Drop("DESIRED"),
    Narrow::Cut("NAMESPACE", 8),
];

/// Steps that make the table of HookRuns narrower.
const NARROW_RUNS: [Narrow; 4] = [
    Narrow::Cut("INFO", 16),
    Narrow::Drop("HOOK"),
    Narrow::Drop("AGE"),
    Narrow::Cut("NAMESPACE", 8),
];

/// Renders `kubectl game list`. If the terminal is too small for all workloads, those that need attention come first.
pub(crate) fn games(listed: &ListResult<GameDeployment>, everywhere: bool, style: Style) -> Vec<String> {
    let mut header = vec![
        "NAME", "STRATEGY", "STATUS", "DESIRED", "CURRENT", "READY", "UPDATED", "WAITING", "AGE",
    ];
    let mut games: Vec<(&GameDeployment, State)> = listed
        .objects
        .iter()
        .map(|game| (game, State::of(game)))
        .collect();
    if is_too_high(games.len() + listed.unreadable.len(), style) {
        games.sort_by_key(|(_, state)| state.tone.urgency());
    }
    let rows = games
        .iter()
        .map(|(game, state)| game_row(game, state, everywhere, style));
    let unreadable = listed
        .unreadable
        .iter()
        .map(|UnreadableObject { namespace, name, .. }| {
            let place = everywhere.then(|| Cell::new(namespace.clone()));
            let cells = place.into_iter().chain([
                Cell::new(name.clone()),
                Cell::new("?"),
                Cell::toned(Tone::Bad, "Unreadable"),
            ]);
            row(cells.collect())
        });
    let rows: Vec<Row> = unreadable.chain(rows).collect();
    if everywhere {
        header.insert(0, "NAMESPACE");
    }
    table::fitted(&header, &rows, &NARROW_GAMES, style)
}

fn row(cells: Vec<Cell>) -> Row {
    Row { cells, notes: vec![] }
}

fn game_row(game: &GameDeployment, state: &State, everywhere: bool, style: Style) -> Row {
    let counts = PodCounts::of(game);
    let type_ = game
        .spec
        .update_strategy
        .as_ref()
        .and_then(|strategy| strategy.type_.clone());
    let mut cells = vec![
        Cell::new(game.name_any()),
        Cell::new(type_.unwrap_or_else(|| "RollingUpdate".to_owned())),
        Cell::toned(state.tone, &state.word),
    ];
    let numbers = [
        counts.desired,
        counts.current,
        counts.ready,
        counts.updated,
        counts.waiting,
    ];
    cells.extend(numbers.map(|number| Cell::new(number.to_string())));
    cells.push(Cell::new(style.age(created(game))));
    if everywhere {
        cells.insert(0, Cell::new(game.namespace().unwrap_or_default()));
    }
    row(cells)
}

/// Returns whether a run ended without success, keeps failing with errors, or cannot succeed.
pub(crate) fn is_failing(run: &HookRun) -> bool {
    let Some(status) = &run.status else { return false };
    let has_failed = status.phase.is_final() && status.phase != Phase::Successful;
    has_failed || status.trouble().is_some()
}

/// Returns whether a table with this number of rows is higher than the terminal.
fn is_too_high(rows: usize, style: Style) -> bool {
    style.height.is_some_and(|height| height < rows + 1)
}

/// Renders `kubectl game hook list`. If the terminal is too small for all runs, those without success come first.
pub(crate) fn runs(
    runs: &[RunView],
    unreadable: &[UnreadableObject],
    everywhere: bool,
    style: Style,
) -> Vec<String> {
    let mut header = vec!["NAME", "HOOK", "PHASE", "AGE", "INFO"];
    let mut sorted: Vec<&RunView> = runs.iter().collect();
    if is_too_high(runs.len() + unreadable.len(), style) {
        sorted.sort_by_key(|run| run.urgency());
    }
    let rows = sorted.into_iter().map(|run| {
        let mut cells = vec![
            Cell::new(run.name.clone()),
            Cell::new(run.hook()),
            phase(run),
            Cell::new(style.age(run.created)),
            Cell::new(summary(run, style)),
        ];
        if everywhere {
            cells.insert(0, Cell::new(run.namespace.clone()));
        }
        row(cells)
    });
    let unreadable = unreadable.iter().map(
        |UnreadableObject {
             namespace,
             name,
             error,
             ..
         }| {
            let place = everywhere.then(|| Cell::new(namespace.clone()));
            let cells = place.into_iter().chain([
                Cell::new(name.clone()),
                Cell::default(),
                Cell::toned(Tone::Bad, "Unreadable"),
                Cell::default(),
                Cell::new(error.clone()),
            ]);
            row(cells.collect())
        },
    );
    let rows: Vec<Row> = unreadable.chain(rows).collect();
    if everywhere {
        header.insert(0, "NAMESPACE");
    }
    table::fitted(&header, &rows, &NARROW_RUNS, style)
}

/// Renders `kubectl game history`.
pub(crate) fn history(revisions: &[RevisionView], style: Style) -> Vec<String> {
    let rows: Vec<Row> = revisions
        .iter()
        .map(|revision| {
            let number = revision
                .number
                .map_or_else(|| "?".to_owned(), |number| number.to_string());
            let is_named = revision.update || revision.current || revision.aborted;
            let role = if revision.pods.is_empty() && !is_named {
                ""
            } else {
                revision.role()
            };
            row(vec![
                Cell::new(number),
                Cell::new(revision.name.clone()),
                Cell::new(role),
                Cell::new(revision.pods.len().to_string()),
                Cell::new(style.age(revision.created)),
                Cell::new(revision.images.join(" ")),
            ])
        })
        .collect();
    table::lines(
        &["REVISION", "NAME", "ROLE", "PODS", "AGE", "IMAGES"],
        &rows,
        style,
    )
}
