//! Instant queries against a server that behaves like Prometheus, or does not.

use axum::{
    Form, Router,
    extract::Query,
    http::{HeaderMap, StatusCode},
    routing::{get, post},
};
use expr_conditions::Origin;
use hook_core::{
    answer::{MeasurementReason, ProviderResponse},
    request::HttpRequest,
};
use serde_json::Value;
use tokio::io::AsyncWriteExt;

use crate::{
    ask::{assert_failure, providers, query},
    server,
};

const QUERY: &str = "players{room=\"a&b\"} > 0";

fn vector(values: &str) -> String {
    format!(r#"{{"status":"success","data":{{"resultType":"vector","result":[{values}]}}}}"#)
}

async fn answering(status: u16, body: &'static str) -> HttpRequest {
    let status = StatusCode::from_u16(status).unwrap();
    let routes = Router::new().route("/api/v1/query", post(async move || (status, body)));
    HttpRequest::Prometheus(query(format!("http://{}", server::serve(routes).await)))
}

#[tokio::test]
async fn a_query_is_posted_below_the_base_address_with_its_headers() {
    async fn seen(headers: HeaderMap, Form(form): Form<Value>) -> String {
        assert_eq!(form, serde_json::json!({ "query": QUERY }));
        assert_eq!(headers.get("x-scope-orgid").unwrap(), "team-a");
        vector(r#"{"metric":{},"value":[1,"3"]},{"metric":{},"value":[1,"NaN"]}"#)
    }
    let routes = Router::new().route("/thanos/api/v1/query", post(seen));
    let mut request = query(format!("http://{}/thanos/", server::serve(routes).await));
    request.headers = vec![("X-Scope-OrgID".into(), "team-a".into())];
    let Ok(ProviderResponse::Value { result, origin }) = providers()
        .measure("games", &HttpRequest::Prometheus(request))
        .await
    else {
        panic!("no value")
    };
    assert_eq!(result.text(), "[3,NaN]");
    assert!(matches!(origin, Some(Origin::Exchange(response)) if response.code == 200));
}

#[tokio::test]
async fn a_server_that_takes_no_post_is_asked_with_a_get() {
    async fn seen(Query(form): Query<Value>) -> String {
        assert_eq!(form, serde_json::json!({ "query": QUERY }));
        r#"{"status":"success","data":{"resultType":"scalar","result":[1,"0.99"]}}"#.into()
    }
    let routes = Router::new().route("/api/v1/query", get(seen));
    let request = HttpRequest::Prometheus(query(format!("http://{}", server::serve(routes).await)));
    let Ok(ProviderResponse::Value { result, .. }) = providers().measure("games", &request).await else {
        panic!("no value")
    };
    assert_eq!(result.text(), "0.99");
}

#[tokio::test]
async fn no_series_is_no_data() {
    let nothing = r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#;
    let request = answering(200, nothing).await;
    let Ok(ProviderResponse::NoData { message, result, .. }) = providers().measure("games", &request).await
    else {
        panic!("data")
    };
    assert_eq!(message, "the query matched no series");
    assert_eq!(result.text(), "[]");
}

#[tokio::test]
async fn failures_are_told_apart() {
    let bad_data = r#"{"status":"error","errorType":"bad_data","error":"1:9: parse error"}"#;
    let timeout = r#"{"status":"error","errorType":"timeout","error":"query timed out"}"#;
    let matrix = r#"{"status":"success","data":{"resultType":"matrix","result":[]}}"#;
    let string = r#"{"status":"success","data":{"resultType":"string","result":[1,"x"]}}"#;
    let (refused, malformed) = (MeasurementReason::QueryFailed, MeasurementReason::MalformedAnswer);
    let refusal = "Prometheus rejected the query: ";
    let cases = [
        (
            400,
            bad_data,
            refused,
            &*format!("{refusal}bad_data: 1:9: parse error"),
        ),
        (
            503,
            timeout,
            refused,
            &format!("{refusal}timeout: query timed out"),
        ),
        (
            502,
            "<html>up",
            MeasurementReason::Status,
            "received status 502: <html>up",
        ),
        (200, "<html>log in", malformed, "the response is not JSON"),
        (200, matrix, malformed, "Prometheus returned a matrix; "),
        (200, string, malformed, "Prometheus returned a string; "),
    ];
    for (status, body, kind, beginning) in cases {
        let request = answering(status, body).await;
        let failure = providers().measure("games", &request).await.unwrap_err();
        assert_failure(&failure, kind, beginning);
    }
}

#[tokio::test]
async fn an_endless_answer_is_left() {
    let (server, _) = server::raw(|mut stream| async move {
        server::head(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
        while stream.write_all(&[b' '; 8192]).await.is_ok() {}
    })
    .await;
    let request = HttpRequest::Prometheus(query(format!("http://{server}")));
    let failure = providers().measure("games", &request).await.unwrap_err();
    let (kind, words) = (
        MeasurementReason::MalformedAnswer,
        "the response is larger than 1 MiB",
    );
    assert_failure(&failure, kind, words);
}

#[tokio::test]
async fn an_address_without_a_scheme_is_refused() {
    for (address, kind) in [
        ("prometheus:9090", MeasurementReason::InvalidRequest),
        ("prometheus", MeasurementReason::InvalidRequest),
        ("ftp://prometheus", MeasurementReason::Forbidden),
    ] {
        let failure = providers()
            .measure("games", &HttpRequest::Prometheus(query(address)))
            .await
            .unwrap_err();
        assert_eq!(failure.kind, kind, "{address}: {failure}");
        assert!(failure.message.contains("http://"), "{failure}");
    }
}
