//! Measuring, truncating and wrapping text. Player names and values may contain characters that are two
//! columns wide.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Returns the width of a text on a terminal, in columns.
pub(crate) fn width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// Makes text printable on one line, because values come from untrusted sources.
pub(crate) fn clean(text: &str) -> String {
    redact::printable(text)
}

/// Makes each line of a text printable.
pub(crate) fn clean_lines(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(clean).collect();
    lines.join("\n")
}

/// Truncates text to a number of columns, and marks a truncation.
pub(crate) fn cut(text: &str, columns: usize, mark: &str) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let room = columns.saturating_sub(width(mark));
    let mut taken = 0;
    let mut kept = String::new();
    for letter in text.chars() {
        taken += letter.width().unwrap_or(0);
        if taken > room {
            break;
        }
        kept.push(letter);
    }
    let mark: String = mark.chars().take(columns).collect();
    kept + &mark
}

/// Pads text with spaces.
pub(crate) fn pad(text: &str, columns: usize) -> String {
    let missing = columns.saturating_sub(width(text));
    format!("{text}{}", " ".repeat(missing))
}

/// Wraps text at spaces into lines of at most `columns`. A longer word is broken.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let mut rest = word;
        let with_blank = usize::from(!line.is_empty());
        if !line.is_empty() && width(&line) + with_blank + width(rest) > columns {
            lines.push(std::mem::take(&mut line));
        }
        while width(rest) > columns {
            let head = cut(rest, columns, "");
            let (_, tail) = rest.split_at(head.len());
            if head.is_empty() {
                break;
            }
            lines.push(head);
            rest = tail;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(rest);
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

/// Wraps a command at spaces into lines of at most `columns`, if its words are short enough. Each line but
/// the last ends in a backslash, so that a shell accepts the command.
pub(crate) fn command(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        // Reserves room for the prefix and the backslash.
        match lines.last_mut() {
            Some(line) if width(line) + 1 + width(word) + 2 <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            Some(line) => {
                line.push_str(" \\");
                lines.push(format!("    {word}"));
            }
            None => lines.push(format!("  {word}")),
        }
    }
    lines
}

/// Adds the purpose of a command to its lines: as a comment of the shell at the end of the only line, or else on lines
/// of its own.
pub(crate) fn with_purpose(mut lines: Vec<String>, purpose: &str, columns: usize) -> Vec<String> {
    const LEAD: &str = "    # ";
    if purpose.is_empty() {
        return lines;
    }
    if let [line] = lines.as_mut_slice() {
        let comment = format!("  # {purpose}");
        if width(line) + width(&comment) <= columns {
            line.push_str(&comment);
            return lines;
        }
    }
    let comments = wrap(purpose, columns.saturating_sub(LEAD.len()));
    lines.extend(comments.into_iter().map(|line| format!("{LEAD}{line}")));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_letters_count_twice() {
        assert_eq!(width("玩家3"), 5);
        assert_eq!(cut("玩家玩家", 5, "…"), "玩家…");
        assert_eq!(pad("玩", 4), "玩  ");
    }

    #[test]
    fn text_is_broken_at_blanks_and_long_words_where_they_must_be() {
        assert_eq!(wrap("a bb  ccc dddddd", 4), ["a bb", "ccc", "dddd", "dd"]);
        assert_eq!(wrap("", 4), Vec::<String>::new());
        assert_eq!(wrap("玩家玩家", 3), ["玩", "家", "玩", "家"]);
    }

    #[test]
    fn a_broken_command_is_one_for_the_shell() {
        assert_eq!(
            command("kubectl game get arena -w", 40),
            ["  kubectl game get arena -w"]
        );
        assert_eq!(
            command("kubectl game get arena -n games", 20),
            ["  kubectl game get \\", "    arena -n games"]
        );
    }

    #[test]
    fn a_purpose_is_a_comment_beside_or_below_its_command() {
        let lines = |purpose: &str, columns: usize| {
            let command = command("kubectl game retry arena", columns);
            with_purpose(command, purpose, columns)
        };
        assert_eq!(lines("", 80), ["  kubectl game retry arena"]);
        assert_eq!(
            lines("once it answers", 80),
            ["  kubectl game retry arena  # once it answers"]
        );
        assert_eq!(
            lines("once it responds in time", 30),
            ["  kubectl game retry arena", "    # once it responds in time"]
        );
        assert_eq!(
            lines("once it answers", 20),
            [
                "  kubectl game \\",
                "    retry arena",
                "    # once it",
                "    # answers"
            ]
        );
    }

    #[test]
    fn a_value_cannot_command_the_terminal() {
        assert_eq!(clean("a\x1b[2Jb\nc\u{202e}d"), "a [2Jb cd");
    }
}
