//! `policy`: the order of the metrics, and the effect of a failed one on the others.

use operator_tests::{SOON, assert_ended, at_once, web};
use serde_json::json;
use shared_api::Phase;
use shared_api::hook_run::HookRunStatus;
use test_kit::Answer;

use crate::env;

#[tokio::test]
async fn parallel_metrics_are_measured_at_once_and_stop_together() {
    let env = env("policy").await;
    env.game.on("/slow", Answer::never());
    env.game.on("/steady", Answer::json(json!({ "age": 45 })));
    let slow = web("slow", &env.game.url("/slow"), json!({}));
    let steady = web(
        "steady",
        &env.game.url("/steady"),
        json!({
            "interval": "50ms", "successCondition": "asInt(result) > 30"
        }),
    );
    env.create("run", json!({ "policy": "Parallel", "metrics": [slow, steady] }))
        .await;
    env.game.await_in_flight("/slow", 1, SOON).await.unwrap();
    env.game.await_requests("/steady", 3, SOON).await.unwrap();
    env.game.on("/steady", Answer::json(json!({ "age": 5 })));
    let status = env.settled("run").await;
    assert_eq!(
        outcome(&status),
        [("slow", Phase::Inconclusive), ("steady", Phase::Failed)]
    );
    assert_eq!(
        status.metric_results[0].message.as_deref(),
        Some("stopped because metric steady is Failed")
    );
    assert_eq!(status.phase, Phase::Failed);
    let message = status.message.unwrap();
    assert!(
        message.starts_with("metric steady Failed: \"5\" does not satisfy"),
        "{message}"
    );
    env.game.await_cancelled("/slow", 1, SOON).await.unwrap();
    assert_eq!(env.game.counts("/slow").received, 1);
}

#[tokio::test]
async fn results_stand_in_the_order_of_the_spec() {
    let env = env("policy").await;
    env.game.on("/late", Answer::json(json!({ "age": 1 })));
    env.game.on("/early", Answer::json(json!({ "age": 2 })));
    let late = web("late", &env.game.url("/late"), json!({ "initialDelay": "300ms" }));
    let early = web("early", &env.game.url("/early"), json!({}));
    env.create("run", json!({ "metrics": [late, early] })).await;
    let status = env.settled("run").await;
    assert_eq!(
        outcome(&status),
        [("late", Phase::Successful), ("early", Phase::Successful)]
    );
    let requests = env.game.all_requests();
    assert_eq!(
        requests
            .iter()
            .map(|request| request.path.as_str())
            .collect::<Vec<_>>(),
        ["/early", "/late"]
    );
}

#[tokio::test]
async fn ordered_metrics_wait_for_the_success_of_the_one_before() {
    let env = env("policy").await;
    env.game.on("/first", Answer::json(json!({ "age": 45 })));
    env.game.on("/second", Answer::json(json!({ "age": 45 })));
    let first = web(
        "first",
        &env.game.url("/first"),
        json!({ "count": 2, "interval": "100ms" }),
    );
    let second = web("second", &env.game.url("/second"), json!({}));
    env.create("run", json!({ "policy": "Ordered", "metrics": [first, second] }))
        .await;
    let status = env.settled("run").await;
    assert_eq!(
        outcome(&status),
        [("first", Phase::Successful), ("second", Phase::Successful)]
    );
    let end_of_first = status.metric_results[0].measurements[1].finished_at;
    assert!(
        status.metric_results[1].measurements[0].started_at >= end_of_first,
        "{status:?}"
    );
    let requests = env.game.all_requests();
    let paths: Vec<&str> = requests.iter().map(|request| request.path.as_str()).collect();
    assert_eq!(paths, ["/first", "/first", "/second"]);
}

#[tokio::test]
async fn after_a_failure_the_ordered_rest_is_never_asked() {
    let env = env("policy").await;
    env.game.otherwise(Answer::json(json!({ "age": 5 })));
    let first = web(
        "first",
        &env.game.url("/first"),
        json!({ "successCondition": "asInt(result) > 30" }),
    );
    let rest = ["second", "third"].map(|name| web(name, &env.game.url(&format!("/{name}")), json!({})));
    let [second, third] = rest;
    env.create(
        "run",
        json!({ "policy": "Ordered", "metrics": [first, second, third] }),
    )
    .await;
    let status = env.settled("run").await;
    let (failed, inconclusive) = (Phase::Failed, Phase::Inconclusive);
    assert_eq!(
        outcome(&status),
        [
            ("first", failed),
            ("second", inconclusive),
            ("third", inconclusive)
        ]
    );
    for stopped in &status.metric_results[1..] {
        assert_eq!(
            stopped.message.as_deref(),
            Some("stopped because metric first is Failed")
        );
        assert!(stopped.measurements.is_empty());
    }
    assert_ended(&status, Phase::Failed, "FailureLimitExceeded");
    assert_eq!(env.game.all_requests().len(), 1);
}

#[tokio::test]
async fn a_metric_in_its_initial_delay_does_not_hold_up_the_end() {
    let env = env("policy").await;
    env.game.on("/", Answer::status(503));
    let waiting = web(
        "waiting",
        &env.game.url("/waiting"),
        json!({ "initialDelay": "1h" }),
    );
    let broken = at_once(web("broken", &env.game.url("/"), json!({})));
    env.create("run", json!({ "metrics": [waiting, broken] })).await;
    let status = env.settled("run").await;
    assert_eq!(
        outcome(&status),
        [("waiting", Phase::Inconclusive), ("broken", Phase::Error)]
    );
    assert_eq!(
        status.metric_results[0].message.as_deref(),
        Some("stopped because metric broken is Error")
    );
    assert_ended(&status, Phase::Error, "ErrorLimitExceeded");
    assert_eq!(env.game.counts("/waiting").received, 0);
}

fn outcome(status: &HookRunStatus) -> Vec<(&str, Phase)> {
    status
        .metric_results
        .iter()
        .map(|result| (result.name.as_str(), result.phase))
        .collect()
}
