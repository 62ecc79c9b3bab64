//! `cargo xtask parity DIR`: how much of what existing manifests mean is kept.
//!
//! Reads the tables row by row, asks each table's judge, counts, and prints. It judges nothing itself: what is the
//! same, what is a documented difference and what is unsafe is in the modules of the languages. Rules of documented
//! differences are stated in `docs/differences.md`.

mod conditions;
mod duration;
mod json_path;
mod report;
mod template;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::Value;

use report::Tally;

/// Arguments of the command.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Directory with the tables (conditions-typed.jsonl, jsonpath.jsonl, …)
    dir: PathBuf,
    /// List every unexplained, unsafe and malformed row, not only the first 20 of a table
    #[arg(long)]
    all: bool,
}

/// What a judge says about one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Judged {
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

struct Table {
    file: &'static str,
    /// Documented differences allowed, in percent of the rows compared.
    limit: u32,
    judge: Judge,
}

fn tables(dir: &Path) -> Vec<Table> {
    let bodies = json_path::Bodies::read(&dir.join("jsonpath-bodies.json"));
    vec![
        Table {
            file: "conditions-typed.jsonl",
            limit: 4,
            judge: Box::new(|row| conditions::judge(row, false)),
        },
        Table {
            file: "conditions-text.jsonl",
            limit: 4,
            judge: Box::new(|row| conditions::judge(row, true)),
        },
        Table {
            file: "jsonpath.jsonl",
            limit: 4,
            judge: Box::new(move |row| json_path::judge(row, &bodies)),
        },
        Table {
            file: "template.jsonl",
            limit: 4,
            judge: Box::new(template::judge),
        },
        Table {
            file: "duration.jsonl",
            limit: 30,
            judge: Box::new(duration::judge),
        },
    ]
}

/// Runs the command. Fails unless every table is within its limits; a directory without any table is an error.
pub(crate) fn run(args: &Args) -> ExitCode {
    let mut found = 0;
    let mut passed = true;
    for table in tables(&args.dir) {
        let path = args.dir.join(table.file);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) => {
                println!("{}: skipped ({error})\n", table.file);
                // A file that is there but cannot be read must not look like one that nobody asked for.
                passed &= error.kind() == std::io::ErrorKind::NotFound;
                continue;
            }
        };
        found += 1;
        let tally = match judge_file(file, &table.judge) {
            Ok(tally) => tally,
            Err(error) => {
                println!("{}: failed to read: {error}\n", table.file);
                passed = false;
                continue;
            }
        };
        println!(
            "{}",
            tally.render(table.file, table.limit, if args.all { usize::MAX } else { 20 })
        );
        passed &= tally.passes(table.limit);
    }
    if found == 0 {
        eprintln!("no table found in {}", args.dir.display());
        return ExitCode::from(2);
    }
    if passed {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn judge_file(file: File, judge: &Judge) -> std::io::Result<Tally> {
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

/// A text field of a row.
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
