//! Characters of foreign text that must not reach a terminal, a status or an event: they move the cursor,
//! reverse the text, or hide a part of it.

/// Replaces line ends and control characters by blanks, and removes characters that have no width or that
/// change the direction of text.
pub fn printable(text: &str) -> String {
    text.chars().filter_map(shown).collect()
}

/// Returns whether [`printable`] keeps a character.
pub fn is_printable(c: char) -> bool {
    shown(c) == Some(c)
}

fn shown(c: char) -> Option<char> {
    match c {
        // Line and paragraph separators.
        '\u{2028}' | '\u{2029}' => Some(' '),
        // Marks, embeddings, overrides and isolates of bidirectional text; characters without a width: soft
        // hyphen, joiners, byte order mark, annotations, tags.
        '\u{ad}'
        | '\u{61c}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}' => None,
        c if c.is_control() => Some(' '),
        c => Some(c),
    }
}

#[cfg(test)]
mod tests {
    use super::{is_printable, printable};

    #[test]
    fn nothing_commands_reverses_or_hides() {
        for (text, shown) in [
            ("späť 玩家 🎮", "späť 玩家 🎮"),
            ("a\nb\r\nc\td", "a b  c d"),
            ("\u{1b}[2J\u{7}\0\u{7f}\u{9b}31m", " [2J    31m"),
            ("a\u{85}b\u{2028}c\u{2029}d", "a b c d"),
            (
                "\u{202e}ysub\u{202c}\u{200e}\u{200f}\u{61c}\u{2066}x\u{2069}",
                "ysubx",
            ),
            ("b\u{200b}u\u{200d}s\u{feff}y\u{ad}\u{2060}\u{e0062}", "busy"),
        ] {
            assert_eq!(printable(text), shown, "{text:?}");
            assert!(shown.chars().all(is_printable), "{text:?}");
        }
    }
}
