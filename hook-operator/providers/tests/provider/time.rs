//! The timeout covers the whole exchange.

use std::time::{Duration, Instant};

use hook_core::answer::FailureKind;
use tokio::io::AsyncWriteExt;

use crate::{
    ask::{failure, get, providers},
    server,
};

const TIMEOUT: Duration = Duration::from_millis(300);

async fn assert_times_out(server: std::net::SocketAddr) {
    let mut request = get(format!("http://{server}/"));
    request.timeout = TIMEOUT;
    let started = Instant::now();
    let failure = failure(&providers(), request).await;
    assert_eq!(failure.kind, FailureKind::Timeout);
    assert_eq!(
        failure.message,
        format!("timed out after 300ms waiting for {server}")
    );
    let took = started.elapsed();
    assert!(took >= TIMEOUT && took < TIMEOUT * 10, "{took:?}");
}

#[tokio::test]
async fn a_server_that_never_answers() {
    assert_times_out(server::silent().await.0).await;
}

#[tokio::test]
async fn a_body_that_drips() {
    let (server, _) = server::raw(|mut stream| async move {
        server::head(&mut stream).await;
        let _ = stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
            .await;
        while stream.write_all(b"7").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    assert_times_out(server).await;
}

#[tokio::test]
async fn a_head_that_drips() {
    let (server, _) = server::raw(|mut stream| async move {
        server::head(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nX-Slow: ").await;
        while stream.write_all(b"7").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    assert_times_out(server).await;
}

#[tokio::test]
async fn redirects_that_each_take_a_while() {
    let (server, _) = server::raw(|mut stream| async move {
        server::head(&mut stream).await;
        tokio::time::sleep(Duration::from_millis(140)).await;
        let _ = stream
            .write_all(
                b"HTTP/1.1 302 Found\r\nLocation: /again\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            )
            .await;
    })
    .await;
    assert_times_out(server).await;
}

#[tokio::test]
async fn a_tls_handshake_that_hangs() {
    let (server, ..) = server::silent().await;
    let mut request = get(format!("https://{server}/"));
    request.timeout = TIMEOUT;
    assert_eq!(failure(&providers(), request).await.kind, FailureKind::Timeout);
}
