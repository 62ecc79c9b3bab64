//! A web metric as an HTTP call.

use hook_core::{
    answer::{Answer, MeasurementFailure, interpret_web},
    request::{Body, Method, WebRequest},
};
use reqwest::header::{CONTENT_TYPE, HeaderValue};

use super::{
    Shared,
    exchange::{self, Call, invalid, parse_headers, parse_url},
};

/// Asks the endpoint once.
pub(super) async fn measure(
    shared: &Shared,
    namespace: &str,
    request: &WebRequest,
) -> Result<Answer, MeasurementFailure> {
    let call = call(request)?;
    let url = call.url.clone();
    let send = |client| async move { exchange::send(shared, &client, call).await };
    let reply = exchange::within(shared, namespace, &url, &request.tls, request.timeout, send).await?;
    interpret_web(request, reply.code, reply.latency, &reply.body)
}

fn call(request: &WebRequest) -> Result<Call, MeasurementFailure> {
    let mut headers = parse_headers(&request.headers)?;
    if let Some(Body {
        content_type: Some(content_type),
        ..
    }) = &request.body
    {
        // A header of the manifest may say more, for example `application/vnd.game+json`.
        headers
            .entry(CONTENT_TYPE)
            .or_insert(HeaderValue::from_static(content_type));
    }
    let method = match (request.method, &request.body) {
        (Method::Get, Some(_)) => return Err(invalid("a GET has no body; use method POST or PUT".into())),
        (Method::Get, None) => reqwest::Method::GET,
        (Method::Post, _) => reqwest::Method::POST,
        (Method::Put, _) => reqwest::Method::PUT,
    };
    Ok(Call {
        method,
        url: parse_url("url", &request.url)?,
        headers,
        body: request.body.as_ref().map(|body| body.text.clone()),
    })
}
