//! `kubectl game`: the kubectl plugin for game teams and webhook authors.
//!
//! | module | job |
//! | --- | --- |
//! | [`hook`] | `hook run`, `lint`, `evaluate`: hooks tested without a cluster |
//! | [`command`] | the commands that use a cluster: `get`, `list`, `why`, `status`, `retry` and so on |
//! | [`cluster`] | access to the cluster, and explanations of its errors |
//! | [`view`] | pure: the known state of a workload, in the order in which users read it |
//! | [`why`] | pure: why something is waiting, and the command to run next |
//! | [`rollout_state`] | pure: whether a rollout is complete, in progress, or blocked until a person acts |
//! | [`draw`] | renders views as lines, tables, JSON and a live screen |
//! | [`manifest`] | manifests read from files, with the position of every field |
//! | [`paint`] | colours and symbols, if the terminal supports them |
//! | [`examples`] | the examples in the help of each command |
//! | [`mod@page`] | the reference page of all commands |

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

mod cluster;
mod command;
mod draw;
mod examples;
mod hook;
mod manifest;
mod page;
mod paint;
mod rollout_state;
mod view;
mod why;

use command::{
    abort, complain, completion, drain, exec_hook, get, history, keep, list, promote, restart, retry,
    rollout, scale, skip, status, template,
};
pub use page::page;

/// Exit code for a usage error and for a command that fails, such as one that cannot query the cluster. The
/// hook commands have their own.
const EXIT_USAGE: u8 = 2;

