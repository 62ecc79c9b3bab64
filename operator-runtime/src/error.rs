//! Errors that end an operator, and their form in one line.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Error that ends an operator.
#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    /// The API server cannot be reached.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The health endpoint cannot listen on its address.
    #[error("failed to listen on {address}: {source}; choose another address with --listen")]
    Listen {
        /// Address to listen on.
        address: SocketAddr,
        /// Cause.
        source: std::io::Error,
    },
    /// Signals cannot be received.
    #[error("failed to listen for signals: {0}")]
    Signals(std::io::Error),
    /// The thread of the leader election cannot be started.
    #[error("failed to start the leader election: {0}")]
    Election(std::io::Error),
    /// The lease was lost.
    #[error("lost leadership: {0}; exiting so that this process restarts as a candidate")]
    LostLead(String),
    /// The work ended although it never should.
    #[error("the watches ended; this is a bug, please report it")]
    WorkEnded,
}

/// Error while creating a client.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Neither a kubeconfig nor a service account exists.
    #[error("failed to find the API server: {0}; set KUBECONFIG, or run in a pod with a service account")]
    Config(#[from] kube::config::InferConfigError),
    /// The configuration cannot be used.
    #[error("failed to create a client for the API server: {0}")]
    Client(#[from] kube::Error),
}

/// Returns the innermost error's message.
pub fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// Pause between two lines of the log about a failure that lasts.
const REPEAT_AFTER: Duration = Duration::from_mins(5);

/// Failure that is noticed again and again. Its log shows when it begins or changes, that it lasts, and when it ends.
#[derive(Debug, Default)]
pub(crate) struct StandingFailure {
    /// Text as last logged, and when.
    logged: Option<(String, Instant)>,
}

impl StandingFailure {
    /// Notes the failure. Returns whether to log it.
    pub(crate) fn note(&mut self, text: &str, now: Instant) -> bool {
        let known = self.logged.as_ref().filter(|(logged, _)| logged == text);
        if known.is_some_and(|(_, at)| now.duration_since(*at) < REPEAT_AFTER) {
            return false;
        }
        self.logged = Some((text.to_owned(), now));
        true
    }

    /// Notes that all is well. Returns whether to log the end of a failure.
    pub(crate) fn end(&mut self) -> bool {
        self.logged.take().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_logged_when_it_changes_and_every_five_minutes() {
        let mut failure = StandingFailure::default();
        let begun = Instant::now();
        let cases = [
            (0, "refused", true),
            (2, "refused", false),
            (4, "no answer", true),
            (6, "refused", true),
            (305, "refused", false),
            (306, "refused", true),
            (605, "refused", false),
            (606, "refused", true),
        ];
        assert!(!failure.end());
        for (seconds, text, logged) in cases {
            let now = begun + Duration::from_secs(seconds);
            assert_eq!(failure.note(text, now), logged, "{seconds} s, {text}");
        }
        assert!(failure.end());
        assert!(!failure.end());
        assert!(failure.note("refused", begun + Duration::from_secs(607)));
    }
}
