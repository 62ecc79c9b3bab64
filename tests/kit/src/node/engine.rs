//! Thread of a simulation: its API client, its tasks and its game servers.
//!
//! One thread, so that a thousand pods need no more threads than one; separate, so that game servers answer
//! while a test blocks.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use kube::{Client, Config};
use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::fleet::Fleet;
use super::{Error, Options, api_error, objects, watching};
use crate::loopback;

#[derive(Debug)]
pub(super) struct Engine {
    inside: Handle,
    stop: Option<oneshot::Sender<Infallible>>,
    thread: Option<JoinHandle<()>>,
}

impl Engine {
    /// Starts a thread that waits for work.
    pub(super) fn start(
        namespace: &str,
        config: Config,
        options: Options,
    ) -> Result<(Self, Arc<Fleet>), Error> {
        raise_file_limit();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let inside = runtime.handle().clone();
        let client = {
            let _inside = runtime.enter();
            Client::try_from(config)
        };
        let client = match client {
            Ok(client) => client,
            Err(source) => {
                // The caller may be in a runtime, where dropping another one the usual way panics.
                runtime.shutdown_background();
                return Err(api_error("make a client", source));
            }
        };
        let fleet = Arc::new(Fleet::new(namespace, client, options));
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name(format!("nodes {namespace}"))
            .spawn(move || loopback::run(&runtime, stopped, std::future::pending()))?;
        let engine = Self {
            inside,
            stop: Some(stop),
            thread: Some(thread),
        };
        Ok((engine, fleet))
    }

    /// Starts following pods and sending heartbeats.
    pub(super) fn go(&self, fleet: &Arc<Fleet>) {
        self.inside.spawn(watching::follow(Arc::clone(fleet)));
        let fleet = Arc::clone(fleet);
        self.inside
            .spawn(async move { objects::stay_alive(&fleet).await });
    }

    /// Runs work inside the engine's runtime, the only place where its client works.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        let outcome = self.inside.spawn(work).await;
        outcome.map_err(io::Error::other)?
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The thread has already printed its panic, and nobody is left to receive it.
            let _ = thread.join();
        }
    }
}

/// Raises the file limit: a thousand servers need more files than many shells allow by default.
fn raise_file_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // On failure, servers that cannot start report it.
    let _ = setrlimit(Resource::Nofile, limit);
}
