//! Examples in the help of each command, as people type them.

use clap::Command;

/// For each command its examples: what for, and what to type.
type Examples = &'static [(&'static str, &'static str)];

const EXAMPLES: [(&[&str], Examples); 20] = [
    (
        &["get"],
        &[
            ("The tree of one workload", "kubectl game get arena"),
            ("The same, as it changes", "kubectl game get arena -w"),
            ("For a script", "kubectl game get arena -o json"),
        ],
    ),
    (
        &["list"],
        &[
            ("Of the current namespace", "kubectl game list"),
            ("Of all namespaces, as they change", "kubectl game list -A -w"),
        ],
    ),
    (
        &["why"],
        &[
            ("Why a workload waits", "kubectl game why arena"),
            ("Why one pod does", "kubectl game why pod/arena-x7k2p"),
        ],
    ),
    (
        &["status"],
        &[
            (
                "Wait for a rollout, in a pipeline",
                "kubectl game status arena --timeout 30m",
            ),
            ("Only look", "kubectl game status arena --watch=false"),
        ],
    ),
    (
        &["retry"],
        &[
            ("Ask all hooks again that said no", "kubectl game retry arena"),
            (
                "Only those before a deletion",
                "kubectl game retry arena --hook pre-delete",
            ),
        ],
    ),
    (
        &["skip"],
        &[(
            "Let a pod go whose server hangs",
            "kubectl game skip arena-x7k2p --reason 'server hangs, match is over'",
        )],
    ),
    (&["pause"], &[("Stop an update", "kubectl game pause arena")]),
    (&["resume"], &[("Let it go on", "kubectl game resume arena")]),
    (
        &["promote"],
        &[("Go past the canary step that holds", "kubectl game promote arena")],
    ),
    (
        &["undo"],
        &[
            ("Back to the template before this one", "kubectl game undo arena"),
            ("Back to a certain one", "kubectl game undo arena --to-revision 3"),
        ],
    ),
    (
        &["set", "image"],
        &[(
            "A new image for the container game",
            "kubectl game set image arena game=example.com/game:2",
        )],
    ),
    (
        &["scale"],
        &[
            ("To two pods", "kubectl game scale arena --replicas 2"),
            (
                "Only if there are five wanted now",
                "kubectl game scale arena --replicas 2 --current-replicas 5",
            ),
        ],
    ),
    (
        &["history"],
        &[
            ("All revisions", "kubectl game history arena"),
            ("What is in one", "kubectl game history arena --revision 3"),
        ],
    ),
    (
        &["hook", "run"],
        &[
            (
                "Measure a hook against a server here",
                "kubectl game hook run -f hook.yaml",
            ),
            (
                "Only its final status",
                "kubectl game hook run -f hook.yaml -o json",
            ),
        ],
    ),
    (
        &["hook", "lint"],
        &[("Check manifests of hooks", "kubectl game hook lint -f hooks.yaml")],
    ),
    (
        &["hook", "evaluate"],
        &[(
            "What an answer would yield",
            "kubectl game hook evaluate -f hook.yaml --result '{\"players\":0}'",
        )],
    ),
    (
        &["hook", "get"],
        &[(
            "Watch a HookRun until its verdict",
            "kubectl game hook get RUN -w",
        )],
    ),
    (
        &["hook", "list"],
        &[(
            "Those that said no, in all namespaces",
            "kubectl game hook list -A --failing",
        )],
    ),
    (
        &["hook", "terminate"],
        &[(
            "End one that polls for too long",
            "kubectl game hook terminate RUN",
        )],
    ),
    (
        &["lint"],
        &[
            (
                "Check the manifests of a directory",
                "kubectl game lint -R -f deploy/",
            ),
            ("For a pipeline", "kubectl game lint -f game.yaml -o json"),
        ],
    ),
];

/// The commands, with their examples below the help.
pub(crate) fn add(command: Command) -> Command {
    below(command, &[])
}

/// A command with its examples, and all below it with theirs.
fn below(command: Command, path: &[String]) -> Command {
    let known = EXAMPLES.iter().find(|(of, _)| of == &path);
    let command = match known {
        Some((_, examples)) => command.after_long_help(text(examples)),
        None => command,
    };
    command.mut_subcommands(|inner| {
        let path = [path, &[inner.get_name().to_owned()]].concat();
        below(inner, &path)
    })
}

fn text(examples: Examples) -> String {
    let lines = examples
        .iter()
        .map(|(purpose, typed)| format!("  # {purpose}\n  {typed}"));
    format!("Examples:\n{}", lines.collect::<Vec<_>>().join("\n\n"))
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
        for (path, examples) in EXAMPLES {
            for (_, typed) in examples {
                let words = words(typed);
                assert_eq!(words[..2], ["kubectl", "game"]);
                assert_eq!(words[2..2 + path.len()], *path);
                let read = crate::described().try_get_matches_from(&words[1..]);
                assert!(read.is_ok(), "{typed}: {}", read.unwrap_err());
            }
        }
    }

    fn without(command: &Command, found: &mut Vec<String>) {
        let inner: Vec<&Command> = command.get_subcommands().collect();
        let said = command.clone().render_long_help().to_string();
        if inner.is_empty() && !said.contains("Examples:") && !said.contains("For example:") {
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
