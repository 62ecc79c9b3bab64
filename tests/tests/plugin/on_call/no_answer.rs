//! Endpoints that do not answer: nobody listens on the port, for good or for a time, or the server hangs.

use operator_tests::assert_has;
use operator_tests::fleet::GAME;
use serde_json::json;
use test_kit::{Answer, Webhook};

use super::harness::{OnCall, PORT, TEMPLATE, measures_once, polls, url};

/// Port that nobody listens on.
const WRONG_PORT: u16 = 9092;

/// Number of errors after which the hook has been measured often enough to see that nothing is repeated.
const MANY_ERRORS: i64 = 8;

#[tokio::test]
async fn a_wrong_port_is_named_with_its_url_and_corrected_in_the_template() {
    let on_call = OnCall::new(measures_once(url("9092"))).await;
    let pod = on_call.scale_down().await;
    let address = on_call.address(&pod, WRONG_PORT);
    let refused = format!("connection refused by {address}");
    // Before the last error, which ends the run.
    let early = on_call
        .why_until(&[&refused, "consecutive errors so far"], "", "")
        .await;
    assert!(!early.out.contains("No action needed"), "{}", early.out);
    let template = format!("HookTemplate {TEMPLATE}");
    let request = format!("http://{address}");
    let facts = [template.as_str(), &request, &refused];
    let why = on_call
        .why_until(&facts, "hookunsuccessful", &on_call.edit())
        .await;
    assert_has(&why.first().purpose, &address.to_string());
    assert!(
        why.has(&format!("kubectl game retry {GAME} ")),
        "the run has ended: {}",
        why.out
    );
    on_call.correct(&why, "}}:9092", "}}:9091").await;
    on_call.settled_without(&pod).await;
}

#[tokio::test]
async fn a_hook_that_polls_a_wrong_port_is_reported_everywhere_once_and_corrected() {
    let on_call = OnCall::new(polls(url("9092"))).await;
    let pod = on_call.scale_down().await;
    let address = on_call.address(&pod, WRONG_PORT);
    let (request, refused) = (
        format!("http://{address}"),
        format!("connection refused by {address}"),
    );
    let template = format!("HookTemplate {TEMPLATE}");
    let facts = [template.as_str(), &request, &refused];
    let why = on_call.why_until(&facts, "hookerrors", &on_call.edit()).await;
    assert_has(&why.first().purpose, &address.to_string());
    assert!(
        !why.has("kubectl game retry "),
        "the run continues by itself: {}",
        why.out
    );
    is_shown(&on_call, &request, &refused).await;
    on_call
        .fleet
        .until_runs(|runs| {
            let status = runs.first().and_then(|run| run.status.as_ref());
            let result = status.and_then(|status| status.metric_results.first());
            result.is_some_and(|result| result.error >= MANY_ERRORS)
        })
        .await;
    on_call.is_warned_once(&pod, "HookErrors").await;
    on_call.correct(&why, "}}:9092", "}}:9091").await;
    on_call.settled_without(&pod).await;
}

/// Checks that no command shows the workload or its HookRun as healthy, and that each names the error.
async fn is_shown(on_call: &OnCall, request: &str, refused: &str) {
    let plugin = on_call.plugin();
    let row = on_call.row().await;
    assert!(row.contains("HookErrors") && !row.contains('+'), "{row}");
    // It may end without a person, so that status does not give up.
    let status = plugin.run(&format!("status {GAME} --watch=false")).await;
    assert_eq!(status.code, 3, "{status:?}");
    assert!(status.out.starts_with("waiting: HookErrors: "), "{status:?}");
    assert_has(&status.out, refused);
    let run = on_call.run_name().await;
    let failing = plugin.ok("hook list --failing").await;
    assert_has(&failing, &run);
    assert_has(&failing, refused);
    let shown = plugin.ok(&format!("hook get {run}")).await;
    for words in ["HookErrors", request, refused] {
        assert_has(&shown, words);
    }
}

#[tokio::test]
async fn an_endpoint_that_answers_again_needs_no_command() {
    let on_call = OnCall::new(polls(url("9092"))).await;
    let pod = on_call.scale_down().await;
    let address = on_call.address(&pod, WRONG_PORT);
    let refused = format!("connection refused by {address}");
    on_call
        .why_until(&[&refused], "hookerrors", &on_call.edit())
        .await;
    on_call.fleet.says("ScaleBlocked", "HookErrors").await;
    let server = Webhook::start_at(address).unwrap();
    server.otherwise(Answer::json(json!({ "players": 3 })));
    on_call.fleet.cleared("ScaleBlocked").await;
    let why = on_call.why().await;
    assert!(
        why.runbook().is_empty() && !why.out.contains(&refused),
        "{}",
        why.out
    );
    assert_eq!(
        on_call.fleet.nodes.terminations().len(),
        0,
        "players are on the server"
    );
    server.otherwise(Answer::json(json!({ "players": 0 })));
    on_call.settled_without(&pod).await;
}

#[tokio::test]
async fn an_endpoint_that_hangs_is_named_and_the_hook_runs_again_once_it_answers() {
    let on_call = OnCall::new(measures_once(
        json!({ "provider": { "web": { "timeoutSeconds": 1 } } }),
    ))
    .await;
    on_call.fleet.nodes.every_pod().on("/", Answer::never());
    let pod = on_call.scale_down().await;
    let address = on_call.address(&pod, PORT);
    let facts = [
        format!("HookTemplate {TEMPLATE}"),
        format!("http://{address}"),
        format!("timed out after 1s waiting for {address}"),
    ];
    let facts = facts.each_ref().map(String::as_str);
    let retry = format!("kubectl game retry {GAME} ");
    let why = on_call.why_until(&facts, "hookunsuccessful", &retry).await;
    assert_has(&why.first().purpose, "responds");
    on_call
        .fleet
        .nodes
        .every_pod()
        .on("/", Answer::json(json!({ "players": 0 })));
    on_call.run_printed(why.first(), "false").await;
    on_call.settled_without(&pod).await;
}
