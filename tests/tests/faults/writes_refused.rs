//! The API server refuses, or says so although the write took effect.

use shared_api::Phase;
use test_kit::api_proxy::{Failure, Moment};

use crate::{counted, fixture, recorded, status_writes};

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
    let stage = &fixture.stage;
    for (number, failure) in failures.into_iter().enumerate() {
        let (name, path) = (format!("run-{number}"), format!("/{number}"));
        stage.game.on(&path, crate::numbered());
        let fault = fixture.proxy.fail_next(status_writes(&name), failure, 2);
        stage
            .create(&name, counted(&stage.game.url(&path), 3, "100ms"))
            .await;
        let status = stage.verdict(&name).await;
        assert_eq!(
            (status.phase, recorded(&status)),
            (Phase::Successful, vec!["1", "2", "3"]),
            "{failure:?}"
        );
        assert_eq!(fault.hits(), 2, "{failure:?}");
        assert_eq!(stage.game.counts(&path).received, 3, "{failure:?}");
    }
}
