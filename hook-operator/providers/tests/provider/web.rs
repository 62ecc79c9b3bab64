//! Endpoint that answers properly.

use std::sync::atomic::Ordering;

use axum::{
    Router,
    body::Bytes,
    http::{HeaderMap, Method as HttpMethod, Uri},
    routing::any,
};
use expr_conditions::Origin;
use hook_core::{
    answer::{MeasurementReason, ProviderResponse},
    request::{Body, HttpRequest, Method},
};
use json_path::JsonPath;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::{
    ask::{assert_failure, failure, get, providers, value},
    server,
};

/// Echoes the request.
async fn echo(method: HttpMethod, uri: Uri, headers: HeaderMap, body: Bytes) -> String {
    let mut lines = vec![format!("{method} {uri}")];
    for (name, value) in &headers {
        lines.push(format!("{name}: {}", value.to_str().unwrap()));
    }
    lines.push(String::from_utf8(body.to_vec()).unwrap());
    lines.join("\n")
}

fn answer(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

#[tokio::test]
async fn json_and_text_are_values_and_the_exchange_has_facts() {
    let cases = [
        ("{\"players\": 0}", "{\"players\":0}"),
        ("1000000", "1000000"),
        ("ready to go", "ready to go"),
    ];
    for (body, text) in cases {
        let server = server::bytes(answer(body)).await;
        let request = get(format!("http://{server}/"));
        let Ok(ProviderResponse::Value { result, origin }) =
            providers().measure("games", &HttpRequest::Web(request)).await
        else {
            panic!("{body}")
        };
        assert_eq!(result.text(), text);
        let Some(Origin::Exchange(response)) = origin else {
            panic!("{origin:?}")
        };
        assert_eq!(response.code, 200);
        assert!(response.latency.as_nanos() > 0);
    }
}

#[tokio::test]
async fn the_content_type_of_an_answer_decides_what_is_text() {
    for (headers, outcome) in [
        ("", Ok("busy")),
        ("Content-Type: text/plain\r\n", Ok("busy")),
        (
            "Content-Type: Application/JSON; charset=utf-8\r\n",
            Err("must send text as text/plain"),
        ),
        (
            "content-type: text/plain\r\ncontent-type: application/problem+json\r\n",
            Err("must send text as text/plain"),
        ),
    ] {
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n{headers}\r\nbusy\n");
        let request = get(format!("http://{}/", server::bytes(answer).await));
        match outcome {
            Ok(text) => assert_eq!(value(&providers(), request).await, text, "{headers}"),
            Err(words) => {
                let failure = failure(&providers(), request).await;
                assert_eq!(failure.kind, MeasurementReason::MalformedAnswer);
                assert!(failure.message.contains(words), "{failure}");
            }
        }
    }
}

#[tokio::test]
async fn a_path_takes_a_part_of_the_answer() {
    let server = server::bytes(answer(r#"{"rooms": [{"players": 3}, {"players": 4}]}"#)).await;
    for (path, text) in [
        ("{.rooms[0].players}", "3"),
        ("{$.rooms[*].players}", "[3,4]"),
        ("$.rooms[1]", "{\"players\":4}"),
    ] {
        let mut request = get(format!("http://{server}/"));
        request.json_path = Some(JsonPath::parse(path).unwrap());
        assert_eq!(value(&providers(), request).await, text, "{path}");
    }
    let mut request = get(format!("http://{server}/"));
    request.json_path = Some(JsonPath::parse("{.status}").unwrap());
    assert_eq!(
        failure(&providers(), request).await.kind,
        MeasurementReason::PathNotFound
    );
}

#[tokio::test]
async fn a_call_carries_what_the_manifest_says() {
    let server = server::serve(Router::new().fallback(any(echo))).await;
    let mut request = get(format!("http://{server}/rooms/7?full=1#part"));
    request.headers = vec![
        ("X-Room".into(), "first".into()),
        ("x-room".into(), "second".into()),
        ("Host".into(), "game.example".into()),
        ("X-Name".into(), "plain".into()),
    ];
    let seen = value(&providers(), request).await;
    let agent = concat!("user-agent: hookgate/", env!("CARGO_PKG_VERSION"));
    for line in [
        "GET /rooms/7?full=1",
        "x-room: second",
        "host: game.example",
        "x-name: plain",
        agent,
    ] {
        assert!(seen.lines().any(|seen| seen == line), "{line} in\n{seen}");
    }
    assert!(!seen.contains("first") && !seen.contains("cookie"), "{seen}");
    assert_eq!(seen.matches("host:").count(), 1, "{seen}");
}

#[tokio::test]
async fn a_body_is_sent_with_its_method_and_content_type() {
    let server = server::serve(Router::new().fallback(any(echo))).await;
    let json = Body {
        content_type: Some("application/json"),
        text: "{\"room\":7}".into(),
    };
    for (method, word) in [(Method::Post, "POST"), (Method::Put, "PUT")] {
        let mut request = get(format!("http://{server}/"));
        request.method = method;
        request.body = Some(json.clone());
        let seen = value(&providers(), request.clone()).await;
        assert!(seen.starts_with(&format!("{word} /\n")), "{seen}");
        assert!(
            seen.contains("content-type: application/json\n") && seen.ends_with("{\"room\":7}"),
            "{seen}"
        );

        request.headers = vec![("Content-Type".into(), "application/vnd.game+json".into())];
        let seen = value(&providers(), request).await;
        assert!(
            seen.contains("content-type: application/vnd.game+json\n"),
            "{seen}"
        );
    }
    let empty = Body {
        content_type: None,
        text: String::new(),
    };
    for (method, body) in [
        (Method::Post, None),
        (Method::Put, None),
        (Method::Post, Some(empty)),
    ] {
        let mut request = get(format!("http://{server}/"));
        request.method = method;
        request.body = body;
        let seen = value(&providers(), request).await;
        assert_eq!(seen.matches("content-length: 0\n").count(), 1, "{seen}");
    }
    let seen = value(&providers(), get(format!("http://{server}/"))).await;
    assert!(!seen.contains("content-length"), "{seen}");
    let mut request = get(format!("http://{server}/"));
    request.body = Some(json);
    assert_failure(
        &failure(&providers(), request).await,
        MeasurementReason::InvalidRequest,
        "a GET request cannot have a body",
    );
}

#[tokio::test]
async fn a_connection_is_kept_for_the_next_measurement_and_cookies_are_not() {
    let (server, connections) = server::raw(|mut stream| async move {
        loop {
            let head = server::head(&mut stream).await;
            if head.is_empty() {
                return;
            }
            assert!(!head.to_lowercase().contains("cookie:"), "{head}");
            let answer = "HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nContent-Length: 1\r\n\r\n7";
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    })
    .await;
    let providers = providers();
    for _ in 0..5 {
        assert_eq!(value(&providers, get(format!("http://{server}/"))).await, "7");
    }
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn any_status_but_2xx_is_a_failure_with_an_excerpt() {
    for (head, code) in [
        ("503 Nope", 503),
        ("404 Nope", 404),
        ("304 Nope", 304),
        ("302 Nope", 302),
    ] {
        let length = if code == 304 { "" } else { "Content-Length: 9\r\n" };
        let body = if code == 304 { "" } else { "no \x07room\n" };
        let server = server::bytes(format!("HTTP/1.1 {head}\r\n{length}\r\n{body}")).await;
        let failure = failure(&providers(), get(format!("http://{server}/"))).await;
        let expected = format!(
            "received status {code}{}",
            if code == 304 { "" } else { ": no room" }
        );
        assert_eq!(
            (failure.kind, failure.message),
            (MeasurementReason::Status, expected)
        );
    }
}

#[tokio::test]
async fn a_broken_error_page_does_not_hide_the_status() {
    let server =
        server::bytes("HTTP/1.1 500 X\r\nContent-Encoding: gzip\r\nContent-Length: 8\r\n\r\nnot gzip").await;
    let failure = failure(&providers(), get(format!("http://{server}/"))).await;
    assert_failure(&failure, MeasurementReason::Status, "received status 500");
}

#[tokio::test]
async fn a_header_that_is_none_is_refused_without_its_value() {
    let server = server::nobody().await;
    let cases = [
        ("bad name", "x", "\"bad name\" is not a valid header name"),
        ("", "x", "\"\" is not a valid header name"),
        (
            "X-Room",
            "hush\r\nX-Admin: 1",
            "the value of header X-Room must not contain",
        ),
        ("X-Room", "hush\0", "the value of header X-Room must not contain"),
        ("Content-Length", "5", "hooks must not set header Content-Length"),
        (
            "transfer-encoding",
            "chunked",
            "hooks must not set header transfer-encoding",
        ),
    ];
    for (name, text, beginning) in cases {
        let mut request = get(format!("http://{server}/"));
        request.headers = vec![(name.into(), text.into())];
        let failure = failure(&providers(), request).await;
        assert_failure(&failure, MeasurementReason::InvalidRequest, beginning);
        assert!(!failure.message.contains("hush"), "{failure}");
    }
}

#[tokio::test]
async fn text_beyond_ascii_may_stand_in_a_header() {
    let (server, _) = server::raw(|mut stream| async move {
        let mut bytes = vec![0; 4096];
        let read = stream.read(&mut bytes).await.unwrap();
        let seen = String::from_utf8_lossy(&bytes[..read]).contains("x-room: späť");
        stream
            .write_all(answer(&seen.to_string()).as_bytes())
            .await
            .unwrap();
    })
    .await;
    let mut request = get(format!("http://{server}/"));
    request.headers = vec![("X-Room".into(), "späť".into())];
    assert_eq!(value(&providers(), request).await, "true");
}

#[tokio::test]
async fn an_url_that_is_none_is_refused() {
    for url in [
        "",
        "game/status",
        "/status",
        "http://",
        "http://[::1",
        "http://a b/",
    ] {
        let failure = failure(&providers(), get(url)).await;
        assert_failure(
            &failure,
            MeasurementReason::InvalidRequest,
            "url is not a valid URL: ",
        );
    }
}
