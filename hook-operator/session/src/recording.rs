//! Writing down what was measured, until it is written or somebody else has written something newer.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use shared_api::HookRunStatus;
use shared_api::names::TRACE_TARGET;
use tracing::Instrument as _;

use crate::kept::keeps;
use crate::ledger::{Ledger, LedgerError};
use crate::{End, LOG, Session};

/// First pause before a failed write is tried again; doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Longest pause between two tries of a write.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// The try after which a write that does not succeed is complained of, and again after so many more.
const FIRST_COMPLAINT: u32 = 5;
const COMPLAIN_EVERY: u32 = 100;

impl<L: Ledger> Session<L> {
    pub(crate) async fn record(&mut self, status: &HookRunStatus) -> Result<(), End> {
        let namespace = self.run.metadata.namespace.as_deref();
        let phase = status.phase.as_str();
        let span = tracing::info_span!(target: TRACE_TARGET, "record", namespace, run = self.name(), phase);
        let ledger = self.measurer.ledger.clone();
        let begun = Instant::now();
        self.pace.sent(status, begun);
        let recorded = ledger.record(&self.run, status).instrument(span).await;
        self.measurer
            .observer
            .recorded(&self.run, recorded.is_ok(), begun.elapsed());
        match recorded {
            Ok(run) if keeps(&run, status) => {
                self.failed_writes = 0;
                self.measurer.observer.wrote("written");
                self.adopt(Arc::new(run));
                // Said once. While it stays so, the next try says the same again, and there is nothing new to write.
                if let Some(why) = self
                    .held_up
                    .take_if(|why| status.message.as_deref() == Some(why.as_str()))
                {
                    self.measurer.ledger.held_up(&self.run, &why);
                }
            }
            Ok(run) => {
                self.adopt(Arc::new(run));
                let message = "the API server answered without what was written".to_owned();
                let step = "write a status";
                self.try_again(&LedgerError::Failed { step, message }).await?;
            }
            Err(error) => self.recover(error).await?,
        }
        // Also after a write whose answer was lost: then it is the reading again that shows it. The tries differ in
        // the time of their end.
        let ours = |kept: &HookRunStatus| {
            (kept.phase, &kept.metric_results) == (status.phase, &status.metric_results)
        };
        if status.phase.is_final() && self.run.status.as_ref().is_some_and(ours) {
            let reason = status.reason.as_deref().unwrap_or_default();
            self.measurer
                .observer
                .ended(&self.run, status.phase, reason, self.last);
            self.measurer.ledger.concluded(&self.run);
        }
        Ok(())
    }

    pub(crate) async fn delete(&mut self) -> Result<(), End> {
        match self.measurer.ledger.clone().delete(&self.run).await {
            Ok(()) => Err(End::Gone),
            Err(error) => self.recover(error).await,
        }
    }

    /// After a write that did not succeed: where the run may have changed it is read again, else the write is tried
    /// again after a pause. Nothing that was measured is dropped unless it turns out to be recorded.
    async fn recover(&mut self, error: LedgerError) -> Result<(), End> {
        let conflict = match error {
            LedgerError::Conflict => true,
            LedgerError::Gone => false,
            LedgerError::Failed { .. } => return self.try_again(&error).await,
        };
        match self.measurer.ledger.clone().read(&self.run).await {
            Ok(run) if conflict => {
                self.measurer.observer.wrote("conflict");
                self.adopt(Arc::new(run));
                self.failed_writes = self.failed_writes.saturating_add(1);
                // One conflict is daily life; where they do not end, somebody else writes as eagerly.
                if self.failed_writes > 1 {
                    self.pause(pause_after(self.failed_writes)).await?;
                }
                Ok(())
            }
            Ok(run) => {
                self.adopt(Arc::new(run));
                let message = "the API server shows the run and knows no status of it to write".to_owned();
                let step = "write a status";
                self.try_again(&LedgerError::Failed { step, message }).await
            }
            Err(LedgerError::Gone) => {
                self.measurer.observer.wrote("gone");
                Err(End::Gone)
            }
            Err(error) => self.try_again(&error).await,
        }
    }

    async fn try_again(&mut self, error: &LedgerError) -> Result<(), End> {
        self.measurer.observer.wrote("failed");
        self.failed_writes = self.failed_writes.saturating_add(1);
        let pause = pause_after(self.failed_writes);
        let name = self.name();
        tracing::warn!(target: LOG, %error, name, tries = self.failed_writes, ?pause, "the status is not recorded yet");
        if self.failed_writes % COMPLAIN_EVERY == FIRST_COMPLAINT {
            self.measurer.ledger.unwritable(&self.run, &error.to_string());
        }
        self.pause(pause).await
    }

    /// Waits out a pause; only the end of the run cuts it short.
    async fn pause(&mut self, pause: Duration) -> Result<(), End> {
        let mut sleep = pin!(tokio::time::sleep(pause));
        loop {
            tokio::select! {
                () = &mut sleep => return Ok(()),
                news = self.updates.changed() => self.hear(news.is_ok())?,
            }
        }
    }
}

fn pause_after(failed_writes: u32) -> Duration {
    FIRST_PAUSE
        .saturating_mul(1 << failed_writes.min(8))
        .min(LONGEST_PAUSE)
}
