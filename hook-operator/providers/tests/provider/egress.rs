//! The egress policy prevents connections.

use std::sync::atomic::Ordering;

use hook_core::{answer::MeasurementReason, request::HttpRequest};
use hook_providers::{EgressPolicy, ProviderLimits, Providers};

use crate::{
    ask::{assert_failure, failure, get, providers, query, value},
    server,
};

fn strict() -> Providers {
    Providers::new(EgressPolicy::default(), ProviderLimits::default())
}

#[tokio::test]
async fn a_name_or_address_of_loopback_is_refused_without_its_flag() {
    let (server, connections, _) = server::silent().await;
    let port = server.port();
    for host in [
        "localhost",
        "LOCALHOST",
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f.1",
        "0177.0.0.1",
        "[::ffff:127.0.0.1]",
    ] {
        let failure = failure(&strict(), get(format!("http://{host}:{port}/"))).await;
        assert_eq!(failure.kind, MeasurementReason::Forbidden, "{host}: {failure}");
        assert!(
            failure.message.contains("--egress-allow-loopback"),
            "{host}: {failure}"
        );
    }
    let request = HttpRequest::Prometheus(query(format!("http://localhost:{port}")));
    assert_eq!(
        strict().measure("games", &request).await.unwrap_err().kind,
        MeasurementReason::Forbidden
    );
    assert_eq!(connections.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn with_its_flag_a_name_of_loopback_is_called() {
    let server = server::bytes("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n7").await;
    let request = get(format!("http://localhost:{}/", server.port()));
    assert_eq!(value(&providers(), request).await, "7");
}

#[tokio::test]
async fn metadata_is_refused_whatever_the_flags_and_however_it_is_written() {
    let widest = EgressPolicy {
        allow_loopback: true,
        allow: vec!["0.0.0.0/0".parse().unwrap(), "::/0".parse().unwrap()],
        deny: Vec::new(),
    };
    let widest = Providers::new(widest, ProviderLimits::default());
    for host in [
        "169.254.169.254",
        "2852039166",
        "0xa9fea9fe",
        "[::ffff:169.254.169.254]",
        "[64:ff9b::a9fe:a9fe]",
    ] {
        let failure = failure(&widest, get(format!("http://{host}/latest/meta-data/"))).await;
        assert_eq!(failure.kind, MeasurementReason::Forbidden, "{host}: {failure}");
        assert!(
            failure
                .message
                .contains("a cloud metadata address; hooks can never call it"),
            "{failure}"
        );
    }
}

#[tokio::test]
async fn a_deny_rule_is_applied_to_what_a_name_resolves_to() {
    let policy = EgressPolicy {
        allow_loopback: true,
        allow: vec!["localhost".parse().unwrap()],
        deny: vec!["127.0.0.0/8".parse().unwrap(), "::1".parse().unwrap()],
    };
    let (server, connections, _) = server::silent().await;
    let url = format!("http://localhost:{}/", server.port());
    let failure = failure(&Providers::new(policy, ProviderLimits::default()), get(url)).await;
    assert_failure(&failure, MeasurementReason::Forbidden, "localhost (");
    assert!(
        failure.message.contains("is denied by --egress-deny "),
        "{failure}"
    );
    assert_eq!(connections.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn an_allow_list_is_enforced_and_named() {
    let policy = EgressPolicy {
        allow_loopback: true,
        allow: vec!["10.0.0.0/8".parse().unwrap()],
        deny: Vec::new(),
    };
    let providers = Providers::new(policy, ProviderLimits::default());
    let failure = failure(&providers, get("http://localhost/")).await;
    assert_failure(&failure, MeasurementReason::Forbidden, "localhost (");
    assert!(
        failure
            .message
            .ends_with("the platform team can add it with --egress-allow"),
        "{failure}"
    );
}

#[tokio::test]
async fn user_information_in_an_url_is_refused() {
    for url in ["http://good@169.254.169.254/", "http://user:hush@127.0.0.1/"] {
        let failure = failure(&providers(), get(url)).await;
        assert_failure(
            &failure,
            MeasurementReason::Forbidden,
            "the URL must not contain a user name or password",
        );
    }
}
