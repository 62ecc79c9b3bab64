//! Redirects stay on scheme, host and port.

use std::net::SocketAddr;

use axum::{
    Router,
    body::Bytes,
    http::{HeaderMap, Method as HttpMethod, StatusCode, header::LOCATION},
    routing::any,
};
use hook_core::{
    answer::MeasurementReason,
    request::{Body, Method},
};

use crate::{
    ask::{assert_failure, failure, get, providers, value},
    server,
};

async fn redirecting(code: u16, location: impl Into<String>) -> SocketAddr {
    let status = StatusCode::from_u16(code).unwrap();
    let location: String = location.into();
    let routes = Router::new()
        .route(
            "/from",
            any(async move || (status, [(LOCATION, location)], "moved")),
        )
        .route(
            "/to",
            any(async |method: HttpMethod, headers: HeaderMap, body: Bytes| {
                let key = headers.get("x-key").map(|key| key.to_str().unwrap().to_owned());
                let kind = headers.get("content-type").is_some();
                format!("{method} {key:?} {kind} {}", body.len())
            }),
        );
    server::serve(routes).await
}

#[tokio::test]
async fn on_the_same_host_a_redirect_is_followed_with_its_headers() {
    for code in [301, 302, 303, 307, 308] {
        let server = redirecting(code, "/to?x=1#part").await;
        let mut request = get(format!("http://{server}/from"));
        request.headers = vec![("X-Key".into(), "key".into())];
        assert_eq!(
            value(&providers(), request).await,
            "GET Some(\"key\") false 0",
            "{code}"
        );
    }
}

#[tokio::test]
async fn a_post_is_repeated_or_becomes_a_get_as_the_status_says() {
    for (code, method, seen) in [
        (301, Method::Post, "GET None false 0"),
        (302, Method::Post, "GET None false 0"),
        (303, Method::Put, "GET None false 0"),
        (302, Method::Put, "PUT None true 2"),
        (307, Method::Post, "POST None true 2"),
        (308, Method::Put, "PUT None true 2"),
    ] {
        let server = redirecting(code, "/to").await;
        let mut request = get(format!("http://{server}/from"));
        request.method = method;
        request.body = Some(Body {
            content_type: Some("application/json"),
            text: "{}".into(),
        });
        assert_eq!(value(&providers(), request).await, seen, "{code}");
    }
}

#[tokio::test]
async fn to_another_host_port_or_scheme_it_is_not_followed() {
    let (other, connections, _) = server::silent().await;
    let targets = [
        format!("http://{other}/to"),
        "http://other.example/to?token=hush".into(),
        "//other.example/to".into(),
        format!("https://{other}/to"),
    ];
    for target in targets {
        let server = redirecting(302, target.clone()).await;
        let failure = failure(&providers(), get(format!("http://{server}/from"))).await;
        assert_failure(
            &failure,
            MeasurementReason::Status,
            "received status 302, a redirect to http",
        );
        assert!(
            failure
                .message
                .contains("redirects to another host, port or scheme are not"),
            "{failure}"
        );
        let host = if target.contains("other.example") {
            "other.example:80".into()
        } else {
            other.to_string()
        };
        assert!(
            failure.message.contains(&host) && !failure.message.contains("hush"),
            "{failure}"
        );
    }
    assert_eq!(connections.load(std::sync::atomic::Ordering::SeqCst), 0);
}

#[tokio::test]
async fn to_where_no_hook_may_go_it_is_forbidden() {
    for target in [
        "http://169.254.169.254/latest/meta-data/",
        "http://[::ffff:169.254.169.254]/",
        "http://user:hush@127.0.0.1/",
        "file:///etc/passwd",
        "ftp://game/",
    ] {
        let server = redirecting(307, target).await;
        let failure = failure(&providers(), get(format!("http://{server}/from"))).await;
        assert_failure(
            &failure,
            MeasurementReason::Forbidden,
            "received status 307, a redirect to a forbidden address",
        );
        assert!(!failure.message.contains("hush"), "{failure}");
    }
}

#[tokio::test]
async fn after_three_hops_it_is_given_up() {
    let server = redirecting(302, "/from").await;
    let failure = failure(&providers(), get(format!("http://{server}/from"))).await;
    assert_failure(
        &failure,
        MeasurementReason::Status,
        "received status 302: more than 3 redirects",
    );
}

#[tokio::test]
async fn a_target_that_is_no_url_is_a_status() {
    for target in ["http://", "http://[", "http://a b/"] {
        let server = redirecting(302, target).await;
        let failure = failure(&providers(), get(format!("http://{server}/from"))).await;
        assert_failure(
            &failure,
            MeasurementReason::Status,
            "received status 302, a redirect to an invalid URL",
        );
    }
}
