//! HTTP/1.1 server on loopback with its own thread and runtime.
//!
//! The separate runtime lets it answer while a test blocks its thread, and serves tests without a runtime. It
//! builds directly on hyper because a handler here may also hang up without a response, which the layers
//! above hyper do not offer.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::thread::JoinHandle;

use axum::body::Body;
use axum::http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// Closes the connection instead of sending a response.
#[derive(Debug, thiserror::Error)]
#[error("hung up on purpose")]
pub(crate) struct HangUp;

/// Result of a handler.
pub(crate) type Answered = Result<Response<Body>, HangUp>;

/// Both ends of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ends {
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
}

/// Running server. Dropping it closes all connections and frees the port.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    stop: Option<oneshot::Sender<Infallible>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts a server. Calls `make_handler` inside the server's runtime, so that clients created there
    /// belong to it.
    pub(crate) fn start<H, A, E>(
        address: SocketAddr,
        make_handler: impl FnOnce() -> Result<H, E>,
    ) -> Result<Self, E>
    where
        H: Fn(Request<Incoming>, Ends) -> A + Clone + Send + Sync + 'static,
        A: Future<Output = Answered> + Send + 'static,
        E: From<io::Error>,
    {
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let prepared = {
            let _inside = runtime.enter();
            TcpListener::from_std(listener)
                .map_err(E::from)
                .and_then(|listener| Ok((listener, make_handler()?)))
        };
        match prepared {
            Ok((listener, handler)) => {
                let (stop, stopped) = oneshot::channel();
                let serve = move || run(&runtime, stopped, accept(listener, handler));
                let thread = std::thread::Builder::new()
                    .name(format!("server {address}"))
                    .spawn(serve)?;
                Ok(Self {
                    address,
                    stop: Some(stop),
                    thread: Some(thread),
                })
            }
            Err(error) => {
                // The caller may be in a runtime, where dropping another one the usual way panics.
                runtime.shutdown_background();
                Err(error)
            }
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The thread has already printed its panic, and nobody is left to receive it.
            let _ = thread.join();
        }
    }
}

/// Runs until the sender of `stopped` is dropped.
pub(crate) fn run(
    runtime: &Runtime,
    stopped: oneshot::Receiver<Infallible>,
    serve: impl Future<Output = ()>,
) {
    runtime.block_on(async {
        tokio::select! {
            _ = stopped => {}
            () = serve => {}
        }
    });
}

/// Accepts and serves connections forever. Dropping the future closes them all.
pub(crate) async fn accept<H, A>(listener: TcpListener, handler: H)
where
    H: Fn(Request<Incoming>, Ends) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Answered> + Send + 'static,
{
    accept_streams(listener, move |stream| converse(stream, handler.clone())).await;
}

/// Accepts connections like [`accept`], and leaves everything on them to the caller.
pub(crate) async fn accept_streams<C>(listener: TcpListener, converse: impl Fn(TcpStream) -> C)
where
    C: Future<Output = ()> + Send + 'static,
{
    let mut conversations = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => drop(conversations.spawn(converse(stream))),
                // Most likely out of file descriptors: some will become free.
                Err(_) => tokio::time::sleep(std::time::Duration::from_millis(10)).await,
            },
            Some(_) = conversations.join_next() => {}
        }
    }
}

async fn converse<H, A>(stream: TcpStream, handler: H)
where
    H: Fn(Request<Incoming>, Ends) -> A + Send + Sync + 'static,
    A: Future<Output = Answered> + Send + 'static,
{
    let (Ok(from), Ok(to), Ok(())) = (stream.peer_addr(), stream.local_addr(), stream.set_nodelay(true))
    else {
        return;
    };
    let service = service_fn(|request| handler(request, Ends { from, to }));
    // An error is a broken connection: caused by the client, or by us on purpose.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}
