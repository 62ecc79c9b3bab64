//! Plays any number of seeds: `cargo run -p simulation -- --seeds 0..1000 --steps 2000 [--story] [--all |
//! --short]`.
//!
//! `--all` continues after a broken promise; `--short` only names the first.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::process::ExitCode;
use std::time::Instant;

use simulation::story::{be_quiet, prove};
use simulation::totals::Totals;

fn main() -> ExitCode {
    let (mut seeds, mut steps, mut story, mut goes_on, mut short) = (0..100_u64, 2000, false, false, false);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--seeds" => {
                let text = arguments.next().unwrap_or_default();
                let (from, to) = text.split_once("..").unwrap_or((&text, ""));
                let from = from.parse().unwrap();
                seeds = from..to.parse().unwrap_or(from + 1);
            }
            "--steps" => steps = arguments.next().unwrap_or_default().parse().unwrap(),
            "--story" => story = true,
            "--all" => goes_on = true,
            "--short" => short = true,
            other => {
                eprintln!(
                    "unknown: {other}; usage: simulate [--seeds A..B] [--steps N] [--story] [--all | --short]"
                );
                return ExitCode::FAILURE;
            }
        }
    }
    be_quiet();
    let began = Instant::now();
    let (mut totals, mut broken) = (Totals::default(), 0);
    for seed in seeds {
        match prove(seed, steps, story || !(goes_on || short)) {
            Ok(played) => totals += played,
            Err(found) => {
                broken += 1;
                if goes_on || short {
                    println!(
                        "seed {seed}: {}",
                        found
                            .why
                            .lines()
                            .next()
                            .unwrap_or_default()
                            .chars()
                            .take(300)
                            .collect::<String>()
                    );
                    if goes_on {
                        continue;
                    }
                    return ExitCode::FAILURE;
                }
                println!("{found}");
                return ExitCode::FAILURE;
            }
        }
    }
    println!("{totals}");
    let seconds = began.elapsed().as_secs_f64();
    println!("{seconds:.1} s, {broken} broken");
    if broken == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
