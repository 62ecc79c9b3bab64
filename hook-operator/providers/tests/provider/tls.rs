//! Verification of certificates, unless the manifest disables it.

use std::{net::SocketAddr, sync::Arc};

use hook_core::{
    answer::MeasurementReason,
    request::{CaBundle, Tls},
};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;

use crate::{
    ask::{assert_failure, failure, get, providers, value},
    server,
};

/// Starts a server with a self-signed certificate for these names. Returns its address and the certificate.
async fn self_signed(names: &[&str]) -> (SocketAddr, String) {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let own = rcgen::generate_simple_self_signed(names).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(own.signing_key.serialize_der()));
    let config = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let (address, _) = server::raw(move |stream| {
        let acceptor = acceptor.clone();
        async move {
            // A client that does not trust the server ends the handshake.
            let Ok(mut stream) = acceptor.accept(stream).await else {
                return;
            };
            server::head(&mut stream).await;
            let _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n7")
                .await;
            let _ = stream.shutdown().await;
        }
    })
    .await;
    (address, own.cert.pem())
}

#[tokio::test]
async fn an_unknown_authority_is_refused() {
    let (server, _) = self_signed(&["localhost"]).await;
    let failure = failure(&providers(), get(format!("https://localhost:{}/", server.port()))).await;
    let place = format!("TLS connection to localhost:{} failed: ", server.port());
    assert_failure(&failure, MeasurementReason::Unreachable, &place);
    assert!(failure.message.contains("certificate"), "{failure}");
}

#[tokio::test]
async fn the_manifests_authority_is_trusted_for_its_names_alone() {
    let (server, pem) = self_signed(&["localhost"]).await;
    let providers = providers();
    let mut request = get(format!("https://localhost:{}/", server.port()));
    request.tls.ca_bundle = Some(CaBundle::new(&pem));
    assert_eq!(value(&providers, request.clone()).await, "7");
    request.url = format!("https://{server}/");
    let failure = failure(&providers, request).await;
    assert_failure(
        &failure,
        MeasurementReason::Unreachable,
        &format!("TLS connection to {server} failed: "),
    );
}

#[tokio::test]
async fn an_address_may_have_a_certificate() {
    let (server, pem) = self_signed(&["127.0.0.1"]).await;
    let mut request = get(format!("https://{server}/"));
    request.tls.ca_bundle = Some(CaBundle::new(&pem));
    assert_eq!(value(&providers(), request).await, "7");
}

#[tokio::test]
async fn another_authority_is_no_authority_even_after_the_right_one_was_used() {
    let (server, right) = self_signed(&["localhost"]).await;
    let (_, wrong) = self_signed(&["localhost"]).await;
    let providers = providers();
    let mut request = get(format!("https://localhost:{}/", server.port()));
    request.tls.ca_bundle = Some(CaBundle::new(&right));
    assert_eq!(value(&providers, request.clone()).await, "7");
    request.tls.ca_bundle = Some(CaBundle::new(&wrong));
    assert_eq!(
        failure(&providers, request.clone()).await.kind,
        MeasurementReason::Unreachable
    );
    request.tls.ca_bundle = None;
    assert_eq!(
        failure(&providers, request).await.kind,
        MeasurementReason::Unreachable
    );
}

#[tokio::test]
async fn the_check_can_be_given_up_for_one_metric() {
    let (server, _) = self_signed(&["other.example"]).await;
    let providers = providers();
    let mut request = get(format!("https://{server}/"));
    request.tls.insecure_skip_verify = true;
    assert_eq!(value(&providers, request.clone()).await, "7");
    request.tls = Tls::default();
    assert_eq!(
        failure(&providers, request).await.kind,
        MeasurementReason::Unreachable
    );
}

#[tokio::test]
async fn a_bundle_that_holds_no_certificate_is_refused() {
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    for bundle in [
        "",
        "hello",
        "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n",
        broken,
    ] {
        let mut request = get("https://127.0.0.1:1/");
        request.tls.ca_bundle = Some(CaBundle::new(bundle));
        let failure = failure(&providers(), request).await;
        assert_eq!(
            failure.kind,
            MeasurementReason::InvalidRequest,
            "{bundle}: {failure}"
        );
    }
}

#[tokio::test]
async fn plain_text_where_tls_is_expected_is_said_so() {
    let (server, _) = server::raw(|mut stream| async move {
        let _ = stream.write_all(b"HTTP/1.1 400 Bad\r\n\r\n").await;
        let _ = stream.read_to_end(&mut Vec::new()).await;
    })
    .await;
    let failure = failure(&providers(), get(format!("https://{server}/"))).await;
    assert_eq!(failure.kind, MeasurementReason::Unreachable);
    assert!(failure.message.contains(&server.to_string()), "{failure}");
}
