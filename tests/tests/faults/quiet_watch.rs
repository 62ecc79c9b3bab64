//! Nothing more happens after a failure: the operator still notices that all is well again.

use operator_tests::{assert_has, web};
use serde_json::json;
use test_kit::api_proxy::{Failure, Matcher};
use test_kit::eventually;

use crate::{SOON, fixture};

#[tokio::test]
async fn ready_again_though_nothing_changes() {
    let fixture = fixture("quiet").await;
    let operator = &fixture.env.operator;
    // Watches of runs, templates and ExecutionHooks: a watch that is not open yet cannot be cut.
    fixture.proxy.await_open_watches(3, SOON).await.unwrap();
    let templates = Matcher::watches("/hooktemplates");
    let fault = fixture
        .proxy
        .fail_next(templates, Failure::refused(503), u32::MAX);
    fixture.proxy.cut_watches();
    fault.await_hits(2, SOON).await.unwrap();
    let (status, report) = operator.ask("/readyz").await.unwrap();
    assert_eq!(status, 503);
    assert_has(&report, "[-] hooktemplates-watch failed on purpose");
    fixture.proxy.clear_faults();
    eventually(SOON, || async {
        let (status, report) = operator.ask("/readyz").await?;
        if status == 200 { Ok(()) } else { Err(report) }
    })
    .await;
}

#[tokio::test]
async fn ready_again_though_there_is_nothing_more_to_ask() {
    let fixture = fixture("quiet").await;
    let env = &fixture.env;
    // The last status write of a failed run is refused.
    let said = fixture
        .proxy
        .fail_next(Matcher::new("POST", "/events"), Failure::refused(500), u32::MAX);
    let never = json!({ "successCondition": "false" });
    let metric = web("webtest", &env.game.url("/"), never);
    env.create("run", json!({ "metrics": [metric] })).await;
    said.await_hits(1, SOON).await.unwrap();
    env.settled("run").await;
    env.operator.ready().await;
}
