//! HTTP clients: one for each way to trust a server, the only respect in which they differ. A client keeps
//! its connections, so a new client for each measurement would cost a TLS handshake every time.

mod tls;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use hook_core::{
    answer::{MeasurementFailure, MeasurementReason},
    request::Tls,
};
use http_body_util::Full;
use hyper_rustls::HttpsConnector;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use rustls::{ClientConfig, client::Resumption};
use url::Url;

use crate::{egress::EgressPolicy, resolver::EgressResolver};

/// Longest head of an answer: status line and headers, in bytes. Of the body, at most this much is buffered.
pub(crate) const MAX_HEAD_BYTES: usize = 16 * 1024;

/// Most clients with a `caBundle` of their own.
const MAX_BUNDLES: usize = 64;

/// Less than the 5 s after which common game server frameworks (Node.js, uvicorn) drop an idle connection, so
/// that a call is rarely written to a connection that is closing.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);

const IDLE_PER_HOST: usize = 8;

/// Size of the buffer in the kernel for an answer, in bytes. It counts as memory of the pod.
const SOCKET_BYTES: usize = 32 * 1024;

/// Time without a packet after which the peer is probed, and then between two probes.
const KEEPALIVE: Duration = Duration::from_secs(15);
const KEEPALIVE_PROBES: u32 = 3;
/// Time after which a connection fails whose peer acknowledges nothing.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

/// HTTP/1 client. It follows no redirect and knows no proxy, which would connect on our behalf and bypass the
/// egress policy.
pub(crate) type HttpClient = Client<HttpsConnector<HttpConnector<EgressResolver>>, Full<Bytes>>;

/// Servers that a client trusts.
#[derive(Clone, PartialEq, Eq)]
enum Trust {
    /// Without TLS nothing is trusted, and the image needs no certificates.
    NoTls,
    /// Any server.
    Anybody,
    /// Servers with a certificate of the system's authorities.
    System,
    /// Servers with a certificate of the authorities in the `caBundle` with this digest.
    Bundle(String),
}

struct Known {
    trust: Trust,
    /// Namespace that the client was made for. Others may use it, too.
    namespace: String,
    client: HttpClient,
}

impl Known {
    fn has_bundle(&self) -> bool {
        matches!(self.trust, Trust::Bundle(_))
    }
}

pub(crate) struct Clients {
    resolver: EgressResolver,
    /// Clients, most recently used first.
    known: Mutex<Vec<Known>>,
}

impl Clients {
    pub(crate) fn new(policy: Arc<EgressPolicy>) -> Self {
        Self {
            resolver: EgressResolver::new(policy),
            known: Mutex::new(Vec::new()),
        }
    }

    /// Returns the client for a URL's scheme and TLS settings.
    pub(crate) fn get(
        &self,
        namespace: &str,
        url: &Url,
        tls: &Tls,
    ) -> Result<HttpClient, MeasurementFailure> {
        let trust = match &tls.ca_bundle {
            _ if url.scheme() != "https" => Trust::NoTls,
            _ if tls.insecure_skip_verify => Trust::Anybody,
            None => Trust::System,
            Some(bundle) => Trust::Bundle(bundle.digest().to_owned()),
        };
        if let Some(client) = self.find(&trust) {
            return Ok(client);
        }
        // Create it outside the lock, because creation reads files. If two are created at once, one is
        // dropped.
        let config = match (&trust, &tls.ca_bundle) {
            (Trust::NoTls, _) => tls::trusting_nobody(),
            (Trust::Bundle(_), Some(bundle)) => tls::trusting_bundle(bundle.text())?,
            (Trust::Anybody, _) => tls::trusting_anybody(),
            (Trust::System | Trust::Bundle(_), _) => tls::trusting_system()?,
        };
        let client = self.make(config);
        Ok(self
            .find(&trust)
            .unwrap_or_else(|| self.keep(namespace, trust, client)))
    }

    fn find(&self, trust: &Trust) -> Option<HttpClient> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let at = known.iter().position(|known| known.trust == *trust)?;
        let found = known.remove(at);
        let client = found.client.clone();
        known.insert(0, found);
        Some(client)
    }

    fn keep(&self, namespace: &str, trust: Trust, client: HttpClient) -> HttpClient {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = Known {
            trust,
            namespace: namespace.to_owned(),
            client: client.clone(),
        };
        known.insert(0, kept);
        if let Some(at) = surplus(&known) {
            known.remove(at);
        }
        client
    }

    fn make(&self, mut config: ClientConfig) -> HttpClient {
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        // Servers choose how large a ticket is, and connections are reused anyway.
        config.resumption = Resumption::disabled();
        let mut connector = HttpConnector::new_with_resolver(self.resolver.clone());
        connector.enforce_http(false);
        connector.set_nodelay(true);
        connector.set_recv_buffer_size(Some(SOCKET_BYTES));
        connector.set_keepalive(Some(KEEPALIVE));
        connector.set_keepalive_interval(Some(KEEPALIVE));
        connector.set_keepalive_retries(Some(KEEPALIVE_PROBES));
        #[cfg(target_os = "linux")]
        connector.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
        Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(IDLE_PER_HOST)
            .http1_max_buf_size(MAX_HEAD_BYTES)
            .build(HttpsConnector::from((connector, config)))
    }
}

/// Returns the client to drop if there are too many with a `caBundle`: the least recently used of the namespace
/// with the most of them.
fn surplus(known: &[Known]) -> Option<usize> {
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    for known in known.iter().filter(|known| known.has_bundle()) {
        *numbers.entry(&known.namespace).or_default() += 1;
    }
    if numbers.values().sum::<usize>() <= MAX_BUNDLES {
        return None;
    }
    let most = numbers.values().max()?;
    known
        .iter()
        .rposition(|known| known.has_bundle() && numbers.get(known.namespace.as_str()) == Some(most))
}

fn unusable(message: &str) -> MeasurementFailure {
    MeasurementFailure::new(MeasurementReason::InvalidRequest, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundle(number: usize) -> Trust {
        Trust::Bundle(number.to_string())
    }

    #[tokio::test]
    async fn bundles_of_one_namespace_displace_no_client_of_another() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let clients = Clients::new(Arc::default());
        let client = clients.make(tls::trusting_nobody());
        let others = [Trust::NoTls, Trust::Anybody, Trust::System, bundle(0), bundle(1)];
        for trust in &others {
            clients.keep("few", trust.clone(), client.clone());
        }
        for number in 2..200 {
            clients.keep("crowd", bundle(number), client.clone());
        }
        for trust in &others {
            assert!(clients.find(trust).is_some());
        }
        // The most recently used ones of the crowd are left.
        assert!(clients.find(&bundle(137)).is_none());
        assert!((138..200).all(|number| clients.find(&bundle(number)).is_some()));
        let known = clients.known.lock().unwrap();
        assert_eq!(known.len(), 3 + MAX_BUNDLES);
    }
}
