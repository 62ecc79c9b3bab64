//! Cancellation of a measurement ends it at once.

use std::time::Duration;

use hook_core::request::HttpRequest;
use tokio::io::AsyncWriteExt;

use crate::{
    ask::{get, providers},
    server,
};

#[tokio::test]
async fn dropping_the_future_closes_the_connection_and_frees_the_slot() {
    let (server, opened, closed) = server::silent().await;
    let providers = providers();
    let call = tokio::spawn({
        let providers = providers.clone();
        let request = HttpRequest::Web(get(format!("http://{server}/")));
        async move { providers.measure("games", &request).await }
    });
    server::reaches(&opened, 1).await;
    assert_eq!(providers.in_flight(), 1);
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    server::reaches(&closed, 1).await;
    assert_eq!((providers.in_flight(), providers.waiting()), (0, 0));
}

#[tokio::test]
async fn dropping_it_while_the_body_is_read_does_so_too() {
    let done = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let (server, opened) = server::raw({
        let done = done.clone();
        move |mut stream| {
            let done = done.clone();
            async move {
                server::head(&mut stream).await;
                let _ = stream
                    .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n")
                    .await;
                while stream.write_all(b"7").await.is_ok() {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                done.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            }
        }
    })
    .await;
    let providers = providers();
    let request = HttpRequest::Web(get(format!("http://{server}/")));
    let abandoned =
        tokio::time::timeout(Duration::from_millis(200), providers.measure("games", &request)).await;
    assert!(abandoned.is_err());
    server::reaches(&opened, 1).await;
    server::reaches(&done, 1).await;
    assert_eq!(providers.in_flight(), 0);
}
