//! Tree of a workload: revisions, their pods and HookRuns.

use super::Style;
use super::lifecycle;
use super::run::{info, message, phase};
use super::table::{self, Cell, Note, Row};
use super::text::{clean, command, with_purpose, wrap};
use crate::paint::Tone;
use crate::view::GameView;
use crate::view::pod::PodView;
use crate::view::revision::RevisionView;
use crate::view::run::RunView;

/// Width of the labels at the top.
const LABEL_WIDTH: usize = 12;
/// Maximum number of lines of the operator's message.
const MAX_MESSAGE_LINES: usize = 4;

/// Renders `kubectl game get`.
pub(crate) fn lines(view: &GameView, style: Style) -> Vec<String> {
    let mut lines = head(view, style);
    lines.push(String::new());
    lines.extend(table::lines(
        &["NAME", "STATUS", "AGE", "INFO"],
        &tree(view, style),
        style,
    ));
    for words in &view.unreadable {
        lines.extend(broken(&format!("! {words}"), style));
    }
    if !view.next.is_empty() {
        lines.push(String::new());
        lines.push(style.paint.bold("Next:"));
        let columns = style.width.unwrap_or(usize::MAX);
        for next in &view.next {
            let lines_of_command = command(&clean(&next.command), columns);
            lines.extend(with_purpose(lines_of_command, &clean(&next.purpose), columns));
        }
    }
    lines
}

fn head(view: &GameView, style: Style) -> Vec<String> {
    let counts = view.counts;
    let updated = view.updated_word();
    let mut pods = format!(
        "{} desired, {} there, {} ready, {} available, {} {updated}",
        counts.desired, counts.current, counts.ready, counts.available, counts.updated
    );
    if counts.waiting > 0 {
        pods = format!("{pods}, {} waiting", counts.waiting);
    }
    let mut lines = Vec::new();
    for (name, value) in [
        ("Name:", view.name.clone()),
        ("Namespace:", view.namespace.clone()),
        ("Strategy:", view.strategy.clone()),
        ("Pods:", pods),
    ] {
        lines.extend(item(name, &value, style));
    }
    let since = view.state.since.filter(|_| style.now.is_some());
    let since = since
        .map(|since| format!(" for {}", style.age(Some(since))))
        .unwrap_or_default();
    let word = style
        .paint
        .tone(view.state.tone, &format!("{}{since}", view.state.word));
    lines.push(format!("{:<LABEL_WIDTH$}{word}", "Status:"));
    let blank = " ".repeat(LABEL_WIDTH);
    lines.extend(
        message_lines(&view.state.message, style)
            .into_iter()
            .map(|line| format!("{blank}{line}")),
    );
    let beside_label = Style {
        width: style.width.map(|width| width.saturating_sub(LABEL_WIDTH)),
        ..style
    };
    lines.extend(labelled("Rollout:", lifecycle::lines(view, beside_label)));
    lines
}

fn item(name: &str, value: &str, style: Style) -> Vec<String> {
    labelled(name, broken(value, style))
}

/// Puts a label before the first line, and aligns the others with it.
fn labelled(name: &str, lines: Vec<String>) -> Vec<String> {
    let lines = lines.into_iter().enumerate();
    lines
        .map(|(place, line)| format!("{:<LABEL_WIDTH$}{line}", if place == 0 { name } else { "" }))
        .collect()
}

fn broken(text: &str, style: Style) -> Vec<String> {
    let text = clean(text);
    match style.width {
        None if text.is_empty() => vec![],
        None => vec![text],
        Some(width) => wrap(&text, width.saturating_sub(LABEL_WIDTH + 4)),
    }
}

/// Shortens the operator's message to a few lines; `why` shows it in full.
fn message_lines(message: &str, style: Style) -> Vec<String> {
    let mut lines = broken(message, style);
    if lines.len() > MAX_MESSAGE_LINES {
        lines.truncate(MAX_MESSAGE_LINES);
        if let Some(last) = lines.last_mut() {
            last.push_str(style.sign(" …", " ..."));
        }
    }
    lines
}

/// Line prefixes of a tree, for a node and for everything below it.
struct Branch {
    node: String,
    below: String,
}

fn branch(lead: &str, last: bool, style: Style) -> Branch {
    let (node, below) = match (last, style.paint.signs()) {
        (false, true) => ("├─", "│ "),
        (true, true) => ("└─", "  "),
        (false, false) => ("|-", "| "),
        (true, false) => ("`-", "  "),
    };
    Branch {
        node: format!("{lead}{node}"),
        below: format!("{lead}{below}"),
    }
}

