//! `cargo xtask prove`: runs all suites that try to break the operators' guarantees, and prints a table of
//! their counts.
//!
//! Each part is a test program that also runs with `cargo test`, there on a sample. This file runs them in
//! sequence, prints their progress and collects their counts. The parts themselves decide whether a guarantee
//! was violated.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Runs all fault tests, and fails if a guarantee was violated.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Play fewer cases in each part
    #[arg(long)]
    quick: bool,
    /// Run only these parts; separated by commas
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
}

struct Part {
    name: &'static str,
    what: &'static str,
    /// Arguments of cargo. They select the whole workspace, as with `cargo test`; for a part of it, crates
    /// would be recompiled.
    arguments: &'static [&'static str],
}

const PARTS: [Part; 6] = [
    Part {
        name: "simulation",
        what: "both operators' decisions in a world of their own",
        arguments: &["test", "--locked", "--workspace", "--test", "seeds"],
    },
    Part {
        name: "mutants",
        what: "bugs that are put in on purpose, and must be found",
        arguments: &["xtask", "mutants"],
    },
    Part {
        name: "rights",
        what: "every right is needed, and no other",
        arguments: &["test", "--locked", "--workspace", "--test", "rights"],
    },
    Part {
        name: "fairness",
        what: "a crowd holds up nobody else",
        arguments: &["test", "--locked", "--workspace", "--test", "fairness"],
    },
    Part {
        name: "storm",
        what: "faults of every kind between the operators and the API server, and two leaders",
        arguments: &["test", "--locked", "--workspace", "--test", "storm"],
    },
    Part {
        name: "crash",
        what: "each operator dies before and after each of its writes",
        arguments: &["test", "--locked", "--workspace", "--test", "crash"],
    },
];

pub(crate) fn run(args: &Args) -> ExitCode {
    match prove(args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("prove: {error}");
            ExitCode::from(2)
        }
    }
}

fn prove(args: &Args) -> Result<bool, String> {
    if let Some(unknown) = args
        .only
        .iter()
        .find(|name| PARTS.iter().all(|part| part.name != **name))
    {
        let names: Vec<&str> = PARTS.iter().map(|part| part.name).collect();
        return Err(format!("--only {unknown}: there are {}", names.join(", ")));
    }
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/prove");
    fs::create_dir_all(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let rows = directory.join("rows.tsv");
    File::create(&rows).map_err(|error| format!("{}: {error}", rows.display()))?;
    let mut ends = Vec::new();
    let chosen = PARTS
        .iter()
        .filter(|part| args.only.is_empty() || args.only.iter().any(|name| name == part.name));
    for part in chosen {
        ends.push(part.play(args.quick, &directory, &rows)?);
    }
    let table = table(&fs::read_to_string(&rows).map_err(|error| format!("{}: {error}", rows.display()))?);
    println!("\n{table}");
    let file = directory.join("table.md");
    fs::write(&file, table).map_err(|error| format!("{}: {error}", file.display()))?;
    for end in &ends {
        println!("{}", end.line());
    }
    let failed = ends.iter().filter(|end| !end.good).count();
    println!("\n{} parts proven, {failed} failed", ends.len() - failed);
    Ok(failed == 0)
}

/// Outcome of a part.
struct End {
    part: &'static Part,
    good: bool,
    took: Duration,
    log: PathBuf,
}

impl End {
    fn line(&self) -> String {
        let (name, seconds) = (self.part.name, self.took.as_secs());
        if self.good {
            format!("{name}: held, {seconds} s")
        } else {
            format!("{name}: BROKEN after {seconds} s; see {}", self.log.display())
        }
    }
}

impl Part {
    fn play(&'static self, quick: bool, directory: &Path, rows: &Path) -> Result<End, String> {
        print!("{}: {} ... ", self.name, self.what);
        std::io::stdout().flush().map_err(|error| error.to_string())?;
        let log = directory.join(format!("{}.log", self.name));
        let file = File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
        let both = file.try_clone().map_err(|error| error.to_string())?;
        let mut command = test_kit::assets::cargo();
        command.args(self.arguments);
        if self.arguments.first() == Some(&"xtask") {
            command.args(quick.then_some("--quick"));
        } else {
            command.args(["--", "--nocapture"]);
        }
        command
            .env("PROVE", if quick { "quick" } else { "all" })
            .env("PROVE_ROWS", rows)
            .stdout(file)
            .stderr(both);
        let begun = Instant::now();
        let status = command.status().map_err(|error| format!("cargo: {error}"))?;
        let end = End {
            part: self,
            good: status.success(),
            took: begun.elapsed(),
            log,
        };
        println!(
            "{} ({} s)",
            if end.good { "held" } else { "BROKEN" },
            end.took.as_secs()
        );
        if !end.good {
            let text = fs::read_to_string(&end.log).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            println!(
                "{}",
                lines
                    .get(lines.len().saturating_sub(30)..)
                    .unwrap_or_default()
                    .join("\n")
            );
        }
        Ok(end)
    }
}

/// Formats the rows reported by the parts as Markdown, aligned for a terminal.
fn table(rows: &str) -> String {
    let mut cells: Vec<[&str; 4]> = vec![["part", "what was played", "counted", "number"]];
    for row in rows.lines() {
        let mut fields = row.split('\t');
        let (part, what) = (
            fields.next().unwrap_or_default(),
            fields.next().unwrap_or_default(),
        );
        for (place, field) in fields.enumerate() {
            let (name, number) = field.rsplit_once('=').unwrap_or((field, ""));
            let (part, what) = if place == 0 { (part, what) } else { ("", "") };
            cells.push([part, what, name, number]);
        }
    }
    let width = |column: usize| {
        let texts = cells.iter().filter_map(|row| row.get(column));
        texts.map(|text| text.chars().count()).max().unwrap_or_default()
    };
    let [first, second, third, fourth] = [0, 1, 2, 3].map(width);
    let line = |[part, what, name, count]: [&str; 4]| {
        format!("| {part:<first$} | {what:<second$} | {name:<third$} | {count:>fourth$} |\n")
    };
    let rule = [first, second, third, fourth].map(|width| "-".repeat(width));
    let mut lines: Vec<String> = cells.iter().map(|row| line(*row)).collect();
    lines.insert(1, line(rule.each_ref().map(String::as_str)));
    lines.concat()
}
