//! A plain HTTP client for tests.

use std::sync::Once;

/// Sets the TLS implementation of this process, once. Needed before any `reqwest` client is made.
pub fn install_tls() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // Fails if somebody else was first, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}

/// A client that goes straight to its target, whatever proxy the environment names, follows no redirects and
/// waits forever.
pub fn http_client() -> Result<reqwest::Client, reqwest::Error> {
    install_tls();
    reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .build()
}
