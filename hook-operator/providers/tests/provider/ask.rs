//! Requests of the tests, and assertions on the answers.

use std::time::Duration;

use hook_core::{
    answer::{MeasurementFailure, MeasurementReason, ProviderResponse},
    request::{HttpRequest, Method, PrometheusRequest, Tls, WebRequest},
};
use hook_providers::{EgressPolicy, ProviderLimits, Providers};
use redact::Redactor;

/// Creates providers that may call the servers of these tests.
pub(crate) fn providers() -> Providers {
    providers_with(ProviderLimits::default())
}

/// The same with these limits.
pub(crate) fn providers_with(limits: ProviderLimits) -> Providers {
    // Only the first test of the process installs it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Providers::new(loopback_allowed(), limits)
}

pub(crate) fn loopback_allowed() -> EgressPolicy {
    EgressPolicy {
        allow_loopback: true,
        ..EgressPolicy::default()
    }
}

pub(crate) fn get(url: impl Into<String>) -> WebRequest {
    WebRequest {
        method: Method::Get,
        url: url.into(),
        headers: Vec::new(),
        body: None,
        timeout: Duration::from_secs(20),
        json_path: None,
        tls: Tls::default(),
        redactor: Redactor::default(),
    }
}

pub(crate) fn query(address: impl Into<String>) -> PrometheusRequest {
    PrometheusRequest {
        accept_partial: false,
        address: address.into(),
        query: "players{room=\"a&b\"} > 0".into(),
        headers: Vec::new(),
        timeout: Duration::from_secs(20),
        tls: Tls::default(),
        redactor: Redactor::default(),
    }
}

/// Returns the value's text as the status shows it.
pub(crate) async fn value(providers: &Providers, request: WebRequest) -> String {
    match providers.measure("games", &HttpRequest::Web(request)).await {
        Ok(ProviderResponse::Value { result, .. }) => result.text(),
        other => panic!("no value: {other:?}"),
    }
}

pub(crate) async fn failure(providers: &Providers, request: WebRequest) -> MeasurementFailure {
    match providers.measure("games", &HttpRequest::Web(request)).await {
        Err(failure) => failure,
        Ok(answer) => panic!("no failure: {answer:?}"),
    }
}

/// Asserts a failure's class and the beginning of its message.
#[track_caller]
pub(crate) fn assert_failure(failure: &MeasurementFailure, kind: MeasurementReason, beginning: &str) {
    assert_eq!(failure.kind, kind, "{failure}");
    assert!(failure.message.starts_with(beginning), "{failure}");
}
