//! Egress rules of hooks: never link-local addresses or cloud metadata, loopback only with a flag, and only
//! what the platform team's lists allow.

use std::net::Ipv4Addr;

use operator_tests::{TestEnv, assert_has, at_once, web};
use serde_json::json;
use shared_api::Phase;
use test_kit::{Answer, Webhook};

use crate::{env, stage_with};

#[tokio::test]
async fn metadata_and_link_local_addresses_are_refused_in_every_spelling() {
    let env = env("egress").await;
    let metadata = [
        "169.254.169.254",
        "169.254.169.254.:80",
        "0xa9fea9fe",
        "2852039166",
        "0251.0376.0251.0376",
        "169.254.43518",
        "[::ffff:169.254.169.254]",
        "[::ffff:a9fe:a9fe]",
        "[64:ff9b::a9fe:a9fe]",
        "[2002:a9fe:a9fe::1]",
        "[fd00:ec2::254]",
        "100.100.100.200",
        "168.63.129.16",
    ];
    let link_local = ["169.254.1.1", "[fe80::1]", "[::ffff:169.254.1.1]"];
    let other = [
        ("0.0.0.0", "an unspecified address"),
        ("[ff02::1]", "a multicast address"),
        ("255.255.255.255", "a reserved address"),
    ];
    let metadata = metadata.map(|host| (host, "a cloud metadata address"));
    let link_local = link_local.map(|host| (host, "a link-local address"));
    let cases: Vec<_> = metadata.into_iter().chain(link_local).chain(other).collect();
    for (index, (host, _)) in cases.iter().enumerate() {
        ask(&env, &format!("run-{index}"), &format!("http://{host}/")).await;
    }
    // Addresses that appear literally in the spec are refused before any request.
    let mut asked = 0;
    for (index, (host, class)) in cases.iter().enumerate() {
        let message = refusal(&env, &format!("run-{index}")).await;
        let words = format!("{class}; hooks can never call it, and no flag can allow it");
        assert!(message.contains(&words), "{host}: {message}");
        asked += usize::from(!message.starts_with("hook spec invalid: "));
    }
    assert!((1..cases.len()).contains(&asked), "{asked}");
    let counted = env
        .metric("hookgate_hook_measurement_failures_total", "kind=\"Forbidden\"")
        .await;
    assert_eq!(usize::try_from(counted), Ok(asked));
}

#[tokio::test]
async fn without_the_flag_loopback_is_refused_in_every_spelling() {
    let env = stage_with("egress", &[]).await;
    env.game.otherwise(Answer::json(json!({ "age": 45 })));
    let hosts = [
        "127.0.0.1",
        "localhost",
        "LOCALHOST",
        "127.1",
        "0x7f.1",
        "2130706433",
        "[::ffff:127.0.0.1]",
        "127.9.9.9",
        "[::1]",
    ];
    let port = env.game.address().port();
    for (index, host) in hosts.iter().enumerate() {
        ask(&env, &format!("run-{index}"), &format!("http://{host}:{port}/")).await;
    }
    for (index, host) in hosts.iter().enumerate() {
        let message = refusal(&env, &format!("run-{index}")).await;
        assert!(
            message.contains("loopback") && message.contains("--egress-allow-loopback"),
            "{host}: {message}"
        );
    }
    assert_eq!(env.game.all_requests().len(), 0);
}

#[tokio::test]
async fn what_is_denied_is_refused_by_name_and_by_address() {
    let env = stage_with(
        "egress",
        &[
            "--egress-allow-loopback",
            "--egress-deny",
            "127.0.0.2/32,*.bank.example",
        ],
    )
    .await;
    let denied = second_server();
    ask(&env, "address", &denied.url("/")).await;
    ask(
        &env,
        "spelled",
        &format!("http://[::ffff:127.0.0.2]:{}/", denied.address().port()),
    )
    .await;
    ask(&env, "name", "http://vault.bank.example/").await;
    for (name, words) in [
        ("address", "127.0.0.2 is denied by --egress-deny 127.0.0.2/32"),
        ("spelled", "is denied by --egress-deny 127.0.0.2/32"),
        (
            "name",
            "vault.bank.example is denied by --egress-deny *.bank.example",
        ),
    ] {
        let message = refusal(&env, name).await;
        assert!(message.contains(words), "{name}: {message}");
    }
    assert_allowed(&env).await;
    assert_eq!(denied.all_requests().len(), 0);
}

#[tokio::test]
async fn with_an_allow_list_nothing_else_is_called() {
    let env = stage_with(
        "egress",
        &["--egress-allow-loopback", "--egress-allow", "127.0.0.1"],
    )
    .await;
    let other = second_server();
    ask(&env, "run", &other.url("/")).await;
    let message = refusal(&env, "run").await;
    assert_has(&message, "127.0.0.2 is not in the operator's allow list");
    assert_allowed(&env).await;
    assert_eq!(other.all_requests().len(), 0);
}

fn second_server() -> Webhook {
    let server = Webhook::start_at((Ipv4Addr::new(127, 0, 0, 2), 0).into()).unwrap();
    server.otherwise(Answer::json(json!({ "age": 45 })));
    server
}

async fn ask(env: &TestEnv<'_>, name: &str, url: &str) {
    env.measure(name, at_once(web("webtest", url, json!({})))).await;
}

async fn refusal(env: &TestEnv<'_>, name: &str) -> String {
    let status = env.verdict(name).await;
    assert_eq!(status.phase, Phase::Error, "{status:?}");
    status.message.unwrap()
}

async fn assert_allowed(env: &TestEnv<'_>) {
    env.game.on("/", Answer::json(json!({ "age": 45 })));
    ask(env, "allowed", &env.game.url("/")).await;
    let status = env.settled("allowed").await;
    assert_eq!(status.phase, Phase::Successful, "{status:?}");
}
