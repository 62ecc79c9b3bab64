//! Traces of decisions and of the actions after them.

use operator_tests::SOON;
use operator_tests::fleet::{GAME, Who, game};
use serde_json::json;
use test_kit::{Answer, Webhook, eventually};

use crate::fleet;

#[tokio::test]
async fn a_collector_gets_every_decision_that_does_something_and_every_write() {
    let mut fleet = fleet("traces").await;
    let collector = Webhook::start().unwrap();
    collector.otherwise(Answer::text(""));
    let start = fleet.start_of(Who::Workloads, None);
    let flags = ["--otlp-endpoint", &collector.url("/")];
    let start = start.flags(&flags).env("OTEL_BSP_SCHEDULE_DELAY", "100");
    fleet.start(Who::Workloads, &start).await;
    fleet.launch(&game(2, json!({}))).await;
    let names = ["decision", "act", "api call"];
    let words = [GAME, "create_pod", "create a pod", "gamedeployment-operator"];
    eventually(SOON, || async {
        let messages = collector.requests("/v1/traces").into_iter();
        let sent: Vec<u8> = messages.flat_map(|message| message.body.to_vec()).collect();
        let has = |words: &[u8]| sent.windows(words.len()).any(|part| part == words);
        // Field 5 of a span: a string with its length.
        let span = |name: &str| [&[0x2a, u8::try_from(name.len()).unwrap()], name.as_bytes()].concat();
        let missing: Vec<&str> = names
            .into_iter()
            .filter(|name| !has(&span(name)))
            .chain(words.into_iter().filter(|words| !has(words.as_bytes())))
            .collect();
        if missing.is_empty() {
            Ok(())
        } else {
            Err(missing.join(", "))
        }
    })
    .await;
}
