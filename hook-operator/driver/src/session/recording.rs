//! Recording of a status, and recovery when that fails. No measurement is dropped before it is known to be
//! recorded.

use std::sync::Arc;

use hook_core::decide::Delay;
use runtime_core::clock::Now;
use shared_api::{HookRun, HookRunStatus};

use super::{Session, SessionOutput, SessionState, StoreError};
use crate::End;
use crate::status_matches::has_status;
use crate::write_retry::warns_after;

impl Session {
    pub(super) fn record(&mut self, status: HookRunStatus, now: Now) {
        self.throttle.sent(&status, now.elapsed);
        self.state = SessionState::Records;
        let status = Box::new(status);
        self.sent = Some(status.clone());
        self.output
            .push_back(SessionOutput::Record(self.run.clone(), status));
    }

    pub(super) fn recorded(&mut self, answer: Result<Arc<HookRun>, StoreError>, now: Now) {
        match (answer, &self.sent) {
            (Ok(run), Some(status)) if has_status(&run, status) => {
                let said = status.message.clone();
                self.retry.reset();
                self.output.push_back(SessionOutput::StatusWritten("written"));
                self.accept_newer(run);
                // Report it once. If the next attempt fails for the same reason, the status does not change.
                let recorded = |delay: &mut Delay| said.as_deref() == Some(delay.message());
                if let Some(why) = self.held_up.take_if(recorded) {
                    self.output
                        .push_back(SessionOutput::HeldUp(self.run.clone(), why));
                }
                self.go_on_after_write();
            }
            (Ok(run), _) => {
                self.accept_newer(run);
                self.try_again(
                    failed("the API server's response does not contain the written status"),
                    now,
                );
            }
            (Err(error), _) => self.recover(error, now),
        }
    }

    /// Recovers from a failed write: reads the run again if it may have changed, otherwise retries after a
    /// pause. No measurement is dropped unless it turns out to be recorded.
    pub(super) fn recover(&mut self, error: StoreError, now: Now) {
        let conflict = match error {
            StoreError::Conflict => true,
            StoreError::Gone => false,
            StoreError::Failed { .. } => return self.try_again(error, now),
        };
        self.state = SessionState::Reads { conflict };
        self.output.push_back(SessionOutput::Read(self.run.clone()));
    }

    pub(super) fn read(&mut self, answer: Result<Arc<HookRun>, StoreError>, conflict: bool, now: Now) {
        match answer {
            Ok(run) if conflict => {
                self.output.push_back(SessionOutput::StatusWritten("conflict"));
                self.accept_newer(run);
                let delay = self.retry.fail();
                // A single conflict is normal; repeated conflicts mean that another writer is as eager.
                if self.retry.failures() > 1 {
                    self.state = SessionState::Pauses(now.elapsed + delay);
                } else {
                    self.go_on_after_write();
                }
            }
            Ok(run) => {
                self.accept_newer(run);
                let why = "the HookRun exists, but the API server did not find its status subresource";
                self.try_again(failed(why), now);
            }
            Err(StoreError::Gone) => {
                self.output.push_back(SessionOutput::StatusWritten("gone"));
                self.end(End::Gone);
            }
            Err(error) => self.try_again(error, now),
        }
    }

    fn try_again(&mut self, why: StoreError, now: Now) {
        let pause = self.retry.fail();
        self.output.push_back(SessionOutput::StatusWritten("failed"));
        self.output.push_back(SessionOutput::NotRecorded {
            why,
            tries: self.retry.failures(),
            pause,
            tell: warns_after(self.retry.failures()),
        });
        self.state = SessionState::Pauses(now.elapsed + pause);
    }

    /// Continues once the outcome of the write is settled. Reports a verdict once it is recorded. If the
    /// answer was lost, the read that follows shows the verdict; only the end time differs between attempts,
    /// so it is not compared.
    pub(super) fn go_on_after_write(&mut self) {
        self.state = SessionState::Decides;
        let Some(sent) = self.sent.take() else { return };
        let ours =
            |kept: &HookRunStatus| (kept.phase, &kept.metric_results) == (sent.phase, &sent.metric_results);
        if sent.phase.is_final() && self.run.status.as_ref().is_some_and(ours) {
            self.output
                .push_back(SessionOutput::Verdict(self.run.clone(), self.last));
        }
    }
}

fn failed(message: &str) -> StoreError {
    StoreError::Failed {
        step: "write the status",
        message: message.to_owned(),
    }
}
