//! Isolation of calls: a hanging host or namespace does not delay others.

use std::time::{Duration, Instant};

use futures::future::join_all;
use hook_core::{
    answer::{MeasurementFailure, MeasurementReason},
    request::{HttpRequest, Method, WebRequest},
};
use hook_providers::ProviderLimits;
use tokio::io::AsyncWriteExt;

use crate::{
    ask::{assert_failure, failure, get, providers, providers_with, value},
    server,
};

#[tokio::test]
async fn a_host_that_hangs_does_not_delay_another() {
    let (hanging, opened, _) = server::silent().await;
    let healthy = server::bytes("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n7").await;
    let limits = ProviderLimits {
        // A single namespace gets half.
        overall: 16,
        per_host: 8,
        ..ProviderLimits::default()
    };
    let providers = providers_with(limits);
    let calls: Vec<_> = (0..100)
        .map(|_| {
            let providers = providers.clone();
            let request = HttpRequest::Web(get(format!("http://{hanging}/")));
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
    let limits = |wait| ProviderLimits {
        overall: 8,
        per_host: 1,
        wait,
        ..ProviderLimits::default()
    };
    let patient = providers_with(limits(Duration::from_secs(20)));
    let texts = join_all((0..6).map(|_| value(&patient, request.clone()))).await;
    assert_eq!(texts, ["7"; 6]);

    let hasty = providers_with(limits(Duration::from_millis(50)));
    let (text, refused) = tokio::join!(value(&hasty, request.clone()), failure(&hasty, request.clone()));
    assert_eq!(text, "7");
    assert_failure(
        &refused,
        MeasurementReason::NotAsked,
        "not started yet: waited 50ms for a free slot",
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
        assert_eq!((providers.in_flight(), providers.waiting()), (128, 872));
    })
    .0;
    assert!(texts.iter().all(|text| text == "7"));
    // Eight rounds of 128, not a thousand calls in sequence.
    assert!(
        started.elapsed() < Duration::from_secs(20),
        "{:?}",
        started.elapsed()
    );
}

/// Calls may hang for as long as their metric allows; nobody waits for them.
#[tokio::test]
async fn a_namespace_whose_calls_hang_leaves_room_for_others() {
    let (hanging, opened, _) = server::silent().await;
    let healthy = server::bytes("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n7").await;
    let limits = ProviderLimits {
        overall: 8,
        per_host: 8,
        wait: Duration::from_secs(5),
        ..ProviderLimits::default()
    };
    let providers = providers_with(limits);
    let crowd: Vec<_> = (0..100)
        .map(|_| {
            let providers = providers.clone();
            let mut request = get(format!("http://{hanging}/"));
            request.timeout = Duration::from_hours(1);
            tokio::spawn(async move { providers.measure("crowd", &HttpRequest::Web(request)).await })
        })
        .collect();
    server::reaches(&opened, 4).await;
    for host in [healthy, hanging] {
        let mut request = get(format!("http://{host}/"));
        request.timeout = Duration::from_millis(300);
        let asked = providers.measure("few", &HttpRequest::Web(request)).await;
        let kind = asked.err().map(|failure| failure.kind);
        // The hanging host was called too; its endpoint is late.
        let expected = (host == hanging).then_some(MeasurementReason::Timeout);
        assert_eq!(kind, expected);
    }
    crowd.iter().for_each(tokio::task::JoinHandle::abort);
}

/// Measures twenty long answers that never come. Returns how the calls fail that find no memory.
async fn failures_without_room(
    wait: Duration,
    change: impl Fn(usize, &mut WebRequest),
) -> Vec<MeasurementFailure> {
    // Announces one MiB and sends none of it.
    let (dripping, opened) = server::raw(|mut stream| async move {
        server::head(&mut stream).await;
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 1048576\r\n\r\n";
        let _ = stream.write_all(head).await;
        std::future::pending::<()>().await;
    })
    .await;
    let healthy = server::bytes("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n7").await;
    let limits = ProviderLimits {
        bytes: 16 << 20,
        wait,
        ..ProviderLimits::default()
    };
    let providers = providers_with(limits);
    let mut request = get(format!("http://{dripping}/"));
    request.timeout = Duration::from_hours(1);
    let crowd = (0..20).map(|at| {
        let mut request = request.clone();
        change(at, &mut request);
        let (providers, request) = (providers.clone(), HttpRequest::Web(request));
        tokio::spawn(async move { providers.measure("crowd", &request).await })
    });
    let crowd: Vec<_> = crowd.collect();
    server::reaches(&opened, 20).await;
    assert_eq!(value(&providers, get(format!("http://{healthy}/"))).await, "7");
    // Some calls keep reading for an hour.
    let end = tokio::time::Instant::now() + Duration::from_secs(3);
    let mut refused = Vec::new();
    for call in crowd {
        if let Ok(call) = tokio::time::timeout_at(end, call).await {
            refused.push(call.unwrap().unwrap_err());
        }
    }
    refused
}

#[tokio::test]
async fn long_answers_of_one_namespace_wait_for_room() {
    let refused = failures_without_room(Duration::from_millis(500), |_, _| {}).await;
    assert_eq!(
        refused.len(),
        17,
        "two have room in the pool, and one has a large claim"
    );
    for failure in refused {
        assert_eq!(failure.kind, MeasurementReason::NotAsked, "it does not count");
    }
}

/// Calls that hold a whole head find room one after the other, and none of them is refused.
#[tokio::test]
async fn more_calls_than_have_room_for_a_head_wait_for_each_other() {
    let (server, opened) = server::raw(|mut stream| async move {
        server::head(&mut stream).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        let _ = stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\n7")
            .await;
    })
    .await;
    let limits = ProviderLimits {
        bytes: 8 << 20,
        per_host: 4096,
        ..ProviderLimits::default()
    };
    let providers = providers_with(limits);
    // One MiB of the pool: 56 calls at a time, and one with a large claim.
    let texts = join_all((0..400).map(|_| value(&providers, get(format!("http://{server}/")))));
    assert!(texts.await.iter().all(|text| text == "7"));
    assert_eq!(opened.load(std::sync::atomic::Ordering::SeqCst), 400);
}

type Call = tokio::task::JoinHandle<Result<(), MeasurementFailure>>;

/// Sends 200 POSTs of one namespace to a server that hangs after these bytes. Returns the calls once at least
/// `failed` of them have failed for want of room, and the number of calls that the server has seen.
async fn hanging_after(answer: &'static [u8], failed: usize) -> (Vec<Call>, usize) {
    let (server, opened) = server::raw(move |mut stream| async move {
        server::head(&mut stream).await;
        let _ = stream.write_all(answer).await;
        std::future::pending::<()>().await;
    })
    .await;
    let limits = ProviderLimits {
        bytes: 8 << 20,
        per_host: 4096,
        wait: Duration::from_millis(500),
        ..ProviderLimits::default()
    };
    let providers = providers_with(limits);
    let mut request = get(format!("http://{server}/"));
    request.method = Method::Post;
    request.timeout = Duration::from_hours(1);
    let calls = (0..200).map(|_| {
        let (providers, request) = (providers.clone(), HttpRequest::Web(request.clone()));
        tokio::spawn(async move { providers.measure("crowd", &request).await.map(drop) })
    });
    let calls: Vec<Call> = calls.collect();
    let ended = async {
        while calls.iter().filter(|call| call.is_finished()).count() < failed {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), ended)
        .await
        .unwrap();
    (calls, opened.load(std::sync::atomic::Ordering::SeqCst))
}

/// A namespace has one MiB here, and a large claim.
#[tokio::test]
async fn a_head_counts_before_it_is_received() {
    let (calls, opened) = hanging_after(b"HTTP/1.1 200 OK\r\nX-Long: xxxxxxxx", 200 - 57).await;
    // Each takes 18 KiB.
    assert_eq!(opened, 57);
    let hanging = calls.iter().filter(|call| !call.is_finished());
    assert_eq!(hanging.count(), 57);
    for call in calls.into_iter().filter(tokio::task::JoinHandle::is_finished) {
        assert_eq!(call.await.unwrap().unwrap_err().kind, MeasurementReason::NotAsked);
    }
}

#[tokio::test]
async fn a_decoder_counts_before_it_is_made() {
    let answer = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 9\r\n\r\n";
    // Each that hangs takes 82 KiB.
    let (calls, opened) = hanging_after(answer, 200 - 13).await;
    assert!(opened >= 57, "{opened}");
    let mut dropped = 0;
    for call in calls.into_iter().filter(tokio::task::JoinHandle::is_finished) {
        match call.await.unwrap().unwrap_err().kind {
            MeasurementReason::AnswerDropped => dropped += 1,
            kind => assert_eq!(kind, MeasurementReason::NotAsked),
        }
    }
    assert!(dropped > 0);
}

/// A request that may have drained a server is not sent again at once.
#[tokio::test]
async fn a_post_without_room_for_its_answer_was_a_measurement() {
    let (short, long) = (Duration::from_secs(1), Duration::from_hours(1));
    // Either the wait for room ends first, or the timeout of the measurement.
    for (wait, timeout) in [(short, long), (long, short)] {
        let refused = failures_without_room(wait, |at, request| {
            request.method = Method::Post;
            // The first calls hold the room for an hour.
            request.timeout = if at < 10 { long } else { timeout };
        })
        .await;
        let kinds: Vec<_> = refused.iter().map(|failure| failure.kind).collect();
        assert!(!kinds.contains(&MeasurementReason::NotAsked), "{kinds:?}");
        assert!(kinds.contains(&MeasurementReason::AnswerDropped), "{kinds:?}");
    }
}
