//! Hostile conditions end in an Error or a plain failure, without any effect on others.

use operator_tests::{SOON, TestEnv, at_once, web};
use serde_json::{Value, json};
use shared_api::Phase;
use test_kit::{Answer, eventually};

use crate::env;

/// Upper bound of the memory that all hostile conditions together may add to the operator.
const ROOM: u64 = 50 << 20;

#[tokio::test]
async fn conditions_that_do_not_compile_are_refused() {
    let env = env("hostile").await;
    let (open, close) = ("(".repeat(1500), ")".repeat(1500));
    let texts = [
        format!("{open}true{close}"),
        "[".repeat(2000),
        format!("{}1{} == 1", "-(".repeat(1300), ")".repeat(1300)),
        "result".to_owned() + &"[0]".repeat(1300),
        "result".to_owned() + &".a".repeat(2000) + " == 1",
        format!("{}true{}", "true ? ".repeat(500), " : true".repeat(500)),
        "all(result, ".repeat(300),
        "a".repeat(4096),
        "\"".to_owned() + &"x".repeat(4000),
        "é".repeat(2048),
        format!("result == \"{}\"", "x".repeat(4096)),
        "result matches \"(\"".to_owned(),
        format!("result matches \"{}\"", "((((a{100}){100}){100}){100})"),
        format!("result matches \"{}\"", "(x{1000}){1000}"),
        "0x".to_owned(),
        "9".repeat(4000),
    ];
    unharmed(&env, &texts.map(|text| (text, json!("x"))), |phase| {
        phase == Phase::Error
    })
    .await;
}

#[tokio::test]
async fn conditions_that_would_run_for_ever_end() {
    let env = env("hostile").await;
    let long = json!("a".repeat(100_000) + "!");
    let many = json!((0..20_000).collect::<Vec<_>>());
    let nothing = json!(1);
    let cases = [
        ("len(1..1000000000) < 0", &nothing),
        ("sum(1..1000000000) < 0", &nothing),
        ("all(1..999999999, {any(1..999999999, {# < 0})})", &nothing),
        ("any(1..900000, {any(1..900000, {# < 0})})", &nothing),
        ("len(map(1..900000, {map(1..900000, {#})})) > 0", &nothing),
        ("result matches \"^(a+)+$\"", &long),
        ("result matches \"^(a|aa)+$\"", &long),
        ("result matches \"(.*)(.*)(.*)(.*)(.*)x\"", &long),
        ("len(filter(result, {any(result, {# == -1})})) > 0", &many),
        (
            "all(result, {all(result, {all(result, {true})})}) && false",
            &many,
        ),
        (
            "len(join(map(1..50000, {\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"}), \"yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\")) < 0",
            &nothing,
        ),
        ("len(split(result, \"\")) < 0", &long),
        ("-9223372036854775808 / -1 < 0 && 1 / 0 < 0", &nothing),
        ("1 % 0 == 1", &nothing),
        ("2 ** 100000 ** 100000 < 0", &nothing),
    ];
    let negated = ("!".repeat(3999) + "true", nothing.clone());
    let cases = cases
        .into_iter()
        .map(|(text, value)| (text.to_owned(), value.clone()));
    let cases: Vec<_> = cases.chain([negated]).collect();
    unharmed(&env, &cases, |phase| {
        matches!(phase, Phase::Error | Phase::Failed)
    })
    .await;
}

/// Measures hostile conditions beside a healthy run: each ends in a permitted phase, the healthy one
/// continues, and the operator is the same process with about the same memory.
async fn unharmed(env: &TestEnv<'_>, cases: &[(String, Value)], may_end: impl Fn(Phase) -> bool) {
    env.game.on("/healthy", Answer::json(json!({ "age": 45 })));
    let healthy = web(
        "healthy",
        &env.game.url("/healthy"),
        json!({
            "interval": "10ms", "successfulLimit": 100_000, "successCondition": "asInt(result) > 30"
        }),
    );
    env.measure("healthy", healthy).await;
    env.game.await_requests("/healthy", 5, SOON).await.unwrap();
    let (process, before) = (env.operator.process.id(), env.operator.process.peak_rss_bytes());
    for (index, (condition, value)) in cases.iter().enumerate() {
        let path = format!("/{index}");
        env.game.on(&path, Answer::json(json!({ "age": value })));
        let more = json!({ "successCondition": condition });
        env.measure(
            &format!("run-{index}"),
            at_once(web("webtest", &env.game.url(&path), more)),
        )
        .await;
    }
    for (index, (condition, _)) in cases.iter().enumerate() {
        let status = env.verdict(&format!("run-{index}")).await;
        let shown: String = condition.chars().take(60).collect();
        assert!(may_end(status.phase), "{shown}: {status:?}");
        assert!(status.message.as_deref().unwrap().len() < 8 * 1024, "{shown}");
    }
    let asked = env.game.counts("/healthy").received;
    env.game
        .await_requests("/healthy", asked + 5, SOON)
        .await
        .unwrap();
    let grown = env.operator.process.peak_rss_bytes() - before;
    assert!(grown < ROOM, "{grown} bytes more");
    assert_eq!(env.operator.process.id(), process);
    assert_eq!(env.operator.process.exit_status().unwrap(), None);
    eventually(SOON, || async {
        let healthy = env.status("healthy").await;
        if healthy.metric_results.iter().any(|result| result.successful > 5) {
            Ok(())
        } else {
            Err(healthy)
        }
    })
    .await;
}
