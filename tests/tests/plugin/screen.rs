//! Minimal terminal emulation, enough to read the screen.

/// Letter and its colour: the number of the escape sequence, 0 for none.
pub(crate) type Cell = (char, u8);

/// Line of the screen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Line(pub(crate) Vec<Cell>);

impl Line {
    /// Returns its letters.
    pub(crate) fn text(&self) -> String {
        let text: String = self.0.iter().map(|(letter, _)| letter).collect();
        text.trim_end().to_owned()
    }
}

/// Width of a terminal, from this byte of the output on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Width {
    pub(crate) from: usize,
    pub(crate) columns: usize,
}

/// Returns the screen after this output, on a terminal with these widths. Supports only the escape sequences
/// that the plugin uses: any other fails the test. While lines are not wrapped, the cursor stays on the last column, and
/// the next letter or erasure hits the letter there.
pub(crate) fn screen(text: &str, widths: &[Width]) -> Vec<Line> {
    let mut lines = vec![Line::default()];
    let (mut line, mut column, mut colour) = (0, 0, 0);
    let mut wraps = true;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\x1b' => {
                let Some((sequence, last)) = sequence(&mut letters) else {
                    // The rest has not arrived yet.
                    return lines;
                };
                match (sequence.as_str(), last) {
                    ("?1049", 'h') | ("2", 'J') => lines = vec![Line::default()],
                    ("?1049", 'l') => {
                        lines = vec![Line::default()];
                        (line, column) = (0, 0);
                    }
                    (code, 'm') => colour = code.parse().unwrap_or_else(|_| panic!("{code:?}")),
                    ("?25", 'l' | 'h') => {}
                    ("?7", last) => wraps = last == 'h',
                    (place, 'H') => {
                        let (row, _) = place.split_once(';').unwrap();
                        (line, column) = (row.parse::<usize>().unwrap() - 1, 0);
                    }
                    ("", 'K') => lines.get_mut(line).map_or((), |line| line.0.truncate(column)),
                    other => panic!("{other:?}"),
                }
            }
            '\n' => line += 1,
            '\r' => column = 0,
            letter => {
                lines.resize(lines.len().max(line + 1), Line::default());
                let cells = &mut lines[line].0;
                cells.resize(cells.len().max(column + 1), (' ', 0));
                cells[column] = (letter, colour);
                column += 1;
                let at = text.len() - letters.as_str().len();
                let width = widths.iter().rfind(|width| width.from < at).unwrap();
                if !wraps {
                    column = column.min(width.columns - 1);
                }
            }
        }
    }
    lines
}

/// Parses the rest of an escape sequence: `[`, parameters, a letter.
fn sequence(letters: &mut std::str::Chars<'_>) -> Option<(String, char)> {
    assert_eq!(letters.next()?, '[');
    let mut parameters = String::new();
    loop {
        match letters.next()? {
            last @ ('A'..='Z' | 'a'..='z') => return Some((parameters, last)),
            other => parameters.push(other),
        }
    }
}

#[test]
fn the_last_column_is_erased_by_the_cursor_that_stays_on_it() {
    let widths = [Width { from: 0, columns: 4 }];
    let shown = |text: &str| {
        let lines = screen(&format!("\x1b[?1049h\x1b[?7l\x1b[1;1H{text}"), &widths);
        lines[0].text()
    };
    assert_eq!(shown("abcd"), "abcd");
    assert_eq!(shown("abcd\x1b[K"), "abc");
    assert_eq!(shown("abc\x1b[K"), "abc");
    assert_eq!(shown("abcdef"), "abcf");
    assert_eq!(screen("abcdef", &widths)[0].text(), "abcdef");
    let resized = [widths[0], Width { from: 16, columns: 6 }];
    let lines = screen("\x1b[?7l\x1b[1;1Habcdef\x1b[1;1Habcdef", &resized);
    assert_eq!(lines[0].text(), "abcdef");
}
