//! The watch of a kind of which nothing ever changes breaks off: that it is back is known without an event.

use test_kit::api_proxy::{Failure, Matcher};
use test_kit::eventually;

use crate::{SOON, fixture};

#[tokio::test]
async fn ready_again_though_nothing_changes() {
    let fixture = fixture("quiet").await;
    let operator = &fixture.stage.operator;
    let templates = Matcher::watches("/hooktemplates");
    let fault = fixture
        .proxy
        .fail_next(templates, Failure::refused(503), u32::MAX);
    fixture.proxy.cut_watches();
    fault.await_hits(2, SOON).await.unwrap();
    let (status, report) = operator.ask("/readyz").await.unwrap();
    assert_eq!(status, 503);
    assert!(
        report.contains("[-] hooktemplates-watch failed on purpose"),
        "{report}"
    );
    fixture.proxy.clear_faults();
    eventually(SOON, || async {
        let (status, report) = operator.ask("/readyz").await?;
        if status == 200 { Ok(()) } else { Err(report) }
    })
    .await;
}