/// Inspect and manage GameDeployments, and test the hooks that protect their pods
#[derive(Debug, Parser)]
#[command(
    name = "kubectl-game",
    bin_name = "kubectl game",
    version,
    max_term_width = 100
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Display a GameDeployment as a tree of revisions, pods and HookRuns
    ///
    /// Shows the progress, the last value and the next measurement of each HookRun, and why each pod is waiting.
    /// With -w, the tree is redrawn in place on a terminal; otherwise, each change is printed as a block.
    Get(get::Get),
    /// List GameDeployments with their current activity
    ///
    /// STATUS is the reason of the condition that needs attention (including a hook that cannot run), or the reason of
    /// Progressing if there is none. WAITING is the number of pods that are waiting for a hook.
    List(list::List),
    /// Explain why a pod or GameDeployment is waiting, and which command to run next
    Why(command::why::Why),
    /// Wait until a rollout or a scale change is complete
    ///
    /// A GameDeployment is complete when all pods covered by the update are updated, the desired number of
    /// pods is available, no pod is waiting for a hook, and every hook can run. The command keeps waiting while an
    /// update is paused, and while a hook keeps failing with errors.
    ///
    /// Exit code: 0 complete, 1 manual action needed (a hook failed, cannot run or cannot succeed, the rollout is
    /// aborted, or the spec is invalid), 2 usage error or the cluster cannot be queried, 3 not complete when the
    /// timeout expired (or, with --watch=false, not complete yet).
    Status(status::Status),
    /// Retry hooks that did not succeed
    ///
    /// Without --hook or --lifecycle, retries the failed hook of the current canary step, a lifecycle hook that aborted
    /// the rollout, and each hook that did not succeed for at least one pod. With --lifecycle, a lifecycle hook that is
    /// waiting for its next attempt is retried immediately. Each HookRun that did not succeed is replaced with a new
    /// one.
    ///
    /// If the pods of an aborted rollout are being rolled back, the whole rollout is restarted from the beginning, not
    /// only the lifecycle hook.
    Retry(retry::Retry),
    /// Skip the hooks of one pod
    ///
    /// Players on the pod will be disconnected. The reason is recorded on the pod and in a Warning event.
    Skip(skip::Skip),
    /// Withdraw the removal requests of a pod
    ///
    /// A pod whose removal is requested, for example by kubectl drain, is deleted and replaced once its PreDelete hook
    /// succeeds. Once all requests are withdrawn, the pod is kept. If the eviction or deletion is repeated, the removal
    /// is requested again. The request of the pod's node cannot be withdrawn: uncordon the node, or remove its taint.
    /// Requests that were made through the API lifecycle.k8s.io must be withdrawn there.
    Keep(keep::Keep),
    /// Drain a node, and run the hook of each guarded pod before the pod is removed
    ///
    /// Cordons the node. For pods of GameDeployments with spec.disruption.policy Ask and a PreDelete hook, it requests
    /// the removal: each pod is deleted and replaced once its hook succeeds, also where the removal guard is not
    /// installed. Other pods are evicted, as by kubectl drain. Static pods and those of daemon sets are skipped.
    ///
    /// Refuses before the cordon, with the pods and the remedy, if pods of other GameDeployments, pods without a
    /// controller, or pods with emptyDir volumes would be evicted without the flag that permits it.
    ///
    /// The requests are repeated while the command runs. Once it ends or is interrupted, they expire, and the pods that
    /// are left are kept. With --undo, they are withdrawn at once, and the node is uncordoned.
    ///
    /// Exit code: 0 all pods have left the node, 2 usage error, refused, or the cluster cannot be queried, 3 pods are
    /// left when the timeout expired.
    Drain(drain::Drain),
    /// Pause updates; pods are still created, replaced and scaled
    Pause(rollout::Rollout),
    /// Resume a paused update
    Resume(rollout::Rollout),
    /// End the pause of the current canary step, or continue past its failed hook
    ///
    /// To continue past a failed hook, --despite-failure and --reason are required. They apply only to this failure of
    /// the hook, not to later ones.
    Promote(promote::Promote),
    /// Abort a rollout, and roll its pods back to the last completed revision
    ///
    /// Each pod is rolled back after its own hook succeeds, as in any update. Lifecycle hooks and canary steps do not
    /// run. spec.template is unchanged: use retry to restart the rollout, or undo to restore the earlier template. To
    /// stop a rollout without rolling back, use pause.
    Abort(abort::Abort),
    /// Roll back to a previous template
    ///
    /// The default is the template of the previous revision. During a rollout, it is the template of the last completed
    /// revision; after an abort, it is that of the revision to which pods are being rolled back.
    Undo(template::Undo),
    /// Restart all pods by replacing them with new ones from the same template
    ///
    /// This is an update like any other: each pod is replaced after its own hook succeeds, and lifecycle hooks and
    /// canary steps run. Pods are not restarted in place.
    Restart(restart::Restart),
    /// Update fields of a GameDeployment
    #[command(subcommand)]
    Set(Set),
    /// Set the number of pods of a GameDeployment
    Scale(scale::Scale),
    /// List revisions, or show the template of one revision
    History(history::History),
    /// Test hooks without a cluster, and manage HookRuns
    #[command(subcommand)]
    Hook(hook::Command),
    /// Run HookActions in many containers, and follow their ExecutionHooks
    #[command(subcommand)]
    ExecHook(exec_hook::Command),
    /// Validate manifests, and report every problem with its path and position
    ///
    /// Checks GameDeployments, HookTemplates, HookRuns, HookActions and ExecutionHooks. Reports what the API server
    /// would reject or drop, and what the operators would reject, with their messages. Accepts lists, such as the
    /// output of kubectl get -o yaml. In a directory, reads the .json, .yaml and .yml files. Objects of other kinds are
    /// counted, but not checked. If a file cannot be read, the others are still checked. Does not contact the cluster.
    ///
    /// Exit code: 0 no problems, 1 problems found, 2 usage error, a file cannot be read, or there is no object of a
    /// supported kind.
    Lint(hook::Lint),
    /// Report what changes for hooks and workloads when hookgate replaces the original operators
    ///
    /// Lists each HookTemplate and GameDeployment that hookgate rejects or handles differently, and the GameDeployments
    /// that use the template. Counts HookRuns in progress, and workloads of the original operators that hookgate does
    /// not manage. Works with the CRDs of the original operators and changes nothing.
    ///
    /// Exit code: 0 nothing is affected, 1 an object is affected, 2 usage error or the cluster cannot be queried.
    Migrate(hook::Migrate),
    /// Print a completion script for a shell
    ///
    /// For example: source <(kubectl game completion bash)
    Completion(completion::Completion),
}

