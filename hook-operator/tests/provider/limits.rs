//! Calls do not hold each other up.

use std::time::{Duration, Instant};

use futures::future::join_all;
use hook_core::{answer::FailureKind, request::Request};
use hook_operator::provider::{Limits, Providers};
use tokio::io::AsyncWriteExt;

use crate::{
    ask::{assert_failure, failure, get, loopback_allowed, providers, value},
    server,
};

#[tokio::test]
async fn a_host_that_hangs_does_not_delay_another() {
    let (hanging, opened, _) = server::silent().await;
    let healthy = server::bytes("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n7").await;
    let limits = Limits {
        overall: 8,
        per_host: 4,
        ..Limits::default()
    };
    let providers = Providers::new(loopback_allowed(), limits);
    let calls: Vec<_> = (0..100)
        .map(|_| {
            let providers = providers.clone();
            let request = Request::Web(get(format!("http://{hanging}/")));
            tokio::spawn(async move { providers.measure("games", &request).await })
        })
        .collect();
    server::reaches(&opened, 4).await;
    let started = Instant::now();
    for _ in 0..10 {
        assert_eq!(value(&providers, get(format!("http://{healthy}/"))).await, "7");
    }
    assert!(
        started.elapsed() < Duration::from_secs(5),
        "{:?}",
        started.elapsed()
    );
    assert_eq!(providers.in_flight(), 4);
    assert_eq!(providers.waiting(), 96);
    calls.iter().for_each(tokio::task::JoinHandle::abort);
    for call in calls {
        assert!(call.await.unwrap_err().is_cancelled());
    }
    assert_eq!((providers.in_flight(), providers.waiting()), (0, 0));
    assert_eq!(
        opened.load(std::sync::atomic::Ordering::SeqCst),
        4,
        "nobody else was let in"
    );
}

#[tokio::test]
async fn a_wait_for_a_slot_is_no_part_of_the_timeout_and_has_its_own_end() {
    let (slow, _) = server::raw(|mut stream| async move {
        server::head(&mut stream).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        let _ = stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\n7")
            .await;
    })
    .await;
    let mut request = get(format!("http://{slow}/"));
    request.timeout = Duration::from_millis(1500);
    let limits = |wait| Limits {
        overall: 8,
        per_host: 1,
        wait,
    };
    let patient = Providers::new(loopback_allowed(), limits(Duration::from_secs(20)));
    let texts = join_all((0..6).map(|_| value(&patient, request.clone()))).await;
    assert_eq!(texts, ["7"; 6]);

    let hasty = Providers::new(loopback_allowed(), limits(Duration::from_millis(50)));
    let (text, refused) = tokio::join!(value(&hasty, request.clone()), failure(&hasty, request.clone()));
    assert_eq!(text, "7");
    assert_failure(
        &refused,
        FailureKind::Timeout,
        "not asked: waited 50ms for a free slot",
    );
    assert!(refused.message.contains(&slow.to_string()), "{refused}");
}

#[tokio::test]
async fn a_thousand_measurements_are_under_way_at_once() {
    let (server, _) = server::raw(|mut stream| async move {
        server::head(&mut stream).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let _ = stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n7")
            .await;
    })
    .await;
    let providers = providers();
    let started = Instant::now();
    let calls = (0..1000).map(|at| {
        value(
            &providers,
            get(format!("http://127.0.0.1:{}/{at}", server.port())),
        )
    });
    let texts = tokio::join!(join_all(calls), async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!((providers.in_flight(), providers.waiting()), (256, 744));
    })
    .0;
    assert!(texts.iter().all(|text| text == "7"));
    // Four turns of 256, not a thousand one after the other.
    assert!(
        started.elapsed() < Duration::from_secs(20),
        "{:?}",
        started.elapsed()
    );
}
