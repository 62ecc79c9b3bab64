//! Two operators both act as the only one. They may query endpoints more often; records stay correct.

use operator_tests::Operator;
use shared_api::Phase;

use crate::{counted, fixture, recorded};

#[tokio::test]
async fn every_slot_is_recorded_once() {
    let fixture = fixture("two").await;
    let env = &fixture.env;
    let other = Operator::start(&fixture.start);
    other.ready().await;
    env.create("run", counted(&env.game.url("/"), 6, "200ms")).await;
    let status = env.settled("run").await;
    let result = &status.metric_results[0];
    assert_eq!(status.phase, Phase::Successful);
    assert_eq!(result.count, 6);
    assert_eq!(result.successful, 6);
    assert_eq!(result.measurements.len(), 6);
    let mut values: Vec<i64> = recorded(&status)
        .iter()
        .map(|value| value.parse().unwrap())
        .collect();
    let in_order = values.clone();
    values.sort_unstable();
    values.dedup();
    assert_eq!(values.len(), 6, "a measurement was recorded twice: {in_order:?}");
    let asked = env.game.counts("/").received;
    assert!((6..=12).contains(&asked), "asked {asked} times");
    let both = [&env.operator, &other];
    let mut conflicts = 0;
    for operator in both {
        conflicts += operator
            .metric("hookgate_hook_status_writes_total", "conflict")
            .await;
    }
    assert!(conflicts > 0, "the two never met: this test showed nothing");
}
