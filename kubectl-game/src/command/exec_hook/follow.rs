//! Follows an ExecutionHook until it is complete.

use std::process::ExitCode;
use std::time::Duration;

use kube::ResourceExt;
use shared_api::ExecutionHook;
use tokio::time::{Instant, sleep_until};

use super::progress::Progress;
use crate::cluster::{ClusterConnection, Failure, ListResult, LiveList, News, interrupted};
use crate::command::{complain, print};
use crate::draw::screen;
use crate::draw::text::clean;
use crate::paint::Paint;
use crate::view::execution::{ExecutionView, Stage};

/// Exit code: the hook ended without a success in every container.
const FAILED: u8 = 1;
/// Exit code: the hook was not complete in time, or the wait was interrupted.
const NOT_COMPLETE: u8 = 3;

/// Longest time until a watch shows a hook that exists.
const APPEARS_WITHIN: Duration = Duration::from_secs(5);

/// End of the wait for a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// The action succeeded in every container.
    Succeeded,
    /// The hook ended without a success in every container.
    Failed,
    /// The timeout has passed.
    TimedOut(Duration),
    /// Ctrl-C, or a termination signal.
    Interrupted,
}

impl Ending {
    fn of(stage: Stage) -> Option<Self> {
        match stage {
            Stage::Succeeded => Some(Self::Succeeded),
            Stage::Failed => Some(Self::Failed),
            Stage::Unseen | Stage::Waiting | Stage::Executing => None,
        }
    }

    fn code(self) -> u8 {
        match self {
            Self::Succeeded => 0,
            Self::Failed => FAILED,
            Self::TimedOut(_) | Self::Interrupted => NOT_COMPLETE,
        }
    }

    /// Returns a remark and the commands to run next; none after a success.
    fn remark(self, name: &str, flags: &str) -> Option<String> {
        let game = "kubectl game exec-hook";
        let continues = format!(
            "{name} continues; follow it with: {game} get {name} -w{flags}; stop it with: {game} terminate {name}{flags}"
        );
        match self {
            Self::Succeeded => None,
            Self::Failed => Some(format!("find out more with: {game} get {name}{flags}")),
            Self::TimedOut(timeout) => {
                let timeout = go_duration::display(timeout);
                Some(format!("not complete after {timeout}; {continues}"))
            }
            Self::Interrupted => Some(format!("interrupted; {continues}")),
        }
    }
}

/// Live view of one hook.
pub(super) type LiveHook = LiveList<ExecutionHook>;

/// Prints the progress of a hook until it is complete, and returns the exit code.
pub(super) async fn follow(
    cluster: &ClusterConnection,
    name: &str,
    live: LiveHook,
    timeout: Option<Duration>,
    paint: Paint,
) -> Result<ExitCode, Failure> {
    let mut progress = Progress::new(screen::size().is_some());
    let ending = until_complete(live, name, timeout, paint, &mut progress).await;
    print(progress.close());
    let ending = ending?;
    if let Some(remark) = ending.remark(name, &cluster.flags) {
        complain(&remark);
    }
    Ok(ExitCode::from(ending.code()))
}

async fn until_complete(
    mut live: LiveHook,
    name: &str,
    timeout: Option<Duration>,
    paint: Paint,
    progress: &mut Progress,
) -> Result<Ending, Failure> {
    let mut end = std::pin::pin!(interrupted());
    let start = Instant::now();
    let mut uid = None;
    loop {
        // A watch that began before the hook was created does not show it at once.
        if let Some(listed) = live.listed()
            && let Some(hook) = newest(name, listed, uid.as_ref(), start.elapsed())?
        {
            uid = hook.uid();
            progress.take(ExecutionView::of(&hook));
        }
        let style = screen::style(paint);
        print(&progress.output(style, start.elapsed()));
        if let Some(ending) = progress.stage().and_then(Ending::of) {
            return Ok(ending);
        }
        if let Some(timeout) = timeout.filter(|timeout| start.elapsed() >= *timeout) {
            return Ok(Ending::TimedOut(timeout));
        }
        let appears = (uid.is_none() && start.elapsed() < APPEARS_WITHIN).then_some(APPEARS_WITHIN);
        let due = [progress.due(style), appears, timeout]
            .into_iter()
            .flatten()
            .min();
        tokio::select! {
            () = &mut end => return Ok(Ending::Interrupted),
            () = wait_until(start, due) => {}
            news = live.news() => match news {
                News::Changed => {}
                News::Trouble(words) => {
                    print(&progress.aside());
                    complain(&format!("{words}; trying again"));
                }
                News::End(failure) => return Err(failure),
            },
        }
    }
}

