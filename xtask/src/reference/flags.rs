//! `docs/reference/flags.md`: flags and environment variables of the three programs, from their definitions.

use clap::{Arg, ArgAction, Command, CommandFactory as _};

use super::{beginning, cell};

const INTRODUCTION: &str = "
Each flag can also be set with an environment variable; the flag takes precedence. Durations are written as `10s`,
`500ms`, `1m` or `90d`.

The programs connect to the API server with the first of these that exists: the kubeconfig in `KUBECONFIG`, the default
kubeconfig, or the service account of the pod.
The exit code is 0 after SIGTERM or SIGINT, 1 if the program fails to start, loses its Lease or has a task that hangs,
and 2 for an invalid flag.

For the flags of `kubectl game`, see [its page](../kubectl-game.md#all-commands).
";

pub(super) fn page() -> String {
    let mut text = beginning("Flags and environment", "the programs' own definitions");
    text.push_str(INTRODUCTION);
    for command in [
        hook_operator::config::Config::command(),
        gamedeployment_operator::config::Config::command(),
        admission::config::Config::command(),
    ] {
        text.push_str(&program(&command));
    }
    text
}

fn program(command: &Command) -> String {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let mut text = format!(
        "\n## {}\n\n{}.\n",
        command.get_name(),
        about.trim_end_matches('.')
    );
    let mut headings: Vec<Option<&str>> = Vec::new();
    for argument in command.get_arguments() {
        let heading = argument.get_help_heading();
        if !headings.contains(&heading) {
            headings.push(heading);
        }
    }
    for heading in headings {
        text.push_str(&heading.map_or_else(String::new, |heading| format!("\n{heading}:\n")));
        text.push_str("\n| flag | variable | default | meaning |\n| --- | --- | --- | --- |\n");
        let those = command
            .get_arguments()
            .filter(|argument| argument.get_help_heading() == heading);
        text.extend(those.map(row));
    }
    text
}

fn row(argument: &Arg) -> String {
    let takes = matches!(argument.get_action(), ArgAction::Set | ArgAction::Append);
    let name = argument
        .get_value_names()
        .and_then(<[_]>::first)
        .filter(|_| takes);
    let value = name.map_or_else(String::new, |name| format!(" <{name}>"));
    let flag = format!("`--{}{value}`", argument.get_long().unwrap_or_default());
    let variable = argument
        .get_env()
        .map_or_else(String::new, |name| format!("`{}`", name.to_string_lossy()));
    let help = argument
        .get_long_help()
        .or_else(|| argument.get_help())
        .map(ToString::to_string)
        .unwrap_or_default();
    // Defaults that clap cannot know are in the help text, in brackets.
    let (help, described) = match help.split_once(" [default: ") {
        Some((help, default)) => (help.to_owned(), Some(default.trim_end_matches(']').to_owned())),
        None => (help, None),
    };
    let defaults: Vec<String> = argument
        .get_default_values()
        .iter()
        .map(|value| format!("`{}`", value.to_string_lossy()))
        .collect();
    let default = match described {
        Some(described) => described,
        None if takes => defaults.join(", "),
        None => "no".to_owned(),
    };
    let possible: Vec<String> = argument
        .get_possible_values()
        .into_iter()
        .filter(|_| takes)
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    let possible = if possible.is_empty() {
        String::new()
    } else {
        format!("; one of {}", possible.join(", "))
    };
    format!(
        "| {} | {} | {} | {}{possible} |\n",
        cell(&flag),
        variable,
        cell(&default),
        cell(&help)
    )
}
