//! HTTP exchange: takes a slot, follows redirects, and reads the body up to its limit, all within the
//! timeout.

mod redirect;

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hook_core::{
    answer::{AnswerHead, ContentType, FailureKind, MAX_ANSWER_BYTES, MeasurementFailure},
    request::{FRAMING_HEADERS, Tls},
};
use reqwest::{
    Client, Method, Response, StatusCode, Url,
    header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};

use self::redirect::Next;
use crate::memory_budget::OutOfMemory;
use crate::{MemoryReservation, Shared, failure, resolver};

/// Bytes reserved for an answer before its length is known. Most answers are shorter.
const FIRST_BYTES: usize = 2 * 1024;
/// Most redirects followed; a health endpoint that needs more is broken.
const MAX_REDIRECTS: usize = 3;

/// Longest URL that can be sent, in bytes.
const MAX_URL_BYTES: usize = 65_534;

/// HTTP call.
#[derive(Clone)]
pub(crate) struct HttpCall {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    /// Body, shared by all hops.
    pub(crate) body: Option<Bytes>,
}

/// Calls of one measurement.
pub(crate) struct Measurement<'a> {
    /// Namespace whose share the calls use.
    pub(crate) namespace: &'a str,
    /// URL of the first call.
    pub(crate) url: &'a Url,
    pub(crate) tls: &'a Tls,
    pub(crate) timeout: Duration,
    /// Whether a request changes nothing on its server, so that it may be sent again at once.
    pub(crate) repeatable: bool,
}

/// HTTP answer. The body is at most one byte longer than the limit for interpretation.
pub struct Reply {
    pub(crate) head: AnswerHead,
    pub(crate) body: Vec<u8>,
}

/// Makes calls to the host of the measurement's URL within one slot and one timeout for all of them. The wait
/// for the slot does not count towards the timeout.
pub(crate) async fn within(
    shared: &Shared,
    measurement: Measurement<'_>,
    reservation: &mut MemoryReservation,
    calls: impl AsyncFnOnce(Client, &mut MemoryReservation) -> Result<Reply, MeasurementFailure>,
) -> Result<Reply, MeasurementFailure> {
    let Measurement {
        namespace,
        url,
        tls,
        timeout,
        repeatable,
    } = measurement;
    // Check first: a forbidden call needs no slot.
    shared
        .egress
        .check_url(url)
        .map_err(|refusal| failure::forbidden(&refusal))?;
    let client = shared.clients.get(url, tls)?;
    let _permit = shared.limiter.take(namespace, &failure::place(url)).await?;
    reservation.grow_to(reservation.held() + FIRST_BYTES).await?;
    let waits = reservation.waits();
    let calls = resolver::for_namespace(namespace, calls(client, reservation));
    tokio::time::timeout(timeout, calls).await.unwrap_or_else(|_| {
        Err(if waits.load(Ordering::Relaxed) {
            // Only the answer to a request can wait for memory here.
            OutOfMemory::after(timeout).during_answer(repeatable)
        } else {
            failure::timed_out(timeout, &failure::place(url))
        })
    })
}

/// Sends a call and reads the answer. Follows redirects within the same scheme, host and port.
pub(crate) async fn send(
    shared: &Shared,
    client: &Client,
    mut call: HttpCall,
    repeatable: bool,
    reservation: &mut MemoryReservation,
) -> Result<Reply, MeasurementFailure> {
    let started = Instant::now();
    let mut hops = 0;
    loop {
        shared
            .egress
            .check_url(&call.url)
            .map_err(|refusal| failure::forbidden(&refusal))?;
        let response = client
            .execute(call.request())
            .await
            .map_err(|error| failure::explain(&error, &call.url))?;
        let code = response.status().as_u16();
        match redirect::next(&call, &response, &shared.egress)? {
            Next::Read => {
                let content_type = content_type(response.headers());
                let body = read(response, &call.url, repeatable, reservation).await?;
                let head = AnswerHead {
                    code,
                    latency: started.elapsed(),
                    content_type,
                };
                return Ok(Reply { head, body });
            }
            Next::Follow(_) if hops == MAX_REDIRECTS => {
                return Err(MeasurementFailure::new(
                    FailureKind::Status,
                    format!("received status {code}: more than {MAX_REDIRECTS} redirects"),
                ));
            }
            Next::Follow(next) => {
                call = *next;
                hops += 1;
            }
        }
    }
}

