//! Graceful shutdown on SIGTERM and SIGINT.

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Becomes true once shutdown is requested.
#[derive(Debug, Clone)]
pub struct Shutdown(watch::Receiver<bool>);

impl Shutdown {
    /// Starts listening for signals.
    pub fn on_signals() -> std::io::Result<Self> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let (sender, receiver) = watch::channel(false);
        tokio::spawn(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            let _ = sender.send(true);
        });
        Ok(Self(receiver))
    }

    /// Returns when shutdown is requested.
    pub async fn requested(&mut self) {
        if self.0.wait_for(|requested| *requested).await.is_err() {
            // The sender is gone, so no request can come.
            std::future::pending::<()>().await;
        }
    }
}
