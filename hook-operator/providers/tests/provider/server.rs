//! Servers on loopback: well-behaved ones (axum), and ones that write arbitrary bytes.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use axum::Router;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// Starts a well-behaved server.
pub(crate) async fn serve(routes: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
    address
}

/// Starts a server that passes each connection to a function and counts them.
pub(crate) async fn raw<F>(
    answer: impl Fn(TcpStream) -> F + Send + Sync + 'static,
) -> (SocketAddr, Arc<AtomicUsize>)
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let connections = Arc::new(AtomicUsize::new(0));
    tokio::spawn({
        let connections = Arc::clone(&connections);
        async move {
            while let Ok((stream, _)) = listener.accept().await {
                connections.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(answer(stream));
            }
        }
    });
    (address, connections)
}

/// Starts a server that answers each connection's first request with these bytes and closes.
pub(crate) async fn bytes(answer: impl Into<Vec<u8>>) -> SocketAddr {
    let answer: Arc<[u8]> = answer.into().into();
    let (address, _) = raw(move |mut stream| {
        let answer = Arc::clone(&answer);
        async move {
            head(&mut stream).await;
            // The client may have closed the connection already, which is allowed.
            let _ = stream.write_all(&answer).await;
            let _ = stream.shutdown().await;
        }
    })
    .await;
    address
}

/// Starts a server that takes requests and never answers. The second counter counts connections that the
/// client closed.
pub(crate) async fn silent() -> (SocketAddr, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let closed = Arc::new(AtomicUsize::new(0));
    let (address, opened) = raw({
        let closed = Arc::clone(&closed);
        move |mut stream| {
            let closed = Arc::clone(&closed);
            async move {
                let mut sink = Vec::new();
                let _ = stream.read_to_end(&mut sink).await;
                closed.fetch_add(1, Ordering::SeqCst);
            }
        }
    })
    .await;
    (address, opened, closed)
}

/// Reads a request's head up to its final empty line. Returns it as text.
pub(crate) async fn head(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8(head).unwrap()
}

/// Returns a loopback port without a listener.
pub(crate) async fn nobody() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap()
}

/// Waits until a counter reaches a number.
pub(crate) async fn reaches(counter: &AtomicUsize, number: usize) {
    tokio::time::timeout(std::time::Duration::from_secs(20), async {
        while counter.load(Ordering::SeqCst) < number {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
    })
    .await
    .unwrap();
}
