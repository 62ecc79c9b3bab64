//! Bodies that come slowly, never, or not as announced. None of them keeps others from an answer.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::join_all;
use futures::stream::{self, StreamExt as _};
use operator_tests::SOON;
use reqwest::Body;
use test_kit::eventually;
use tokio::task::JoinSet;

use super::{
    Caller, LONGEST_BODY, PATHS, Posted, Review, assert_answered, assert_names_the_way_out, assert_small,
    template,
};
use crate::installation::Installation;
use crate::shared;

const MIB: usize = 1024 * 1024;
/// Time in which a slow body is refused, long before the 10 s that any body has.
const PATIENCE: Duration = Duration::from_secs(9);
const TOO_SLOW: u16 = 408;
const TOO_LONG: u16 = 413;

/// Body of which nothing comes.
fn nothing() -> Body {
    Body::wrap_stream(stream::pending::<io::Result<Vec<u8>>>())
}

/// Body of these parts.
fn parts(parts: Vec<Vec<u8>>) -> Body {
    Body::wrap_stream(stream::iter(parts.into_iter().map(io::Result::Ok)))
}

/// Body that begins like this and then does not go on.
fn stalled(beginning: Vec<Vec<u8>>) -> Body {
    let beginning = stream::iter(beginning.into_iter().map(io::Result::Ok));
    Body::wrap_stream(beginning.chain(stream::pending()))
}

/// Body that begins like this and then breaks off.
fn cut(beginning: Vec<u8>) -> Body {
    let error = io::Error::other("the rest is missing");
    Body::wrap_stream(stream::iter([Ok(beginning), Err(error)]))
}

