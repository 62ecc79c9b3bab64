#![doc = include_str!("../README.md")]
//!
//! ## Modules
//!
//! | module | job |
//! | --- | --- |
//! | `conditions`, `json_path`, `template`, `duration` | judge one row of their tables |
//! | `report` | counts the verdicts and prints them |

#![expect(clippy::disallowed_methods, reason = "the tables are files")]

mod conditions;
mod duration;
mod json_path;
mod report;
mod template;

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind};
use std::path::{Path, PathBuf};

use serde_json::Value;

use report::Tally;

/// Verdict on one row.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Judged {
    /// Our result equals Go's.
    Same,
    /// Our result differs by this documented rule.
    Documented(&'static str),
    /// Our result equals that of expr 1.17, which the language follows, but the table is from an older
    /// version.
    Newer,
    /// Our result differs, and no rule documents it. The text contains input, expected and actual result.
    Unexplained(String),
    /// We return a verdict or value that Go does not. The text contains input, expected and actual result.
    Unsafe(String),
    /// The row is excluded from the comparison.
    Outside,
    /// The row cannot be parsed, for this reason.
    Malformed(String),
}

/// Judges one row of a table.
type Judge = Box<dyn Fn(&Value) -> Judged>;

/// Names the rule by which strict evaluation closes a row; `None` if it changes nothing. An error describes a
/// change that is not allowed: strict evaluation only turns results into errors.
type StrictChange = Box<dyn Fn(&Value) -> Result<Option<&'static str>, String>>;

/// A comparison table for a language.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    /// Name of the file.
    pub file: &'static str,
    /// Folder of the language.
    pub language: &'static str,
    /// Maximum percentage of compared rows with documented differences.
    pub limit: u32,
    /// Creates the judge of the rows, which may need other files of the table's directory.
    judge: fn(&Path) -> Judge,
    /// Creates the comparison with strict evaluation, where a language has it.
    strict_change: Option<fn(&Path) -> StrictChange>,
}

/// All tables, in the order of the report.
pub const TABLES: [Table; 5] = [
    Table {
        file: "conditions-typed.jsonl",
        language: "expr",
        limit: 4,
        judge: |_| Box::new(|row| conditions::judge(row, false)),
        strict_change: Some(|_| Box::new(conditions::strict_change)),
    },
    Table {
        file: "conditions-text.jsonl",
        language: "expr",
        limit: 4,
        judge: |_| Box::new(|row| conditions::judge(row, true)),
        strict_change: Some(|_| Box::new(conditions::strict_change)),
    },
    Table {
        file: "jsonpath.jsonl",
        language: "json-path",
        limit: 4,
        judge: |dir| {
            let bodies = json_path::Bodies::read(&dir.join("jsonpath-bodies.json"));
            Box::new(move |row| json_path::judge(row, &bodies))
        },
        strict_change: Some(|dir| {
            let bodies = json_path::Bodies::read(&dir.join("jsonpath-bodies.json"));
            Box::new(move |row| json_path::strict_change(row, &bodies))
        }),
    },
    Table {
        file: "template.jsonl",
        language: "placeholder",
        limit: 4,
        judge: |_| Box::new(template::judge),
        strict_change: None,
    },
    Table {
        file: "duration.jsonl",
        language: "go-duration",
        limit: 30,
        judge: |_| Box::new(duration::judge),
        strict_change: None,
    },
];

/// Returns the tables of a language, by the name of its folder.
pub fn tables_of(language: &str) -> impl Iterator<Item = Table> {
    TABLES.into_iter().filter(move |table| table.language == language)
}

/// Result of checking a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// Whether no difference is unexplained or unsafe, and the documented differences are within their limit.
    pub passed: bool,
    /// Number of rows per verdict, and the rows that fail the table.
    pub report: String,
}

impl Table {
    /// Judges every row. The table is `dir/<file>` or, if that does not exist,
    /// `dir/<language>/parity/<file>`. The report contains at most `shown` rows of each failing verdict.
    ///
    /// # Errors
    /// If the file does not exist (`NotFound`) or cannot be read.
    pub fn check(&self, dir: &Path, shown: usize) -> std::io::Result<Checked> {
        let (dir, file) = self.open(dir)?;
        let strict_change = self.strict_change.map(|create| create(&dir));
        let tally = tally(file, &(self.judge)(&dir), strict_change.as_ref())?;
        Ok(Checked {
            passed: tally.passes(self.limit),
            report: tally.render(self.file, self.limit, shown),
        })
    }

    fn open(&self, dir: &Path) -> std::io::Result<(PathBuf, File)> {
        let own = dir.join(self.language).join("parity");
        match File::open(dir.join(self.file)) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let opened = File::open(own.join(self.file));
                // If the file is missing in both places, the error names the first.
                let file = opened.map_err(|in_own| match in_own.kind() {
                    ErrorKind::NotFound => error,
                    _ => in_own,
                })?;
                Ok((own, file))
            }
            opened => Ok((dir.to_owned(), opened?)),
        }
    }
}

fn tally(file: File, judge: &Judge, strict_change: Option<&StrictChange>) -> std::io::Result<Tally> {
    let mut tally = Tally::default();
    for (index, line) in BufReader::new(file).lines().enumerate() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        let place = || format!("line {}", index + 1);
        let row = match serde_json::from_str::<Value>(&line) {
            Ok(row) => row,
            Err(error) => {
                tally.add(&place(), Judged::Malformed(format!("not JSON: {error}")));
                continue;
            }
        };
        let id = text(&row, "id").map_or_else(place, str::to_owned);
        // The original operator answered without calling the library, so the library's result is meaningless.
        let judged = if row.get("not_reached") == Some(&Value::Bool(true)) {
            Judged::Outside
        } else {
            judge(&row)
        };
        if let Some(strict_change) = strict_change
            && judged != Judged::Outside
        {
            tally.add_strict(&id, strict_change(&row));
        }
        tally.add(&id, judged);
    }
    Ok(tally)
}

fn text<'r>(row: &'r Value, field: &str) -> Option<&'r str> {
    row.get(field)?.as_str()
}

/// Formats a difference.
fn difference(input: &str, expected: &str, ours: &str) -> String {
    let cut = |text: &str| {
        let shown: String = text.chars().take(300).collect();
        if shown.len() < text.len() {
            format!("{shown}…")
        } else {
            shown
        }
    };
    format!(
        "{}\n        expected {}\n        ours     {}",
        cut(input),
        cut(expected),
        cut(ours)
    )
}
