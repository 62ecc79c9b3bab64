//! Runs the checks one after the other, each in its own namespace, and prints the results.

use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use test_kit::{RealNode, whole};

use super::checks;
use super::harness::Harness;
use crate::enclosed::Outcome;

/// Timeout of a check on a busy machine.
const PATIENCE: Duration = Duration::from_mins(4);

/// A named check.
pub(super) struct Check {
    /// Expected fact, as a sentence.
    pub(super) name: &'static str,
    /// Function that checks the fact.
    pub(super) run: for<'a> fn(&'a Harness<'a>) -> BoxFuture<'a, Outcome<()>>,
}

/// Builds a [`Check`] from a sentence and the path of an async function.
macro_rules! check {
    ($name:literal, $run:path) => {
        $crate::node_test::suite::Check {
            name: $name,
            run: |harness| Box::pin($run(harness)),
        }
    };
}
pub(super) use check;

/// Returns an error that lists all checks if the text selects none.
pub(super) fn check_selection(only: Option<&str>) -> Outcome<()> {
    let names: Vec<&str> = checks::ALL
        .iter()
        .copied()
        .flatten()
        .map(|check| check.name)
        .collect();
    match only {
        Some(text) if !names.iter().any(|name| name.contains(text)) => {
            Err(format!("no check has {text:?} in its name:\n  {}", names.join("\n  ")).into())
        }
        _ => Ok(()),
    }
}

/// Runs all selected checks; the others count as skipped. Returns whether at least one ran and none failed.
pub(super) async fn play(node: &RealNode, only: Option<&str>) -> bool {
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for check in checks::ALL.iter().copied().flatten() {
        if only.is_some_and(|text| !check.name.contains(text)) {
            skipped += 1;
            continue;
        }
        let started = Instant::now();
        let harness = Harness::new(node).await;
        let outcome = tokio::time::timeout(PATIENCE, (check.run)(&harness)).await;
        let outcome = outcome.unwrap_or_else(|_| Err(format!("not done within {PATIENCE:?}").into()));
        let took = started.elapsed().as_secs_f64();
        match &outcome {
            Ok(()) => {
                passed += 1;
                println!("ok      {took:6.1} s  {}", check.name);
            }
            Err(error) => {
                failed += 1;
                println!("FAILED  {took:6.1} s  {}\n{}", check.name, whole(error.as_ref()));
                harness.last_words();
            }
        }
        for fact in harness.facts() {
            println!("                   {fact}");
        }
    }
    println!("{passed} passed, {failed} failed, {skipped} skipped");
    failed == 0 && passed > 0
}
