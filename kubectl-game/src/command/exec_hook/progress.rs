//! Lines to print while an ExecutionHook is followed. Pure: the time is an argument.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::draw::Style;
use crate::draw::execution::{bar, failure, unseen};
use crate::draw::text::{clean, cut};
use crate::view::execution::{ExecutionView, Stage};

/// Minimum time between two bars that stay, as in a file.
const BAR_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of printed errors of containers that are retried.
const MAX_RETRIED: usize = 5;
/// Time after which a hook without a status is reported.
const UNSEEN_AFTER: Duration = Duration::from_secs(5);

/// Output for a hook so far.
pub(super) struct Progress {
    /// Whether the bar is redrawn in place.
    on_terminal: bool,
    /// Pods and containers whose failure is printed.
    failed: BTreeSet<(String, String)>,
    /// Printed errors of containers that are retried.
    retried: BTreeSet<String>,
    /// Last line about a wait.
    wait: Option<String>,
    /// Last state of the hook.
    view: Option<ExecutionView>,
    /// Last bar that is printed.
    bar: Option<String>,
    /// Time of the last bar.
    bar_at: Option<Duration>,
    /// Whether the cursor is at the end of a bar.
    is_open: bool,
}

impl Progress {
    /// Creates an output without lines.
    pub(super) fn new(on_terminal: bool) -> Self {
        Self {
            on_terminal,
            failed: BTreeSet::new(),
            retried: BTreeSet::new(),
            wait: None,
            view: None,
            bar: None,
            bar_at: None,
            is_open: false,
        }
    }

    /// Takes a new state of the hook.
    pub(super) fn take(&mut self, view: ExecutionView) {
        self.view = Some(view);
    }

    /// Returns the stage of the hook; `None` before its first state.
    pub(super) fn stage(&self) -> Option<Stage> {
        self.view.as_ref().map(|view| view.stage)
    }

    /// Returns the time at which there is output without a new state; both times begin with the command.
    pub(super) fn due(&self, style: Style) -> Option<Duration> {
        match self.stage()? {
            Stage::Unseen => self.wait.is_none().then_some(UNSEEN_AFTER),
            Stage::Waiting | Stage::Executing | Stage::Succeeded | Stage::Failed => {
                self.next_bar(style)?;
                Some(self.bar_at? + BAR_INTERVAL)
            }
        }
    }

    /// Returns the output that is due, with everything of a complete hook.
    pub(super) fn output(&mut self, style: Style, now: Duration) -> String {
        let Some(view) = self.view.clone() else {
            return String::new();
        };
        let mut lines: Vec<String> = Vec::new();
        if let Some(wait) = wait(&view, now).filter(|wait| self.wait.as_ref() != Some(wait)) {
            lines.push(wait.clone());
            self.wait = Some(wait);
        }
        for container in view.retrying() {
            let error = container.message.clone().unwrap_or_default();
            if self.retried.len() < MAX_RETRIED && self.retried.insert(error) {
                lines.push(format!("{}; retrying", failure(container)));
            }
        }
        for container in view.failed() {
            let name = (container.pod.clone(), container.container.clone());
            if self.failed.insert(name) {
                lines.push(failure(container));
            }
        }
        let verdict = view.stage.is_complete().then(|| verdict(&view));
        if self.on_terminal {
            self.redrawn(lines, verdict, style)
        } else {
            self.appended(lines, verdict, style, now)
        }
    }

    /// Adds lines above the bar, and redraws it.
    fn redrawn(&mut self, mut lines: Vec<String>, verdict: Option<String>, style: Style) -> String {
        let next_bar = self.next_bar(style);
        let is_hidden = self.bar.is_some() && !self.is_open;
        if next_bar.is_none() && lines.is_empty() && verdict.is_none() && !is_hidden {
            return String::new();
        }
        self.bar = next_bar.or_else(|| self.bar.take());
        let mut out = self.aside();
        let bar = self.bar.as_ref();
        let bar = bar.map(|bar| cut(bar, style.width.unwrap_or(usize::MAX), ""));
        if verdict.is_some() {
            lines.extend(bar.into_iter().chain(verdict));
            return out + &joined(&lines);
        }
        out += &joined(&lines);
        if let Some(bar) = bar {
            out += &bar;
            self.is_open = true;
        }
        out
    }

