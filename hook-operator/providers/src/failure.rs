//! Describes an HTTP client's error in one sentence: the host and the root cause, but never the URL's query
//! or a header.

use std::{error::Error, io, iter, time::Duration};

use hook_core::answer::{MeasurementFailure, MeasurementReason};
use url::Url;

use crate::{client::MAX_HEAD_BYTES, egress::Refusal, resolver::LookupFailed};

/// Returns `host:port` of a URL, enough to identify the server.
pub(crate) fn place(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port_or_known_default() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

pub(crate) fn forbidden(refusal: &Refusal) -> MeasurementFailure {
    MeasurementFailure::new(MeasurementReason::Forbidden, refusal.to_string())
}

pub(crate) fn timed_out(timeout: Duration, place: &str) -> MeasurementFailure {
    MeasurementFailure::new(
        MeasurementReason::Timeout,
        format!("timed out after {timeout:?} waiting for {place}"),
    )
}

/// Explains why an answer does not count: it was read after so much more time than the timeout that it may be old.
pub(crate) fn read_late(timeout: Duration, took: Duration, place: &str) -> MeasurementFailure {
    MeasurementFailure::new(
        MeasurementReason::Timeout,
        format!(
            "the response from {place} was read {}s after the call, past the {timeout:?} timeout; the process or its \
             machine was probably suspended, or the clock was changed",
            took.as_secs()
        ),
    )
}

/// Explains the error of reading a body that is decoded.
pub(crate) fn explain_body(error: &io::Error, url: &Url) -> MeasurementFailure {
    if causes(error).any(<dyn Error>::is::<hyper::Error>) {
        return explain(error, url);
    }
    MeasurementFailure::new(
        MeasurementReason::MalformedAnswer,
        format!("failed to decode the response body: {}", root_cause(error)),
    )
}

/// Explains the client's error for a call to `url`.
pub(crate) fn explain(error: &(dyn Error + 'static), url: &Url) -> MeasurementFailure {
    let place = place(url);
    for cause in causes(error) {
        if let Some(refusal) = cause.downcast_ref::<Refusal>() {
            return forbidden(refusal);
        }
        if let Some(lookup) = cause.downcast_ref::<LookupFailed>() {
            let name = url.host_str().unwrap_or_default();
            return unreachable(format!("failed to resolve {name}: {lookup}"));
        }
        let protocol = cause.downcast_ref::<hyper::Error>();
        if protocol.is_some_and(hyper::Error::is_parse_too_large) {
            return MeasurementFailure::new(
                MeasurementReason::MalformedAnswer,
                format!(
                    "the response has more than 100 headers, or they are larger than {} KiB",
                    MAX_HEAD_BYTES / 1024
                ),
            );
        }
        if let Some(tls) = cause.downcast_ref::<rustls::Error>() {
            return unreachable(format!("TLS connection to {place} failed: {tls}"));
        }
        if let Some(io) = cause.downcast_ref::<io::Error>()
            && io.get_ref().is_none()
        {
            return unreachable(io_sentence(io, &place));
        }
    }
    unreachable(format!("the call to {place} failed: {}", root_cause(error)))
}

pub(crate) fn io_sentence(error: &io::Error, place: &str) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => format!("connection refused by {place}"),
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => format!("connection reset by {place}"),
        io::ErrorKind::TimedOut => format!("connecting to {place} timed out"),
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => format!("no route to {place}"),
        _ => format!("the connection to {place} failed: {error}"),
    }
}

pub(crate) fn unreachable(message: String) -> MeasurementFailure {
    MeasurementFailure::new(MeasurementReason::Unreachable, message)
}

/// Returns the innermost error's message; the outer messages only report a failure.
fn root_cause(error: &(dyn Error + 'static)) -> String {
    causes(error)
        .last()
        .map_or_else(|| "unknown cause".into(), ToString::to_string)
}

/// Iterates over an error and its causes.
fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    iter::successors(Some(error), |cause| cause_of(*cause))
}

/// Returns the next cause. `source()` of an I/O error skips the wrapped error, so that is looked up
/// explicitly.
fn cause_of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error.downcast_ref::<io::Error>() {
        Some(io) => io.get_ref().map(|wrapped| wrapped as &(dyn Error + 'static)),
        None => error.source(),
    }
}
