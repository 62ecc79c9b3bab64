//! Display of a changing picture. On a terminal it is redrawn in place on the alternate screen. Only changed
//! lines are written, to avoid flicker, and the last picture remains after the end. Elsewhere each change is
//! printed as a block.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};

use jiff::Timestamp;

use super::Style;
use super::text::cut;
use crate::paint::Paint;

/// Default lines and columns, if a terminal does not report its size.
const DEFAULT_SIZE: (usize, usize) = (24, 80);

/// Display of a changing picture.
pub(crate) struct Screen {
    paint: Paint,
    terminal: bool,
    open: bool,
    shown: Vec<String>,
    size: (usize, usize),
    /// Last picture, complete and without everything that changes only with time.
    last: Vec<String>,
    essence: Option<Vec<String>>,
}

/// Returns the lines and columns of the terminal; `None` without a terminal.
pub(crate) fn size() -> Option<(usize, usize)> {
    if !std::io::stdout().is_terminal() {
        return None;
    }
    let size = terminal_size::terminal_size();
    Some(size.map_or(DEFAULT_SIZE, |(columns, lines)| {
        (lines.0.into(), columns.0.into())
    }))
}

/// Returns the current style for standard output.
pub(crate) fn style(paint: Paint) -> Style {
    let size = size();
    Style {
        paint,
        width: size.map(|(_, columns)| columns),
        height: size.map(|(lines, _)| lines),
        cuts: true,
        now: Some(Timestamp::now()),
    }
}

/// Like [`style`], but for a table that is printed once: its cells are not cut, so that names can be copied.
pub(crate) fn whole(paint: Paint) -> Style {
    Style {
        height: None,
        cuts: false,
        ..style(paint)
    }
}

impl Screen {
    /// Creates a display on standard output.
    pub(crate) fn new(paint: Paint) -> Self {
        Self {
            paint,
            terminal: size().is_some(),
            open: false,
            shown: Vec::new(),
            size: (0, 0),
            last: Vec::new(),
            essence: None,
        }
    }

    /// Shows the picture that `draw` returns for a style.
    pub(crate) fn show(&mut self, draw: impl Fn(Style) -> Vec<String>) -> std::io::Result<()> {
        let style = style(self.paint);
        self.last = draw(style);
        if self.terminal {
            let size = size().unwrap_or(DEFAULT_SIZE);
            let written = self.redraw(size);
            let mut out = std::io::stdout().lock();
            out.write_all(written.as_bytes())?;
            return out.flush();
        }
        let essence = Some(draw(Style { now: None, ..style }));
        if essence == self.essence {
            return Ok(());
        }
        let first = self.essence.is_none();
        self.essence = essence;
        let mut out = std::io::stdout().lock();
        if !first {
            writeln!(out)?;
        }
        for line in &self.last {
            writeln!(out, "{line}")?;
        }
        out.flush()
    }

    /// Returns the output that updates a terminal of this size to the newest picture.
    fn redraw(&mut self, size: (usize, usize)) -> String {
        let mut out = String::new();
        if !self.open {
            // Alternate screen, no cursor, no line wrapping: a wrapped line would stay on the next row until
            // that row changes.
            out.push_str("\x1b[?1049h\x1b[?25l\x1b[?7l");
            self.open = true;
        }
        if self.size != size {
            out.push_str("\x1b[2J");
            self.shown.clear();
            self.size = size;
        }
        let (height, width) = size;
        let mut lines: Vec<String> = self.last.iter().take(height).cloned().collect();
        if self.last.len() > height && height > 0 {
            let hidden = self.last.len() - height + 1;
            lines.truncate(height - 1);
            let words = match hidden {
                1 => "1 more line; enlarge the window to see it".to_owned(),
                _ => format!("{hidden} more lines; enlarge the window to see them"),
            };
            lines.push(self.paint.faint(&cut(&words, width, "")));
        }
        let nothing = String::new();
        for place in 0..lines.len().max(self.shown.len()) {
            let line = lines.get(place).unwrap_or(&nothing);
            if self.shown.get(place) != Some(line) {
                // Erased before it is written: at the last column the cursor stays on the letter, and would erase it.
                let _ = write!(out, "\x1b[{};1H\x1b[K{line}", place + 1);
            }
        }
        self.shown = lines;
        out
    }

    /// Restores the terminal and prints the last picture on it.
    pub(crate) fn close(&mut self) {
        if !self.open {
            return;
        }
        self.open = false;
        let mut out = std::io::stdout().lock();
        let _ = write!(out, "\x1b[?7h\x1b[?25h\x1b[?1049l");
        for line in &self.last {
            let _ = writeln!(out, "{line}");
        }
        let _ = out.flush();
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn screen() -> Screen {
        let mut screen = Screen::new(Paint::PLAIN);
        screen.terminal = true;
        screen
    }

    fn frame(screen: &mut Screen, lines: &[&str], size: (usize, usize)) -> String {
        screen.last = lines.iter().map(|line| (*line).to_owned()).collect();
        let written = screen.redraw(size);
        // Leaves nothing to restore at the end of the test.
        screen.open = true;
        written
    }

    #[test]
    fn only_lines_that_differ_are_written() {
        let mut screen = screen();
        let first = frame(&mut screen, &["a", "b"], (24, 80));
        assert_eq!(
            first,
            "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J\x1b[1;1H\x1b[Ka\x1b[2;1H\x1b[Kb"
        );
        assert_eq!(frame(&mut screen, &["a", "b"], (24, 80)), "");
        assert_eq!(frame(&mut screen, &["a", "c"], (24, 80)), "\x1b[2;1H\x1b[Kc");
        assert_eq!(frame(&mut screen, &["a"], (24, 80)), "\x1b[2;1H\x1b[K");
        screen.open = false;
    }

    #[test]
    fn another_size_draws_all_anew_and_says_what_it_has_no_room_for() {
        let mut screen = screen();
        frame(&mut screen, &["a", "b", "c"], (24, 80));
        assert_eq!(
            frame(&mut screen, &["a", "b", "c"], (2, 80)),
            "\x1b[2J\x1b[1;1H\x1b[Ka\x1b[2;1H\x1b[K2 more lines; enlarge the window to see them"
        );
        screen.open = false;
    }
}