    /// Adds lines, and the bar if it may follow the last one.
    fn appended(
        &mut self,
        mut lines: Vec<String>,
        verdict: Option<String>,
        style: Style,
        now: Duration,
    ) -> String {
        let may_follow = self.bar_at.is_none_or(|last| now >= last + BAR_INTERVAL);
        let bar = self.next_bar(style).filter(|_| may_follow || verdict.is_some());
        if let Some(bar) = bar {
            lines.push(bar.clone());
            self.bar = Some(bar);
            self.bar_at = Some(now);
        }
        lines.extend(verdict);
        joined(&lines)
    }

    /// Returns the bar, if it is not printed yet.
    fn next_bar(&self, style: Style) -> Option<String> {
        let view = self.view.as_ref().filter(|view| view.counts.total > 0)?;
        let bar = bar(view.counts, style);
        (self.bar.as_ref() != Some(&bar)).then_some(bar)
    }

    /// Clears the bar, so that another line takes its place.
    pub(super) fn aside(&mut self) -> String {
        let is_open = std::mem::take(&mut self.is_open);
        if is_open {
            "\r\x1b[K".to_owned()
        } else {
            String::new()
        }
    }

    /// Ends the line of the bar, so that it stays.
    pub(super) fn close(&mut self) -> &'static str {
        if std::mem::take(&mut self.is_open) {
            "\n"
        } else {
            ""
        }
    }
}

fn joined(lines: &[String]) -> String {
    let lines = lines.iter().flat_map(|line| [line.as_str(), "\n"]);
    lines.collect()
}

/// Describes why no action runs; `now` is the time since the start of the command.
fn wait(view: &ExecutionView, now: Duration) -> Option<String> {
    let message = match view.stage {
        Stage::Waiting => view.message.clone(),
        Stage::Unseen if now >= UNSEEN_AFTER => unseen(),
        Stage::Unseen | Stage::Executing | Stage::Succeeded | Stage::Failed => return None,
    };
    let reason = view.reason.as_ref().map(|reason| format!("{reason}: "));
    Some(clean(&format!(
        "waiting: {}{message}",
        reason.unwrap_or_default()
    )))
}

