//! `kubectl game exec-hook`: runs HookActions in containers, and follows their ExecutionHooks.
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

/// Runs HookActions.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a HookAction in the selected containers, and follow it until it is complete
    ///
    /// Creates an ExecutionHook, then prints its name, its progress, and each container in which the action failed
    /// permanently. Ctrl-C stops only this command; the ExecutionHook continues in the cluster.
    ///
    /// Exit code: 0 the action succeeded in every container (or, with --wait=false, the ExecutionHook was created),
    /// 1 the action did not succeed in every container, 2 usage error or the cluster cannot be queried, 3 not complete
    /// when --timeout or Ctrl-C ended the wait.
    Run(run::Run),
    /// List ExecutionHooks, or show one and the containers in which its action has not succeeded
    ///
    /// With a name and -w, follows the ExecutionHook until it is complete, like run.
    ///
    /// Exit code: 0 success, 2 usage error or the cluster cannot be queried; with a name and -w, as for run.
    Get(get::Get),
    /// Terminate an ExecutionHook, without retrying failed actions
    ///
    /// Containers in which the action has not succeeded count as failed. Commands that are already running are not
    /// stopped.
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
