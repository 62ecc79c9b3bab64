//! Properties of every run, for all limits and measurements.

use proptest::prelude::*;
use shared_api::Phase;

use super::harness::{Harness, metric, run};

prop_compose! {
    fn any_metric()(
        count in prop::option::of(0..5_i32),
        interval in prop::option::of(prop::sample::select(vec!["100ms", "1s", "5s"])),
        delay in prop::option::of(prop::sample::select(vec!["50ms", "2s"])),
        failure in prop::option::of(-1..3_i32),
        successful in prop::option::of(0..3_i32),
        inconclusive in prop::option::of(0..3_i32),
        error in prop::option::of(0..3_i32),
        streak in prop::option::of(1..3_i32),
    ) -> serde_json::Value {
        serde_json::json!({
            "count": count, "interval": interval, "initialDelay": delay, "failureLimit": failure,
            "successfulLimit": successful, "inconclusiveLimit": inconclusive,
            "consecutiveErrorLimit": error, "consecutiveSuccessfulLimit": streak,
        })
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// For all limits and measurements: no wake-up without progress, final phases stay, a success requires a
    /// measured success of every metric, and a run with a timeout always ends.
    #[test]
    fn every_run_ends_and_success_is_measured(
        metrics in prop::collection::vec(any_metric(), 1..4),
        ordered in any::<bool>(),
        letters in prop::collection::vec("[SFIE]{1,6}", 3),
    ) {
        let names = ["a", "b", "c"];
        let metrics: Vec<_> = metrics.into_iter().zip(names).map(|(extra, name)| metric(name, extra)).collect();
        let policy = if ordered { "Ordered" } else { "Parallel" };
        let spec = run(&metrics, serde_json::json!({ "policy": policy, "timeoutSeconds": 100 }));
        let letters: Vec<&'static str> = letters.into_iter().map(|text| &*text.leak()).collect();
        let script: Vec<_> = names.into_iter().zip(letters).collect();
        let mut harness = Harness::new(spec, &script);
        let mut finals = std::collections::BTreeMap::new();
        for _ in 0..50_000 {
            if !harness.step() {
                break;
            }
            for result in &harness.status.metric_results {
                if result.phase.is_final() {
                    let first = finals.entry(result.name.clone()).or_insert(result.phase);
                    prop_assert_eq!(*first, result.phase, "a final phase changed");
                }
                prop_assert!(result.measurements.len() <= 10);
                prop_assert_eq!(result.count, result.successful + result.failed + result.inconclusive);
            }
        }
        prop_assert!(harness.status.phase.is_final(), "still {:?} at {}", harness.status.phase, harness.now);
        prop_assert!(harness.status.message.is_some() && harness.status.reason.is_some());
        if harness.status.phase == Phase::Successful {
            for result in &harness.status.metric_results {
                prop_assert!(result.successful > 0, "{} never succeeded", result.name);
                prop_assert_eq!(result.phase, Phase::Successful);
            }
        }
    }
}
