//! HTTP exchange: takes a slot, follows redirects, and reads the body up to its limit, all within the
//! timeout.
//!
//! Bytes that a server can make a call hold are reserved before it can send them: those of the head, of TLS
//! and of a short body before the call, and those of a longer or compressed body after the head. By default,
//! 3,000 calls without TLS find room at a time, 680 of one namespace; more wait until others end.

mod redirect;

use std::io;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use async_compression::tokio::bufread::GzipDecoder;
use bytes::Bytes;
use futures::TryStreamExt as _;
use hook_core::{
    answer::{AnswerHead, ContentType, MAX_ANSWER_BYTES, MeasurementFailure, MeasurementReason},
    request::{FRAMING_HEADERS, Tls},
};
use http::{
    Method, Request, Response, Uri,
    header::{
        ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName,
        HeaderValue, USER_AGENT,
    },
};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Incoming};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio_util::io::StreamReader;
use url::Url;

use self::redirect::Next;
use crate::client::{HttpClient, MAX_HEAD_BYTES};
use crate::memory_budget::OutOfMemory;
use crate::{Clock, MemoryReservation, Shared, failure, resolver};

/// Bytes reserved for a body before its length is known. Most are shorter.
const FIRST_BYTES: usize = 2 * 1024;
/// Bytes of a TLS record, as it is received and as it is decrypted.
const TLS_BYTES: usize = 32 * 1024;
/// Bytes of a decoder of gzip: mostly its window of 32 KiB.
const DECODER_BYTES: usize = 64 * 1024;
/// Longest trailers that the client keeps, in bytes. Only a body of unknown length can have trailers.
const TRAILER_BYTES: usize = 16 * 1024;
/// Most bytes read of a body: one more than are interpreted.
const LONGEST: usize = MAX_ANSWER_BYTES + 1;
/// Most redirects followed; a health endpoint that needs more is broken.
const MAX_REDIRECTS: usize = 3;

