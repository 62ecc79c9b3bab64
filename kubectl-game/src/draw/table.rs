//! Columns of text, each as wide as its widest cell. If the width is too small, expendable columns are dropped or cut
//! first, then the last one is cut, and only then the names.

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

/// Step that makes a table narrower, for the column with this header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Narrow {
    /// Drops the column.
    Drop(&'static str),
    /// Cuts the column, down to a minimum width.
    Cut(&'static str, usize),
}

/// Renders a table as lines.
pub(crate) fn lines(header: &[&str], rows: &[Row], style: Style) -> Vec<String> {
    fitted(header, rows, &[], style)
}

/// Renders a table that is narrowed by these steps, in order, until it fits. If it still does not, the last column is cut,
/// and then the column NAME, or the first. If the style forbids cuts, only the steps before the first cut are taken.
pub(crate) fn fitted(header: &[&str], rows: &[Row], steps: &[Narrow], style: Style) -> Vec<String> {
    let cells: Vec<Cell> = header.iter().map(|name| Cell::new(*name)).collect();
    let columns = columns(header, &cells, rows, steps, style);
    let drawn = |cells: &[Cell]| {
        let shown = cells.iter().zip(&columns);
        let mut shown: Vec<(&Cell, usize)> = shown
            .filter_map(|(cell, column)| Some((cell, (*column)?)))
            .collect();
        while shown.len() > 1 && shown.last().is_some_and(|(cell, _)| cell.text.is_empty()) {
            shown.pop();
        }
        let last = shown.len().saturating_sub(1);
        let shown = shown.into_iter().enumerate();
        let cells: Vec<String> = shown
            .map(|(place, (cell, column))| cell.drawn(column, place == last, style))
            .collect();
        cells.join(&" ".repeat(GAP))
    };
    let mut lines = Vec::new();
    if !header.is_empty() {
        lines.push(style.paint.bold(&drawn(&cells)));
    }
    for row in rows {
        lines.push(drawn(&row.cells));
        lines.extend(row.notes.iter().flat_map(|note| note.lines(style)));
    }
    lines
}

/// Returns the width of each column; `None` if it is dropped.
fn columns(
    header: &[&str],
    cells: &[Cell],
    rows: &[Row],
    steps: &[Narrow],
    style: Style,
) -> Vec<Option<usize>> {
    let count = rows.iter().map(|row| row.cells.len()).max().unwrap_or_default();
    let mut widths: Vec<usize> = cells.iter().map(Cell::width).collect();
    widths.resize(count.max(header.len()), 0);
    for row in rows {
        for (column, cell) in widths.iter_mut().zip(&row.cells) {
            *column = (*column).max(cell.width());
        }
    }
    let last = widths.len().saturating_sub(1);
    let mut columns = Columns {
        widths: widths.into_iter().map(Some).collect(),
        room: style.width.unwrap_or(usize::MAX),
    };
    let place = |name: &str| header.iter().position(|known| *known == name);
    for step in steps {
        match step {
            Narrow::Drop(name) => place(name).into_iter().for_each(|place| columns.drop(place)),
            Narrow::Cut(..) if !style.cuts => return columns.widths,
            Narrow::Cut(name, minimum) => place(name)
                .into_iter()
                .for_each(|place| columns.cut(place, *minimum)),
        }
    }
    if style.cuts {
        // A name that is cut cannot be copied.
        let name = place("NAME").unwrap_or_default();
        for (place, least) in [(last, MIN_WIDTH), (last, 3), (name, MIN_WIDTH), (name, 3)] {
            columns.cut(place, least);
        }
    }
    columns.widths
}

/// Columns of a table, and the width that it may have.
struct Columns {
    /// Width of each column; `None` if it is dropped.
    widths: Vec<Option<usize>>,
    room: usize,
}

impl Columns {
    /// Returns the number of columns of the terminal by which the table is too wide.
    fn surplus(&self) -> usize {
        let shown: Vec<usize> = self.widths.iter().flatten().copied().collect();
        let gaps = GAP * shown.len().saturating_sub(1);
        (shown.iter().sum::<usize>() + gaps).saturating_sub(self.room)
    }

    fn drop(&mut self, place: usize) {
        if self.surplus() > 0
            && let Some(column) = self.widths.get_mut(place)
        {
            *column = None;
        }
    }

    fn cut(&mut self, place: usize, least: usize) {
        let surplus = self.surplus();
        if let Some(Some(width)) = self.widths.get_mut(place) {
            *width = width.saturating_sub(surplus).max(least.min(*width));
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
