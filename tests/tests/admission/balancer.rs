//! Load balancer in place of a Service: sends each connection to the next replica.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Forwards connections until dropped.
#[derive(Debug)]
pub(crate) struct Balancer {
    pub(crate) address: SocketAddr,
    _task: JoinSet<()>,
}

impl Balancer {
    pub(crate) async fn before(replicas: Vec<SocketAddr>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let next = Arc::new(AtomicUsize::new(0));
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((mut from, _)) = listener.accept().await {
                let turn = next.fetch_add(1, Ordering::Relaxed);
                let replica = replicas[turn % replicas.len()];
                connections.spawn(async move {
                    if let Ok(mut to) = TcpStream::connect(replica).await {
                        let _ = copy_bidirectional(&mut from, &mut to).await;
                    }
                });
            }
        });
        Self { address, _task: task }
    }
}