/// Returns the last line about a complete hook.
fn verdict(view: &ExecutionView) -> String {
    let word = match view.stage {
        Stage::Succeeded => "succeeded",
        Stage::Failed | Stage::Unseen | Stage::Waiting | Stage::Executing => "failed",
    };
    let reason = view.reason.as_deref().unwrap_or_default();
    clean(&format!("{word}: {reason}: {}", view.message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paint::Paint;
    use crate::view::execution_samples as execution;

    const STYLE: Style = Style {
        paint: Paint::PLAIN,
        width: Some(80),
        height: None,
        cuts: true,
        now: None,
    };

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn output(progress: &mut Progress, view: ExecutionView, now: u64) -> String {
        progress.take(view);
        progress.output(STYLE, millis(now))
    }

    #[test]
    fn without_a_terminal_a_bar_is_printed_once_a_second_and_each_failure_at_once() {
        let mut progress = Progress::new(false);
        assert_eq!(progress.output(STYLE, millis(0)), "");
        let missing = execution::waiting("ActionNotFound", "HookAction freeze does not exist");
        let line = "waiting: ActionNotFound: HookAction freeze does not exist\n";
        assert_eq!(output(&mut progress, missing.clone(), 100), line);
        assert_eq!(output(&mut progress, missing, 200), "", "once");
        let first = output(&mut progress, execution::executing(1, &[]), 1000);
        assert_eq!(first, "[##--------] 1/4 succeeded, 0 failed\n");
        assert_eq!(progress.due(STYLE), None, "the bar is printed");
        assert_eq!(output(&mut progress, execution::executing(2, &[]), 1300), "");
        assert_eq!(progress.due(STYLE), Some(millis(2000)));
        let failed = execution::executing(2, &["arena-a"]);
        assert_eq!(
            output(&mut progress, failed, 1400),
            "arena-a/game: exited with code 3\n"
        );
        assert_eq!(
            progress.output(STYLE, millis(2000)),
            "[#######---] 2/4 succeeded, 1 failed\n"
        );
        let failed = execution::failed(2, &["arena-a", "arena-b"]);
        assert_eq!(
            output(&mut progress, failed, 2100),
            "arena-b/game: exited with code 3\n[##########] 2/4 succeeded, 2 failed\nfailed: ActionFailed: the action \
             failed in 2 of 4 containers\n"
        );
    }

    #[test]
    fn on_a_terminal_the_bar_is_redrawn_below_the_other_lines() {
        let mut progress = Progress::new(true);
        let first = output(&mut progress, execution::executing(1, &[]), 0);
        assert_eq!(first, "[##--------] 1/4 succeeded, 0 failed");
        assert_eq!(output(&mut progress, execution::executing(1, &[]), 10), "");
        let failed = output(&mut progress, execution::executing(1, &["arena-a"]), 20);
        assert_eq!(
            failed,
            "\r\x1b[Karena-a/game: exited with code 3\n[#####-----] 1/4 succeeded, 1 failed"
        );
        assert_eq!(progress.aside(), "\r\x1b[K", "a complaint takes its place");
        let again = output(&mut progress, execution::executing(1, &["arena-a"]), 25);
        assert_eq!(again, "[#####-----] 1/4 succeeded, 1 failed");
        let last = output(&mut progress, execution::failed(3, &["arena-a"]), 30);
        assert_eq!(
            last,
            "\r\x1b[K[##########] 3/4 succeeded, 1 failed\nfailed: ActionFailed: the action failed in 1 of 4 \
             containers\n"
        );
        assert_eq!(progress.close(), "", "the line has ended");
        let mut narrow = Progress::new(true);
        narrow.take(execution::executing(1, &[]));
        let style = Style {
            width: Some(16),
            ..STYLE
        };
        assert_eq!(narrow.output(style, millis(0)), "[##--------] 1/4");
        assert_eq!(narrow.close(), "\n");
    }

    #[test]
    fn a_hook_without_a_status_is_reported_after_a_while() {
        let mut progress = Progress::new(false);
        assert_eq!(output(&mut progress, execution::unseen(), 100), "");
        assert_eq!(progress.due(STYLE), Some(millis(5000)));
        let said = progress.output(STYLE, millis(5000));
        assert!(
            said.starts_with("waiting: hook-operator has not observed this ExecutionHook yet"),
            "{said}"
        );
        assert_eq!(progress.due(STYLE), None);
        assert_eq!(progress.output(STYLE, millis(6000)), "");
    }

    #[test]
    fn a_hook_that_selects_too_many_containers_ends_with_their_number() {
        let mut progress = Progress::new(false);
        let message = "1001 containers are selected, but the limit is 1000; create several ExecutionHooks";
        let said = output(&mut progress, execution::refused("TooManyContainers", message), 0);
        assert_eq!(said, format!("failed: TooManyContainers: {message}\n"));
    }

    #[test]
    fn a_message_cannot_command_the_terminal() {
        let mut progress = Progress::new(true);
        let said = output(
            &mut progress,
            execution::waiting("InvalidAction", "a\x1b]0;owned\x07"),
            0,
        );
        assert_eq!(said, "waiting: InvalidAction: a ]0;owned \n");
    }
}
