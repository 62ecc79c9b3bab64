//! Notices: HookRuns that inform a pod of its selection for deletion before its hook runs, such as a request to finish
//! the current match.
//!
//! A notice opens no gate: it has a name, a type and an intent of its own, and its result does not count. The hook runs
//! [`NOTICE_WAIT`] after the creation of the notice, or after its first rejection by the API server, at the latest, and
//! at once if the notice cannot run.

use std::collections::BTreeSet;
use std::rc::Rc;

use jiff::{SignedDuration, Timestamp};
use shared_api::HookRunStatus;
use shared_api::hook_run::MetricResult;
use shared_api::names::{hook_kind, hook_run_annotation as annotation, pod as names};
use shared_api::reason::WorkloadReason;

use super::age::CLOCK_SKEW;
use super::draft::Draft;
use super::resolved::{NOTICE_ARGS, invalid_template};
use super::{Gate, HookBlocker, HookRequest, NewRun, PodRef, Run, hook_request, question};
use crate::digest::digest_of_text;
use crate::plan::Warning;
use crate::pod::Pod;
use crate::user_text::bounded;

/// Maximum time from the creation of a notice for which the hook waits for its first measurement, and from the first
/// rejection of a notice for which the hook waits for its creation.
pub const NOTICE_WAIT: SignedDuration = SignedDuration::from_secs(30);

/// Prefix of a notice's name.
const PREFIX: &str = "notice-hook";

/// Progress of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeProgress {
    /// No measurement has ended.
    Unmeasured,
    /// At least one measurement has ended, with any result.
    Measured,
}

impl NoticeProgress {
    pub(super) fn of(status: &HookRunStatus) -> Self {
        let is_measured = |result: &MetricResult| {
            let ended = [
                result.successful,
                result.failed,
                result.inconclusive,
                result.error,
            ];
            ended.iter().any(|count| *count > 0)
        };
        if status.metric_results.iter().any(is_measured) {
            Self::Measured
        } else {
            Self::Unmeasured
        }
    }
}

/// Returns whether a HookRun with this value of its label is a notice, in the current or the old spelling.
pub fn is_notice(label: &str) -> bool {
    hook_kind::is_label_of(hook_kind::NOTICE, label)
}

/// Returns whether a HookRun of this name is a notice.
pub(crate) fn is_named_as_notice(name: &str) -> bool {
    selection_of(name).is_some()
}

/// Returns the digest of the selection that a notice is about. Reads it from the name, because labels and annotations
/// can be edited.
pub(super) fn selection_of(name: &str) -> Option<&str> {
    let rest = name.strip_prefix(PREFIX)?.strip_prefix('-')?;
    rest.rsplit_once('-').map(|(_, digest)| digest)
}

/// Returns the digest of the recorded selection of a pod; `None` if the pod is not selected for deletion.
fn digest_of_selection(pod: &Pod) -> Option<String> {
    let is_selected = pod.annotation(names::DELETING) == Some("true");
    let text = pod.annotation(names::CHOSEN_FOR).unwrap_or_default();
    is_selected.then(|| digest_of_text(&format!("{}/{text}", pod.uid)))
}

/// Returns whether the current question of a selected pod is the first since its selection; a rerun of the hook has
/// another one.
fn is_first_question(pod: &Pod) -> bool {
    question::on(pod) == pod.annotation(names::CHOSEN_FOR)
}

/// Recorded selections of pods.
pub(crate) struct Selections(BTreeSet<String>);

impl Selections {
    /// Gathers the selections of these pods.
    pub(crate) fn of<'p>(pods: impl IntoIterator<Item = &'p Pod>) -> Self {
        Self(pods.into_iter().filter_map(digest_of_selection).collect())
    }

    /// Returns whether a notice is about one of them.
    pub(crate) fn include(&self, notice: &Run) -> bool {
        selection_of(&notice.name).is_some_and(|digest| self.0.contains(digest))
    }
}

/// Returns the time until which the hook of a pod waits for this notice; `None` if it does not wait.
pub fn awaited_until(notice: &Run, now: Timestamp) -> Option<Timestamp> {
    let is_given = notice.notice == Some(NoticeProgress::Measured)
        || notice.phase.is_final()
        || notice.terminating
        || notice.unreadable.is_some();
    // Without a creation time, or with one in the future, the end of the wait would be unknown.
    let is_past = |created: &Timestamp| created.duration_since(now) <= CLOCK_SKEW;
    let created = notice.created.filter(|created| !is_given && is_past(created))?;
    let until = created.checked_add(NOTICE_WAIT).ok()?;
    (now < until).then_some(until)
}

/// Next step for a pod whose hook has not run.
#[derive(Debug)]
pub enum NextRun {
    /// Creates this HookRun, of the notice or of the hook.
    Create(Box<NewRun>),
    /// Waits for the notice until this time.
    AwaitNotice(Timestamp),
}

