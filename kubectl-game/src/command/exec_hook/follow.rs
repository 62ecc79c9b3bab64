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

const GAME: &str = "kubectl game exec-hook";

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
        let continues = continues(name, flags);
        match self {
            Self::Succeeded => None,
            Self::Failed => Some(format!("for details: {GAME} get {name}{flags}")),
            Self::TimedOut(timeout) => {
                let timeout = go_duration::display(timeout);
                Some(format!("not complete after {timeout}; {continues}"))
            }
            Self::Interrupted => Some(format!("interrupted; {continues}")),
        }
    }
}

/// Returns the commands for a hook that continues.
fn continues(name: &str, flags: &str) -> String {
    format!(
        "{name} continues in the cluster; to follow it: {GAME} get {name} -w{flags}; to terminate it: {GAME} terminate \
         {name}{flags}"
    )
}

/// Live view of one hook.
pub(super) type LiveHook = LiveList<ExecutionHook>;

/// Hook to follow.
pub(super) struct Followed {
    pub(super) name: String,
    /// UID; `None` for any hook of this name.
    pub(super) uid: Option<String>,
    pub(super) live: LiveHook,
}

/// Prints the progress of a hook until it is complete, and returns the exit code.
pub(super) async fn follow(
    cluster: &ClusterConnection,
    followed: Followed,
    timeout: Option<Duration>,
    paint: Paint,
) -> Result<ExitCode, Failure> {
    let name = followed.name.clone();
    let mut progress = Progress::new(screen::size().is_some());
    let ending = until_complete(cluster, followed, timeout, paint, &mut progress).await;
    print(progress.close());
    let ending = ending.inspect_err(|failure| {
        if !matches!(failure, Failure::NotFound(_)) {
            complain(&continues(&name, &cluster.flags));
        }
    })?;
    if let Some(remark) = ending.remark(&name, &cluster.flags) {
        complain(&remark);
    }
    Ok(ExitCode::from(ending.code()))
}

async fn until_complete(
    cluster: &ClusterConnection,
    followed: Followed,
    timeout: Option<Duration>,
    paint: Paint,
    progress: &mut Progress,
) -> Result<Ending, Failure> {
    let mut end = std::pin::pin!(interrupted());
    let start = Instant::now();
    let Followed {
        name,
        mut uid,
        mut live,
    } = followed;
    let mut is_seen = false;
    loop {
        // A watch that began before the hook was created, or that is interrupted, does not show it at once.
        let shown = match live.listed() {
            Some(listed) => newest(&name, listed, uid.as_ref())?,
            None => None,
        };
        let shown = match shown {
            None if is_seen || start.elapsed() >= APPEARS_WITHIN => {
                Some(read(cluster, &name, uid.as_ref()).await?)
            }
            shown => shown,
        };
        if let Some(hook) = shown {
            is_seen = true;
            uid = hook.uid();
            progress.take(ExecutionView::of(&hook));
            if hook.metadata.deletion_timestamp.is_some() && !hook.is_complete() {
                return Err(Failure::NotFound(format!(
                    "ExecutionHook {name} is being deleted; failed actions will not be retried, and its result will be \
                     lost"
                )));
            }
        }
        let style = screen::style(paint);
        print(&progress.output(style, start.elapsed()));
        if let Some(ending) = progress.stage().and_then(Ending::of) {
            return Ok(ending);
        }
        if let Some(timeout) = timeout.filter(|timeout| start.elapsed() >= *timeout) {
            return Ok(Ending::TimedOut(timeout));
        }
        let appears = (!is_seen).then_some(APPEARS_WITHIN);
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
                    complain(&format!("{words}; retrying"));
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

/// Reads the hook that the watch does not show.
async fn read(
    cluster: &ClusterConnection,
    name: &str,
    uid: Option<&String>,
) -> Result<ExecutionHook, Failure> {
    let gone = || {
        Failure::NotFound(format!(
            "ExecutionHook {name} no longer exists, and its result is unknown: it was deleted, or its \
             ttlSecondsAfterFinished expired"
        ))
    };
    match cluster.get::<ExecutionHook>(name).await {
        Ok(hook) if uid.is_none() || hook.uid().as_ref() == uid => Ok(hook),
        Ok(_) | Err(Failure::NotFound(_)) => Err(gone()),
        Err(failure) => Err(failure),
    }
}

/// Returns the hook with this UID, or with any if none is known.
fn newest(
    name: &str,
    listed: ListResult<ExecutionHook>,
    uid: Option<&String>,
) -> Result<Option<ExecutionHook>, Failure> {
    if let Some(object) = listed.unreadable.first() {
        return Err(Failure::Other(clean(&format!(
            "ExecutionHook {name} cannot be parsed: {}; install the version of kubectl game that matches the CRDs",
            object.error
        ))));
    }
    let mut hooks = listed.objects.into_iter();
    Ok(hooks.find(|hook| uid.is_none() || hook.uid().as_ref() == uid))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::execution_samples::hook;

    /// The watch may still show an older hook of the same name, which has succeeded.
    #[test]
    fn only_the_hook_that_was_created_is_followed() {
        let of = |uid: &str| {
            let mut hook = hook(serde_json::Value::Null);
            hook.metadata.uid = Some(uid.to_owned());
            ListResult {
                objects: vec![hook],
                unreadable: vec![],
            }
        };
        let created = "u-1".to_owned();
        let is_shown = |found: Result<Option<_>, Failure>| found.map(|hook| hook.is_some());
        assert_eq!(is_shown(newest("h", of("u-1"), None)), Ok(true));
        assert_eq!(is_shown(newest("h", of("u-1"), Some(&created))), Ok(true));
        assert_eq!(is_shown(newest("h", of("u-0"), Some(&created))), Ok(false));
        assert_eq!(is_shown(newest("h", ListResult::default(), None)), Ok(false));
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
            "for details: kubectl game exec-hook get freeze-1 -n games"
        );
        assert_eq!(
            late.remark("freeze-1", " -n games").unwrap(),
            "not complete after 10m0s; freeze-1 continues in the cluster; to follow it: kubectl game exec-hook get \
             freeze-1 -w -n games; to terminate it: kubectl game exec-hook terminate freeze-1 -n games"
        );
        let interrupted = Ending::Interrupted.remark("freeze-1", "").unwrap();
        assert!(
            interrupted.starts_with("interrupted; freeze-1 continues in the cluster; "),
            "{interrupted}"
        );
    }
}
