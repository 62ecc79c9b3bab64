//! Commands that use a cluster. Each module holds the flags of its commands, the objects they fetch and the
//! output they print. The content comes from `view`, `why` and `rollout_state`, the layout from `draw`.
//!
//! | module | commands |
//! | --- | --- |
//! | [`get`] | `get`: the tree of a workload |
//! | [`list`] | `list`: all workloads |
//! | [`why`] | `why`: why a pod or a workload is waiting |
//! | [`status`] | `status`: waits until a rollout is complete |
//! | [`retry`] | `retry`: retries hooks |
//! | [`skip`] | `skip`: skips the hooks of one pod |
//! | [`keep`] | `keep`: withdraws the removal requests of a pod |
//! | [`drain`] | `drain`: drains a node, with the hooks of its pods |
//! | [`rollout`] | `pause`, `resume`, `promote` |
//! | [`abort`] | `abort`: aborts a rollout and rolls its pods back |
//! | [`template`] | `undo`, `set image` |
//! | [`restart`] | `restart` |
//! | [`scale`] | `scale` |
//! | [`history`] | `history` |
//! | [`exec_hook`] | `exec-hook run`, `exec-hook get`, `exec-hook terminate` |
//! | [`hook_runs`] | `hook get`, `hook list`, `hook terminate` |
//! | [`completion`] | `completion` |
//! | [`follow`] | the shared loop of all commands with `-w` |

pub(crate) mod abort;
pub(crate) mod completion;
pub(crate) mod drain;
pub(crate) mod exec_hook;
pub(crate) mod follow;
pub(crate) mod get;
pub(crate) mod history;
pub(crate) mod hook_runs;
pub(crate) mod keep;
pub(crate) mod list;
mod outlook;
pub(crate) mod promote;
pub(crate) mod restart;
pub(crate) mod retry;
mod retry_lifecycle;
pub(crate) mod rollout;
pub(crate) mod scale;
pub(crate) mod skip;
pub(crate) mod status;
pub(crate) mod template;
pub(crate) mod why;

use std::io::Write;
use std::process::ExitCode;

use crate::cluster::{Failure, Flags};
use crate::draw::document::OutputFormat;
use crate::draw::text::{clean, clean_lines, with_purpose, wrap};
use crate::paint::Paint;
use crate::why::{Explanation, Next};

/// Exit code of a command, or the reason why it failed.
pub(crate) type Outcome = Result<ExitCode, Failure>;

/// Option to disable colours.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ColorArgs {
    // A doc comment would need backticks, which the terminal would show.
    #[arg(long, help = "Disable colours [env: NO_COLOR]")]
    no_color: bool,
}

impl ColorArgs {
    /// Returns colours and symbols for standard output.
    pub(crate) fn paint(&self) -> Paint {
        Paint::new(self.no_color)
    }
}

/// Output format.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct OutputArgs {
    /// Output format [default: human-readable]
    #[arg(short = 'o', long, value_enum)]
    pub(crate) output: Option<OutputFormat>,
}

/// Options of all commands that show something: output format, colours and cluster.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct DisplayArgs {
    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    color: ColorArgs,

    #[command(flatten)]
    pub(crate) flags: Flags,
}

impl DisplayArgs {
    /// Returns the output format, if one is set.
    pub(crate) fn output(&self) -> Option<OutputFormat> {
        self.output.output
    }

    /// Returns colours and symbols for standard output.
    pub(crate) fn paint(&self) -> Paint {
        self.color.paint()
    }
}

/// Returns the message for an empty list. `what`: plural of the kind. `everywhere`: the list covers all namespaces.
pub(crate) fn none_found(what: &str, everywhere: bool, namespace: &str) -> String {
    if everywhere {
        format!("no {what} in the cluster")
    } else {
        format!("no {what} in namespace {namespace}; use -A for all namespaces")
    }
}

/// Prints text. Ignores errors, because the reader may close the output at any time.
pub(crate) fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
}

/// Prints a remark or an error to standard error.
pub(crate) fn complain(text: &str) {
    eprintln!("{}", clean_lines(text));
}

/// Prints lines.
pub(crate) fn print_lines(lines: &[String]) {
    print(&(lines.join("\n") + "\n"));
}

/// Prints a paragraph, wrapped to the terminal's width, and the commands to run next.
pub(crate) fn print_answer(text: &str, next: &[impl Clone + Into<Next>]) {
    print_explanation(&Explanation {
        paragraphs: vec![text.to_owned()],
        next: next.iter().cloned().map(Into::into).collect(),
        runbook: None,
    });
}

/// Prints an explanation: its paragraphs, wrapped to the terminal's width, the commands to run next, and the link to the
/// runbook.
pub(crate) fn print_explanation(explanation: &Explanation) {
    let width = crate::draw::screen::style(Paint::PLAIN).width;
    print_lines(&lines(explanation, width));
}

fn lines(explanation: &Explanation, width: Option<usize>) -> Vec<String> {
    let Explanation {
        paragraphs,
        next,
        runbook,
    } = explanation;
    let mut lines = Vec::new();
    for text in paragraphs {
        // The text may quote a game server: remove terminal control characters.
        let text = clean(text);
        match width {
            Some(width) => lines.extend(wrap(&text, width)),
            None => lines.push(text),
        }
    }
    if !next.is_empty() {
        lines.push(String::new());
        lines.push("Next:".to_owned());
        for Next { command, purpose } in next {
            let command = vec![format!("  {}", clean(command))];
            lines.extend(with_purpose(
                command,
                &clean(purpose),
                width.unwrap_or(usize::MAX),
            ));
        }
    }
    if let Some(link) = runbook {
        lines.push(String::new());
        lines.push(format!("Runbook: {link}"));
    }
    lines
}

/// Success.
pub(crate) const DONE: Outcome = Ok(ExitCode::SUCCESS);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_of_a_game_server_cannot_command_the_terminal() {
        let explanation = Explanation {
            paragraphs: vec!["it said \x1b]0;owned\x07".to_owned()],
            next: vec![Next {
                command: "kubectl get".to_owned(),
                purpose: "once http://\x1b[2J answers".to_owned(),
            }],
            runbook: None,
        };
        assert_eq!(
            lines(&explanation, Some(80)),
            [
                "it said ]0;owned",
                "",
                "Next:",
                "  kubectl get  # once http:// [2J answers"
            ]
        );
    }

    #[test]
    fn the_link_to_the_runbook_is_the_last_line() {
        let explanation = Explanation {
            paragraphs: vec!["It is blocked.".to_owned(), "The hook failed.".to_owned()],
            next: vec![Next::from("kubectl game retry arena".to_owned())],
            runbook: Some("https://example.com/runbook.md#hookerrors".to_owned()),
        };
        assert_eq!(
            lines(&explanation, Some(10)),
            [
                "It is",
                "blocked.",
                "The hook",
                "failed.",
                "",
                "Next:",
                "  kubectl game retry arena",
                "",
                "Runbook: https://example.com/runbook.md#hookerrors"
            ]
        );
    }
}
