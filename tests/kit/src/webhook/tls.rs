//! A certificate of its own for a server on 127.0.0.1.

use std::io;
use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::TlsAcceptor;

/// What a server speaks TLS with.
pub(super) struct Identity {
    pub(super) acceptor: TlsAcceptor,
    /// The certificate, as PEM.
    pub(super) authority: String,
}

impl Identity {
    pub(super) fn new() -> io::Result<Self> {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(["127.0.0.1".to_owned()]).map_err(io::Error::other)?;
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(signing_key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|config| {
                config
                    .with_no_client_auth()
                    .with_single_cert(vec![cert.der().clone()], key)
            });
        Ok(Self {
            acceptor: TlsAcceptor::from(Arc::new(config.map_err(io::Error::other)?)),
            authority: cert.pem(),
        })
    }
}
