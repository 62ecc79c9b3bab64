//! The timeout covers the whole exchange.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hook_core::answer::MeasurementReason;
use tokio::io::AsyncWriteExt;

use crate::{
    ask::{assert_failure, failure, get, providers, value},
    server,
};

const TIMEOUT: Duration = Duration::from_millis(300);

async fn assert_times_out(server: std::net::SocketAddr) {
    let mut request = get(format!("http://{server}/"));
    request.timeout = TIMEOUT;
    let started = Instant::now();
    let failure = failure(&providers(), request).await;
    assert_eq!(failure.kind, MeasurementReason::Timeout);
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

/// The machine is suspended between a request and its answer. No timer notices that.
#[tokio::test]
async fn an_answer_that_is_read_long_after_the_timeout_does_not_count() {
    static NOW: AtomicU64 = AtomicU64::new(100);
    for (seconds, counts) in [(0, true), (22, true), (23, false), (180, false)] {
        let (server, _) = server::raw(move |mut stream| async move {
            server::head(&mut stream).await;
            NOW.fetch_add(seconds, Ordering::SeqCst);
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\n7";
            let _ = stream.write_all(answer).await;
        })
        .await;
        let providers = providers().with_clock(|| Duration::from_secs(NOW.load(Ordering::SeqCst)));
        let mut request = get(format!("http://{server}/"));
        request.timeout = Duration::from_secs(20);
        if counts {
            assert_eq!(value(&providers, request).await, "7");
        } else {
            let failure = failure(&providers, request).await;
            let beginning = format!(
                "the response from {server} was read {seconds}s after the call, past the 20s timeout; the process or \
                 its machine was probably suspended"
            );
            assert_failure(&failure, MeasurementReason::Timeout, &beginning);
        }
    }
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
    assert_eq!(
        failure(&providers(), request).await.kind,
        MeasurementReason::Timeout
    );
}
