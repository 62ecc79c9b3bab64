//! `cargo xtask parity DIR`: measures how well the meaning of existing manifests is preserved.
//!
//! Prints the result of every table in a directory. `languages/parity` decides which rows are equal, which
//! are documented differences and which are unsafe.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::ExitCode;

use language_parity::TABLES;

/// Arguments of the command.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Directory of the tables (conditions-typed.jsonl, jsonpath.jsonl, …), or of the languages
    dir: PathBuf,
    /// List every unexplained, unsafe and malformed row, not only the first 20 per table
    #[arg(long)]
    all: bool,
}

/// Runs the command. Fails unless every table is within its limits; a directory without any table is an error.
pub(crate) fn run(args: &Args) -> ExitCode {
    let shown = if args.all { usize::MAX } else { 20 };
    let mut found = 0;
    let mut passed = true;
    for table in TABLES {
        match table.check(&args.dir, shown) {
            Ok(checked) => {
                found += 1;
                println!("{}", checked.report);
                passed &= checked.passed;
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                println!("{}: skipped ({error})\n", table.file);
            }
            // A file that exists but cannot be read must not be mistaken for a missing one.
            Err(error) => {
                println!("{}: failed to read: {error}\n", table.file);
                found += 1;
                passed = false;
            }
        }
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
