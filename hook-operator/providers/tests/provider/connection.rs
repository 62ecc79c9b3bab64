//! TCP connections that are closed once they are open, and HTTP calls of which only the status counts.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hook_core::answer::{MeasurementFailure, MeasurementReason};
use hook_providers::{EgressPolicy, ProviderLimits, Providers};
use redact::Redactor;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::{
    ask::{assert_failure, get, loopback_allowed, providers, providers_with},
    server,
};

/// Timeout that no test waits for.
const LONG: Duration = Duration::from_mins(1);

async fn connect(providers: &Providers, address: SocketAddr) -> Result<(), MeasurementFailure> {
    providers.connect("games", address, LONG).await
}

/// Starts a server that accepts nothing and whose queue is full, so that a further connection does not open. Returns
/// also everything that keeps it so.
async fn full() -> (SocketAddr, TcpListener, Vec<TcpStream>) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut queue = Vec::new();
    let patience = Duration::from_millis(200);
    while let Ok(opened) = tokio::time::timeout(patience, TcpStream::connect(address)).await {
        queue.push(opened.unwrap());
    }
    (address, listener, queue)
}

#[tokio::test]
async fn a_connection_is_closed_as_soon_as_it_is_open_and_sends_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let providers = providers();
    connect(&providers, address).await.unwrap();
    assert_eq!((providers.in_flight(), providers.waiting()), (0, 0));
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut received = Vec::new();
    let end = tokio::time::timeout(LONG, stream.read_to_end(&mut received)).await;
    assert_eq!(end.unwrap().unwrap(), 0);
    // A server that speaks first has been reached, too.
    let (eager, greeted) = server::raw(|mut stream| async move {
        let _ = stream.write_all(&vec![b'7'; 1 << 20]).await;
    })
    .await;
    connect(&providers, eager).await.unwrap();
    server::reaches(&greeted, 1).await;
}

#[tokio::test]
async fn nobody_listens() {
    let address = server::nobody().await;
    let failure = connect(&providers(), address).await.unwrap_err();
    assert_eq!(failure.kind, MeasurementReason::Unreachable);
    assert_eq!(failure.message, format!("connection refused by {address}"));
}

#[tokio::test]
async fn a_connection_that_does_not_open_ends_at_its_timeout() {
    let (address, _listener, _queue) = full().await;
    let providers = providers();
    let timeout = Duration::from_millis(300);
    let failure = providers.connect("games", address, timeout).await.unwrap_err();
    assert_eq!(failure.kind, MeasurementReason::Timeout);
    let wanted = format!("timed out after 300ms waiting for {address}");
    assert_eq!(failure.message, wanted);
    assert_eq!(providers.in_flight(), 0);
}

#[tokio::test]
async fn dropping_the_future_frees_the_slot() {
    let (address, _listener, _queue) = full().await;
    let providers = providers();
    let call = tokio::spawn({
        let providers = providers.clone();
        async move { connect(&providers, address).await }
    });
    while providers.in_flight() == 0 {
        tokio::task::yield_now().await;
    }
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    assert_eq!((providers.in_flight(), providers.waiting()), (0, 0));
}

