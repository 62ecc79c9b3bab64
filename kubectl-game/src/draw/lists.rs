//! Tables of workloads, HookRuns and revisions.

use kube::ResourceExt;
use shared_api::{GameDeployment, HookRun, Phase};

use super::Style;
use super::run::{phase, summary};
use super::table::{self, Cell, Row};
use crate::cluster::{ListResult, UnreadableObject};
use crate::paint::Tone;
use crate::view::revision::RevisionView;
use crate::view::run::RunView;
use crate::view::state::State;
use crate::view::{PodCounts, created};

/// Renders `kubectl game list`.
pub(crate) fn games(listed: &ListResult<GameDeployment>, everywhere: bool, style: Style) -> Vec<String> {
    let mut header = vec![
        "NAME", "STRATEGY", "STATUS", "DESIRED", "CURRENT", "READY", "UPDATED", "WAITING", "AGE",
    ];
    let mut rows: Vec<Row> = listed
        .objects
        .iter()
        .map(|game| game_row(game, everywhere, style))
        .collect();
    rows.extend(
        listed
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
            }),
    );
    if everywhere {
        header.insert(0, "NAMESPACE");
    }

    // The strategy column is shortened first.
    let spared = usize::from(everywhere);
    table::fitted(&header, &rows, &[(spared + 1, 8), (spared + 2, 14)], style)
}

fn row(cells: Vec<Cell>) -> Row {
    Row { cells, notes: vec![] }
}

fn game_row(game: &GameDeployment, everywhere: bool, style: Style) -> Row {
    let state = State::of(game);
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

/// Renders `kubectl game hook list`.
pub(crate) fn runs(
    runs: &[RunView],
    unreadable: &[UnreadableObject],
    everywhere: bool,
    style: Style,
) -> Vec<String> {
    let mut header = vec!["NAME", "HOOK", "PHASE", "AGE", "INFO"];
    let mut rows: Vec<Row> = runs
        .iter()
        .map(|run| {
            let mut cells = vec![
                Cell::new(run.name.clone()),
                Cell::new(run.kind.clone()),
                phase(run),
                Cell::new(style.age(run.created)),
                Cell::new(summary(run, style)),
            ];
            if everywhere {
                cells.insert(0, Cell::new(run.namespace.clone()));
            }
            row(cells)
        })
        .collect();
    rows.extend(unreadable.iter().map(
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
    ));
    if everywhere {
        header.insert(0, "NAMESPACE");
    }
    table::lines(&header, &rows, style)
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
