//! Redirects, followed only within the same scheme, host and port, because the manifest's headers belong only
//! there.

use hook_core::answer::{MeasurementFailure, MeasurementReason};
use http::{
    Method, Response, StatusCode,
    header::{CONTENT_TYPE, LOCATION},
};
use hyper::body::Incoming;
use url::Url;

use super::HttpCall;
use crate::{egress::EgressPolicy, failure::place};

/// Next action after an answer's head.
pub(super) enum Next {
    /// Read the body: this is the answer.
    Read,
    /// Make this call instead.
    Follow(Box<HttpCall>),
}

/// Decides by the status and `Location`. A redirect without `Location` is an answer like any other.
pub(super) fn next(
    call: &HttpCall,
    response: &Response<Incoming>,
    egress: &EgressPolicy,
) -> Result<Next, MeasurementFailure> {
    let status = response.status();
    let location = response.headers().get(LOCATION);
    let (true, Some(location)) = (is_redirect(status), location) else {
        return Ok(Next::Read);
    };
    let code = status.as_u16();
    let target = location.to_str().ok().and_then(|text| call.url.join(text).ok());
    let Some(mut target) = target else {
        let message = format!("received status {code}, a redirect to an invalid URL");
        return Err(MeasurementFailure::new(MeasurementReason::Status, message));
    };
    target.set_fragment(None);
    if let Err(refusal) = egress.check_url(&target) {
        let message = format!("received status {code}, a redirect to a forbidden address: {refusal}");
        return Err(MeasurementFailure::new(MeasurementReason::Forbidden, message));
    }
    if !same_origin(&call.url, &target) {
        let message = format!(
            "received status {code}, a redirect to {}://{}; redirects to another host, port or scheme are not \
             followed",
            target.scheme(),
            place(&target)
        );
        return Err(MeasurementFailure::new(MeasurementReason::Status, message));
    }
    Ok(Next::Follow(Box::new(redirected(call, status, target))))
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    )
}

fn same_origin(one: &Url, other: &Url) -> bool {
    one.scheme() == other.scheme()
        && one.host_str() == other.host_str()
        && one.port_or_known_default() == other.port_or_known_default()
}

/// Builds the next call of a redirect. 303 means a GET, and so by convention do 301 and 302 after a POST (RFC
/// 9110, 15.4); other redirects repeat the call.
fn redirected(call: &HttpCall, status: StatusCode, target: Url) -> HttpCall {
    let mut next = HttpCall {
        url: target,
        ..call.clone()
    };
    let becomes_get = match status {
        StatusCode::SEE_OTHER => true,
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => call.method == Method::POST,
        _ => false,
    };
    if becomes_get {
        next.method = Method::GET;
        next.body = None;
        next.headers.remove(CONTENT_TYPE);
    }
    next
}
