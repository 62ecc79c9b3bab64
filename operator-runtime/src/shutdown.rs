//! SIGTERM and SIGINT end the process in an orderly way.

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Becomes true once the process is to end.
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

    /// Returns when the process is to end.
    pub async fn requested(&mut self) {
        if self.0.wait_for(|requested| *requested).await.is_err() {
            // Nobody can ask any more: never.
            std::future::pending::<()>().await;
        }
    }
}
