//! Failed calls: one sentence with the root cause and without the request's secrets.

use std::time::Duration;

use hook_core::answer::MeasurementReason;
use tokio::io::AsyncWriteExt;

use crate::{
    ask::{assert_failure, failure, get, providers},
    server,
};

#[tokio::test]
async fn nobody_listens() {
    let server = server::nobody().await;
    let failure = failure(&providers(), get(format!("http://{server}/"))).await;
    assert_eq!(failure.kind, MeasurementReason::Unreachable);
    assert_eq!(failure.message, format!("connection refused by {server}"));
}

#[tokio::test]
async fn a_name_that_does_not_resolve() {
    let failure = failure(&providers(), get("http://no-such-room.invalid/")).await;
    assert_failure(
        &failure,
        MeasurementReason::Unreachable,
        "failed to resolve no-such-room.invalid: ",
    );
}

#[tokio::test]
async fn a_server_that_hangs_up_or_speaks_no_http() {
    for answer in [
        "",
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ncut",
        "SSH-2.0-OpenSSH_9.6\r\n",
    ] {
        let server = server::bytes(answer).await;
        let failure = failure(&providers(), get(format!("http://{server}/"))).await;
        assert_eq!(
            failure.kind,
            MeasurementReason::Unreachable,
            "{answer:?}: {failure}"
        );
        assert!(failure.message.contains(&server.to_string()), "{failure}");
    }
}

#[tokio::test]
async fn a_compressed_body_that_is_broken() {
    let server =
        server::bytes("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 8\r\n\r\nnot gzip").await;
    let failure = failure(&providers(), get(format!("http://{server}/"))).await;
    assert_failure(
        &failure,
        MeasurementReason::MalformedAnswer,
        "failed to decode the response body: ",
    );
}

#[tokio::test]
async fn no_sentence_repeats_what_the_request_kept_secret() {
    let refused = format!("http://{}", server::nobody().await);
    let (silent, ..) = server::silent().await;
    let hung_up = server::bytes("").await;
    let cut = server::bytes("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ncut").await;
    let moved = server::bytes("HTTP/1.1 302 Found\r\nLocation: http://other.example/?t=hush\r\n\r\n").await;
    let (parrot, _) = server::raw(|mut stream| async move {
        let head = server::head(&mut stream).await;
        let answer = format!("HTTP/1.1 401 No\r\nContent-Length: {}\r\n\r\n{head}", head.len());
        stream.write_all(answer.as_bytes()).await.unwrap();
    })
    .await;
    let hosts = [
        refused,
        "http://hush-user:hush@game.example".into(),
        "http://169.254.169.254".into(),
        "http://no-such-room.invalid".into(),
        "hush-scheme://game".into(),
        format!("http://{silent}"),
        format!("http://{hung_up}"),
        format!("http://{cut}"),
        format!("http://{moved}"),
        format!("http://{parrot}"),
        format!("https://{hung_up}"),
    ];
    for host in hosts {
        let mut request = get(format!("{host}/hook?token=hush-query"));
        request.headers = vec![
            ("Authorization".into(), "Bearer hush-header".into()),
            ("X-Key".into(), "hush-key".into()),
        ];
        request.timeout = Duration::from_millis(300);
        let failure = failure(&providers(), request).await;
        let scheme_is_no_secret = failure.message.replace("hush-scheme", "");
        assert!(!scheme_is_no_secret.contains("hush"), "{host}: {failure}");
        assert!(!failure.message.contains('\n'), "{host}: {failure}");
    }
}
