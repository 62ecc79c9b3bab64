//! Commands of a console block, with their shown output.

use crate::page::{Block, FOR_THE_TEST};

/// Command, and its output on the page.
#[derive(Debug, PartialEq)]
pub(crate) struct Typed {
    pub(crate) line: usize,
    pub(crate) command: String,
    pub(crate) shown: Vec<String>,
}

/// Line of a hidden block: a command, or an order to the harness.
#[derive(Debug, PartialEq)]
pub(crate) enum Step {
    Type(Typed),
    Order { line: usize, words: String },
}

/// Returns the commands of a block in order. Lines that begin with `! ` are orders to the harness, only in
/// hidden blocks.
pub(crate) fn steps(block: &Block) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut lines = block.text.lines().zip(block.line + 1..).peekable();
    while let Some((text, line)) = lines.next() {
        if let Some(begin) = text.strip_prefix("$ ") {
            let mut command = begin.to_owned();
            while goes_on(&command) {
                let Some((more, _)) = lines.next() else { break };
                command.push('\n');
                command.push_str(more);
            }
            let shown = Vec::new();
            steps.push(Step::Type(Typed { line, command, shown }));
        } else if let Some(words) = text.strip_prefix("! ").filter(|_| block.language == FOR_THE_TEST) {
            let words = words.to_owned();
            steps.push(Step::Order { line, words });
        } else if let Some(Step::Type(typed)) = steps.last_mut() {
            typed.shown.push(text.to_owned());
        } else if !text.trim().is_empty() {
            panic!("line {line}: {text}: neither a command nor its output");
        }
    }
    for step in &mut steps {
        if let Step::Type(typed) = step {
            while typed.shown.last().is_some_and(|line| line.trim().is_empty()) {
                typed.shown.pop();
            }
        }
    }
    steps
}

/// Whether a shell would wait for more: after a backslash, a pipe, or an unfinished loop or here-document.
fn goes_on(command: &str) -> bool {
    if let Some((_, after)) = command.split_once("<<") {
        let (first, rest) = after.split_once('\n').unwrap_or((after, ""));
        let word = first.split_whitespace().next().unwrap_or_default();
        let end = word.trim_matches('\'');
        return !rest.lines().any(|line| line == end);
    }
    let last = command.trim_end();
    if command.starts_with("for ") && !last.ends_with("done") {
        return true;
    }
    last.ends_with('\\') || last.ends_with('|') || last.ends_with("&&")
}

impl Typed {
    /// Whether the command is read-only: the test then repeats it until its output matches the page, like a
    /// reader who waits.
    pub(crate) fn looks(&self) -> bool {
        let words: Vec<&str> = self.command.split_whitespace().take(4).collect();
        match words.as_slice() {
            ["kubectl", "get" | "describe", ..] => !self.command.contains('>'),
            ["kubectl", "game", verb, ..] if matches!(*verb, "get" | "list" | "why" | "history") => true,
            ["kubectl", "game", "hook", "get" | "list"] => true,
            _ => false,
        }
    }
}

#[test]
fn commands_and_what_they_show_are_told_apart() {
    let text = "! players 3\n$ a \\\n  b\nout\n\n$ cat <<'E' | x\n1\nE\nshown\n\n";
    let block = Block {
        line: 10,
        language: FOR_THE_TEST.to_owned(),
        text: text.to_owned(),
    };
    let typed = |line, command: &str, shown: &[&str]| {
        let (command, shown) = (
            command.to_owned(),
            shown.iter().map(|&line| line.to_owned()).collect(),
        );
        Step::Type(Typed { line, command, shown })
    };
    let wanted = [
        Step::Order {
            line: 11,
            words: "players 3".to_owned(),
        },
        typed(12, "a \\\n  b", &["out"]),
        typed(16, "cat <<'E' | x\n1\nE", &["shown"]),
    ];
    assert_eq!(steps(&block), wanted);
}