fn tree(view: &GameView, style: Style) -> Vec<Row> {
    let root = Cell::new(format!("{} {}", style.sign("⟳", "@"), view.name));
    let mut rows = vec![Row {
        cells: vec![
            root,
            Cell::toned(view.state.tone, &view.state.word),
            Cell::new(style.age(view.created)),
        ],
        notes: vec![],
    }];
    let branches = view.steps.len() + view.revisions.len();
    let mut place = 0;
    let mut next = || {
        place += 1;
        branch("", place == branches, style)
    };
    for run in &view.steps {
        run_rows(run, &next(), &mut rows, style);
    }
    for revision in &view.revisions {
        let branch = next();
        rows.push(revision_row(revision, &branch, style));
        for (place, pod) in revision.pods.iter().enumerate() {
            pod_rows(
                pod,
                &branch.below,
                place + 1 == revision.pods.len(),
                &mut rows,
                style,
            );
        }
    }
    rows
}

fn revision_row(revision: &RevisionView, branch: &Branch, style: Style) -> Row {
    let number = revision
        .number
        .map_or_else(|| "?".to_owned(), |number| number.to_string());
    let name = format!("{}# revision {number}", branch.node);
    let tone = match (revision.aborted, revision.update) {
        (true, _) => Tone::Bad,
        (false, true) => Tone::Good,
        (false, false) => Tone::Gone,
    };
    let mut info = vec![revision.name.clone()];
    info.extend(revision.images.clone());
    Row {
        cells: vec![
            Cell::new(name),
            Cell::toned(tone, revision.role()),
            Cell::new(style.age(revision.created)),
            Cell::new(info.join(" ")),
        ],
        notes: vec![],
    }
}

fn pod_rows(pod: &PodView, lead: &str, last: bool, rows: &mut Vec<Row>, style: Style) {
    let branch = branch(lead, last, style);
    let (ready, all) = pod.ready;
    let mut info = vec![format!("ready {ready}/{all}")];
    info.extend((pod.restarts > 0).then(|| format!("restarts {}", pod.restarts)));
    info.extend(pod.skips.then(|| "skips its hooks".to_owned()));
    let hangs = if pod.runs.is_empty() {
        "  "
    } else {
        style.sign("│ ", "| ")
    };
    let note = pod.message.as_ref().map(|message| Note {
        lead: format!("{}{hangs}", branch.below),
        text: message.clone(),
        faint: false,
    });
    rows.push(Row {
        cells: vec![
            Cell::new(format!("{}{} {}", branch.node, style.sign("□", "o"), pod.name)),
            Cell::toned(pod.tone, &pod.word),
            Cell::new(style.age(pod.created)),
            Cell::new(info.join(", ")),
        ],
        notes: note.into_iter().collect(),
    });
    for (place, run) in pod.runs.iter().enumerate() {
        let branch = self::branch(&branch.below, place + 1 == pod.runs.len(), style);
        run_rows(run, &branch, rows, style);
    }
}

fn run_rows(run: &RunView, branch: &Branch, rows: &mut Vec<Row>, style: Style) {
    let kind = if run.kind.is_empty() { "hook" } else { &run.kind };
    let single = match run.metrics.as_slice() {
        [metric] => format!("{}: {}", metric.name, info(metric, style)),
        many => format!("{} metrics", many.len()),
    };
    let lead = format!("{}  ", branch.below);
    let name = Note {
        lead: lead.clone(),
        text: run.name.clone(),
        faint: true,
    };
    let mut notes = vec![name];
    notes.extend(message(run, &lead, style));
    rows.push(Row {
        cells: vec![
            Cell::new(format!("{}{} {kind}", branch.node, style.sign("◇", "*"))),
            phase(run),
            Cell::new(style.age(run.created)),
            Cell::new(single),
        ],
        notes: if run.metrics.len() == 1 {
            notes.clone()
        } else {
            vec![]
        },
    });
    if run.metrics.len() == 1 {
        return;
    }
    for (place, metric) in run.metrics.iter().enumerate() {
        let last = place + 1 == run.metrics.len();
        rows.push(Row {
            cells: vec![
                Cell::new(format!(
                    "{}{}",
                    self::branch(&branch.below, last, style).node,
                    metric.name
                )),
                Cell::toned(metric.phase.into(), metric.phase.as_str()),
                Cell::default(),
                Cell::new(info(metric, style)),
            ],
            notes: if last { notes.clone() } else { vec![] },
        });
    }
}
