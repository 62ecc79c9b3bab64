//! Graceful shutdown on SIGTERM and SIGINT.

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Becomes true once shutdown is requested.
#[derive(Debug, Clone)]
pub struct Shutdown(watch::Receiver<bool>);

impl Shutdown {
    /// Starts listening for signals, on a thread of its own: work that never yields hides none.
    pub fn on_signals() -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()?;
        let (sender, receiver) = watch::channel(false);
        let (mut terminate, mut interrupt) = {
            let _context = runtime.enter();
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?)
        };
        let listen = async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            let _ = sender.send(true);
        };
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || runtime.block_on(listen))?;
        Ok(Self(receiver))
    }

    /// Listens to a sender instead of signals.
    #[cfg(test)]
    pub(crate) fn on(receiver: watch::Receiver<bool>) -> Self {
        Self(receiver)
    }

    /// Returns when shutdown is requested.
    pub async fn requested(&mut self) {
        if self.0.wait_for(|requested| *requested).await.is_err() {
            // The sender is gone, so no request can come.
            std::future::pending::<()>().await;
        }
    }
}
