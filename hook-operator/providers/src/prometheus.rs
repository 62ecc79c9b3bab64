//! Instant query as an HTTP call. It is posted as a form, because queries outgrow URLs; if a server or proxy
//! does not allow POST, a GET follows.

use hook_core::{answer::MeasurementFailure, request::PrometheusRequest};
use http::{
    Method, StatusCode,
    header::{CONTENT_TYPE, HeaderValue},
};
use url::Url;

use crate::{
    Clock, MemoryReservation, Shared,
    exchange::{self, HttpCall, Measurement, Reply, invalid, parse_headers, parse_url},
};

/// Queries the server once, at its own current time.
pub(crate) async fn ask(
    shared: &Shared,
    clock: Clock,
    namespace: &str,
    request: &PrometheusRequest,
    reservation: &mut MemoryReservation,
) -> Result<Reply, MeasurementFailure> {
    let (post, get) = calls(request)?;
    let url = post.url.clone();
    let send = async |client, reservation: &mut MemoryReservation| {
        let reply: Reply = exchange::send(shared, &client, post, true, reservation).await?;
        if reply.head.code == StatusCode::METHOD_NOT_ALLOWED.as_u16() {
            return exchange::send(shared, &client, get, true, reservation).await;
        }
        Ok(reply)
    };
    let measurement = Measurement {
        clock,
        namespace,
        url: &url,
        tls: &request.tls,
        timeout: request.timeout,
        repeatable: true,
    };
    exchange::within(shared, measurement, reservation, send).await
}

/// Builds the query as a POST and as a GET.
fn calls(request: &PrometheusRequest) -> Result<(HttpCall, HttpCall), MeasurementFailure> {
    let headers = parse_headers(&request.headers)?;
    let post_url = endpoint(&request.address)?;
    let mut get_url = post_url.clone();
    get_url.query_pairs_mut().append_pair("query", &request.query);

    let mut form = post_url.clone();
    form.set_query(None);
    form.query_pairs_mut().append_pair("query", &request.query);
    let mut post_headers = headers.clone();
    post_headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("application/x-www-form-urlencoded"),
    );
    let post = HttpCall {
        method: Method::POST,
        url: post_url,
        headers: post_headers,
        body: form.query().map(|query| query.to_owned().into()),
    };
    let get = HttpCall {
        method: Method::GET,
        url: get_url,
        headers,
        body: None,
    };
    Ok((post, get))
}

/// Returns the API's URL below a base URL, which may have a path (a proxy's prefix) and a query (a tenant).
fn endpoint(address: &str) -> Result<Url, MeasurementFailure> {
    let mut url = parse_url("address", address)?;
    url.path_segments_mut()
        .map_err(|()| invalid("address must start with http:// or https://, followed by a host".into()))?
        .pop_if_empty()
        .extend(["api", "v1", "query"]);
    Ok(url)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hook_core::request::Tls;
    use redact::Redactor;

    use super::*;

    #[test]
    fn the_api_is_found_below_any_base_address() {
        let cases = [
            ("http://p:9090", "http://p:9090/api/v1/query"),
            ("http://p:9090/", "http://p:9090/api/v1/query"),
            ("http://p/thanos", "http://p/thanos/api/v1/query"),
            (
                "http://p/select/0/?tenant=a#x",
                "http://p/select/0/api/v1/query?tenant=a",
            ),
        ];
        for (address, url) in cases {
            assert_eq!(endpoint(address).unwrap().as_str(), url);
        }
        for address in ["prometheus", "prometheus:9090", "", "http://"] {
            assert!(endpoint(address).is_err(), "{address}");
        }
    }

    #[test]
    fn a_query_is_encoded_in_either_form() {
        let request = PrometheusRequest {
            accept_partial: false,
            address: "http://p?tenant=a".into(),
            query: "sum(x{a=\"b&c\"}) + 1".into(),
            headers: Vec::new(),
            timeout: Duration::from_secs(1),
            tls: Tls::default(),
            redactor: Redactor::default(),
        };
        let (post, get) = calls(&request).unwrap();
        let form = "query=sum%28x%7Ba%3D%22b%26c%22%7D%29+%2B+1";
        assert_eq!(post.body.as_deref(), Some(form.as_bytes()));
        assert_eq!(post.url.query(), Some("tenant=a"));
        assert_eq!(get.url.query(), Some(format!("tenant=a&{form}").as_str()));
    }
}