#[derive(Debug, Subcommand)]
enum Set {
    /// Update container images
    Image(template::SetImage),
}

/// Runs the program. Reads the command line and returns the exit code that the command's help documents.
pub fn main() -> ExitCode {
    let usage = usage_code(std::env::args().nth(1).as_deref());
    let arguments = match arguments() {
        Ok(arguments) => arguments,
        // Help and version are not errors.
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() {
                ExitCode::from(usage)
            } else {
                ExitCode::SUCCESS
            };
        }
    };
    run(arguments.command).unwrap_or_else(|error| {
        complain(&format!("error: {error}"));
        ExitCode::from(usage)
    })
}

/// Returns the exit code for a usage error or a failed command. For hook commands, 2 already means Error.
fn usage_code(command: Option<&str>) -> u8 {
    if command == Some("hook") {
        hook::EXIT_USAGE
    } else {
        EXIT_USAGE
    }
}

fn run(command: Command) -> Result<ExitCode, Box<dyn std::error::Error>> {
    // Commands that do not use a cluster.
    let command = match command {
        Command::Hook(command) if command.is_local() => return hook::main(&command),
        Command::Lint(lint) => return lint.main(EXIT_USAGE),
        Command::Completion(completion) => return Ok(completion.main(described())?),
        other => other,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let outcome = runtime.block_on(in_cluster(command));
    // A watch that is still running need not finish.
    runtime.shutdown_background();
    Ok(outcome?)
}

/// Runs a command that uses a cluster.
async fn in_cluster(command: Command) -> command::Outcome {
    use rollout::Act;
    match command {
        Command::Get(get) => get.main().await,
        Command::List(list) => list.main().await,
        Command::Why(why) => Box::pin(why.main()).await,
        Command::Status(status) => status.main().await,
        Command::Retry(retry) => retry.main().await,
        Command::Skip(skip) => skip.main().await,
        Command::Keep(keep) => keep.main().await,
        Command::Drain(drain) => drain.main().await,
        Command::Pause(rollout) => rollout.main(Act::Pause).await,
        Command::Resume(rollout) => rollout.main(Act::Resume).await,
        Command::Promote(promote) => promote.main().await,
        Command::Abort(abort) => abort.main().await,
        Command::Undo(undo) => undo.main().await,
        Command::Restart(restart) => restart.main().await,
        Command::Set(Set::Image(set)) => set.main().await,
        Command::Scale(scale) => scale.main().await,
        Command::History(history) => history.main().await,
        Command::Hook(command) => command.in_cluster().await,
        Command::Migrate(migrate) => migrate.main().await,
        Command::ExecHook(command) => command.main().await,
        // These do not use a cluster: see above.
        Command::Lint(_) | Command::Completion(_) => command::DONE,
    }
}

/// Parses the command line.
fn arguments() -> Result<Arguments, clap::Error> {
    Arguments::from_arg_matches(&described().try_get_matches()?)
}

/// Returns all commands as the program parses them. Flags shared with hook-operator appear as this program
/// uses them.
pub fn described() -> clap::Command {
    let run = |run: clap::Command| {
        run.mut_args(|arg| arg.hide_env(true))
            .mut_arg("egress_allow_loopback", |arg| arg.hide(true))
    };
    // Nodes are in no namespace.
    let drain = |drain: clap::Command| drain.mut_arg("namespace", |arg| arg.hide(true));
    let all = Arguments::command()
        .mut_subcommand("hook", |hook| hook.mut_subcommand("run", run))
        .mut_subcommand("drain", drain);
    examples::add(all)
}
