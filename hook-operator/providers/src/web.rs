//! A web metric as an HTTP call.

use hook_core::{
    answer::MeasurementFailure,
    request::{Body, Method, WebRequest},
};
use http::header::{CONTENT_TYPE, HeaderValue};

use crate::{
    Clock, MemoryReservation, Shared,
    exchange::{self, HttpCall, Measurement, Reply, invalid, parse_headers, parse_url},
};

/// Calls the endpoint once.
pub(crate) async fn ask(
    shared: &Shared,
    clock: Clock,
    namespace: &str,
    request: &WebRequest,
    reservation: &mut MemoryReservation,
) -> Result<Reply, MeasurementFailure> {
    let call = call(request)?;
    let url = call.url.clone();
    let repeatable = call.method.is_safe();
    let send = async |client, reservation: &mut MemoryReservation| {
        exchange::send(shared, &client, call, repeatable, reservation).await
    };
    let measurement = Measurement {
        clock,
        namespace,
        url: &url,
        tls: &request.tls,
        timeout: request.timeout,
        repeatable,
    };
    exchange::within(shared, measurement, reservation, send).await
}

fn call(request: &WebRequest) -> Result<HttpCall, MeasurementFailure> {
    let mut headers = parse_headers(&request.headers)?;
    if let Some(Body {
        content_type: Some(content_type),
        ..
    }) = &request.body
    {
        // A header in the manifest may be more specific, for example `application/vnd.game+json`.
        headers
            .entry(CONTENT_TYPE)
            .or_insert(HeaderValue::from_static(content_type));
    }
    let method = match (request.method, &request.body) {
        (Method::Get, Some(_)) => {
            return Err(invalid(
                "a GET request cannot have a body; use method POST or PUT".into(),
            ));
        }
        (Method::Get, None) => http::Method::GET,
        (Method::Post, _) => http::Method::POST,
        (Method::Put, _) => http::Method::PUT,
    };
    Ok(HttpCall {
        method,
        url: parse_url("url", &request.url)?,
        headers,
        body: request.body.as_ref().map(|body| body.text.clone().into()),
    })
}
