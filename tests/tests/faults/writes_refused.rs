//! The API server refuses a write, or reports an error although the write took effect.

use operator_tests::web;
use serde_json::json;
use shared_api::Phase;
use test_kit::api_proxy::{Failure, Matcher, Moment};

use crate::{SOON, counted, fixture, recorded, status_writes};

#[tokio::test]
async fn nothing_is_lost_and_nothing_is_measured_twice() {
    let failures = [
        Failure::refused(409),
        Failure::refused(429),
        Failure::refused(500),
        Failure::after_effect(503),
        Failure::after_effect(504),
        Failure::hang_up(Moment::BeforeForwarding),
        Failure::hang_up(Moment::AfterForwarding),
    ];
    let fixture = fixture("refused").await;
    let env = &fixture.env;
    for (number, failure) in failures.into_iter().enumerate() {
        let (name, path) = (format!("run-{number}"), format!("/{number}"));
        env.game.on(&path, crate::numbered());
        let fault = fixture.proxy.fail_next(status_writes(&name), failure, 2);
        env.create(&name, counted(&env.game.url(&path), 3, "100ms")).await;
        let status = env.verdict(&name).await;
        assert_eq!(status.phase, Phase::Successful, "{failure:?}");
        assert_eq!(recorded(&status), ["1", "2", "3"], "{failure:?}");
        assert_eq!(fault.hits(), 2, "{failure:?}");
        assert_eq!(env.game.counts(&path).received, 3, "{failure:?}");
    }
}

#[tokio::test]
async fn an_end_whose_write_was_answered_by_nobody_is_announced_all_the_same() {
    let fixture = fixture("refused").await;
    let env = &fixture.env;
    let failure = Failure::hang_up(Moment::AfterForwarding);
    let fault = fixture.proxy.fail_next(status_writes("run"), failure, 1);
    let never = json!({ "successCondition": "asInt(result) > 100" });
    env.create(
        "run",
        json!({ "metrics": [web("webtest", &env.game.url("/"), never)] }),
    )
    .await;
    let status = env.settled("run").await;
    assert_eq!((status.phase, fault.hits()), (Phase::Failed, 1));
    env.warned("run", "FailureLimitExceeded Failed: metric webtest Failed")
        .await;
    let completed = env.metric("hookgate_hook_runs_completed_total", "Failed").await;
    assert_eq!(completed, 1);
}

#[tokio::test]
async fn an_invalid_template_is_announced_though_the_watch_is_faster_than_the_answer() {
    let fixture = fixture("refused").await;
    let env = &fixture.env;
    let writes = Matcher::new("PATCH", "/hooktemplates/test/status");
    let fault = fixture.proxy.stall_next_answer(writes);
    let metric = web("webtest", &env.game.url("/"), json!({ "interval": "1 minute" }));
    env.create_template("test", json!({ "metrics": [metric] })).await;
    fault.await_hits(1, SOON).await.unwrap();
    env.warned("test", "SpecInvalid metrics[0].interval: ").await;
    fault.release();
}

#[tokio::test]
async fn what_people_are_told_is_sent_again_when_the_api_server_does_not_take_it() {
    let fixture = fixture("refused").await;
    let env = &fixture.env;
    let failures = [
        Failure::refused(429),
        Failure::refused(500),
        Failure::hang_up(Moment::BeforeForwarding),
    ];
    for (number, failure) in failures.into_iter().enumerate() {
        let name = format!("test-{number}");
        let fault = fixture
            .proxy
            .fail_next(Matcher::new("POST", "/events"), failure, 2);
        let metric = web("webtest", &env.game.url("/"), json!({ "interval": "1 minute" }));
        env.create_template(&name, json!({ "metrics": [metric] })).await;
        env.warned(&name, "SpecInvalid metrics[0].interval: ").await;
        assert_eq!(fault.hits(), 2, "{failure:?}");
    }
    assert_eq!(env.operator.metric("hookgate_events_dropped", "").await, 0);
}
