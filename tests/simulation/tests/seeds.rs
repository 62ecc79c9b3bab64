//! Plays the seeds that run before every change.
//!
//! `PROVE` selects the amount: about 2 million steps when unset, `quick` 10 million, `all` 100 million.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::time::Instant;

use simulation::story::{be_quiet, prove};
use simulation::totals::Totals;

/// Steps of one seed before all faults end.
const STEPS: usize = 2000;

/// Writes the counts for the table of `cargo xtask prove`.
fn tell(totals: &Totals) {
    let Ok(path) = std::env::var("PROVE_ROWS") else {
        return;
    };
    let mut row = "simulation\tboth operators in a world of their own".to_owned();
    for (name, count) in totals.all() {
        write!(row, "\t{name}={count}").unwrap();
    }
    let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
    writeln!(file, "{row}").unwrap();
}

#[test]
fn no_promise_is_broken_in_any_world() {
    let wanted: u64 = match std::env::var("PROVE").as_deref() {
        Ok("all") => 100_000_000,
        Ok("quick") => 10_000_000,
        Ok(number) => number.parse().unwrap(),
        Err(_) => 2_000_000,
    };
    be_quiet();
    let began = Instant::now();
    let mut totals = Totals::default();
    for seed in 0.. {
        match prove(seed, STEPS, true) {
            Ok(played) => totals += played,
            Err(broken) => {
                println!("{broken}");
                // The silenced panic hook would swallow a panic.
                std::process::exit(1);
            }
        }
        // The rarest events happen in one of a hundred worlds.
        let is_complete = totals.all().into_iter().all(|(_, count)| count > 0);
        if totals.steps >= wanted && (is_complete || totals.steps >= 2 * wanted) {
            break;
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    println!("{totals}{seconds:>12.1} seconds");
    tell(&totals);
    let _ = std::panic::take_hook();
    // A count of zero proves nothing.
    let missing: Vec<_> = totals
        .all()
        .into_iter()
        .filter(|(_, count)| *count == 0)
        .collect();
    assert!(
        missing.is_empty() || wanted < 1_000_000,
        "never happened: {missing:?}"
    );
}
