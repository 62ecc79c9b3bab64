//! Stand-in kubelets: they accept `exec` from the API server and run scripts instead of programs.
//!
//! Each node has its own, at its own address, with a self-signed certificate: the control plane of the kit
//! verifies none. It speaks `v4.channel.k8s.io` over `WebSocket`, and nothing else of a kubelet's API.

mod connection;
mod record;
mod script;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::sync::{Arc, Mutex};

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, ServerConfig, SignatureScheme};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

pub(super) use record::Commands;
pub use record::ExecCall;
pub use script::{Exec, ExecFrame, ExecScript};

use super::fleet::Fleet;
use super::game;
use crate::keeper::lock;
use crate::loopback;

/// Kubelet of one node.
#[derive(Debug)]
pub(super) struct Kubelet {
    address: SocketAddr,
    tls: Arc<ServerConfig>,
    /// False while the node is silent.
    answers: Arc<watch::Sender<bool>>,
    serving: Mutex<Option<JoinHandle<()>>>,
}

/// State that the connections of one kubelet share.
struct Desk {
    fleet: Arc<Fleet>,
    /// Name of the node.
    node: String,
    tls: TlsAcceptor,
    answers: Arc<watch::Sender<bool>>,
}

impl Kubelet {
    /// Listens on a free port of this address. Connections wait for [`serve`](Self::serve).
    pub(super) async fn listen(ip: Ipv4Addr) -> io::Result<(Self, TcpListener)> {
        let listener = game::listen(SocketAddr::new(IpAddr::V4(ip), 0)).await?;
        let kubelet = Self {
            address: listener.local_addr()?,
            tls: Arc::new(self_signed(ip)?),
            answers: Arc::new(watch::Sender::new(true)),
            serving: Mutex::default(),
        };
        Ok((kubelet, listener))
    }

    pub(super) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Serves the pods of this node. Call it inside the simulation's runtime.
    pub(super) fn serve(&self, fleet: &Arc<Fleet>, node: &str, listener: TcpListener) {
        let desk = Arc::new(Desk {
            fleet: Arc::clone(fleet),
            node: node.to_owned(),
            tls: TlsAcceptor::from(Arc::clone(&self.tls)),
            answers: Arc::clone(&self.answers),
        });
        let converse = move |stream: TcpStream| {
            let desk = Arc::clone(&desk);
            async move { while_answering(&desk.answers, connection::converse(&desk, stream)).await }
        };
        let serving = tokio::spawn(loopback::accept_streams(listener, converse));
        *lock(&self.serving) = Some(serving);
    }

    /// Answers again, at the same port. Call it inside the simulation's runtime.
    pub(super) async fn resume(&self, fleet: &Arc<Fleet>, node: &str) -> io::Result<()> {
        self.answers.send_replace(true);
        let stopped = lock(&self.serving).is_none();
        if stopped {
            let listener = game::listen(self.address).await?;
            self.serve(fleet, node, listener);
        }
        Ok(())
    }

    /// Leaves all connections open, and answers nothing on them.
    pub(super) fn fall_silent(&self) {
        self.answers.send_replace(false);
    }

    /// Cuts all connections. Returns once new ones are refused.
    pub(super) async fn stop(&self) {
        let serving = lock(&self.serving).take();
        if let Some(serving) = serving {
            serving.abort();
            // An error means that the task was cancelled, as intended.
            let _ = serving.await;
        }
    }
}

/// Does the work of a connection, but only while the kubelet answers.
async fn while_answering(answers: &watch::Sender<bool>, work: impl Future<Output = ()>) {
    let mut answers = answers.subscribe();
    let mut work = pin!(work);
    loop {
        reach(&mut answers, true).await;
        tokio::select! {
            biased;
            () = reach(&mut answers, false) => {}
            () = &mut work => return,
        }
    }
}

async fn reach(answers: &mut watch::Receiver<bool>, wanted: bool) {
    // An error means that the sender is gone, but each connection holds it.
    let _ = answers.wait_for(|answers| *answers == wanted).await;
}

/// Makes a server configuration with its own certificate. It asks for a client certificate.
fn self_signed(ip: Ipv4Addr) -> io::Result<ServerConfig> {
    let own = rcgen::generate_simple_self_signed(vec![ip.to_string()]).map_err(io::Error::other)?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(own.signing_key.serialize_der()));
    let provider = ring::default_provider();
    let any = AnyCertificate(provider.signature_verification_algorithms);
    ServerConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_client_cert_verifier(Arc::new(any))
        .with_single_cert(vec![own.cert.der().clone()], key)
        .map_err(io::Error::other)
}

/// Accepts every client certificate whose key the client has, or none: the test judges by the record.
#[derive(Debug)]
struct AnyCertificate(WebPkiSupportedAlgorithms);

impl ClientCertVerifier for AnyCertificate {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}
