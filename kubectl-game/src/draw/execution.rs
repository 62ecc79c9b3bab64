//! Rendering of ExecutionHooks: the bar of one, its containers, and the table of all.

use super::Style;
use super::table::{self, Cell, Narrow, Note, Row};
use super::text::clean;
use crate::cluster::UnreadableObject;
use crate::paint::Tone;
use crate::view::execution::{ContainerCounts, ContainerView, ExecutionView, Stage};

/// Cells of the bar.
const CELLS: usize = 10;
/// Most containers in a table.
const MAX_CONTAINERS: usize = 30;

/// Returns the bar and its numbers: `[####------] 412/1000 succeeded, 3 failed`. Its filled part is the share of
/// containers that have succeeded or failed.
pub(crate) fn bar(counts: ContainerCounts, style: Style) -> String {
    let ContainerCounts {
        total,
        succeeded,
        failed,
    } = counts;
    let number = |number: i32| usize::try_from(number).unwrap_or_default();
    let ended = number(succeeded) + number(failed);
    let filled = (ended * CELLS)
        .checked_div(number(total))
        .unwrap_or_default()
        .min(CELLS);
    let full = style.sign("█", "#").repeat(filled);
    let empty = style.sign("░", "-").repeat(CELLS - filled);
    format!("[{full}{empty}] {succeeded}/{total} succeeded, {failed} failed")
}

/// Returns the line for a container in which the action failed.
pub(crate) fn failure(container: &ContainerView) -> String {
    let ContainerView {
        pod,
        container,
        message,
        ..
    } = container;
    clean(&format!(
        "{pod}/{container}: {}",
        message.as_deref().unwrap_or("no message")
    ))
}

/// Returns the reason of a hook, as in tables.
pub(crate) fn reason(hook: &ExecutionView) -> Cell {
    let word = hook.reason.as_deref().unwrap_or("Unseen");
    Cell::toned(hook.stage.into(), word)
}

/// Renders `kubectl game exec-hook get NAME`.
pub(crate) fn lines(hook: &ExecutionView, style: Style) -> Vec<String> {
    let head = |name: &str, value: String| Row {
        cells: vec![Cell::new(name), Cell::new(value)],
        notes: vec![],
    };
    let word = hook.reason.as_deref().unwrap_or("Unseen");
    let age = style.age(hook.created);
    let note = Note {
        lead: " ".repeat(12),
        text: if hook.stage == Stage::Unseen {
            unseen()
        } else {
            hook.message.clone()
        },
        faint: false,
    };
    let rows = vec![
        head("Name:", hook.name.clone()),
        head("Namespace:", hook.namespace.clone()),
        head("Action:", hook.action.clone()),
        head("Progress:", bar(hook.counts, style)),
        Row {
            cells: vec![
                Cell::new("Status:"),
                Cell::toned(hook.stage.into(), &format!("{word}, age {age}")),
            ],
            notes: vec![note],
        },
    ];
    let mut lines = table::lines(&[], &rows, style);
    if hook.containers.is_empty() {
        return lines;
    }
    lines.push(String::new());
    lines.extend(containers(&hook.containers, style));
    lines
}

/// Explains a hook without a status.
pub(crate) fn unseen() -> String {
    "hook-operator has not observed this ExecutionHook yet; check that the operator is running: kubectl get \
     deploy,pods -A -l app.kubernetes.io/name=hook-operator"
        .to_owned()
}

/// Renders containers. Nothing is cut, so that names can be copied and errors read.
fn containers(containers: &[ContainerView], style: Style) -> Vec<String> {
    let row = |container: &ContainerView| {
        let error = [container.reason.as_deref(), container.message.as_deref()];
        let error: Vec<&str> = error.into_iter().flatten().collect();
        Row {
            cells: vec![
                Cell::new(container.pod.clone()),
                Cell::new(container.container.clone()),
                Cell::toned(container.state.into(), container.state.as_str()),
                Cell::new(container.attempts.to_string()),
                Cell::new(error.join(": ")),
            ],
            notes: vec![],
        }
    };
    let rows: Vec<Row> = containers.iter().take(MAX_CONTAINERS).map(row).collect();
    let header = ["POD", "CONTAINER", "STATE", "ATTEMPTS", "ERROR"];
    let whole = Style { width: None, ..style };
    let mut lines = table::lines(&header, &rows, whole);
    let more = containers.len().saturating_sub(MAX_CONTAINERS);
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines
}

/// Renders `kubectl game exec-hook get`.
pub(crate) fn list(
    hooks: &[ExecutionView],
    unreadable: &[UnreadableObject],
    everywhere: bool,
    style: Style,
) -> Vec<String> {
    let mut header = vec!["NAME", "ACTION", "SUCCEEDED", "FAILED", "TOTAL", "REASON", "AGE"];
    let row = |namespace: &str, cells: Vec<Cell>| {
        let place = everywhere.then(|| Cell::new(namespace));
        Row {
            cells: place.into_iter().chain(cells).collect(),
            notes: vec![],
        }
    };
    let mut rows: Vec<Row> = hooks
        .iter()
        .map(|hook| {
            let ContainerCounts {
                total,
                succeeded,
                failed,
            } = hook.counts;
            let mut cells = vec![Cell::new(hook.name.clone()), Cell::new(hook.action.clone())];
            cells.extend([succeeded, failed, total].map(|number| Cell::new(number.to_string())));
            cells.extend([reason(hook), Cell::new(style.age(hook.created))]);
            row(&hook.namespace, cells)
        })
        .collect();
    rows.extend(unreadable.iter().map(|object| {
        let mut cells = vec![Cell::new(object.name.clone())];
        cells.extend(vec![Cell::default(); 4]);
        cells.push(Cell::toned(Tone::Bad, "Unreadable"));
        row(&object.namespace, cells)
    }));
    if everywhere {
        header.insert(0, "NAMESPACE");
    }
    table::fitted(&header, &rows, &[Narrow::Cut("ACTION", 8)], style)
}
