//! The watch delivers nothing for a while, then everything at once, or never delivers what it held back.

use operator_tests::assert_ended;
use serde_json::json;
use shared_api::Phase;

use crate::{SOON, counted, fixture, recorded, under_way};

#[tokio::test]
async fn a_run_goes_on_without_its_watch() {
    let fixture = fixture("stale").await;
    let env = &fixture.env;
    env.create("run", counted(&env.game.url("/"), 5, "200ms")).await;
    env.until("run", |status| recorded(status).len() == 1).await;
    fixture.proxy.freeze_watches();
    let status = env.settled("run").await;
    assert_eq!(status.phase, Phase::Successful);
    assert_eq!(recorded(&status), ["1", "2", "3", "4", "5"]);

    // The old states arrive now. None of them may revive the run.
    fixture.proxy.thaw_watches();
    env.create("marker", counted(&env.game.url("/marker"), 1, "1s"))
        .await;
    env.game.await_requests("/marker", 1, SOON).await.unwrap();
    assert_eq!(env.status("run").await, status);
    assert_eq!(env.game.counts("/").received, 5);
}

#[tokio::test]
async fn a_termination_that_the_watch_holds_back_is_seen_at_the_next_write() {
    let fixture = under_way("stale", 100).await;
    let env = &fixture.env;
    fixture.proxy.freeze_watches();
    env.patch("run", json!({ "spec": { "terminate": true } })).await;
    let status = env.settled("run").await;
    assert_ended(&status, Phase::Inconclusive, "Terminated");
}

#[tokio::test]
async fn a_deletion_that_the_watch_loses_ends_the_session() {
    let fixture = under_way("stale", 100).await;
    let env = &fixture.env;
    fixture.proxy.freeze_watches();
    env.delete("run").await;
    // The event is lost for good; the next write gets a 404, or the next list omits the run.
    fixture.proxy.cut_watches();
    fixture.proxy.thaw_watches();
    test_kit::eventually(SOON, || async {
        let active = env.metric("hookgate_hook_active_runs", "").await;
        if active == 0 { Ok(()) } else { Err(active) }
    })
    .await;
    let asked = env.game.counts("/").received;
    // A run with the same name is a new run, measured from the beginning.
    env.create("run", counted(&env.game.url("/"), 2, "100ms")).await;
    let status = env.settled("run").await;
    assert_eq!((status.phase, recorded(&status).len()), (Phase::Successful, 2));
    assert_eq!(env.game.counts("/").received, asked + 2);
}
