//! API calls, limited in number and time, shared fairly between namespaces, with errors by class.

use std::time::Duration;

use fair_share::semaphore::FairSemaphore;
use tracing::Instrument as _;

use crate::clock;
use crate::error::root_cause;
use crate::fence::NotSent;
use crate::traces::TARGET;

tokio::task_local! {
    /// Time until which the call of this task may be sent, on the scale of [`clock::elapsed`].
    static UNTIL: Option<Duration>;
}

/// Time by which an answer may come later than the timeout, because the process was busy.
pub const LATE: Duration = Duration::from_secs(2);

/// Time until which the current call may be sent, on the scale of [`clock::elapsed`]. Must be called in the task of the
/// call.
pub(crate) fn deadline() -> Option<Duration> {
    UNTIL.try_with(|until| *until).ok().flatten()
}

/// Failure of a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The object does not exist (404).
    #[error("the object no longer exists")]
    Gone,
    /// Conflict: the object changed since it was read, or an object of that name exists (409).
    #[error("the object was changed in the meantime, or an object with that name already exists")]
    Conflict,
    /// The API server rejected the call: it had no effect.
    #[error("failed to {step}: {message}")]
    Refused {
        /// Step that failed.
        step: &'static str,
        /// Status code.
        code: u16,
        /// Message of the API server.
        message: String,
    },
    /// The call was not sent, because what allowed it expired while it waited for its turn.
    #[error("the deadline passed before the request could be sent")]
    Lapsed,
    /// The outcome is unknown: the call may have taken effect.
    #[error("failed to {step}: {message}")]
    Unknown {
        /// Step that failed.
        step: &'static str,
        /// Error message.
        message: String,
    },
}

impl CallError {
    /// Returns the cause, without the step that failed.
    pub fn cause(&self) -> String {
        match self {
            Self::Refused { message, .. } | Self::Unknown { message, .. } => message.clone(),
            Self::Gone | Self::Conflict | Self::Lapsed => self.to_string(),
        }
    }
}

/// Makes API calls with a limit on their number and time.
#[derive(Debug)]
pub struct CallLimiter {
    /// Limits concurrent calls: a burst of verdicts must not become a burst of connections.
    semaphore: FairSemaphore,
    timeout: Duration,
}

impl CallLimiter {
    /// Limits calls to `at_once` at a time, and each of them to `timeout`.
    pub fn new(at_once: usize, timeout: Duration) -> Self {
        Self {
            semaphore: FairSemaphore::new(at_once),
            timeout,
        }
    }

    /// Limits calls as [`CallLimiter::new`]. A namespace may begin a call only while it has fewer than there is room
    /// for.
    pub fn with_reserve(at_once: usize, timeout: Duration) -> Self {
        Self {
            semaphore: FairSemaphore::with_reserve(at_once),
            timeout,
        }
    }

    /// Makes one call for a namespace. The timeout covers the body of the response.
    pub async fn call<T>(
        &self,
        namespace: &str,
        step: &'static str,
        call: impl Future<Output = Result<T, kube::Error>> + Send,
    ) -> Result<T, CallError> {
        self.call_before(None, namespace, step, call).await
    }

    /// Like [`CallLimiter::call`], but does not send a call after `until`, on the scale of [`clock::elapsed`]: neither
    /// if its turn comes too late, nor, if it has a body, if its connection does.
    ///
    /// An answer counts as none if it was read long after the timeout: the machine was suspended meanwhile, or the
    /// process stopped, and the object is no longer known to be as the answer says.
    pub async fn call_before<T>(
        &self,
        until: Option<Duration>,
        namespace: &str,
        step: &'static str,
        call: impl Future<Output = Result<T, kube::Error>> + Send,
    ) -> Result<T, CallError> {
        let unknown = |message: String| CallError::Unknown { step, message };
        let _permit = self.semaphore.take(namespace).await;
        let sent = clock::elapsed();
        if until.is_some_and(|until| sent >= until) {
            return Err(CallError::Lapsed);
        }
        let span = tracing::info_span!(target: TARGET, "api call", otel.kind = "client", namespace, step);
        let call = UNTIL.scope(until, call.instrument(span));
        let answer = tokio::time::timeout(self.timeout, call).await;
        // Timers stand still while the machine is suspended, and an answer that is there is read before they are looked
        // at.
        let took = clock::elapsed().saturating_sub(sent);
        match answer {
            Ok(Ok(_)) if took > self.timeout.saturating_add(LATE) => Err(unknown(format!(
                "the response was read {}s after the call, which exceeds the timeout of {}s",
                took.as_secs(),
                self.timeout.as_secs()
            ))),
            Ok(Ok(value)) => Ok(value),
            Ok(Err(kube::Error::Api(status))) => Err(match status.code {
                404 => CallError::Gone,
                409 => CallError::Conflict,
                code => {
                    let message = format!("{} ({code})", status.message);
                    // Unlike a 429, a 5xx may come after the write was done.
                    if code < 500 {
                        CallError::Refused { step, code, message }
                    } else {
                        unknown(message)
                    }
                }
            }),
            Ok(Err(error)) => Err(match NotSent::cause_of(&error) {
                Some(NotSent::Lapsed) => CallError::Lapsed,
                // A lapse would be decided again at once, over and over while the fence is closed.
                Some(NotSent::Closed(_)) | None => unknown(root_cause(&error)),
            }),
            Err(_) => Err(unknown(format!("no response within {}s", self.timeout.as_secs()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[tokio::test]
    async fn a_call_whose_time_is_over_is_not_sent() {
        let calls = CallLimiter::new(1, Duration::from_secs(5));
        let now = clock::elapsed();
        let later = now + Duration::from_hours(1);
        for (until, goes) in [(None, true), (Some(later), true), (Some(now), false)] {
            let sent = AtomicBool::new(false);
            let call = async {
                sent.store(true, Ordering::Relaxed);
                assert_eq!(deadline(), until);
                Ok(())
            };
            let done = calls.call_before(until, "games", "try", call).await;
            assert_eq!((done.is_ok(), sent.load(Ordering::Relaxed)), (goes, goes));
            assert!(goes || done == Err(CallError::Lapsed));
        }
        assert_eq!(deadline(), None, "outside of a call");
    }
}