/// Returns the declared type of a body. If several headers declare one, JSON counts, because it is checked.
fn content_type(headers: &HeaderMap) -> ContentType {
    headers
        .get_all(CONTENT_TYPE)
        .iter()
        .map(|header| ContentType::parse(header.as_bytes()))
        .find(|declared| *declared == ContentType::Json)
        .unwrap_or(ContentType::Other)
}

/// Reads the decompressed body until it ends or exceeds the limit for interpretation. If it exceeds the
/// limit, the connection is closed without reading the rest.
async fn read(
    mut response: Response,
    url: &Url,
    repeatable: bool,
    reservation: &mut MemoryReservation,
) -> Result<Vec<u8>, MeasurementFailure> {
    let status = response.status();
    let longest = MAX_ANSWER_BYTES + 1;
    let before = reservation.held().saturating_sub(FIRST_BYTES);
    let announced = response.content_length().map_or(FIRST_BYTES, |bytes| {
        usize::try_from(bytes)
            .unwrap_or(longest)
            .clamp(FIRST_BYTES, longest)
    });
    let no_room = |full: OutOfMemory| full.during_answer(repeatable);
    reservation.grow_to(before + announced).await.map_err(no_room)?;
    let mut body = Vec::with_capacity(announced);
    loop {
        let room = (MAX_ANSWER_BYTES + 1).saturating_sub(body.len());
        if room == 0 {
            return Ok(body);
        }
        match response.chunk().await {
            Ok(Some(chunk)) => {
                let chunk = chunk.get(..room).unwrap_or(&chunk);
                let needed = body.len() + chunk.len();
                if needed > body.capacity() {
                    // Quadruple the capacity, so that a long answer is moved five times instead of a thousand
                    // times.
                    let capacity = needed.max(4 * body.capacity()).min(longest);
                    reservation.grow_to(before + capacity).await.map_err(no_room)?;
                    body.reserve_exact(capacity - body.len());
                }
                body.extend_from_slice(chunk);
            }
            Ok(None) => return Ok(body),
            // The status matters; a broken error page must not hide it.
            Err(_) if is_refusal(status) => return Ok(body),
            Err(error) => return Err(failure::explain(&error, url)),
        }
    }
}

fn is_refusal(status: StatusCode) -> bool {
    !status.is_success()
}

impl HttpCall {
    fn request(&self) -> reqwest::Request {
        let mut request = reqwest::Request::new(self.method.clone(), self.url.clone());
        *request.headers_mut() = self.headers.clone();
        *request.body_mut() = self.body.clone().map(Into::into);
        let has_body = self.body.as_ref().is_some_and(|body| !body.is_empty());
        if !has_body && matches!(self.method, Method::POST | Method::PUT) {
            // Servers may refuse a POST of unknown length, such as .NET's HttpListener with 411.
            let headers = request.headers_mut();
            headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        request
    }
}

/// Parses the URL in a manifest. Drops the fragment, which is never sent.
pub(crate) fn parse_url(field: &str, text: &str) -> Result<Url, MeasurementFailure> {
    let mut url = Url::parse(text).map_err(|error| {
        invalid(format!(
            "{field} is not usable: {error}; it begins with http:// or https:// and a host"
        ))
    })?;
    url.set_fragment(None);
    let bytes = url.as_str().len();
    if bytes > MAX_URL_BYTES {
        return Err(invalid(format!(
            "{field} is {bytes} bytes long; the limit is {MAX_URL_BYTES}"
        )));
    }
    Ok(url)
}

/// Parses headers in the manifest's order; a later duplicate replaces an earlier one.
///
/// `Host` may be set, to call a server with several virtual hosts by its address. The egress policy checks
/// the URL's host and its addresses regardless of this header.
pub(crate) fn parse_headers(headers: &[(String, String)]) -> Result<HeaderMap, MeasurementFailure> {
    let mut map = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        let key: HeaderName = name
            .parse()
            .map_err(|_| invalid(format!("{name:?} is not a header's name")))?;
        if FRAMING_HEADERS.contains(&key.as_str()) {
            return Err(invalid(format!("header {name} is not for hooks to set")));
        }
        let mut value = HeaderValue::from_bytes(value.as_bytes()).map_err(|_| {
            invalid(format!(
                "the value of header {name} holds a line end or control character"
            ))
        })?;
        value.set_sensitive(true);
        map.insert(key, value);
    }
    Ok(map)
}

pub(crate) fn invalid(message: String) -> MeasurementFailure {
    MeasurementFailure::new(FailureKind::InvalidRequest, message)
}
