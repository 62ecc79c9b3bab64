//! Service of the API server for pods, at its first address and port 443. It replaces kube-proxy.

use std::io;
use std::net::SocketAddr;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::error::{Error, io_error};

/// First address of the Service range: the value of `KUBERNETES_SERVICE_HOST` in pods.
pub(super) const SERVICE_ADDRESS: &str = "10.0.0.1";
const PORT: u16 = 443;

/// Forwards connections to the API server until dropped.
#[derive(Debug)]
pub(super) struct ApiService {
    _tasks: JoinSet<()>,
}

impl ApiService {
    /// Starts forwarding to the API server at `url`.
    pub(super) async fn start(url: &str) -> Result<Self, Error> {
        let address = url.trim_start_matches("https://").trim_end_matches('/');
        let address: SocketAddr = address
            .parse()
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, format!("{url}: {error}")))
            .map_err(io_error("find the API server"))?;
        let listener = TcpListener::bind((SERVICE_ADDRESS, PORT)).await;
        let listener = listener.map_err(io_error(format!("listen at {SERVICE_ADDRESS}:{PORT}")))?;
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                tokio::select! {
                    Ok((client, _)) = listener.accept() => {
                        connections.spawn(pass_on(client, address));
                    }
                    Some(_) = connections.join_next() => {}
                }
            }
        });
        Ok(Self { _tasks: tasks })
    }
}

async fn pass_on(mut client: TcpStream, address: SocketAddr) {
    // A failed connection is up to the client to retry.
    if let Ok(mut server) = TcpStream::connect(address).await {
        let _ = copy_bidirectional(&mut client, &mut server).await;
    }
}