/// Waits until this time after the start, or forever.
async fn wait_until(start: Instant, due: Option<Duration>) {
    // A longer time is none.
    match due.and_then(|due| start.checked_add(due)) {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// Returns the hook with this UID, or with any before the first one is known. A hook that does not appear is gone.
fn newest(
    name: &str,
    listed: ListResult<ExecutionHook>,
    uid: Option<&String>,
    waited: Duration,
) -> Result<Option<ExecutionHook>, Failure> {
    if let Some(object) = listed.unreadable.first() {
        return Err(Failure::Other(clean(&format!(
            "ExecutionHook {name} cannot be read: {}; install the kubectl game of the version of the CRDs",
            object.error
        ))));
    }
    let mut hooks = listed.objects.into_iter();
    let hook = hooks.find(|hook| uid.is_none() || hook.uid().as_ref() == uid);
    if hook.is_none() && (uid.is_some() || waited >= APPEARS_WITHIN) {
        return Err(Failure::NotFound(format!(
            "ExecutionHook {name} is gone before its end was seen: it was deleted, or its ttlSecondsAfterFinished has \
             passed"
        )));
    }
    Ok(hook)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::execution_samples::hook;

    #[test]
    fn a_hook_that_was_seen_and_is_deleted_or_replaced_is_gone() {
        let of = |uid: &str| {
            let mut hook = hook(serde_json::Value::Null);
            hook.metadata.uid = Some(uid.to_owned());
            ListResult {
                objects: vec![hook],
                unreadable: vec![],
            }
        };
        let (seen, soon) = ("u-1".to_owned(), Duration::from_secs(1));
        let is_shown = |found: Result<Option<_>, Failure>| found.map(|hook| hook.is_some());
        assert_eq!(is_shown(newest("h", of("u-1"), None, soon)), Ok(true));
        assert_eq!(is_shown(newest("h", of("u-1"), Some(&seen), soon)), Ok(true));
        assert_eq!(
            is_shown(newest("h", ListResult::default(), None, soon)),
            Ok(false)
        );
        for (listed, uid, waited) in [
            (of("u-2"), Some(&seen), soon),
            (ListResult::default(), Some(&seen), soon),
            (ListResult::default(), None, APPEARS_WITHIN),
        ] {
            assert!(matches!(
                newest("h", listed, uid, waited),
                Err(Failure::NotFound(_))
            ));
        }
    }

    #[test]
    fn each_end_has_its_exit_code_and_the_commands_to_run_next() {
        let ending = |stage| Ending::of(stage).map(Ending::code);
        assert_eq!(ending(Stage::Succeeded), Some(0));
        assert_eq!(ending(Stage::Failed), Some(1));
        for stage in [Stage::Unseen, Stage::Waiting, Stage::Executing] {
            assert_eq!(ending(stage), None);
        }
        let late = Ending::TimedOut(Duration::from_mins(10));
        assert_eq!((late.code(), Ending::Interrupted.code()), (3, 3));
        assert_eq!(Ending::Succeeded.remark("freeze-1", ""), None);
        assert_eq!(
            Ending::Failed.remark("freeze-1", " -n games").unwrap(),
            "find out more with: kubectl game exec-hook get freeze-1 -n games"
        );
        assert_eq!(
            late.remark("freeze-1", " -n games").unwrap(),
            "not complete after 10m0s; freeze-1 continues; follow it with: kubectl game exec-hook get freeze-1 -w -n games; \
             stop it with: kubectl game exec-hook terminate freeze-1 -n games"
        );
        let interrupted = Ending::Interrupted.remark("freeze-1", "").unwrap();
        assert!(
            interrupted.starts_with("interrupted; freeze-1 continues; "),
            "{interrupted}"
        );
    }
}
