//! `kubectl game exec-hook`: carries out HookActions in containers, and follows their ExecutionHooks.
//!
//! | module | job |
//! | --- | --- |
//! | [`run`] | `exec-hook run`: creates an ExecutionHook and follows it |
//! | [`get`] | `exec-hook get`: lists ExecutionHooks, or shows one |
//! | [`terminate`] | `exec-hook terminate` |
//! | [`selector`] | label selectors as in kubectl |
//! | [`follow`] | waits until an ExecutionHook is complete |
//! | [`progress`] | pure: lines to print for each state of an ExecutionHook |

mod follow;
mod get;
mod progress;
mod run;
mod selector;
mod terminate;

use clap::Subcommand;

use super::Outcome;

/// Carries out HookActions.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a HookAction in the selected containers, and follow it until it is complete
    ///
    /// Creates an ExecutionHook, prints its name, its progress and each container in which the action failed
    /// permanently. Ctrl-C ends only this command: the ExecutionHook continues in the cluster.
    ///
    /// Exit code: 0 the action succeeded in every container (or, with --wait=false, the ExecutionHook was created),
    /// 1 it did not, 2 usage error or the cluster cannot be queried, 3 not complete when --timeout or Ctrl-C ended
    /// the wait.
    Run(run::Run),
    /// List ExecutionHooks, or display one with the containers that have not succeeded
    ///
    /// With a name and -w, follows the ExecutionHook until it is complete, like run.
    ///
    /// Exit code: 0 success, 2 usage error or the cluster cannot be queried; with a name and -w, as for run.
    Get(get::Get),
    /// Terminate an ExecutionHook: failed actions are not retried
    ///
    /// Containers without a success count as failed. Commands that are already running are not stopped.
    Terminate(terminate::Terminate),
}

impl Command {
    pub(crate) async fn main(&self) -> Outcome {
        match self {
            Self::Run(run) => run.main().await,
            Self::Get(get) => get.main().await,
            Self::Terminate(terminate) => terminate.main().await,
        }
    }
}
