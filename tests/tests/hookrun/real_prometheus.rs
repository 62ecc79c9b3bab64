//! Queries to a real Prometheus: numbers, NaN, empty results and errors.

use operator_tests::{TestEnv, assert_has, at_once};
use serde_json::{Value, json};
use shared_api::Phase;
use shared_api::hook_run::HookRunStatus;
use test_kit::prometheus::Scrape;
use test_kit::{Answer, Prometheus};
use tokio::sync::OnceCell;

use crate::env;

/// Query without matches.
const NOTHING: &str = "nosuch_metric";

#[tokio::test]
async fn numbers_are_judged_as_scalar_and_as_vector() {
    let env = env("prometheus").await;
    let two = "label_replace(vector(3), \"room\", \"a\", \"\", \"\") or label_replace(vector(7), \"room\", \"b\", \"\", \"\")";
    let cases = [
        (
            "scalar",
            "scalar(vector(7))",
            "result > 5",
            Phase::Successful,
            "7",
        ),
        (
            "large",
            "scalar(vector(1000000))",
            "result == 1000000",
            Phase::Successful,
            "1000000",
        ),
        (
            "fraction",
            "scalar(vector(0.99))",
            "result >= 0.99",
            Phase::Successful,
            "0.99",
        ),
        ("vector", "vector(3)", "result[0] < 5", Phase::Successful, "[3]"),
        (
            "many",
            two,
            "len(result) == 2 && all(result, # < 5)",
            Phase::Failed,
            "[3,7]",
        ),
        (
            "infinite",
            "vector(1)/0",
            "isInf(result[0])",
            Phase::Successful,
            "[+Inf]",
        ),
        ("out-of-range", "vector(3)", "result[1] < 5", Phase::Error, "[3]"),
    ];
    for (name, query, condition, _, _) in &cases {
        ask(&env, name, query, json!({ "successCondition": condition })).await;
    }
    for (name, _, _, phase, value) in cases {
        let status = env.verdict(name).await;
        assert_eq!(status.phase, phase, "{name}: {status:?}");
        assert_eq!(value_of(&status), value, "{name}");
    }
}

#[tokio::test]
async fn not_a_number_is_inconclusive_unless_a_condition_asks_for_it() {
    let env = env("prometheus").await;
    let cases = [
        ("scalar", "0/0", "result < 5", Phase::Inconclusive),
        ("vector", "vector(0)/0", "result[0] < 5", Phase::Inconclusive),
        ("negated", "vector(0)/0", "!(result[0] > 5)", Phase::Inconclusive),
        ("asked", "0/0", "isNaN(result) || result < 5", Phase::Successful),
        (
            "asked-vector",
            "vector(0)/0",
            "isNaN(result[0]) || result[0] < 5",
            Phase::Successful,
        ),
        (
            "asked-and-refused",
            "vector(0)/0",
            "!isNaN(result[0]) && result[0] < 5",
            Phase::Failed,
        ),
    ];
    for (name, query, condition, _) in &cases {
        ask(&env, name, query, json!({ "successCondition": condition })).await;
    }
    for (name, _, _, phase) in cases {
        let status = env.verdict(name).await;
        assert_eq!(status.phase, phase, "{name}: {status:?}");
        let message = status.message.as_deref().unwrap();
        assert!(
            phase != Phase::Inconclusive || message.contains("the response contains NaN"),
            "{message}"
        );
    }
}

#[tokio::test]
async fn emptiness_is_an_error_unless_something_says_otherwise() {
    let env = env("prometheus").await;
    let all_low = json!({ "successCondition": "all(result, # < 5)" });
    let handled = json!({ "successCondition": "len(result) == 0 || result[0] < 5" });
    ask(&env, "default", NOTHING, all_low).await;
    ask(&env, "handled", NOTHING, handled).await;
    for phase in [Phase::Failed, Phase::Inconclusive, Phase::Successful] {
        let more = json!({ "onNoData": phase, "successCondition": "result[0] < 5" });
        ask(&env, &phase.as_str().to_lowercase(), NOTHING, more).await;
    }
    for (name, phase) in [
        ("default", Phase::Error),
        ("handled", Phase::Successful),
        ("failed", Phase::Failed),
        ("inconclusive", Phase::Inconclusive),
        ("successful", Phase::Successful),
    ] {
        let status = env.verdict(name).await;
        assert_eq!(status.phase, phase, "{name}: {status:?}");
        assert_eq!(value_of(&status), "[]", "{name}: {status:?}");
        let message = status.message.as_deref().unwrap();
        assert!(
            name == "handled" || message.contains("the query matched no series"),
            "{message}"
        );
    }
}

#[tokio::test]
async fn a_refused_query_is_an_error_in_prometheus_own_words() {
    let env = env("prometheus").await;
    ask(&env, "bad", "sum(", json!({})).await;
    ask(&env, "range", "up[5m]", json!({})).await;
    ask(&env, "string", "\"text\"", json!({})).await;
    for (name, words) in [
        ("bad", "Prometheus rejected the query: bad_data: "),
        ("range", "Prometheus returned a matrix; "),
        ("string", "Prometheus returned a string; "),
    ] {
        let status = env.verdict(name).await;
        assert_eq!(status.phase, Phase::Error, "{status:?}");
        let message = status.message.unwrap();
        assert!(message.contains(words), "{words} is not in {message}");
    }
    // An address that belongs to another kind of server.
    env.game.otherwise(Answer::json(json!({ "age": 45 })));
    env.measure("elsewhere", at_once(metric(&env.game.url(""), "vector(1)")))
        .await;
    let message = env.settled("elsewhere").await.message.unwrap();
    assert_has(&message, "does the address point to a Prometheus server?");
}

#[tokio::test]
async fn arguments_stay_within_the_query() {
    let env = env("prometheus").await;
    let address = prometheus().await.url().to_owned();
    let inside = metric(
        &address,
        "label_replace(vector(1), \"room\", \"{{ args.room }}\", \"\", \"\")",
    );
    let code = metric(&address, "vector({{ args.room }})");
    let args = json!([{ "name": "room", "value": "\", \"\", \"\") or vector(99) #" }]);
    env.create("quoted", json!({ "args": args, "metrics": [inside] }))
        .await;
    env.create("code", json!({ "args": args, "metrics": [at_once(code)] }))
        .await;
    let status = env.verdict("quoted").await;
    assert_eq!(status.phase, Phase::Successful, "{status:?}");
    assert_eq!(value_of(&status), "[1]", "{status:?}");
    let status = env.verdict("code").await;
    assert_eq!(status.phase, Phase::Error);
    assert!(
        status.message.as_deref().unwrap().contains("args.room"),
        "{status:?}"
    );
}

async fn prometheus() -> &'static Prometheus {
    static SHARED: OnceCell<Prometheus> = OnceCell::const_new();
    SHARED
        .get_or_init(|| async { Prometheus::start(&Scrape::nothing()).await.unwrap() })
        .await
}

async fn ask(env: &TestEnv<'_>, name: &str, query: &str, more: Value) {
    let mut metric = at_once(metric(prometheus().await.url(), query));
    operator_tests::merge(&mut metric, more);
    env.measure(name, metric).await;
}

fn metric(address: &str, query: &str) -> Value {
    json!({ "name": "players", "provider": { "prometheus": { "address": address, "query": query } } })
}

fn value_of(status: &HookRunStatus) -> &str {
    status.metric_results[0].measurements[0]
        .value
        .as_deref()
        .unwrap_or_default()
}
