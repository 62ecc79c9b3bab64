//! Plain HTTP client for tests.

use std::sync::Once;

/// Installs the TLS implementation of this process, once. Call it before building any `reqwest` client.
pub fn install_tls() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // Fails if another caller was first, which is just as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}

/// Builds a client that ignores the proxies of the environment, follows no redirects and has no timeout.
pub fn http_client() -> Result<reqwest::Client, reqwest::Error> {
    install_tls();
    reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .build()
}
