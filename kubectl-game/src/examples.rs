//! Examples in the help of each command, as typed.

use clap::Command;

/// Description of each example, and the words after `kubectl game`.
const EXAMPLES: &str = r#"
    Show a GameDeployment as a tree: get arena
    Watch the tree: get arena -w
    Print JSON for a script: get arena -o json
    List the GameDeployments in the current namespace: list
    Watch all namespaces: list -A -w
    Explain why a GameDeployment is waiting: why arena
    Explain why a pod is waiting: why pod/arena-x7k2p
    Wait for a rollout in a pipeline: status arena --timeout 30m
    Print the current state and exit: status arena --watch=false
    Retry all hooks that did not succeed: retry arena
    Retry only the PreDelete hooks: retry arena --hook pre-delete
    Rerun a lifecycle hook of the rollout: retry arena --lifecycle smoke
    Skip the hooks of a pod whose server hangs: skip arena-x7k2p --reason 'server hangs, match is over'
    Withdraw all removal requests of a pod: keep arena-x7k2p
    Withdraw only the request of one user: keep arena-x7k2p --requester system:admin
    Drain a node, each pod once its hook succeeds: drain node-1
    Show what a drain would do: drain node-1 --dry-run
    Drain a node in a script: drain node-1 --delete-emptydir-data --timeout 30m
    Make the node schedulable again, and keep its pods: drain node-1 --undo
    Pause an update: pause arena
    Resume the update: resume arena
    End the pause of the current canary step: promote arena
    Continue past a canary step whose hook failed: promote arena --despite-failure --reason 'alarm is unrelated'
    Abort the rollout and roll its pods back: abort arena
    Roll back to the previous template: undo arena
    Roll back to a specific revision: undo arena --to-revision 3
    Restart all pods, each after its hook succeeds: restart arena
    Set the image of the game container: set image arena game=example.com/game:2
    Scale to two pods: scale arena --replicas 2
    Scale only if spec.replicas is 5: scale arena --replicas 2 --current-replicas 5
    List all revisions: history arena
    Show the template of one revision: history arena --revision 3
    Run a hook from this machine: hook run -f hook.yaml
    Print only the final status: hook run -f hook.yaml -o json
    Validate hook manifests: hook lint -f hooks.yaml
    Show the result for a given response: hook evaluate -f hook.yaml --result '{"players":0}'
    Watch a HookRun until it has a verdict: hook get RUN -w
    List failing HookRuns in all namespaces: hook list -A --failing
    Terminate a HookRun that is taking too long: hook terminate RUN
    Run an action in all containers of a workload: exec-hook run freeze -l app=arena
    Run it in two pods and wait for up to a minute: exec-hook run freeze --pod arena-0 arena-1 -c game --timeout 1m
    Create it without waiting, in a script: exec-hook run freeze -l 'app=arena,zone in (a,b)' --wait=false
    List the ExecutionHooks in all namespaces: exec-hook get -A
    Show the containers in which the action has not succeeded: exec-hook get freeze-x7k2p
    Follow it until it is complete: exec-hook get freeze-x7k2p -w
    Terminate an ExecutionHook that keeps failing: exec-hook terminate freeze-x7k2p
    Validate the manifests in a directory: lint -R -f deploy/
    Print JSON for a pipeline: lint -f game.yaml -o json
    Report what changes for the workloads in all namespaces: migrate --check -A
    Check manifests written for the original operators: lint --from-original -f before.yaml
"#;

/// Returns the examples of one command: each with its description and the words after `kubectl game`.
fn examples(path: &[String]) -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = EXAMPLES.trim().lines().map(str::trim);
    let examples = lines.filter_map(|line| line.split_once(": "));
    examples.filter(move |(_, typed)| typed.split(' ').take(path.len()).eq(path))
}

/// Adds the examples below the help of each command.
pub(crate) fn add(command: Command) -> Command {
    below(command, &[])
}

/// Adds the examples of a command and of all its subcommands.
fn below(command: Command, path: &[String]) -> Command {
    let text: Vec<String> = examples(path)
        .map(|(purpose, typed)| format!("  # {purpose}\n  kubectl game {typed}"))
        .collect();
    let command = if command.has_subcommands() || text.is_empty() {
        command
    } else {
        command.after_long_help(format!("Examples:\n{}", text.join("\n\n")))
    };
    command.mut_subcommands(|inner| {
        let path = [path, &[inner.get_name().to_owned()]].concat();
        below(inner, &path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(typed: &str) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        for (number, part) in typed.split('\'').enumerate() {
            if number % 2 == 1 {
                words.push(part.to_owned());
            } else {
                words.extend(part.split_whitespace().map(str::to_owned));
            }
        }
        words
    }

    #[test]
    fn every_example_is_what_the_program_reads() {
        let all: Vec<_> = examples(&[]).collect();
        assert!(all.len() > 30, "{all:?}");
        for (_, typed) in all {
            let words = words(&format!("game {typed}"));
            let read = crate::described().try_get_matches_from(&words);
            assert!(read.is_ok(), "{typed}: {}", read.unwrap_err());
        }
    }

    fn without(command: &Command, found: &mut Vec<String>) {
        let inner: Vec<&Command> = command.get_subcommands().collect();
        let help = command.clone().render_long_help().to_string();
        if inner.is_empty() && !help.contains("Examples:") && !help.contains("For example:") {
            found.push(command.get_name().to_owned());
        }
        for one in inner {
            without(one, found);
        }
    }

    #[test]
    fn every_command_has_examples() {
        let mut found = Vec::new();
        without(&crate::described(), &mut found);
        assert!(found.is_empty(), "{found:?}");
    }
}
