//! `kubectl game`: the kubectl plugin for game teams and webhook authors.
//!
//! | module | job |
//! | --- | --- |
//! | [`hook`] | `hook run`, `lint`, `evaluate`: hooks tested without a cluster |
//! | [`command`] | the commands that use a cluster: `get`, `list`, `why`, `status`, `retry` and so on |
//! | [`cluster`] | access to the cluster, and explanations of its errors |
//! | [`view`] | pure: the known state of a workload, in the order in which users read it |
//! | [`why`] | pure: why something waits, in plain words, and the command to type next |
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
    abort, complain, completion, exec_hook, get, history, list, promote, restart, retry, rollout, scale,
    skip, status, template,
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
    /// Each HookRun shows its progress, its last value and the time of its next measurement. Everything that
    /// waits shows the reason. With -w, the tree is redrawn in place on a terminal; otherwise, each change is
    /// printed as a block.
    Get(get::Get),
    /// List GameDeployments with their current activity
    ///
    /// STATUS is the reason of the condition that needs attention (including a hook that cannot run), or else that of
    /// Progressing. WAITING counts the pods that are waiting for a hook.
    List(list::List),
    /// Explain why a pod or GameDeployment is waiting, and which command to run next
    Why(command::why::Why),
    /// Wait until a rollout or a scale change is complete
    ///
    /// A GameDeployment is complete when all pods covered by the update are updated, the desired number of
    /// pods is available, no pod is waiting for a hook, and every hook can run. The command also waits while an update
    /// is paused, and while a hook keeps failing with errors.
    ///
    /// Exit code: 0 complete, 1 manual action needed (a hook failed, cannot run or cannot succeed, the rollout is
    /// aborted, or the spec is invalid), 2 usage error or the cluster cannot be queried, 3 not complete in time.
    Status(status::Status),
    /// Retry hooks that ended without success
    ///
    /// Without --hook and --lifecycle, retries the failed hook of a canary step, a lifecycle hook that aborted the
    /// rollout, and each hook that ended without success for at least one pod. --lifecycle also ends the pause before
    /// the next attempt of a lifecycle hook. Every run of the hook that ended without success is replaced by a new run.
    ///
    /// If the pods of an aborted rollout are going back, the whole rollout begins again from its first point, not only
    /// the lifecycle hook.
    Retry(retry::Retry),
    /// Skip the hooks of one pod
    ///
    /// Players on the pod are disconnected. The reason is recorded on the pod and in a Warning event.
    Skip(skip::Skip),
    /// Pause updates; pods are still created, replaced and scaled
    Pause(rollout::Rollout),
    /// Resume a paused update
    Resume(rollout::Rollout),
    /// End the pause of the current canary step, or continue past its failed hook
    ///
    /// To continue past a failed hook, --despite-failure and a reason are required. The annotation that this sets
    /// names the failed HookRun, so it does not apply to later failures.
    Promote(promote::Promote),
    /// Abort a rollout: roll its pods back to the last complete revision
    ///
    /// Each pod goes back as in any update, after its own hook. Lifecycle hooks and canary steps do not run.
    /// spec.template does not change: retry begins the rollout again, undo restores the earlier template. To stop a
    /// rollout without rolling back, use pause.
    Abort(abort::Abort),
    /// Roll back to a previous template
    ///
    /// During a rollout, the default is the template of the last complete revision; after an abort, that of the
    /// revision that pods go back to.
    Undo(template::Undo),
    /// Restart all pods: replace them with new ones from the same template
    ///
    /// This is an update like any other: each pod is replaced after its own hook, and lifecycle hooks and canary steps
    /// run. Pods are not restarted in place.
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
    /// Reports what the API server would reject or drop in GameDeployments, HookTemplates, HookRuns, HookActions
    /// and ExecutionHooks, and what the operators would reject, with their messages. Accepts lists such as those of
    /// kubectl get -o yaml. Reads the .json, .yaml and .yml files of a directory. Lists the kinds of other objects,
    /// which are not checked. If a file cannot be read, the others are still checked. Does not contact the cluster.
    ///
    /// Exit code: 0 no problems, 1 problems found, 2 usage error, a file cannot be
    /// read, or no object is of a known kind.
    Lint(hook::Lint),
    /// Print a completion script for a shell
    ///
    /// For example: source <(kubectl game completion bash)
    Completion(completion::Completion),
}

#[derive(Debug, Subcommand)]
enum Set {
    /// Update images of containers
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
        Command::Why(why) => why.main().await,
        Command::Status(status) => status.main().await,
        Command::Retry(retry) => retry.main().await,
        Command::Skip(skip) => skip.main().await,
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
    let all = Arguments::command().mut_subcommand("hook", |hook| hook.mut_subcommand("run", run));
    examples::add(all)
}
