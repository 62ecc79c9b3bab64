//! Records the amount of work of each proof suite, for the table of `cargo xtask prove`.

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write as _;

use crate::fail;

/// Amount of work, from the variable `PROVE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Sample of each kind, in every test run.
    Sample,
    /// Amount of `cargo xtask prove --quick` (`PROVE=quick`).
    Quick,
    /// Everything (`PROVE=all`).
    All,
}

impl Extent {
    /// Reads the variable.
    ///
    /// # Panics
    /// If it has any other value.
    pub fn asked() -> Self {
        match std::env::var("PROVE").as_deref() {
            Err(_) | Ok("") => Self::Sample,
            Ok("quick") => Self::Quick,
            Ok("all") => Self::All,
            Ok(other) => fail(&format!("PROVE={other}: say quick or all, or do not set it")),
        }
    }

    /// Returns the number for this extent.
    pub fn of(self, sample: u64, quick: u64, all: u64) -> u64 {
        match self {
            Self::Sample => sample,
            Self::Quick => quick,
            Self::All => all,
        }
    }
}

/// Prints the amount of work, and appends it to the file `PROVE_ROWS`, one line each: part, description, and
/// named numbers.
///
/// # Panics
/// If the file cannot be written.
pub fn played(part: &str, what: &str, numbers: &[(&str, &dyn Display)]) {
    let numbers: Vec<String> = numbers
        .iter()
        .map(|(name, number)| format!("{name}={number}"))
        .collect();
    let row = format!("{part}\t{what}\t{}\n", numbers.join("\t"));
    print!("{row}");
    if let Ok(path) = std::env::var("PROVE_ROWS") {
        let file = OpenOptions::new().create(true).append(true).open(&path);
        let written = file.and_then(|mut file| file.write_all(row.as_bytes()));
        written.unwrap_or_else(|error| fail(&format!("{path}: {error}")));
    }
}
