//! Columns of text, each as wide as its widest cell. If the width is too small, the expendable columns are
//! cut first, then the last and the first one.

use super::Style;
use super::text::{clean, cut, pad, width, wrap};
use crate::paint::Tone;

/// Spaces between columns.
const GAP: usize = 2;
/// Minimum width of a note. The first and the last column are cut below it only if the row is still too wide.
const MIN_WIDTH: usize = 12;

#[derive(Debug, Clone, Default)]
pub(crate) struct Cell {
    text: String,
    tone: Option<Tone>,
}

impl Cell {
    /// Creates a cell without a tone.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self {
            text: clean(&text.into()),
            tone: None,
        }
    }

    /// Creates a cell with a symbol.
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

/// A row, and the notes below it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Row {
    pub(crate) cells: Vec<Cell>,
    /// Notes below the row, over the full width.
    pub(crate) notes: Vec<Note>,
}

/// A note below a row.
#[derive(Debug, Clone)]
pub(crate) struct Note {
    /// Prefix of each line, such as the lines of a tree.
    pub(crate) lead: String,
    /// Text of the note.
    pub(crate) text: String,
    /// Faint style: one line, truncated if it is too long.
    pub(crate) faint: bool,
}

/// Renders a table as lines.
pub(crate) fn lines(header: &[&str], rows: &[Row], style: Style) -> Vec<String> {
    fitted(header, rows, &[], style)
}

/// Renders a table whose `spared` columns are cut before all others, each down to a minimum width.
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

/// Narrows columns until they fit: the `spared` ones, the last one and the first one, each down to its
/// minimum, then the last and the first one down to 3 columns.
fn fit(columns: &mut [usize], spared: &[(usize, usize)], room: usize) {
    let all = |columns: &[usize]| columns.iter().sum::<usize>() + GAP * columns.len().saturating_sub(1);
    let last = columns.len().saturating_sub(1);
    let usual = [(last, MIN_WIDTH), (0, MIN_WIDTH), (last, 3), (0, 3)];
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
        let room = all.saturating_sub(width(&self.lead)).max(MIN_WIDTH);
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
