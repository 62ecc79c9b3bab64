//! Thread of an election, with a runtime and a client of its own: work that never yields delays no renewal.

use std::time::Duration;

use kube::Client;
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

use super::Candidacy;
use super::election::Election;
use crate::error::{ConnectError, OperatorError};
use crate::heartbeat::Heartbeats;
use crate::process;
use crate::shutdown::Shutdown;

/// Time that the work has to end before the process ends without it.
const WORK_ENDS_WITHIN: Duration = Duration::from_secs(5);

/// Permission of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Permit {
    /// Another process may lead.
    Wait,
    /// The work may begin.
    Work,
    /// The work must end.
    End,
}

/// Election that runs on a thread of its own.
#[derive(Debug)]
pub struct ElectionThread {
    permit: watch::Receiver<Permit>,
    /// Dropped after the work.
    working: oneshot::Sender<()>,
    outcome: oneshot::Receiver<Result<(), OperatorError>>,
}

impl ElectionThread {
    /// Starts the thread of a candidate. `connect` creates its client there, which must not be fenced.
    pub fn start<C, F>(
        candidacy: Candidacy,
        connect: C,
        shutdown: Shutdown,
        heartbeats: &Heartbeats,
    ) -> std::io::Result<Self>
    where
        C: FnOnce() -> F + Send + 'static,
        F: Future<Output = Result<Client, ConnectError>>,
    {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (grant, permit) = watch::channel(Permit::Wait);
        let (working, worked) = oneshot::channel();
        let (report, outcome) = oneshot::channel();
        let heartbeats = heartbeats.clone();
        let elect = move || {
            let ended = runtime.block_on(async {
                let heartbeat = heartbeats.of("election");
                match connect().await {
                    Ok(client) => {
                        let election = Election::new(client, candidacy, heartbeat);
                        serve_term(election, &grant, worked, shutdown).await
                    }
                    Err(error) => Term::Over(Err(OperatorError::Connect(error))),
                }
            });
            match ended {
                Term::Over(outcome) => {
                    let _ = report.send(outcome);
                }
                Term::WorkHangs(outcome) => end_without_work(outcome),
            }
        };
        std::thread::Builder::new()
            .name("election".to_owned())
            .spawn(elect)?;
        Ok(Self {
            permit,
            working,
            outcome,
        })
    }

    /// Runs the work while this process leads, and then `afterwards`. The work is dropped before that, and the Lease is
    /// released after both.
    pub(super) async fn run(
        mut self,
        work: impl Future<Output = ()>,
        afterwards: impl Future<Output = ()>,
    ) -> Result<(), OperatorError> {
        let granted = self.permit.wait_for(|permit| *permit != Permit::Wait).await;
        if granted.is_ok_and(|permit| *permit == Permit::Work) {
            tokio::select! {
                () = work => {}
                // An error says that the election has ended, and the work must end as well.
                _ = self.permit.wait_for(|permit| *permit == Permit::End) => {}
            }
            afterwards.await;
        } else {
            drop(work);
        }
        drop(self.working);
        let defect = || OperatorError::LostLead("the election thread exited because of a bug".to_owned());
        self.outcome.await.unwrap_or_else(|_| Err(defect()))
    }
}

/// End of a candidate's life.
#[derive(Debug)]
enum Term {
    /// The work has ended, and the Lease is released.
    Over(Result<(), OperatorError>),
    /// The work goes on, so the Lease is not released.
    WorkHangs(Result<(), OperatorError>),
}

/// Leads until the work ends, the lead is lost or shutdown is requested; then lets the work end.
async fn serve_term(
    mut election: Election,
    grant: &watch::Sender<Permit>,
    mut worked: oneshot::Receiver<()>,
    mut shutdown: Shutdown,
) -> Term {
    let lead = async {
        election.acquire().await;
        grant.send_replace(Permit::Work);
        election.keep_renewing().await
    };
    let outcome = tokio::select! {
        why = lead => Err(OperatorError::LostLead(why)),
        _ = &mut worked => {
            election.release().await;
            return Term::Over(Err(OperatorError::WorkEnded));
        }
        () = shutdown.requested() => {
            tracing::info!("shutdown requested");
            Ok(())
        }
    };
    if outcome.is_err() {
        election.close();
    }
    grant.send_replace(Permit::End);
    if timeout(WORK_ENDS_WITHIN, worked).await.is_err() {
        election.close();
        return Term::WorkHangs(outcome);
    }
    election.release().await;
    Term::Over(outcome)
}

/// Ends the process although its work goes on.
fn end_without_work(outcome: Result<(), OperatorError>) -> ! {
    process::end_at_once(i32::from(outcome.is_err()), move || {
        if let Err(error) = outcome {
            tracing::error!("{error}");
        }
        let seconds = WORK_ENDS_WITHIN.as_secs();
        tracing::error!("tasks did not finish within {seconds}s; exiting anyway");
    })
}

#[cfg(test)]
mod tests;
