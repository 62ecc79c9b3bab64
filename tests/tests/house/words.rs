//! Checks that comments are plain English: the turns of phrase that [`RULES`] lists are rejected.

use std::path::Path;
use std::process::Command;

use ra_ap_rustc_lexer::{FrontmatterAllowed, TokenKind, tokenize};
use regex::Regex;

/// A rejected turn of phrase.
struct Rule {
    /// Regular expression for the text of a comment; `^` is its beginning.
    rejects: &'static str,
    /// Advice for the author.
    instead: &'static str,
}

const RULES: [Rule; 5] = [
    Rule {
        rejects: r"^(What|Who|Whoever|Whatever) (is|are|was|were|has|have|had|does|do|did|may|can|must)\b",
        instead: "begin with a noun or a verb: `Dependencies that may be linked`",
    },
    Rule {
        rejects: r"^That (a|an|the|no|all|every) ",
        instead: "begin with a noun or a verb: `Checks that a pod is deleted once`",
    },
    Rule {
        rejects: r"\b(is|are|was|were) (not )?to be [a-z]+",
        instead: "say who must do it: `The caller deletes the run`",
    },
    Rule {
        rejects: r"\b[Tt]old\b",
        instead: "use the field's verb: an event is emitted, an error is reported, a value is passed",
    },
    Rule {
        rejects: r"\bgo(es)? on by (itself|themselves)\b",
        instead: "say what happens next: `Continues when the pod is ready`",
    },
];

/// Comment: the number of its first line, and its text in one line, without quoted code.
type Comment = (usize, String);

/// Rules with their compiled expressions.
fn compiled() -> Vec<(Regex, &'static str)> {
    RULES
        .iter()
        .map(|rule| (Regex::new(rule.rejects).unwrap(), rule.instead))
        .collect()
}

fn violations(comments: &[Comment], rules: &[(Regex, &str)]) -> Vec<String> {
    let mut found = Vec::new();
    for (line, text) in comments {
        for (rejects, instead) in rules {
            if let Some(phrase) = rejects.find(text) {
                found.push(format!("{line}: {:?}: {instead}", phrase.as_str()));
            }
        }
    }
    found
}

/// Comments of a file. Adjacent lines are one comment.
#[derive(Default)]
struct Comments<'a> {
    found: Vec<(usize, Vec<&'a str>)>,
    /// Whether the next line belongs to the last comment.
    open: bool,
}

impl<'a> Comments<'a> {
    fn add(&mut self, line: usize, words: &'a str) {
        match self.found.last_mut().filter(|_| self.open) {
            Some((_, lines)) => lines.push(words),
            None => self.found.push((line, vec![words])),
        }
        self.open = true;
    }

    fn joined(self) -> Vec<Comment> {
        let joined = |(line, lines): (usize, Vec<&str>)| (line, joined(&lines));
        self.found.into_iter().map(joined).collect()
    }
}

/// Joins the lines of a comment, without fenced code and code spans.
fn joined(lines: &[&str]) -> String {
    let mut fenced = false;
    let mut text = String::new();
    for line in lines {
        if line.starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            text += line;
            text.push(' ');
        }
    }
    // Every second part is code.
    text.split('`').step_by(2).collect::<Vec<_>>().join("``")
}

/// Comments of Rust code.
fn of_rust(source: &str) -> Vec<Comment> {
    let mut comments = Comments::default();
    let (mut at, mut line) = (0, 1);
    for token in tokenize(source, FrontmatterAllowed::No) {
        let text = &source[at..at + token.len as usize];
        match token.kind {
            TokenKind::LineComment { .. } => {
                comments.add(line, text.trim_start_matches(['/', '!']).trim());
            }
            TokenKind::BlockComment { .. } => {
                comments.open = false;
                for part in text.lines() {
                    comments.add(line, part.trim_matches(['/', '*', '!', ' ']));
                }
                comments.open = false;
            }
            TokenKind::Whitespace => comments.open &= text.matches('\n').count() < 2,
            _ => comments.open = false,
        }
        at += text.len();
        line += text.matches('\n').count();
    }
    comments.joined()
}

/// Comments of TOML, YAML and shell: whole lines that begin with `#`.
fn of_hashes(source: &str) -> Vec<Comment> {
    let mut comments = Comments::default();
    for (index, line) in source.lines().enumerate() {
        match line.trim_start().strip_prefix('#') {
            Some(words) => comments.add(index + 1, words.trim()),
            None => comments.open = false,
        }
    }
    comments.joined()
}

#[test]
fn rules_reject_what_they_describe_and_nothing_else() {
    let source = r#"
        /// What is not recorded.
        fn a() {} // Who has led takes it again.
        /* That the pod is gone. */
        // A pod that is
        // to be deleted, as the caller was told.
        let s = "// What is told is to be kept";
        /// Says `told`, and nothing that is not to be
        /// ```
        /// // What is in an example
        /// ```
        /// read; it goes on by itself.
        // Time at which the pod was asked to stop. Whether it has stopped is unknown.
    "#;
    let lines: Vec<String> = violations(&of_rust(source), &compiled())
        .iter()
        .map(|found| found.split(": ").take(2).collect::<Vec<_>>().join(" "))
        .collect();
    let expected = [
        r#"2 "What is""#,
        r#"3 "Who has""#,
        r#"4 "That the ""#,
        r#"5 "is to be deleted""#,
        r#"5 "told""#,
        r#"8 "is not to be read""#,
        r#"8 "goes on by itself""#,
    ];
    assert_eq!(lines, expected);
    let hashes = of_hashes("# What is linked.\na: b # told\n  # Ports that are\n  # to be read.\n");
    assert_eq!(violations(&hashes, &compiled()).len(), 2, "{hashes:?}");
}

#[test]
fn comments_are_plain() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(&root)
        .output()
        .unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let rules = compiled();
    let (mut count, mut found) = (0, Vec::new());
    for path in listed.lines() {
        let extension = Path::new(path).extension().and_then(|end| end.to_str());
        let read: fn(&str) -> Vec<Comment> = match extension {
            Some("rs") => of_rust,
            Some("toml" | "yaml" | "yml" | "sh" | "py") => of_hashes,
            None if path.starts_with(".ci/") || path == "Dockerfile" => of_hashes,
            _ => continue,
        };
        let file = root.join(path);
        if !file.exists() {
            // Deleted, but still in the index.
            continue;
        }
        let comments = read(&std::fs::read_to_string(file).unwrap());
        count += comments.len();
        found.extend(
            violations(&comments, &rules)
                .iter()
                .map(|words| format!("{path}:{words}")),
        );
    }
    assert!(count > 5_000, "only {count} comments were found");
    assert!(
        found.is_empty(),
        "comments to rewrite, see CONTRIBUTING.md:\n{}",
        found.join("\n")
    );
}
