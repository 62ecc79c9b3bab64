//! A proxy in the environment would connect on the operator's behalf, bypassing the egress policy.

use std::process::Command;

use crate::{
    ask::{get, providers, value},
    server,
};

/// Run by the test below in a separate process whose environment names a proxy without a listener.
#[tokio::test]
#[ignore = "needs the environment that a_proxy_in_the_environment_is_not_used gives it"]
async fn with_proxies_in_the_environment() {
    let server = server::bytes("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n7").await;
    assert_eq!(value(&providers(), get(format!("http://{server}/"))).await, "7");
}

#[tokio::test]
async fn a_proxy_in_the_environment_is_not_used() {
    let mut run = Command::new(std::env::current_exe().unwrap());
    run.args(["--exact", "proxy::with_proxies_in_the_environment", "--ignored"]);
    for name in [
        "http_proxy",
        "HTTP_PROXY",
        "https_proxy",
        "HTTPS_PROXY",
        "all_proxy",
        "ALL_PROXY",
    ] {
        run.env(name, "http://127.0.0.1:1");
    }
    run.env("no_proxy", "").env("NO_PROXY", "");
    let output = tokio::task::spawn_blocking(move || run.output())
        .await
        .unwrap()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}
