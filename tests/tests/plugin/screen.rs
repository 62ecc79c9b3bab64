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

/// Returns the screen after this output. Supports only the escape sequences that the plugin uses: any other
/// fails the test.
pub(crate) fn screen(text: &str) -> Vec<Line> {
    let mut lines = vec![Line::default()];
    let (mut line, mut column, mut colour) = (0, 0, 0);
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
                    ("?25" | "?7", 'l' | 'h') => {}
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
