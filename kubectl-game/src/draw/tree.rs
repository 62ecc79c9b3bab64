//! Tree of a workload: revisions, their pods and HookRuns. Pods that need attention come first.

use super::Style;
use super::run::{info, message, phase, summary};
use super::table::{Cell, Note, Row};
use crate::paint::Tone;
use crate::view::GameView;
use crate::view::pod::PodView;
use crate::view::revision::RevisionView;
use crate::view::run::RunView;

/// Mark of a pod whose hooks are skipped.
const SKIPS: &str = "hooks skipped";

/// Detail of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Detail {
    /// Every pod with its HookRuns and their messages.
    Full,
    /// Ready pods that neither wait nor skip their hooks are one row for each revision.
    Folded,
    /// Every other pod is one row, with its HookRun.
    Compact,
    /// Pods that wait for the same reason are one row.
    Grouped,
}

impl Detail {
    /// All, the most detailed first.
    pub(super) const ALL: [Self; 4] = [Self::Full, Self::Folded, Self::Compact, Self::Grouped];

    /// Returns whether everything that stands elsewhere is left out.
    pub(super) fn is_compact(self) -> bool {
        self >= Self::Compact
    }
}

/// Pods of a revision that are one row, or one pod with its HookRuns.
enum Entry<'v> {
    Pod(&'v PodView),
    Pods(Vec<&'v PodView>),
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

/// Returns the rows of a workload.
pub(super) fn tree(view: &GameView, detail: Detail, style: Style) -> Vec<Row> {
    let root = Cell::new(format!("{} {}", style.sign("⟳", "@"), view.name));
    let mut rows = Vec::new();
    if !detail.is_compact() {
        let cells = vec![
            root,
            Cell::toned(view.state.tone, &view.state.word),
            Cell::new(style.age(view.created)),
        ];
        rows.push(row(cells));
    }
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
        let entries = entries(revision, detail);
        for (place, entry) in entries.iter().enumerate() {
            let branch = self::branch(&branch.below, place + 1 == entries.len(), style);
            match entry {
                Entry::Pod(pod) if detail.is_compact() => rows.push(compact_row(pod, &branch, style)),
                Entry::Pod(pod) => pod_rows(pod, &branch, &mut rows, style),
                Entry::Pods(pods) => rows.push(group_row(pods, &branch, style)),
            }
        }
    }
    rows
}

fn row(cells: Vec<Cell>) -> Row {
    Row { cells, notes: vec![] }
}

/// Returns the pods of a revision, the most urgent first, those in the same state side by side.
fn entries(revision: &RevisionView, detail: Detail) -> Vec<Entry<'_>> {
    let mut pods: Vec<&PodView> = revision.pods.iter().collect();
    pods.sort_by_key(|pod| (pod.is_quiet(), pod.tone.urgency(), state(pod)));
    let is_folded = |pod: &PodView| match detail {
        Detail::Full => false,
        Detail::Folded | Detail::Compact => pod.is_quiet(),
        Detail::Grouped => true,
    };
    let groups = pods.chunk_by(|one, other| is_folded(one) && is_folded(other) && are_alike(one, other));
    groups
        .map(|pods| match pods {
            [pod] => Entry::Pod(pod),
            pods => Entry::Pods(pods.to_vec()),
        })
        .collect()
}

/// Returns everything in which pods of one row are alike.
fn state(pod: &PodView) -> (Tone, &str, Option<&str>, bool, bool) {
    (pod.tone, &pod.word, pod.reason.as_deref(), pod.waits, pod.skips)
}

/// Returns whether two pods can be in one row.
fn are_alike(one: &PodView, other: &PodView) -> bool {
    one.is_quiet() == other.is_quiet() && state(one) == state(other)
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
    row(vec![
        Cell::new(name),
        Cell::toned(tone, revision.role()),
        Cell::new(style.age(revision.created)),
        Cell::new(info.join(" ")),
    ])
}

/// Returns the name of a pod, or the number of pods, as a node.
fn node(name: &str, branch: &Branch, style: Style) -> Cell {
    Cell::new(format!("{}{} {name}", branch.node, style.sign("□", "o")))
}

/// Describes the containers of a pod, and whether its hooks are skipped.
fn containers(pod: &PodView) -> String {
    let (ready, all) = pod.ready;
    let mut info = vec![format!("ready {ready}/{all}")];
    info.extend((pod.restarts > 0).then(|| format!("restarts {}", pod.restarts)));
    info.extend(pod.skips.then(|| SKIPS.to_owned()));
    info.join(", ")
}

/// Returns the row of pods in the same state.
fn group_row(pods: &[&PodView], branch: &Branch, style: Style) -> Row {
    let first = pods.first();
    let names: Vec<&str> = pods.iter().map(|pod| pod.name.as_str()).collect();
    let restarts: i32 = pods.iter().map(|pod| pod.restarts).sum();
    let restarts = (restarts > 0).then(|| format!("restarts {restarts}"));
    let info = if first.is_some_and(|pod| pod.is_quiet()) {
        let hint = Some("--all-pods lists them".to_owned());
        restarts.into_iter().chain(hint).collect::<Vec<_>>().join(", ")
    } else {
        let reason = first.and_then(|pod| pod.reason.clone());
        let skips = first.filter(|pod| pod.skips).map(|_| SKIPS.to_owned());
        let facts: Vec<String> = reason.into_iter().chain(skips).chain(restarts).collect();
        let separator = if facts.is_empty() { "" } else { ": " };
        format!("{}{separator}{}", facts.join(", "), names.join(", "))
    };
    let state = first.map(|pod| Cell::toned(pod.tone, &pod.word));
    row(vec![
        node(&format!("{} pods", pods.len()), branch, style),
        state.unwrap_or_default(),
        Cell::default(),
        Cell::new(info),
    ])
}

/// Returns the row of a pod, with the HookRun that it waits for, its message or its containers.
fn compact_row(pod: &PodView, branch: &Branch, style: Style) -> Row {
    let mut runs = pod.runs.iter();
    let run = runs.find(|run| pod.waits_for.as_ref() == Some(&run.name));
    let info = run.map(|run| summary(run, style));
    let info = info.or_else(|| pod.message.clone());
    let info = match info {
        Some(info) if pod.skips => format!("{SKIPS}, {info}"),
        Some(info) => info,
        None => containers(pod),
    };
    row(vec![
        node(&pod.name, branch, style),
        Cell::toned(pod.tone, &pod.word),
        Cell::new(style.age(pod.created)),
        Cell::new(info),
    ])
}

fn pod_rows(pod: &PodView, branch: &Branch, rows: &mut Vec<Row>, style: Style) {
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
            node(&pod.name, branch, style),
            Cell::toned(pod.tone, &pod.word),
            Cell::new(style.age(pod.created)),
            Cell::new(containers(pod)),
        ],
        notes: note.into_iter().collect(),
    });
    for (place, run) in pod.runs.iter().enumerate() {
        let branch = self::branch(&branch.below, place + 1 == pod.runs.len(), style);
        run_rows(run, &branch, rows, style);
    }
}

fn run_rows(run: &RunView, branch: &Branch, rows: &mut Vec<Row>, style: Style) {
    let hook = run.hook();
    let hook = if hook.is_empty() { "hook" } else { &hook };
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
            Cell::new(format!("{}{} {hook}", branch.node, style.sign("◇", "*"))),
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
