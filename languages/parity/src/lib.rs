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

/// What a judge says about one row.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Judged {
    /// Ours says what Go says.
    Same,
    /// Ours differs by a stated rule, named here.
    Documented(&'static str),
    /// Ours is what expr 1.17 says, which the language follows, and the table compares with an older version.
    Newer,
    /// Ours differs, and no rule says why; the text holds input, expected and ours.
    Unexplained(String),
    /// Ours gives a verdict or value that Go does not; the text holds input, expected and ours.
    Unsafe(String),
    /// The row is not part of the comparison.
    Outside,
    /// The row cannot be read; the text says why.
    Malformed(String),
}

/// Judges one row of a table.
type Judge = Box<dyn Fn(&Value) -> Judged>;

/// A table that this crate can compare a language with.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    /// The file's name.
    pub file: &'static str,
    /// The folder of the language that it is about.
    pub language: &'static str,
    /// Documented differences allowed, in percent of the rows compared.
    pub limit: u32,
    /// Makes the judge of its rows; it may need other files of the table's directory.
    judge: fn(&Path) -> Judge,
}

/// All tables, in the order of the report.
pub const TABLES: [Table; 5] = [
    Table {
        file: "conditions-typed.jsonl",
        language: "expr",
        limit: 4,
        judge: |_| Box::new(|row| conditions::judge(row, false)),
    },
    Table {
        file: "conditions-text.jsonl",
        language: "expr",
        limit: 4,
        judge: |_| Box::new(|row| conditions::judge(row, true)),
    },
    Table {
        file: "jsonpath.jsonl",
        language: "json-path",
        limit: 4,
        judge: |dir| {
            let bodies = json_path::Bodies::read(&dir.join("jsonpath-bodies.json"));
            Box::new(move |row| json_path::judge(row, &bodies))
        },
    },
    Table {
        file: "template.jsonl",
        language: "placeholder",
        limit: 4,
        judge: |_| Box::new(template::judge),
    },
    Table {
        file: "duration.jsonl",
        language: "go-duration",
        limit: 30,
        judge: |_| Box::new(duration::judge),
    },
];

/// The tables of a language, by the name of its folder.
pub fn tables_of(language: &str) -> impl Iterator<Item = Table> {
    TABLES.into_iter().filter(move |table| table.language == language)
}

/// What a table says of a language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// Whether nothing is unexplained or unsafe, and the documented differences are within their limit.
    pub passed: bool,
    /// How many rows there are of each verdict, and rows that fail the table.
    pub report: String,
}

impl Table {
    /// Judges every row. The table is `dir/<file>` or, if that does not exist, `dir/<language>/parity/<file>`; of each
    /// list of rows that fail it, at most `shown` are in the report.
    ///
    /// # Errors
    /// If there is no such file (`NotFound`), or if it cannot be read.
    pub fn check(&self, dir: &Path, shown: usize) -> std::io::Result<Checked> {
        let (dir, file) = self.open(dir)?;
        let tally = tally(file, &(self.judge)(&dir))?;
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
                // What is missing in both places is reported as missing in the first.
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

fn tally(file: File, judge: &Judge) -> std::io::Result<Tally> {
    let mut tally = Tally::default();
    for (index, line) in BufReader::new(file).lines().enumerate() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        let (id, judged) = match serde_json::from_str::<Value>(&line) {
            // The original answered without asking the library, whose verdict therefore means nothing.
            Ok(row) if row.get("not_reached") == Some(&Value::Bool(true)) => (None, Judged::Outside),
            Ok(row) => (text(&row, "id").map(str::to_owned), judge(&row)),
            Err(error) => (None, Judged::Malformed(format!("not JSON: {error}"))),
        };
        tally.add(&id.unwrap_or_else(|| format!("line {}", index + 1)), judged);
    }
    Ok(tally)
}

fn text<'r>(row: &'r Value, field: &str) -> Option<&'r str> {
    row.get(field)?.as_str()
}

/// A judge's words on a difference.
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