/// Body that begins with this many bytes and goes on with single ones. Counts the bodies that have begun.
fn dribbling(beginning: usize, begun: Arc<AtomicUsize>) -> Body {
    let first = stream::once(async move { io::Result::Ok(vec![b' '; beginning]) });
    let rest = stream::unfold(false, move |has_begun| {
        let begun = begun.clone();
        async move {
            if !has_begun {
                begun.fetch_add(1, Ordering::Relaxed);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
            Some((io::Result::Ok(vec![b' ']), true))
        }
    });
    Body::wrap_stream(first.chain(rest))
}

/// Returns the answer to a body that must be refused soon.
async fn refused_soon(answer: impl Future<Output = Posted>, about: &str) -> u16 {
    let answer = tokio::time::timeout(PATIENCE, answer).await;
    let answer = answer.unwrap_or_else(|_| panic!("{about}: no answer"));
    let answer = answer.unwrap_or_else(|error| panic!("{about}: {error}"));
    assert_answered(about, &answer);
    answer.0
}

/// Builds a review of a deletion that is refused, with a field of this many bytes.
fn review_of(namespace: &str, bytes: usize) -> Review {
    let text = format!("\"{}\"", "x".repeat(bytes));
    Review::of(namespace, "HookTemplate", "DELETE").old(template(&text))
}

#[tokio::test]
async fn a_body_that_is_too_long_is_refused_before_it_comes() {
    let (installation, replica) = Installation::running(shared().await, &[]).await;
    let caller = Caller::connecting_from([127, 0, 0, 1], &installation, &replica).await;
    for path in PATHS {
        for length in [LONGEST_BODY + 1, 8 * MIB, 9 * MIB, 1 << 40] {
            let about = format!("{path}: {length} bytes");
            let answer = caller.send(path, Some(length as u64), nothing());
            assert_eq!(refused_soon(answer, &about).await, TOO_LONG, "{about}");
        }
        // Without a length, the byte above the limit decides.
        let chunks = vec![vec![b' '; 64 * 1024]; LONGEST_BODY / (64 * 1024)];
        let longer = [chunks, vec![vec![b' '; 1024]]].concat();
        let answer = caller.send(path, None, stalled(longer));
        assert_eq!(refused_soon(answer, path).await, TOO_LONG, "{path}");
    }
    // As long as it may be, and announced or not.
    let namespace = &installation.namespace;
    for path in PATHS {
        let mut body = review_of(namespace, 1000).text();
        body.resize(LONGEST_BODY, b' ');
        let answer = caller.post(path, body.clone()).await.unwrap();
        assert_eq!(answer.0, 200, "{path}: {}", super::beginning(&answer.1));
        let chunks = body.chunks(50_000).map(<[u8]>::to_vec).collect();
        let answer = caller.send(path, None, parts(chunks)).await.unwrap();
        assert_eq!(answer.0, 200, "{path}: {}", super::beginning(&answer.1));
    }
    assert_small(&replica, "long bodies");
    caller.assert_at_work(namespace).await;
}

#[tokio::test]
async fn a_body_that_does_not_come_is_refused_soon() {
    let (installation, replica) = Installation::running(shared().await, &[]).await;
    let caller = Caller::connecting_from([127, 0, 0, 1], &installation, &replica).await;
    let begun = Arc::new(AtomicUsize::new(0));
    let announced = |mib: usize| Some((mib * MIB) as u64);
    let slow = PATHS.into_iter().flat_map(|path| {
        let some = vec![vec![b' '; 100 * 1024]];
        [
            (path, "nothing of 3 MiB", announced(3), nothing()),
            (path, "nothing of 7 MiB", announced(7), nothing()),
            (path, "nothing of some chunks", None, nothing()),
            (path, "100 KiB of 3 MiB", announced(3), stalled(some.clone())),
            (path, "100 KiB of some chunks", None, stalled(some)),
            (
                path,
                "single bytes of 3 MiB",
                announced(3),
                dribbling(1, begun.clone()),
            ),
            (
                path,
                "single bytes of some chunks",
                None,
                dribbling(1, begun.clone()),
            ),
            (
                path,
                "64 KiB, then single bytes",
                announced(3),
                dribbling(65_536, begun.clone()),
            ),
            (
                path,
                "200 KiB, then single bytes",
                announced(3),
                dribbling(200 << 10, begun.clone()),
            ),
        ]
    });
    let caller = &caller;
    let slow = slow.map(|(path, about, length, body)| async move {
        let about = format!("{path}: {about}");
        let status = refused_soon(caller.send(path, length, body), &about).await;
        assert_eq!(status, TOO_SLOW, "{about}");
    });
    join_all(slow).await;
    caller.assert_at_work(&installation.namespace).await;
}

#[tokio::test]
async fn a_body_in_pieces_is_read_and_a_cut_one_is_forgotten() {
    let (installation, replica) = Installation::running(shared().await, &[]).await;
    let caller = Caller::connecting_from([127, 0, 0, 1], &installation, &replica).await;
    let namespace = &installation.namespace;
    let body = review_of(namespace, 10).text();
    for length in [1, 7, 100, 100_000] {
        let pieces = body.chunks(length).map(<[u8]>::to_vec).collect();
        let (status, text) = caller.send("/guard", None, parts(pieces)).await.unwrap();
        assert_eq!(status, 200, "{text}");
        let announced = Some(body.len() as u64);
        let pieces = body.chunks(length).map(<[u8]>::to_vec).collect();
        let (status, text) = caller.send("/guard", announced, parts(pieces)).await.unwrap();
        assert_eq!(status, 200, "{text}");
    }
    // More of them than have room at a time: nothing stays claimed.
    for path in PATHS {
        for number in 0..12 {
            let length = if number % 2 == 0 { MIB } else { 2 * MIB };
            let announced = (number % 4 < 2).then_some(3 * MIB as u64);
            let answer = caller.send(path, announced, cut(vec![b' '; length])).await;
            if let Ok(answer) = answer {
                assert_answered(path, &answer);
                assert_ne!(answer.0, 200, "{path}: half a body");
            }
        }
        let (status, text) = caller
            .post(path, review_of(namespace, 6 * MIB).text())
            .await
            .unwrap();
        assert_eq!(status, 200, "{path}: {}", super::beginning(&text));
    }
    // Complete bodies that are no complete review.
    let body = review_of(namespace, 2 * MIB).text();
    for part in [1, 100, 64 * 1024, body.len() / 2, body.len() - 1] {
        for path in PATHS {
            let answer = caller.post(path, body[..part].to_vec()).await.unwrap();
            assert_answered(path, &answer);
            assert_eq!(answer.0, 400, "{path}: {part} bytes");
        }
    }
    assert_small(&replica, "cut bodies");
    caller.assert_at_work(namespace).await;
}

/// Posts slow bodies for ever. Their answers, if any, are of no interest.
async fn press(caller: Caller, path: &'static str, beginning: usize, begun: Arc<AtomicUsize>) {
    for number in 0_usize.. {
        let announced = (number % 3 != 2).then_some(3 * MIB as u64);
        let body = dribbling(beginning, begun.clone());
        let _ = caller.send(path, announced, body).await;
    }
}

/// Lets as many clients press a path as there are beginnings, for as long as the set is kept. Waits until
/// this many bodies have begun.
async fn crowd(caller: &Caller, path: &'static str, beginnings: Vec<usize>, until: usize) -> JoinSet<()> {
    let begun = Arc::new(AtomicUsize::new(0));
    let mut crowd = JoinSet::new();
    for beginning in beginnings {
        crowd.spawn(press(caller.clone(), path, beginning, begun.clone()));
    }
    eventually(SOON, || async {
        let begun = begun.load(Ordering::Relaxed);
        if begun >= until { Ok(()) } else { Err(begun) }
    })
    .await;
    crowd
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_of_slow_bodies_keeps_nobody_else_from_an_answer() {
    let (installation, replica) = Installation::running(shared().await, &[]).await;
    let stranger = Caller::connecting_from([127, 0, 0, 2], &installation, &replica).await;
    let caller = Caller::connecting_from([127, 0, 0, 1], &installation, &replica).await;
    let namespace = &installation.namespace;
    installation.must(
        &["create", "--filename", "-"],
        &super::hook_template().to_string(),
    );
    for path in PATHS {
        let beginnings = [1000, 64 * 1024, 200 * 1024, 512 * 1024].repeat(25);
        let crowd = crowd(&stranger, path, beginnings, 100).await;
        for bytes in [100, 60 * 1024, MIB, 100, MIB] {
            assert_heard(&caller, path, namespace, bytes).await;
        }
        if path == "/guard" {
            // The API server asks from the same address as the ordinary caller.
            let refusal = installation.refused(&["delete", "hooktemplate", super::NAME], "");
            assert_names_the_way_out(&refusal, "hooktemplate", namespace);
        }
        for probe in ["/healthz", "/readyz"] {
            let (status, text) = replica.ask(probe).await.unwrap();
            assert_eq!(status, 200, "{probe}: {text}");
        }
        assert_small(&replica, path);
        drop(crowd);
    }
    caller.assert_at_work(namespace).await;
}

/// Checks that a review of this many bytes has a decision.
async fn assert_heard(caller: &Caller, path: &str, namespace: &str, bytes: usize) {
    let review = review_of(namespace, bytes);
    let (status, text) = caller.post(path, review.text()).await.unwrap();
    assert_eq!(status, 200, "{path}: {bytes} bytes: {}", super::beginning(&text));
}

/// Few bodies that begin fast may fill the room, and the rate lets each of them keep it for almost 10 s.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_that_begin_fast_keep_nobody_else_from_an_answer() {
    let (installation, replica) = Installation::running(shared().await, &[]).await;
    let stranger = Caller::connecting_from([127, 0, 0, 2], &installation, &replica).await;
    let caller = Caller::connecting_from([127, 0, 0, 1], &installation, &replica).await;
    let namespace = &installation.namespace;
    let beginnings = vec![2 * MIB + 400 * 1024; 8];
    let crowd = crowd(&stranger, "/guard", beginnings, 4).await;
    for bytes in [100, MIB, 100, MIB] {
        assert_heard(&caller, "/guard", namespace, bytes).await;
    }
    drop(crowd);
    assert_small(&replica, "bodies that begin fast");
}
