//! Waits for a condition with a deadline, never for a fixed time.

use std::fmt::Debug;
use std::future::Future;
use std::panic::Location;
use std::time::{Duration, Instant};

use tokio::sync::watch;

const POLL: Duration = Duration::from_millis(25);

/// The condition did not hold in time.
#[derive(Debug, thiserror::Error)]
#[error("not within {deadline:?} (asked {attempts} times); last seen: {last_seen}")]
pub struct TimedOut {
    /// Time waited.
    pub deadline: Duration,
    /// Number of attempts.
    pub attempts: u32,
    /// Result of the last attempt.
    pub last_seen: String,
}

/// Result of one attempt: done with a value, or not yet.
///
/// `Option` carries nothing more. With `Result`, the error describes the observed state and appears in the
/// message when the deadline passes.
pub trait Look {
    /// Value once the condition holds.
    type Found;
    /// Returns the value, or a description of the observed state.
    fn found(self) -> Result<Self::Found, String>;
}

impl<T> Look for Option<T> {
    type Found = T;
    fn found(self) -> Result<T, String> {
        self.ok_or_else(|| "nothing".to_owned())
    }
}

impl<T, E: Debug> Look for Result<T, E> {
    type Found = T;
    fn found(self) -> Result<T, String> {
        self.map_err(|seen| format!("{seen:?}"))
    }
}

/// Retries until the condition holds, and panics at the deadline, at the caller's line, with the last result.
///
/// The deadline also cancels an attempt that hangs.
///
/// # Panics
/// If the condition does not hold within `deadline`.
#[track_caller]
pub fn eventually<F, A, L>(deadline: Duration, attempt: F) -> impl Future<Output = L::Found>
where
    F: FnMut() -> A,
    A: Future<Output = L>,
    L: Look,
{
    let caller = Location::caller();
    async move {
        match within(deadline, attempt).await {
            Ok(found) => found,
            #[expect(clippy::panic, reason = "a failed expectation of a test")]
            Err(timed_out) => panic!("{caller}: {timed_out}"),
        }
    }
}

/// Waits like [`eventually`], but returns an error at the deadline.
pub async fn within<F, A, L>(deadline: Duration, mut attempt: F) -> Result<L::Found, TimedOut>
where
    F: FnMut() -> A,
    A: Future<Output = L>,
    L: Look,
{
    let until = Instant::now() + deadline;
    let mut attempts = 0;
    let mut last_seen = "no attempt was finished".to_owned();
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() && attempts > 0 {
            return Err(TimedOut {
                deadline,
                attempts,
                last_seen,
            });
        }
        attempts += 1;
        match tokio::time::timeout(left, attempt()).await.map(Look::found) {
            Ok(Ok(found)) => return Ok(found),
            Ok(Err(seen)) => last_seen = seen,
            Err(_) => {
                return Err(TimedOut {
                    deadline,
                    attempts,
                    last_seen,
                });
            }
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Waits for a condition that changes only with an announced change, without polling.
pub(crate) async fn changed_until<T>(
    mut changes: watch::Receiver<T>,
    deadline: Duration,
    holds: impl Fn() -> bool,
    seen: impl Fn() -> String,
) -> Result<(), TimedOut> {
    let mut attempts = 1;
    let reached = async {
        while !holds() {
            attempts += 1;
            if changes.changed().await.is_err() {
                // No further change can come.
                std::future::pending::<()>().await;
            }
        }
    };
    let outcome = tokio::time::timeout(deadline, reached).await;
    outcome.map_err(|_| TimedOut {
        deadline,
        attempts,
        last_seen: seen(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn returns_the_value_once_it_is_there() {
        let mut calls = 0;
        let seen = eventually(Duration::from_secs(5), || {
            calls += 1;
            let now = calls;
            async move { (now == 3).then_some(now) }
        })
        .await;
        assert_eq!(seen, 3);
    }

    #[tokio::test]
    async fn says_what_was_seen_last() {
        let missed = within(Duration::from_millis(80), || async {
            Err::<(), _>("two of three pods")
        })
        .await;
        let missed = missed.expect_err("never true");
        assert!(
            missed.to_string().ends_with(r#"last seen: "two of three pods""#),
            "{missed}"
        );
        assert!(missed.attempts > 1);
    }

    #[tokio::test]
    async fn a_hanging_attempt_is_cut_at_the_deadline() {
        let missed = within(Duration::from_millis(50), std::future::pending::<Option<()>>).await;
        assert_eq!(missed.expect_err("never true").attempts, 1);
    }
}