/// Time by which an answer may be read later than the timeout, because the process was busy.
const LATE: Duration = Duration::from_secs(2);

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
    /// Clock by which an answer must come in time.
    pub(crate) clock: Clock,
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
///
/// An answer that is read long after the timeout counts as none: what it says was true before the machine was
/// suspended, or the process stopped, and the measurement would pass for a fresh one.
pub(crate) async fn within(
    shared: &Shared,
    measurement: Measurement<'_>,
    reservation: &mut MemoryReservation,
    calls: impl AsyncFnOnce(HttpClient, &mut MemoryReservation) -> Result<Reply, MeasurementFailure>,
) -> Result<Reply, MeasurementFailure> {
    let Measurement {
        clock,
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
    let client = shared.clients.get(namespace, url, tls)?;
    let _permit = shared.limiter.take(namespace, &failure::place(url)).await?;
    let before = reservation.held();
    let of_tls = if url.scheme() == "https" { TLS_BYTES } else { 0 };
    let of_call = MAX_HEAD_BYTES + of_tls + FIRST_BYTES;
    reservation.grow_to(before + of_call).await?;
    let waits = reservation.waits();
    let calls = resolver::for_namespace(namespace, calls(client, &mut *reservation));
    let begun = clock();
    let mut reply = tokio::time::timeout(timeout, calls).await.unwrap_or_else(|_| {
        Err(if waits.load(Ordering::Relaxed) {
            // Only the answer to a request can wait for memory here.
            OutOfMemory::after(timeout).during_answer(repeatable)
        } else {
            failure::timed_out(timeout, &failure::place(url))
        })
    });
    // Timers stand still while the machine is suspended, and an answer that is there is read before they are looked at.
    let took = clock().saturating_sub(begun);
    if reply.is_ok() && took > timeout.saturating_add(LATE) {
        reply = Err(failure::read_late(timeout, took, &failure::place(url)));
    }
    // Only the body outlives the call.
    let body = reply.as_ref().map_or(0, |reply| reply.body.capacity());
    reservation.hold_only(before + body);
    reply
}

/// Sends a call and reads the answer. Follows redirects within the same scheme, host and port.
pub(crate) async fn send(
    shared: &Shared,
    client: &HttpClient,
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
            .request(call.request()?)
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
                    MeasurementReason::Status,
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
    response: Response<Incoming>,
    url: &Url,
    repeatable: bool,
    reservation: &mut MemoryReservation,
) -> Result<Vec<u8>, MeasurementFailure> {
    let (head, incoming) = response.into_parts();
    let status = head.status;
    // An empty body is not compressed, whatever the head says.
    let is_zipped = !incoming.is_end_stream() && is_zipped(&head.headers);
    // The headers are slices of the received bytes, and keep them all.
    drop(head);
    let length = incoming.size_hint().exact();
    // One byte more than announced, to read the end.
    let announced = length.filter(|_| !is_zipped).map_or(FIRST_BYTES, |length| {
        let length = usize::try_from(length).unwrap_or(LONGEST);
        length.saturating_add(1).clamp(FIRST_BYTES, LONGEST)
    });
    let of_decoder = if is_zipped { DECODER_BYTES } else { 0 };
    let of_trailers = if length.is_none() { TRAILER_BYTES } else { 0 };
    let before = reservation.held().saturating_sub(FIRST_BYTES) + of_decoder + of_trailers;
    let no_room = |full: OutOfMemory| full.during_answer(repeatable);
    reservation.grow_to(before + announced).await.map_err(no_room)?;
    let mut bytes = decoded(incoming, is_zipped);
    let mut body: Vec<u8> = Vec::with_capacity(announced);
    while body.len() < LONGEST {
        if body.len() == body.capacity() {
            // Quadruple the capacity, so that a long answer is moved five times instead of a thousand times.
            let capacity = (4 * body.capacity()).min(LONGEST);
            reservation.grow_to(before + capacity).await.map_err(no_room)?;
            body.reserve_exact(capacity - body.len());
        }
        match bytes.read_buf(&mut body).await {
            Ok(0) => break,
            Ok(_) => {}
            // The status matters; a broken error page must not hide it.
            Err(_) if !status.is_success() => break,
            Err(error) => return Err(failure::explain_body(&error, url)),
        }
    }
    Ok(body)
}

fn is_zipped(headers: &HeaderMap) -> bool {
    let encoding = headers.get(CONTENT_ENCODING).map(HeaderValue::as_bytes);
    encoding.is_some_and(|name| name.eq_ignore_ascii_case(b"gzip") || name.eq_ignore_ascii_case(b"x-gzip"))
}

/// Returns the bytes of a body, decompressed.
fn decoded(body: Incoming, is_zipped: bool) -> Pin<Box<dyn AsyncRead + Send>> {
    let bytes = StreamReader::new(body.into_data_stream().map_err(io::Error::other));
    if !is_zipped {
        return Box::pin(bytes);
    }
    let mut decoder = GzipDecoder::new(bytes);
    decoder.multiple_members(true);
    Box::pin(decoder)
}

impl HttpCall {
    fn request(&self) -> Result<Request<Full<Bytes>>, MeasurementFailure> {
        let uri = Uri::try_from(self.url.as_str())
            .map_err(|error| invalid(format!("the URL is invalid: {error}")))?;
        let body = self.body.clone().unwrap_or_default();
        let mut headers = self.headers.clone();
        for (name, value) in [
            (ACCEPT, "*/*"),
            (ACCEPT_ENCODING, "gzip"),
            (USER_AGENT, concat!("hookgate/", env!("CARGO_PKG_VERSION"))),
        ] {
            headers.entry(name).or_insert(HeaderValue::from_static(value));
        }
        if body.is_empty() && matches!(self.method, Method::POST | Method::PUT) {
            // Servers may refuse a POST of unknown length, such as .NET's HttpListener with 411.
            headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        Ok(request)
    }
}

/// Parses the URL in a manifest. Drops the fragment, which is never sent.
pub(crate) fn parse_url(field: &str, text: &str) -> Result<Url, MeasurementFailure> {
    let mut url = Url::parse(text).map_err(|error| {
        invalid(format!(
            "{field} is not a valid URL: {error}; a URL is http:// or https://, a host, and optionally a port and a path"
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
            .map_err(|_| invalid(format!("{name:?} is not a valid header name")))?;
        if FRAMING_HEADERS.contains(&key.as_str()) {
            return Err(invalid(format!("hooks must not set header {name}")));
        }
        let mut value = HeaderValue::from_bytes(value.as_bytes()).map_err(|_| {
            invalid(format!(
                "the value of header {name} must not contain line breaks or other control characters"
            ))
        })?;
        value.set_sensitive(true);
        map.insert(key, value);
    }
    Ok(map)
}

pub(crate) fn invalid(message: String) -> MeasurementFailure {
    MeasurementFailure::new(MeasurementReason::InvalidRequest, message)
}
