//! Describes an HTTP client's error in one sentence: the host and the root cause, but never the URL's query
//! or a header.

use std::{error::Error, io, iter, time::Duration};

use hook_core::answer::{FailureKind, MeasurementFailure};
use reqwest::Url;

use crate::{egress::Refusal, resolver::LookupFailed};

/// Returns `host:port` of a URL, enough to identify the server.
pub(crate) fn place(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port_or_known_default() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

pub(crate) fn forbidden(refusal: &Refusal) -> MeasurementFailure {
    MeasurementFailure::new(FailureKind::Forbidden, refusal.to_string())
}

pub(crate) fn timed_out(timeout: Duration, place: &str) -> MeasurementFailure {
    MeasurementFailure::new(
        FailureKind::Timeout,
        format!("timed out after {timeout:?} waiting for {place}"),
    )
}

/// Explains the client's error for a call to `url`.
pub(crate) fn explain(error: &reqwest::Error, url: &Url) -> MeasurementFailure {
    let place = place(url);
    let root = root_cause(error);
    if error.is_decode() && error.source().is_some_and(<dyn Error>::is::<io::Error>) {
        // The decoder's own error; an error of the connection is wrapped in the protocol's error.
        return MeasurementFailure::new(
            FailureKind::MalformedAnswer,
            format!("the answer's body cannot be decoded: {root}"),
        );
    }
    for cause in causes(error) {
        if let Some(refusal) = cause.downcast_ref::<Refusal>() {
            return forbidden(refusal);
        }
        if let Some(lookup) = cause.downcast_ref::<LookupFailed>() {
            let name = url.host_str().unwrap_or_default();
            return unreachable(format!("the name {name} does not resolve: {lookup}"));
        }
        if let Some(tls) = cause.downcast_ref::<rustls::Error>() {
            return unreachable(format!("TLS with {place} failed: {tls}"));
        }
        if let Some(io) = cause.downcast_ref::<io::Error>()
            && io.get_ref().is_none()
        {
            return unreachable(io_sentence(io, &place));
        }
    }
    unreachable(format!("the call to {place} failed: {root}"))
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
    MeasurementFailure::new(FailureKind::Unreachable, message)
}

/// Returns the innermost error's message; the client's outer messages only report a failure or contain the
/// URL.
pub(crate) fn root_cause(error: &reqwest::Error) -> String {
    causes(error)
        .last()
        .map_or_else(|| "unknown cause".into(), ToString::to_string)
}

/// Iterates over the causes below the client's own error.
fn causes(error: &reqwest::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    iter::successors(error.source(), |cause| cause_of(*cause))
}

/// Returns the next cause. `source()` of an I/O error skips the wrapped error, so that is looked up
/// explicitly.
fn cause_of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error.downcast_ref::<io::Error>() {
        Some(io) => io.get_ref().map(|wrapped| wrapped as &(dyn Error + 'static)),
        None => error.source(),
    }
}
