//! The operator dies (SIGKILL) around a status write and starts again.

use operator_tests::Operator;
use shared_api::Phase;

use crate::{SOON, recorded, status_writes, under_way};

#[tokio::test]
async fn before_the_write_the_unrecorded_measurement_is_taken_again() {
    let mut fixture = under_way("killed", 4).await;
    let env = &mut fixture.env;
    let held = fixture.proxy.stall_next(status_writes("run"));
    held.await_hits(1, SOON).await.unwrap();
    env.operator.process.kill_hard().unwrap();
    let asked = env.game.counts("/").received;
    let before = env.status("run").await;
    fixture.proxy.clear_faults();

    env.operator = Operator::start(&fixture.start);
    env.operator.ready().await;
    let after = env.settled("run").await;
    assert_eq!((after.phase, recorded(&after).len()), (Phase::Successful, 4));
    let kept = recorded(&before);
    assert_eq!(
        recorded(&after)[..kept.len()],
        kept[..],
        "what was recorded stays"
    );
    assert_eq!(after.started_at, before.started_at);
    // Only the request whose outcome died with the operator is repeated.
    assert_eq!(asked, kept.len() + 1);
    assert_eq!(env.game.counts("/").received, 5);
}

#[tokio::test]
async fn after_the_write_the_recorded_measurement_is_not_taken_again() {
    let mut fixture = under_way("killed", 4).await;
    let env = &mut fixture.env;
    let held = fixture.proxy.stall_next_answer(status_writes("run"));
    held.await_hits(1, SOON).await.unwrap();
    env.operator.process.kill_hard().unwrap();
    let asked = env.game.counts("/").received;
    let before = env.until("run", |status| recorded(status).len() == asked).await;
    fixture.proxy.clear_faults();

    env.operator = Operator::start(&fixture.start);
    env.operator.ready().await;
    let after = env.settled("run").await;
    assert_eq!(after.phase, Phase::Successful);
    assert_eq!(recorded(&after), ["1", "2", "3", "4"]);
    assert_eq!(recorded(&after)[..recorded(&before).len()], recorded(&before)[..]);
    assert_eq!(env.game.counts("/").received, 4, "no slot was measured twice");
}
