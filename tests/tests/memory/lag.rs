//! Time from the moment at which the API server has stored a HookRun to the request at its endpoint.

use std::time::{Duration, Instant};

use operator_tests::SOON;
use operator_tests::proof::played;
use serde_json::json;

use crate::world::World;

/// HookRuns of one sample.
const RUNS: usize = 10;
/// Time that the specs of another tenant may add.
const ADDED: Duration = Duration::from_millis(if cfg!(debug_assertions) { 750 } else { 250 });

/// Times of a sample.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lag {
    median: Duration,
    slowest: Duration,
}

impl World<'_> {
    /// Creates small runs of another tenant, one after another.
    pub(crate) async fn lag(&self) -> Lag {
        let mut all = Vec::new();
        for _ in 0..RUNS {
            let name = self.new_name("quick");
            let path = format!("/{name}");
            self.create_run(&name, &path, json!({})).await;
            let stored = Instant::now();
            let asked = self.server.await_requests(&path, 1, SOON).await.unwrap();
            all.push(asked[0].at.saturating_duration_since(stored));
        }
        all.sort();
        Lag {
            median: all[RUNS / 2],
            slowest: all[RUNS - 1],
        }
    }

    /// Checks that runs of another tenant are measured at once, as they were before there were large objects.
    pub(crate) async fn is_on_time(&self, before: Lag, about: &str) {
        let beside = self.lag().await;
        report(before, beside, about);
        assert!(
            beside.slowest < before.slowest + ADDED,
            "{about}: {beside:?} beside them, {before:?} without them"
        );
    }
}

/// Prints two samples.
pub(crate) fn report(before: Lag, beside: Lag, about: &str) {
    played(
        "fairness",
        &format!("runs of another tenant, {about}"),
        &[
            ("runs", &RUNS),
            (
                "ms to the question in the median before",
                &before.median.as_millis(),
            ),
            ("ms to the slowest one before", &before.slowest.as_millis()),
            ("ms in the median beside them", &beside.median.as_millis()),
            ("ms to the slowest one beside them", &beside.slowest.as_millis()),
        ],
    );
}
