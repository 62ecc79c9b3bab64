//! `kubectl game`: the kubectl plugin of game teams and webhook authors.
//!
//! | module | job |
//! | --- | --- |
//! | [`hook`] | `hook run`, `lint`, `evaluate`: hooks tried out without a cluster |
//! | [`command`] | the commands that ask a cluster: `get`, `list`, `why`, `status`, `retry` and so on |
//! | [`cluster`] | how the cluster is found and asked, and what is said where it does not answer as hoped |
//! | [`view`] | pure: what is known of a workload, in the order in which people ask |
//! | [`why`] | pure: why something waits, in plain words, and the command to type next |
//! | [`rollout_state`] | pure: whether a rollout is complete, goes on, or needs a person |
//! | [`draw`] | from pictures to lines, tables, JSON and a screen that changes |
//! | [`manifest`] | manifests read from files, with the place of every field |
//! | [`paint`] | colours and signs, where the terminal has them |
//! | [`examples`] | what the help of each command shows as examples |
//! | [`mod@page`] | the document about all commands |

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

use command::{completion, get, history, list, retry, rollout, scale, skip, status, template};
pub use page::page;

/// Exit code of bad usage, and where the cluster cannot be asked; the hook commands have their own.
const EXIT_USAGE: u8 = 2;

/// See why game servers wait, let them go on, and try out the hooks that decide
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
    /// Show a GameDeployment as a tree: revisions, pods, HookRuns
    ///
    /// Each HookRun shows what was measured, of how much, the last answer and when it is asked next; whatever waits says
    /// why. With -w the tree is redrawn in place; where the output is no terminal, each change is printed as a block.
    Get(get::Get),
    /// List GameDeployments, with what each is doing
    ///
    /// STATUS is the reason of the condition that needs a person, else of Progressing. WAITING counts pods that wait for
    /// a hook.
    List(list::List),
    /// Say in plain words why a pod or GameDeployment waits, and what to type next
    Why(command::why::Why),
    /// Wait until a rollout or a change of scale is complete
    ///
    /// Complete means: every pod that is to be updated is, as many pods are available as are wanted, and none waits for
    /// a hook. A paused update is waited for.
    ///
    /// Exit code: 0 complete, 1 it needs a person (a hook said no, the spec is wrong), 2 bad usage or the cluster cannot
    /// be asked, 3 not complete in time.
    Status(status::Status),
    /// Ask hooks again that ended without success
    ///
    /// Without --hook: each hook that said no about a pod. Every run of the hook that ended without success is replaced
    /// by a new one.
    Retry(retry::Retry),
    /// Let one pod pass its hooks without a question
    ///
    /// Whoever plays on the pod is thrown out. The reason is recorded on the pod, and a Warning event names it.
    Skip(skip::Skip),
    /// Stop updates; pods are still created, healed and scaled
    Pause(rollout::Rollout),
    /// Let a paused update go on
    Resume(rollout::Rollout),
    /// Go past the pause, or past the failed hook, of a canary step
    Promote(rollout::Rollout),
    /// Go back to an older template
    Undo(template::Undo),
    /// Set fields of a GameDeployment
    #[command(subcommand)]
    Set(Set),
    /// Set the number of pods
    Scale(scale::Scale),
    /// Show revisions, and what is in one
    History(history::History),
    /// Try out hooks without a cluster; look at HookRuns
    #[command(subcommand)]
    Hook(hook::Command),
    /// Report everything that is wrong with manifests, with path and position
    ///
    /// Says what the API server would refuse or drop in GameDeployments, HookTemplates and HookRuns, and what the
    /// operators would refuse, in their words. Reads lists such as kubectl get -o yaml prints, and of a directory the
    /// files that end in .json, .yaml or .yml. Other objects are passed over. The cluster is not asked.
    ///
    /// Exit code: 0 nothing wrong, or nothing to check, 1 problems found, 2 bad usage.
    Lint(hook::Lint),
    /// Print a completion script for a shell
    ///
    /// For example: source <(kubectl game completion bash)
    Completion(completion::Completion),
}

#[derive(Debug, Subcommand)]
enum Set {
    /// Set images of containers
    Image(template::SetImage),
}

/// The program: reads the command line, and answers with the exit code that the command's help names.
pub fn main() -> ExitCode {
    let usage = usage_code(std::env::args().nth(1).as_deref());
    let arguments = match arguments() {
        Ok(arguments) => arguments,
        // Help and version are no mistake.
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
        eprintln!("error: {error}");
        ExitCode::from(usage)
    })
}

/// What bad usage of a command exits with: of hook commands, 2 already means Error.
fn usage_code(command: Option<&str>) -> u8 {
    if command == Some("hook") {
        hook::EXIT_USAGE
    } else {
        EXIT_USAGE
    }
}

fn run(command: Command) -> Result<ExitCode, Box<dyn std::error::Error>> {
    // What asks no cluster.
    let command = match command {
        Command::Hook(command) if command.is_local() => return hook::main(&command),
        Command::Lint(lint) => return lint.main(),
        Command::Completion(completion) => return Ok(completion.main(described())?),
        other => other,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let outcome = runtime.block_on(ask(command));
    // A watch that is under way need not be waited for.
    runtime.shutdown_background();
    Ok(outcome?)
}

async fn ask(command: Command) -> command::Outcome {
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
        Command::Promote(rollout) => rollout.main(Act::Promote).await,
        Command::Undo(undo) => undo.main().await,
        Command::Set(Set::Image(set)) => set.main().await,
        Command::Scale(scale) => scale.main().await,
        Command::History(history) => history.main().await,
        Command::Hook(command) => command.ask().await,
        // Asked no cluster: see above.
        Command::Lint(_) | Command::Completion(_) => command::DONE,
    }
}

/// Reads the command line.
fn arguments() -> Result<Arguments, clap::Error> {
    Arguments::from_arg_matches(&described().try_get_matches()?)
}

/// All commands, as the program reads them. Flags that are shared with the operator are shown as this program uses them.
pub fn described() -> clap::Command {
    let run = |run: clap::Command| {
        run.mut_args(|arg| arg.hide_env(true))
            .mut_arg("egress_allow_loopback", |arg| arg.hide(true))
    };
    let all = Arguments::command().mut_subcommand("hook", |hook| hook.mut_subcommand("run", run));
    examples::add(all)
}
