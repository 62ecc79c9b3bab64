//! No answer makes the operator read, keep or decompress more than it interprets.

use std::{
    io::Write,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use flate2::{Compression, write::GzEncoder};
use hook_core::answer::MeasurementReason;
use tokio::io::AsyncWriteExt;

use crate::{
    ask::{assert_failure, failure, get, providers, value},
    server,
};

const MIB: usize = 1024 * 1024;

fn zipped(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn zipped_answer(body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

#[tokio::test]
async fn a_zipped_answer_is_unpacked() {
    let server = server::bytes(zipped_answer(&zipped(b"{\"players\": 3}"))).await;
    assert_eq!(
        value(&providers(), get(format!("http://{server}/"))).await,
        "{\"players\":3}"
    );
}

#[tokio::test]
async fn several_zipped_parts_are_one_answer() {
    let parts = [zipped(b"{\"players\":"), zipped(b" 3}")].concat();
    let server = server::bytes(zipped_answer(&parts)).await;
    let seen = value(&providers(), get(format!("http://{server}/"))).await;
    assert_eq!(seen, "{\"players\":3}");
}

#[tokio::test]
async fn an_empty_answer_is_not_zipped() {
    let server = server::bytes(zipped_answer(b"")).await;
    let called = providers().call("games", &get(format!("http://{server}/"))).await;
    assert!(called.is_ok(), "{called:?}");
}

#[tokio::test]
async fn a_zipped_answer_that_is_cut_is_no_value() {
    let whole = zipped(b"ready ready ready ready");
    for length in [5, 15, whole.len() - 5] {
        let server = server::bytes(zipped_answer(&whole[..length])).await;
        let failure = failure(&providers(), get(format!("http://{server}/"))).await;
        assert_failure(
            &failure,
            MeasurementReason::MalformedAnswer,
            "failed to decode the response body: ",
        );
    }
}

#[tokio::test]
async fn an_answer_of_a_mebibyte_is_read_and_one_byte_more_is_not() {
    for (length, fits) in [(MIB, true), (MIB + 1, false)] {
        let mut answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n").into_bytes();
        answer.resize(answer.len() + length, b'x');
        let request = get(format!("http://{}/", server::bytes(answer).await));
        if fits {
            assert_eq!(value(&providers(), request).await.len(), length);
        } else {
            let failure = failure(&providers(), request).await;
            assert_failure(
                &failure,
                MeasurementReason::MalformedAnswer,
                "the response is larger than 1 MiB",
            );
        }
    }
}

#[tokio::test]
async fn an_endless_answer_is_left_after_a_mebibyte() {
    for head in ["Content-Length: 10000000000", "X-No-Length: 1"] {
        let sent = Arc::new(AtomicUsize::new(0));
        let done = Arc::new(AtomicUsize::new(0));
        let (server, _) = server::raw({
            let (sent, done) = (Arc::clone(&sent), Arc::clone(&done));
            move |mut stream| {
                let (sent, done) = (Arc::clone(&sent), Arc::clone(&done));
                async move {
                    server::head(&mut stream).await;
                    let _ = stream
                        .write_all(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n").as_bytes())
                        .await;
                    let block = vec![b'1'; 16 * 1024];
                    while stream.write_all(&block).await.is_ok() {
                        sent.fetch_add(block.len(), Ordering::SeqCst);
                    }
                    done.fetch_add(1, Ordering::SeqCst);
                }
            }
        })
        .await;
        let failure = failure(&providers(), get(format!("http://{server}/"))).await;
        assert_failure(
            &failure,
            MeasurementReason::MalformedAnswer,
            "the response is larger than 1 MiB",
        );
        // The server's next write fails: the client closed the connection without draining it. Only the
        // kernel's buffers hold surplus bytes.
        server::reaches(&done, 1).await;
        let sent = sent.load(Ordering::SeqCst);
        assert!(sent < 16 * MIB, "{sent} bytes were served");
    }
}

#[tokio::test]
async fn a_small_answer_that_unpacks_without_end_is_left_after_a_mebibyte() {
    // After a flush the stream is at a byte boundary and its window is full of zeroes, so the code for the
    // second MiB works for every further one: about 1 KiB each.
    let zeroes = vec![b'0'; MIB];
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let mut ends = [0; 2];
    for end in &mut ends {
        encoder.write_all(&zeroes).unwrap();
        encoder.flush().unwrap();
        *end = encoder.get_ref().len();
    }
    let stream = encoder.get_ref().clone();
    let (first, again) = (stream[..ends[0]].to_vec(), stream[ends[0]..ends[1]].to_vec());
    assert!(again.len() < 8192, "{}", again.len());

    let (server, _) = server::raw(move |mut stream| {
        let (first, again) = (first.clone(), again.clone());
        async move {
            server::head(&mut stream).await;
            let _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n")
                .await;
            let _ = stream.write_all(&first).await;
            while stream.write_all(&again).await.is_ok() {}
        }
    })
    .await;
    let failure = failure(&providers(), get(format!("http://{server}/"))).await;
    assert_failure(
        &failure,
        MeasurementReason::MalformedAnswer,
        "the response is larger than 1 MiB",
    );
}

const LONG_HEAD: &str = "the response has more than 100 headers, or they are larger than 16 KiB";

#[tokio::test]
async fn an_endless_head_is_a_failure() {
    let (server, _) = server::raw(|mut stream| async move {
        server::head(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n").await;
        while stream.write_all(&[b'x'; 8192]).await.is_ok() {}
    })
    .await;
    let failure = failure(&providers(), get(format!("http://{server}/"))).await;
    assert_failure(&failure, MeasurementReason::MalformedAnswer, LONG_HEAD);
}

/// Returns an answer whose head has this length.
fn with_head_of(bytes: usize) -> String {
    let (start, end) = ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nX-Long: ", "\r\n\r\n");
    let long = "x".repeat(bytes - start.len() - end.len());
    format!("{start}{long}{end}7")
}

#[tokio::test]
async fn a_head_of_16_kib_is_read_and_one_byte_more_is_not() {
    for (bytes, fits) in [(16 * 1024 - 1, true), (16 * 1024, true), (16 * 1024 + 1, false)] {
        let request = get(format!("http://{}/", server::bytes(with_head_of(bytes)).await));
        if fits {
            assert_eq!(value(&providers(), request).await, "7");
        } else {
            let failure = failure(&providers(), request).await;
            assert_failure(&failure, MeasurementReason::MalformedAnswer, LONG_HEAD);
        }
    }
}

#[tokio::test]
async fn more_than_100_headers_are_a_failure() {
    let head = |number| {
        format!(
            "HTTP/1.1 200 OK\r\n{}Content-Length: 1\r\n\r\n7",
            "X: 1\r\n".repeat(number)
        )
    };
    let server = server::bytes(head(99)).await;
    assert_eq!(value(&providers(), get(format!("http://{server}/"))).await, "7");
    let server = server::bytes(head(100)).await;
    let failure = failure(&providers(), get(format!("http://{server}/"))).await;
    assert_failure(&failure, MeasurementReason::MalformedAnswer, LONG_HEAD);
}
