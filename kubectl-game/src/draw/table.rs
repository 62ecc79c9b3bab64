//! Columns of text: each as wide as its widest cell; where the room does not do, columns that can be spared are cut,
//! then the last one and the first one.

use super::Style;
use super::text::{clean, cut, pad, width, wrap};
use crate::paint::Tone;

/// Blanks between columns.
const GAP: usize = 2;
/// The last column is not cut below this.
const LEAST: usize = 12;

#[derive(Debug, Clone, Default)]
pub(crate) struct Cell {
    text: String,
    tone: Option<Tone>,
}

impl Cell {
    /// Plain.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self {
            text: clean(&text.into()),
            tone: None,
        }
    }

    /// A word with a sign.
    pub(crate) fn toned(tone: Tone, text: &str) -> Self {
        Self {
            text: clean(text),
            tone: Some(tone),
        }
    }

    fn width(&self) -> usize {
        width(&self.text) + if self.tone.is_some() { 2 } else { 0 }
    }

    fn drawn(&self, columns: usize, last: bool, style: Style) -> String {
        let mark = style.sign("…", "~");
        let room = columns.saturating_sub(if self.tone.is_some() { 2 } else { 0 });
        let text = cut(&self.text, room, mark);
        let text = if last { text } else { pad(&text, room) };
        self.tone
            .map_or(text.clone(), |tone| style.paint.tone(tone, &text))
    }
}

/// A row, and what is said below it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Row {
    pub(crate) cells: Vec<Cell>,
    /// Sentences below it, over the whole width.
    pub(crate) notes: Vec<Note>,
}

/// A sentence below a row.
#[derive(Debug, Clone)]
pub(crate) struct Note {
    /// What stands before each of its lines, such as the lines of a tree.
    pub(crate) lead: String,
    /// The sentence.
    pub(crate) text: String,
    /// Beside the point: one line, cut where it is too long.
    pub(crate) faint: bool,
}

/// A table as lines.
pub(crate) fn lines(header: &[&str], rows: &[Row], style: Style) -> Vec<String> {
    fitted(header, rows, &[], style)
}

/// A table of which some columns are cut before all others, each down to so many letters.
pub(crate) fn fitted(header: &[&str], rows: &[Row], spared: &[(usize, usize)], style: Style) -> Vec<String> {
    let header: Vec<Cell> = header.iter().map(|name| Cell::new(*name)).collect();
    let count = rows.iter().map(|row| row.cells.len()).max().unwrap_or_default();
    let mut columns: Vec<usize> = header.iter().map(Cell::width).collect();
    columns.resize(count.max(header.len()), 0);
    for row in rows {
        for (column, cell) in columns.iter_mut().zip(&row.cells) {
            *column = (*column).max(cell.width());
        }
    }
    if let Some(room) = style.width {
        fit(&mut columns, spared, room);
    }
    let drawn = |cells: &[Cell]| {
        let last = cells
            .iter()
            .rposition(|cell| !cell.text.is_empty())
            .unwrap_or_default();
        let cells = cells.iter().zip(&columns).enumerate().take(last + 1);
        let cells: Vec<String> = cells
            .map(|(place, (cell, column))| cell.drawn(*column, place == last, style))
            .collect();
        cells.join(&" ".repeat(GAP))
    };
    let mut lines = Vec::new();
    if !header.is_empty() {
        lines.push(style.paint.bold(&drawn(&header)));
    }
    for row in rows {
        lines.push(drawn(&row.cells));
        lines.extend(row.notes.iter().flat_map(|note| note.lines(style)));
    }
    lines
}

/// Makes columns narrower until they fit: the last one first, then the first one; then both as far as it takes.
fn fit(columns: &mut [usize], spared: &[(usize, usize)], room: usize) {
    let all = |columns: &[usize]| columns.iter().sum::<usize>() + GAP * columns.len().saturating_sub(1);
    let last = columns.len().saturating_sub(1);
    let usual = [(last, LEAST), (0, LEAST), (last, 3), (0, 3)];
    for (place, least) in spared.iter().copied().chain(usual) {
        let surplus = all(columns).saturating_sub(room);
        if let Some(column) = columns.get_mut(place) {
            *column = column.saturating_sub(surplus).max(least.min(*column));
        }
    }
}

impl Note {
    fn lines(&self, style: Style) -> Vec<String> {
        let text = clean(&self.text);
        let Some(all) = style.width else {
            return vec![format!("{}{text}", self.lead)];
        };
        let room = all.saturating_sub(width(&self.lead)).max(LEAST);
        if self.faint {
            let text = cut(&text, room, style.sign("…", "~"));
            return vec![format!("{}{}", self.lead, style.paint.faint(&text))];
        }
        wrap(&text, room)
            .into_iter()
            .map(|line| format!("{}{line}", self.lead))
            .collect()
    }
}