#[tokio::test]
async fn an_address_that_the_policy_forbids_is_not_connected_to() {
    let (server, opened, _) = server::silent().await;
    let mapped = SocketAddr::new("::ffff:127.0.0.1".parse().unwrap(), server.port());
    let strict = EgressPolicy::default();
    let denied = EgressPolicy {
        deny: vec!["127.0.0.0/8".parse().unwrap()],
        ..loopback_allowed()
    };
    let elsewhere = EgressPolicy {
        allow: vec!["10.0.0.0/8".parse().unwrap(), "localhost".parse().unwrap()],
        ..loopback_allowed()
    };
    for (policy, wanted) in [
        (strict, "--egress-allow-loopback"),
        (denied, "is denied by --egress-deny 127.0.0.0/8"),
        (elsewhere, "is not in the operator's allow list"),
    ] {
        let providers = Providers::new(policy, ProviderLimits::default());
        for address in [server, mapped] {
            let failure = connect(&providers, address).await.unwrap_err();
            assert_failure(&failure, MeasurementReason::Forbidden, &address.ip().to_string());
            assert!(failure.message.contains(wanted), "{failure}");
            let request = get(format!("http://{address}/"));
            let failure = providers.call("games", &request).await.unwrap_err();
            assert_eq!(failure.kind, MeasurementReason::Forbidden, "{failure}");
        }
    }
    assert_eq!(opened.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn metadata_is_refused_whatever_the_flags() {
    let widest = EgressPolicy {
        allow: vec!["0.0.0.0/0".parse().unwrap(), "::/0".parse().unwrap()],
        ..loopback_allowed()
    };
    let widest = Providers::new(widest, ProviderLimits::default());
    for address in [
        "169.254.169.254:80",
        "[::ffff:169.254.169.254]:80",
        "[64:ff9b::a9fe:a9fe]:80",
        "[fd00:ec2::254]:80",
        "0.0.0.0:80",
        "[fe80::1]:80",
        "224.0.0.1:80",
        "255.255.255.255:80",
    ] {
        let failure = connect(&widest, address.parse().unwrap()).await.unwrap_err();
        assert_eq!(failure.kind, MeasurementReason::Forbidden, "{address}: {failure}");
        let wanted = "hooks can never call it, and no flag can allow it";
        assert!(failure.message.contains(wanted), "{address}: {failure}");
    }
}

#[tokio::test]
async fn connections_and_requests_share_the_slots_of_a_server() {
    let (server, opened, _) = server::silent().await;
    let limits = ProviderLimits {
        per_host: 1,
        wait: Duration::from_millis(50),
        ..ProviderLimits::default()
    };
    let providers = providers_with(limits);
    let call = tokio::spawn({
        let providers = providers.clone();
        let request = get(format!("http://{server}/"));
        async move { providers.call("games", &request).await }
    });
    server::reaches(&opened, 1).await;
    let failure = connect(&providers, server).await.unwrap_err();
    let wanted = "not started yet: waited 50ms for a free slot";
    assert_failure(&failure, MeasurementReason::NotAsked, wanted);
    assert_eq!(opened.load(Ordering::SeqCst), 1);
    // Other servers have slots of their own.
    let (other, ..) = server::silent().await;
    connect(&providers, other).await.unwrap();
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    connect(&providers, server).await.unwrap();
}

#[tokio::test]
async fn a_success_of_any_type_counts_and_nothing_else() {
    for (answer, wanted) in [
        ("200 OK\r\nContent-Length: 0\r\n\r\n", None),
        ("204 No Content\r\n\r\n", None),
        ("299 Odd\r\nContent-Length: 0\r\n\r\n", None),
        (
            "200 OK\r\nContent-Type: application/json\r\nContent-Length: 1\r\n\r\n{",
            None,
        ),
        (
            "304 Not Modified\r\n\r\n",
            Some((MeasurementReason::Status, "received status 304")),
        ),
        (
            "302 Found\r\nContent-Length: 0\r\n\r\n",
            Some((MeasurementReason::Status, "received status 302")),
        ),
        (
            "503 No\r\nContent-Length: 4\r\n\r\nbusy",
            Some((MeasurementReason::Status, "received status 503: busy")),
        ),
        // A broken error page must not hide the status.
        (
            "503 No\r\nContent-Length: 9\r\n\r\nbusy",
            Some((MeasurementReason::Status, "received status 503")),
        ),
        (
            "200 OK\r\nContent-Length: 9\r\n\r\ncut",
            Some((MeasurementReason::Unreachable, "")),
        ),
        (
            "200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 8\r\n\r\nnot gzip",
            Some((MeasurementReason::MalformedAnswer, "")),
        ),
    ] {
        let server = server::bytes(format!("HTTP/1.1 {answer}")).await;
        let called = providers().call("games", &get(format!("http://{server}/"))).await;
        let seen = called.map_err(|failure| (failure.kind, failure.message));
        match (seen, wanted) {
            (Ok(()), None) => {}
            (Err((kind, message)), Some((wanted, beginning))) => {
                assert_eq!(kind, wanted, "{answer}: {message}");
                assert!(message.starts_with(beginning), "{answer}: {message}");
            }
            (seen, _) => panic!("{answer}: {seen:?}"),
        }
    }
}

#[tokio::test]
async fn an_answer_is_hidden_if_the_request_says_so() {
    let server = server::bytes("HTTP/1.1 503 No\r\nContent-Length: 4\r\n\r\nhush").await;
    let mut request = get(format!("http://{server}/"));
    request.redactor = Redactor::default().hiding();
    let failure = providers().call("games", &request).await.unwrap_err();
    assert_failure(
        &failure,
        MeasurementReason::Status,
        "received status 503; the response is hidden",
    );
    assert!(!failure.message.contains("hush"), "{failure}");
}

/// The connection is closed at the limit of an answer, whatever the status.
#[tokio::test]
async fn an_endless_answer_is_cut_off() {
    for (status, succeeds) in [("200 OK", true), ("500 No", false)] {
        let closed = Arc::new(AtomicUsize::new(0));
        let ended = Arc::clone(&closed);
        let (server, _) = server::raw(move |mut stream| {
            let ended = Arc::clone(&ended);
            async move {
                server::head(&mut stream).await;
                let head = format!("HTTP/1.1 {status}\r\nContent-Length: 99999999999\r\n\r\n");
                let _ = stream.write_all(head.as_bytes()).await;
                let piece = vec![b'7'; 1 << 16];
                while stream.write_all(&piece).await.is_ok() {}
                ended.fetch_add(1, Ordering::SeqCst);
            }
        })
        .await;
        let mut request = get(format!("http://{server}/"));
        request.timeout = LONG;
        let providers = providers();
        let called = providers.call("games", &request).await;
        assert_eq!(called.is_ok(), succeeds, "{called:?}");
        server::reaches(&closed, 1).await;
        assert_eq!(providers.in_flight(), 0);
    }
}
