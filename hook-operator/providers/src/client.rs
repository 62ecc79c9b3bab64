//! HTTP clients: one for each way to trust a server, the only respect in which they differ. A client keeps
//! its connections, so a new client for each measurement would cost a TLS handshake every time.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use hook_core::{
    answer::{FailureKind, MeasurementFailure},
    request::Tls,
};
use reqwest::{Certificate, Client, ClientBuilder, Url, redirect};

use crate::{egress::EgressPolicy, resolver::EgressResolver};

/// Most clients kept; the least recently used is dropped first. Each distinct `caBundle` needs one.
const MAX_CLIENTS: usize = 64;

/// Less than the 5 s after which common game server frameworks (Node.js, uvicorn) drop an idle connection, so
/// that a call is rarely written to a connection that is closing.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);

const IDLE_PER_HOST: usize = 8;

const USER_AGENT: &str = concat!("hookgate/", env!("CARGO_PKG_VERSION"));

/// Key of a client.
#[derive(Clone, PartialEq, Eq)]
enum Trust {
    /// Without TLS nothing is trusted, and the image needs no certificates.
    NoTls,
    Checked(Tls),
}

pub(crate) struct Clients {
    resolver: Arc<EgressResolver>,
    /// Clients, most recently used first.
    known: Mutex<Vec<(Trust, Client)>>,
}

impl Clients {
    pub(crate) fn new(policy: Arc<EgressPolicy>) -> Self {
        Self {
            resolver: Arc::new(EgressResolver::new(policy)),
            known: Mutex::new(Vec::new()),
        }
    }

    /// Returns the client for a URL's scheme and TLS settings.
    pub(crate) fn get(&self, url: &Url, tls: &Tls) -> Result<Client, MeasurementFailure> {
        let trust = if url.scheme() == "https" {
            Trust::Checked(tls.clone())
        } else {
            Trust::NoTls
        };
        if let Some(client) = self.find(&trust) {
            return Ok(client);
        }
        // Create it outside the lock, because creation reads files. If two are created at once, one is
        // dropped.
        let client = self.make(&trust)?;
        Ok(self.find(&trust).unwrap_or_else(|| self.keep(trust, client)))
    }

    fn find(&self, trust: &Trust) -> Option<Client> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let at = known.iter().position(|(other, _)| other == trust)?;
        let entry = known.remove(at);
        let client = entry.1.clone();
        known.insert(0, entry);
        Some(client)
    }

    fn keep(&self, trust: Trust, client: Client) -> Client {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(0, (trust, client.clone()));
        known.truncate(MAX_CLIENTS);
        client
    }

    fn make(&self, trust: &Trust) -> Result<Client, MeasurementFailure> {
        let builder = Client::builder()
            .user_agent(USER_AGENT)
            // A proxy would connect on our behalf, bypassing the egress policy.
            .no_proxy()
            // Each hop is checked before it is followed.
            .redirect(redirect::Policy::none())
            .referer(false)
            .dns_resolver(Arc::clone(&self.resolver))
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(IDLE_PER_HOST)
            .tcp_nodelay(true);
        trusting(builder, trust)?.build().map_err(|error| {
            unusable(&format!(
                "no TLS client could be made: {}",
                crate::failure::root_cause(&error)
            ))
        })
    }
}

fn trusting(builder: ClientBuilder, trust: &Trust) -> Result<ClientBuilder, MeasurementFailure> {
    let Trust::Checked(tls) = trust else {
        return Ok(builder.tls_certs_only([]));
    };
    let builder = builder.tls_danger_accept_invalid_certs(tls.insecure_skip_verify);
    let Some(bundle) = &tls.ca_bundle else {
        return Ok(builder);
    };
    let certificates = Certificate::from_pem_bundle(bundle.as_bytes())
        .map_err(|_| unusable("caBundle holds a certificate that cannot be read"))?;
    if certificates.is_empty() {
        return Err(unusable(
            "caBundle holds no certificate; it takes PEM text, beginning with -----BEGIN CERTIFICATE-----",
        ));
    }
    Ok(builder.tls_certs_only(certificates))
}

fn unusable(message: &str) -> MeasurementFailure {
    MeasurementFailure::new(FailureKind::InvalidRequest, message)
}
