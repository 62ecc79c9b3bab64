//! The commands that ask a cluster. Each module holds the flags of its commands, what they fetch and what they print;
//! what is said stands in `view`, `why` and `rollout_state`, how it looks in `draw`.
//!
//! | module | commands |
//! | --- | --- |
//! | [`get`] | `get`: the tree of a workload |
//! | [`list`] | `list`: all workloads |
//! | [`why`] | `why`: why a pod or a workload waits |
//! | [`status`] | `status`: waits until a rollout is complete |
//! | [`retry`] | `retry`: asks hooks again |
//! | [`skip`] | `skip`: lets one pod pass |
//! | [`rollout`] | `pause`, `resume`, `promote` |
//! | [`template`] | `undo`, `set image` |
//! | [`scale`] | `scale` |
//! | [`history`] | `history` |
//! | [`hook_runs`] | `hook get`, `hook list`, `hook terminate` |
//! | [`completion`] | `completion` |
//! | [`follow`] | what all commands with `-w` do |

pub(crate) mod completion;
pub(crate) mod follow;
pub(crate) mod get;
pub(crate) mod history;
pub(crate) mod hook_runs;
pub(crate) mod list;
pub(crate) mod retry;
pub(crate) mod rollout;
pub(crate) mod scale;
pub(crate) mod skip;
pub(crate) mod status;
pub(crate) mod template;
pub(crate) mod why;

use std::io::Write;
use std::process::ExitCode;

use crate::cluster::{Failure, Flags};
use crate::draw::document::Output;
use crate::draw::text::{clean, wrap};
use crate::paint::Paint;

/// How a command ended: its exit code, or why it could not do its work.
pub(crate) type Outcome = Result<ExitCode, Failure>;

/// How things are shown.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Look {
    // A doc comment would need backticks, which the terminal would show.
    #[arg(long, help = "No colours [also: the environment variable NO_COLOR]")]
    no_color: bool,
}

impl Look {
    /// Colours and signs for standard output.
    pub(crate) fn paint(&self) -> Paint {
        Paint::new(self.no_color)
    }
}

/// What is printed in the place of lines for people.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct As {
    /// Print this instead of lines for people
    #[arg(short = 'o', long, value_enum)]
    pub(crate) output: Option<Output>,
}

/// What all commands take that show something: in which form, how it looks, and of which cluster.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Show {
    #[command(flatten)]
    output: As,

    #[command(flatten)]
    look: Look,

    #[command(flatten)]
    pub(crate) flags: Flags,
}

impl Show {
    /// What is printed in the place of lines for people, if anything.
    pub(crate) fn output(&self) -> Option<Output> {
        self.output.output
    }

    /// Colours and signs for standard output.
    pub(crate) fn paint(&self) -> Paint {
        self.look.paint()
    }
}

/// What is said where a list is empty. `everywhere`: it is of all namespaces.
pub(crate) fn none_found(what: &str, everywhere: bool, namespace: &str) -> String {
    if everywhere {
        format!("there is no {what} in the cluster")
    } else {
        format!("there is no {what} in namespace {namespace}; look in all with -A")
    }
}

/// Prints text. Whoever reads it may stop reading: that is no error.
pub(crate) fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
}

/// Prints lines.
pub(crate) fn print_lines(lines: &[String]) {
    print(&(lines.join("\n") + "\n"));
}

/// Prints a paragraph, broken to the terminal's width, and commands that may be typed next.
pub(crate) fn print_answer(text: &str, next: &[String]) {
    print_lines(&answer(
        text,
        next,
        crate::draw::screen::style(Paint::PLAIN).width,
    ));
}

fn answer(text: &str, next: &[String], width: Option<usize>) -> Vec<String> {
    // What a game server answered may stand in it: the terminal must not obey that.
    let text = clean(text);
    let mut lines = width.map_or_else(|| vec![text.clone()], |width| wrap(&text, width));
    if !next.is_empty() {
        lines.push(String::new());
        lines.push("Next:".to_owned());
        lines.extend(next.iter().map(|command| format!("  {}", clean(command))));
    }
    lines
}

/// It worked.
pub(crate) const DONE: Outcome = Ok(ExitCode::SUCCESS);

#[cfg(test)]
mod tests {
    #[test]
    fn an_answer_of_a_game_server_cannot_command_the_terminal() {
        let lines = super::answer("it said \x1b]0;owned\x07", &["kubectl get".to_owned()], Some(40));
        assert_eq!(lines, ["it said ]0;owned", "", "Next:", "  kubectl get"]);
    }
}