/// State of the notice about the selection of a pod.
#[derive(Debug)]
enum NoticeState<'a> {
    /// There is no notice, or the hook no longer waits for it.
    Given,
    /// The notice does not exist yet, and this request creates it.
    NotRun(HookRequest<'a>),
    /// The hook waits for the notice until this time.
    Running(Timestamp),
    /// The notice cannot run.
    Blocked(HookBlocker),
    /// The API server rejects the notice, and the hook no longer waits for it.
    Rejected(HookBlocker),
}

impl<'a> Gate<'a> {
    /// Returns the next step for a pod whose hook has not run and may run now. For a deletion, the selection of the pod
    /// must be recorded.
    #[must_use]
    pub fn next_run(&self, hook_request: &HookRequest<'a>) -> NextRun {
        let new = match self.notice(hook_request) {
            NoticeState::Running(until) => return NextRun::AwaitNotice(until),
            NoticeState::NotRun(notice) => notice.new_notice(),
            NoticeState::Blocked(blocker) if is_first_question(hook_request.pod) => {
                let warning = without_notice(hook_request.pod, &blocker);
                hook_request.new_run().with_warning(warning)
            }
            // A rerun reports it as well: the notice may have been tried again before it.
            NoticeState::Rejected(blocker) => {
                let warning = without_notice(hook_request.pod, &blocker);
                hook_request.new_run().with_warning(warning)
            }
            // The first HookRun since the selection has reported a notice that cannot run.
            NoticeState::Given | NoticeState::Blocked(_) => hook_request.new_run(),
        };
        NextRun::Create(Box::new(new))
    }

    fn notice(&self, hook_request: &HookRequest<'a>) -> NoticeState<'a> {
        let pod = hook_request.pod;
        let deletes = hook_request.intent.deletes();
        let Some(step) = self.workload.notice.as_ref().filter(|_| deletes) else {
            return NoticeState::Given;
        };
        let Some(selection) = digest_of_selection(pod) else {
            return NoticeState::Given;
        };
        let template = &step.template_name;
        let name = format!("{}-{selection}", hook_request::name(PREFIX, template, pod));
        // The notice may have been created when the spec named another template.
        let existing = self.runs.named(&name).or_else(|| self.runs.notice(&selection));
        if let Some(run) = existing {
            return awaited_until(run, self.now).map_or(NoticeState::Given, NoticeState::Running);
        }
        if self.cluster.has_run(&self.workload.namespace, &name) {
            return NoticeState::Given;
        }
        if let Some(blocker) = invalid_template(step, self.cluster) {
            return NoticeState::Blocked(blocker);
        }
        let new = || Draft::new(step, NOTICE_ARGS, self.cluster.template(template)).map(Rc::new);
        let draft = self.drafts.notice.get_or_init(new).clone();
        match draft.and_then(|draft| hook_request.with_draft(draft, name)) {
            Ok(notice) => match self.rejection(&notice) {
                Some(blocker) => NoticeState::Rejected(blocker),
                None => NoticeState::NotRun(notice),
            },
            Err(blocker) => NoticeState::Blocked(blocker),
        }
    }

    /// Returns the rejection of a notice, if the hook no longer waits for its creation.
    fn rejection(&self, notice: &HookRequest<'_>) -> Option<HookBlocker> {
        let rejected = self.cluster.rejected_notice(&notice.name)?;
        (rejected.lasts >= NOTICE_WAIT).then(|| {
            let message = format!("the API server rejects its HookRun: {}", rejected.answer);
            HookBlocker::new(WorkloadReason::WriteFailed, message)
        })
    }
}

impl HookRequest<'_> {
    /// Returns the HookRun of a notice.
    fn new_notice(&self) -> NewRun {
        let selection = self.pod.annotation(names::CHOSEN_FOR);
        let annotations = [(annotation::CHOICE, selection)];
        let new = self.new_run_of(
            hook_kind::NOTICE,
            annotation::INTENT_OF_NOTICE.to_owned(),
            annotations,
        );
        new.counted_for(&self.intent)
    }
}

/// Returns the warning about a hook that runs without its notice.
fn without_notice(pod: &Pod, blocker: &HookBlocker) -> Warning {
    Warning {
        pod: Some(PodRef::of(pod)),
        reason: WorkloadReason::NoticeFailed,
        message: format!(
            "the notice of pod {} cannot run, so its PreDelete hook runs without it: {}",
            pod.name,
            bounded(&blocker.message)
        ),
    }
}

/// Returns the warning about a notice that ended without a success. `pod`: the pod that it was for, if it still exists.
pub fn failed_notice(notice: &Run, pod: Option<&Pod>) -> Warning {
    let subject = pod.map_or_else(
        || "the notice of a pod".to_owned(),
        |pod| format!("the notice of pod {}", pod.name),
    );
    Warning {
        pod: pod.map(PodRef::of),
        reason: WorkloadReason::NoticeFailed,
        message: format!(
            "{subject} failed: HookRun {} {}. The hook of the pod runs nevertheless",
            notice.name,
            bounded(&notice.verdict())
        ),
    }
}

#[cfg(test)]
mod tests;
