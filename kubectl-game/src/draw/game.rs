//! A workload: its state, the commands to run next, and the tree of its revisions, pods and HookRuns. On a terminal, it
//! shows less detail instead of more lines than fit.

use super::table;
use super::text::{clean, command, cut, width, with_purpose, wrap};
use super::tree::{Detail, tree};
use super::{Style, lifecycle};
use crate::view::GameView;

/// Width of the labels at the top.
const LABEL_WIDTH: usize = 12;
/// Maximum number of lines of the operator's message.
const MAX_MESSAGE_LINES: usize = 4;
/// Maximum number of lines of each cause, if there are several.
const MAX_CAUSE_LINES: usize = 3;

/// Renders `kubectl game get`, with as much detail as the height allows.
pub(crate) fn lines(view: &GameView, style: Style) -> Vec<String> {
    let fits = |lines: &[String]| style.height.is_none_or(|height| lines.len() <= height);
    let mut lines = Vec::new();
    for detail in Detail::ALL {
        lines = lines_with(view, detail, style);
        if fits(&lines) {
            break;
        }
    }
    lines
}

fn lines_with(view: &GameView, detail: Detail, style: Style) -> Vec<String> {
    let mut lines = head(view, detail, style);
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
    lines.push(String::new());
    lines.extend(table::lines(
        &["NAME", "STATUS", "AGE", "INFO"],
        &tree(view, detail, style),
        style,
    ));
    lines
}

fn head(view: &GameView, detail: Detail, style: Style) -> Vec<String> {
    let counts = view.counts;
    let updated = view.updated_word();
    let mut pods = format!(
        "{} desired, {} current, {} ready, {} available, {} {updated}",
        counts.desired, counts.current, counts.ready, counts.available, counts.updated
    );
    if counts.waiting > 0 {
        pods = format!("{pods}, {} waiting", counts.waiting);
    }
    if let Some(candidates) = counts.candidates.filter(|candidates| *candidates > 0) {
        let word = if candidates == 1 {
            "candidate"
        } else {
            "candidates"
        };
        pods = format!("{pods}, {candidates} {word}");
    }
    let names = if detail.is_compact() {
        vec![("Name:", format!("{}/{}", view.namespace, view.name))]
    } else {
        vec![
            ("Name:", view.name.clone()),
            ("Namespace:", view.namespace.clone()),
        ]
    };
    let strategy = ("Strategy:", view.strategy.clone());
    let strategy = Some(strategy).filter(|_| detail < Detail::Grouped);
    let mut lines = Vec::new();
    for (name, value) in names.into_iter().chain(strategy).chain([("Pods:", pods)]) {
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
        message(view, style)
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
        Some(columns) => wrap(&text, columns.saturating_sub(LABEL_WIDTH)),
    }
}

/// Returns the message of the state. Of several causes, each has lines of its own.
fn message(view: &GameView, style: Style) -> Vec<String> {
    match view.state.causes.as_slice() {
        [] | [_] => shortened(&view.state.message, MAX_MESSAGE_LINES, style),
        causes => causes
            .iter()
            .flat_map(|cause| shortened(cause, MAX_CAUSE_LINES, style))
            .collect(),
    }
}

/// Shortens a text to a few lines; `why` shows it in full.
fn shortened(text: &str, max: usize, style: Style) -> Vec<String> {
    let mut lines = broken(text, style);
    if lines.len() > max {
        lines.truncate(max);
        if let Some(last) = lines.last_mut() {
            let mark = style.sign(" …", " ...");
            let columns = style.width.unwrap_or(usize::MAX);
            let room = columns.saturating_sub(LABEL_WIDTH + width(mark));
            *last = cut(last, room, "") + mark;
        }
    }
    lines
}
