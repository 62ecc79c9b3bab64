//! Messages of the conditions.

use jiff::{SignedDuration, Timestamp};
use shared_api::game_deployment::RolloutTimer;
use shared_api::names::pod::{self as annotation, REMOVAL_REQUESTED, SKIP_HOOK};
use shared_api::names::workload::INDEX_RANGE;
use shared_api::reason::{WorkloadCondition, WorkloadReason};
use shared_api::removal_request::InvalidRequests;

use super::condition::Conditions;
use super::name_list::{join_first, join_names};
use super::waiting::{WaitState, Waiting, WaitingPod};
use super::{Findings, ended, unrecorded};
use crate::canary::StepWait;
use crate::deadline;
use crate::dry_run;
use crate::facts::{Facts, PodFacts};
use crate::gate::{GateState, Unresolved, unresolved};
use crate::hook_kind::HookKind;
use crate::lifecycle::Wait;
use crate::plural::{form, pods, pods_are};
use crate::pod::Pod;
use crate::progress::InPlacePhase;
use crate::recreate::{self, Recreate};
use crate::stages::{GrantedPod, staying};
use crate::steps::STALLED_AFTER;
use crate::user_text::{bounded, cut};
use crate::workload::{Source, UpdateType, ineffective_settings, sentence, sets_paused};

/// Maximum length of the causes in a message about hooks, in bytes: remedies follow, and must not be cut off.
const MAX_CAUSES_BYTES: usize = 3 * 1024;

pub(super) fn available(facts: &Facts<'_>, conditions: &mut Conditions<'_>) {
    let workload = facts.workload;
    // All pods may go at once in an update of this type, but then the workload is not available.
    let may_be_missing = match workload.update {
        UpdateType::Recreate => 0,
        UpdateType::Rolling | UpdateType::InPlace | UpdateType::HotPatch | UpdateType::OnDelete => {
            workload.max_unavailable
        }
    };
    let floor = workload.replicas.saturating_sub(may_be_missing);
    let have = facts
        .pods
        .iter()
        .filter(|pod| pod.pod.is_available(workload.min_ready_seconds, facts.now))
        .count();
    let enough = have >= floor;
    let reason = if enough {
        WorkloadReason::MinimumPodsAvailable
    } else {
        WorkloadReason::MinimumPodsUnavailable
    };
    let count = match (enough, floor) {
        (true, _) => format!("at least {} available", pods_are(floor)),
        (false, 1) => "no pod is available".to_owned(),
        (false, _) => format!("fewer than {} available", pods_are(floor)),
    };
    // Included even if enough pods are available, so that no pod fails to start silently.
    let message = count + &not_available(facts);
    conditions.set(WorkloadCondition::Available, enough, reason, message);
}

/// Reports whether the hooks can run, so that a misspelt name is found before a pod waits for it.
pub(super) fn hooks_resolved(facts: &Facts<'_>, conditions: &mut Conditions<'_>) {
    let Some(unresolved) = unresolved(facts.workload, facts.view.cluster) else {
        return;
    };
    let (reason, message) = match unresolved.first() {
        None => (WorkloadReason::HooksResolved, "every hook can run".to_owned()),
        Some(first) => {
            let words =
                |unresolved: &Unresolved| format!("{}: {}", unresolved.path, unresolved.blocker.message);
            (first.blocker.reason, join_first(&unresolved, words))
        }
    };
    let kind = WorkloadCondition::HooksResolved;
    conditions.set(kind, unresolved.is_empty(), reason, message);
}

/// Formats why pods do not start, in the words of the scheduler and the kubelet.
fn not_available(facts: &Facts<'_>) -> String {
    let unready = facts.pods.iter().filter(|pod| !pod.pod.is_ready());
    let complaints: Vec<(&str, String)> = unready
        .filter_map(|pod| Some((pod.pod.name.as_str(), pod.pod.complaint()?)))
        .collect();
    if complaints.is_empty() {
        String::new()
    } else {
        let complaints = join_first(&complaints, |(pod, complaint)| format!("pod {pod}: {complaint}"));
        format!("; {complaints}")
    }
}

pub(super) fn progressing(
    facts: &Facts<'_>,
    findings: &Findings<'_>,
    waiting: &Waiting<'_>,
    timer: Option<&RolloutTimer>,
    conditions: &mut Conditions<'_>,
) {
    let counts = &findings.counts;
    let (updated, all) = (facts.updated(), facts.pods.len());
    let mut set = |progress, reason, message: String| {
        let message = message
            + &waits(facts, findings, waiting)
            + &under_way(facts)
            + &not_begun(facts, findings)
            + &kept_runs(facts)
            + &invalid_requests(facts)
            + &time(facts, timer);
        conditions.set(WorkloadCondition::Progressing, progress, reason, message);
    };
    if let Some((progress, reason, message)) = unrecorded::progressing(facts) {
        return set(progress, reason, message);
    }
    if let Some(Wait::Blocked(WorkloadReason::ProgressDeadlineExceeded, message)) = &findings.lifecycle.wait {
        return set(false, WorkloadReason::ProgressDeadlineExceeded, message.clone());
    }
    match &findings.canary.wait {
        Some(StepWait::RollingOut(message)) => {
            return set(true, WorkloadReason::RollingOut, message.clone());
        }
        Some(StepWait::Paused(reason, message) | StepWait::Blocked(reason, message)) => {
            return set(false, *reason, message.clone());
        }
        None => {}
    }
    match &findings.lifecycle.wait {
        Some(Wait::Hook(reason, message)) => return set(true, *reason, message.clone()),
        Some(Wait::Blocked(reason, message)) => return set(false, *reason, message.clone()),
        Some(Wait::Pods(_)) | None => {}
    }
    if facts.workload.paused && facts.old() > 0 {
        let message = format!(
            "updates are paused at {updated} of {all} pods; to continue, set spec.updateStrategy.paused to false"
        );
        return set(false, WorkloadReason::Paused, message);
    }
    if let Some(message) = paused_before_creation(facts, findings) {
        return set(false, WorkloadReason::Paused, message);
    }
    if !findings.delayed.is_empty() {
        let message = format!("{} missing; see ScaleBlocked", pods_are(findings.delayed.len()));
        return set(false, WorkloadReason::PodsEndAtOnce, message);
    }
    if findings.recreate == Some(Recreate::Deleting) {
        let message = old_left(recreate::old_left(facts));
        return set(true, WorkloadReason::RollingOut, message);
    }
    // Missing pods wait for the hooks.
    if let (Some(_), Some(Wait::Pods(hooks))) = (findings.recreate, &findings.lifecycle.wait)
        && counts.to_keep_old() > 0
    {
        let message = format!(
            "{updated} of {} pods are updated; {hooks}",
            facts.workload.replicas
        );
        return set(true, WorkloadReason::LifecycleHookWaiting, message);
    }
    if let Some(message) = scaling(facts, findings) {
        return set(true, WorkloadReason::Scaling, message);
    }
    if counts.to_update() > 0 && facts.workload.update == UpdateType::OnDelete {
        let message =
            format!("{updated} of {all} pods are updated; the rest will be updated when they are deleted");
        return set(true, WorkloadReason::WaitingForDeletion, message);
    }
    let busy = facts
        .pods
        .iter()
        .any(|pod| !matches!(pod.phase, InPlacePhase::Idle));
    if counts.to_update() > 0 || busy {
        let wanted = counts.to_update_in_all();
        let message = format!("{updated} of {wanted} pods are updated");
        return set(true, WorkloadReason::RollingOut, message);
    }
    let message = if facts.old() == 0 {
        "all pods are at the update revision".to_owned()
    } else {
        format!(
            "{updated} of {all} pods are at the update revision; the rest are held back by \
             spec.updateStrategy.partition"
        )
    };
    match &findings.lifecycle.wait {
        Some(Wait::Pods(hooks)) => {
            set(
                true,
                WorkloadReason::LifecycleHookWaiting,
                format!("{message}; {hooks}"),
            );
        }
        Some(Wait::Hook(..) | Wait::Blocked(..)) | None => {
            set(true, WorkloadReason::RolloutComplete, message);
        }
    }
}

/// Formats how many pods of earlier revisions the creation of new ones waits for.
fn old_left(left: usize) -> String {
    format!(
        "{} of {} left; new pods will be created once {} gone",
        pods(left),
        form(left, "an earlier revision is", "earlier revisions are"),
        form(left, "it is", "they are")
    )
}

/// Formats how many pods are created and deleted, and what their creation waits for.
fn scaling(facts: &Facts<'_>, findings: &Findings<'_>) -> Option<String> {
    let diff = findings.counts.diff();
    let (to_create, to_delete) = (diff.create_old + diff.create_updated, diff.delete);
    let counts = match (to_create, to_delete) {
        (0, 0) => return None,
        (0, _) => format!("deleting {}", pods(to_delete)),
        (_, 0) => format!("creating {}", pods(to_create)),
        (_, _) => format!("creating {}, deleting {to_delete}", pods(to_create)),
    };
    Some(counts + &waits_for_index(facts, findings) + &waits_for_batch(facts, to_create))
}

/// Returns why the first pods are missing: they wait for a lifecycle hook, which does not begin during a pause.
fn paused_before_creation(facts: &Facts<'_>, findings: &Findings<'_>) -> Option<String> {
    let (all, replicas) = (facts.pods.len(), facts.workload.replicas);
    let is_held = facts.workload.paused && findings.lifecycle.holds_creations && all < replicas;
    match &findings.lifecycle.wait {
        Some(Wait::Pods(hooks)) if is_held => Some(format!(
            "{all} of {replicas} pods have been created; to continue, set spec.updateStrategy.paused to false; {hooks}"
        )),
        Some(Wait::Pods(_) | Wait::Hook(..) | Wait::Blocked(..)) | None => None,
    }
}

/// Formats which pods wait for a hook, for budget or for the API server to accept new pods.
fn waits(facts: &Facts<'_>, findings: &Findings<'_>, waiting: &Waiting<'_>) -> String {
    let running = waiting
        .entries
        .iter()
        .filter(|entry| entry.state == WaitState::Running);
    let running: Vec<&str> = running.map(|entry| entry.condition.pod_name.as_str()).collect();
    let mut parts = Vec::new();
    if !running.is_empty() {
        let hooks = form(running.len(), "hook", "hooks");
        parts.push(format!("; running the {hooks} of {}", join_names(&running)));
    }
    let searches = [
        (findings.scouts.searches.scale, ""),
        (findings.scouts.searches.update, " to update"),
    ];
    for (search, purpose) in searches {
        let Some(search) = search.filter(|search| search.needed > 0) else {
            continue;
        };
        let (needed, candidates) = (search.needed, search.candidates);
        let pods = form(needed, "pod", "pods");
        parts.push(format!("; waiting for {needed} more idle {pods}{purpose}"));
        if candidates > 0 {
            let hooks = form(candidates, "hook", "hooks");
            let of = form(candidates, "candidate", "candidates");
            parts.push(format!(": running the {hooks} of {candidates} {of}"));
        }
    }
    let waiting_for_budget = findings.pods.iter().filter(|pod| waits_for_budget(pod));
    let held = names(waiting_for_budget.map(|pod| pod.facts));
    let waits_for_slot = findings.scouts.waits_for_slot;
    if !held.is_empty() {
        let (are, names) = (pods_are(held.len()), join_names(&held));
        let reason = dry_run::waits_for(facts, &findings.pods)
            .unwrap_or_else(|| "because maxUnavailable is reached".to_owned());
        parts.push(format!("; {are} waiting {reason}: {names}"));
    } else if waits_for_slot {
        parts.push("; the next pods are waiting because maxUnavailable is reached".to_owned());
    }
    if !held.is_empty() || waits_for_slot {
        let missing = names(facts.pods.iter().filter(|pod| !pod.is_available()));
        if !missing.is_empty() {
            parts.push(format!("; not available: {}", join_names(&missing)));
        }
    }
    parts.concat()
}

/// Formats the in-place updates in progress.
fn under_way(facts: &Facts<'_>) -> String {
    let grace = SignedDuration::from_secs(facts.workload.grace_seconds);
    let busy = facts.pods.iter().filter(|pod| pod.phase != InPlacePhase::Idle);
    let mut busy: Vec<_> = busy.collect();
    busy.sort_by_key(|pod| &pod.pod.name);
    let sentence = |pod: &&PodFacts<'_>| {
        let name = &pod.pod.name;
        match &pod.phase {
            InPlacePhase::Grace { since, .. } => {
                let end = since.and_then(|since| since.checked_add(grace).ok());
                let images = end.map_or_else(
                    || "its images are about to be updated".to_owned(),
                    |end| format!("its images will be updated at {end}"),
                );
                format!("pod {name} is out of service, and {images}")
            }
            InPlacePhase::Written { .. } => format!("pod {name} is being updated"),
            InPlacePhase::OutOfService | InPlacePhase::Finished | InPlacePhase::Idle => {
                format!("putting pod {name} back into service")
            }
        }
    };
    if busy.is_empty() {
        String::new()
    } else {
        format!("; {}", join_first(&busy, sentence))
    }
}

/// Formats the pods that stay at old revisions for now.
fn not_begun(facts: &Facts<'_>, findings: &Findings<'_>) -> String {
    let pods = names(staying(facts, &findings.pods).filter(|pod| pod.old));
    if pods.is_empty() {
        String::new()
    } else {
        format!("; not updated yet: {}", join_names(&pods))
    }
}

/// Formats the time that the rollout has left.
fn time(facts: &Facts<'_>, timer: Option<&RolloutTimer>) -> String {
    let timer = timer.and_then(|timer| deadline::describe(facts, timer));
    timer.map_or_else(String::new, |timer| format!("; {timer}"))
}

/// Formats the HookRuns that only a finalizer keeps.
fn kept_runs(facts: &Facts<'_>) -> String {
    let runs = facts.view.runs.iter().filter(|run| run.terminating);
    let mut runs: Vec<&str> = runs.map(|run| run.name.as_str()).collect();
    runs.sort_unstable();
    if runs.is_empty() {
        String::new()
    } else {
        let (noun, stuck) = (
            form(runs.len(), "HookRun", "HookRuns"),
            form(
                runs.len(),
                "is stuck terminating because of its",
                "are stuck terminating because of their",
            ),
        );
        format!("; {noun} {} {stuck} finalizers", join_names(&runs))
    }
}

/// Formats the removal requests that are ignored because they cannot be parsed.
fn invalid_requests(facts: &Facts<'_>) -> String {
    let invalid = facts.pods.iter().filter_map(|pod| {
        let removal = pod.removal.as_deref()?;
        Some((pod.pod.name.as_str(), removal.invalid.as_ref()?))
    });
    let mut invalid: Vec<_> = invalid.collect();
    invalid.sort_unstable_by_key(|(pod, _)| *pod);
    if invalid.is_empty() {
        return String::new();
    }
    let sentence = |(pod, invalid): &(&str, &InvalidRequests)| {
        format!(
            "the removal requests of pod {pod} are ignored, because its annotation {REMOVAL_REQUESTED} {}; remove it",
            bounded(&invalid.to_string())
        )
    };
    format!("; {}", join_first(&invalid, sentence))
}

/// Returns pod names in a stable order.
fn names<'p, 'a: 'p>(pods: impl Iterator<Item = &'p PodFacts<'a>>) -> Vec<&'a str> {
    let mut names: Vec<&str> = pods.map(|pod| pod.pod.name.as_str()).collect();
    names.sort_unstable();
    names
}

/// Formats why creation waits: the previous batch is not ready yet.
fn waits_for_batch(facts: &Facts<'_>, to_create: usize) -> String {
    if to_create <= crate::creation::room(facts) {
        return String::new();
    }
    let unready = names(facts.pods.iter().filter(|pod| crate::creation::is_starting(pod)));
    format!(
        "; waiting for {} {} to become ready before creating more (spec.scaleStrategy.createBatch)",
        form(unready.len(), "pod", "pods"),
        join_names(&unready)
    )
}

/// Formats how many new pods wait for an index, and the terminating pods that still hold one.
fn waits_for_index(facts: &Facts<'_>, findings: &Findings<'_>) -> String {
    let ending = holding_an_index(facts, |pod| pod.terminating);
    if findings.without_index == 0 || ending.is_empty() {
        return String::new();
    }
    let count = findings.without_index.min(ending.len());
    format!(
        "; {} waiting for {} held by {}: {}",
        pods_are(count),
        form(count, "an index", "indexes"),
        form(ending.len(), "a terminating pod", "terminating pods"),
        join_names(&ending)
    )
}

/// Returns the workload's pods that hold an index of the range but no longer count.
fn holding_an_index<'a>(facts: &Facts<'a>, wanted: fn(&Pod) -> bool) -> Vec<&'a str> {
    let Some(range) = facts.workload.indexes else {
        return Vec::new();
    };
    let holds = |pod: &Pod| {
        let index = pod
            .annotation(annotation::INDEX)
            .and_then(|text| text.parse().ok());
        index.is_some_and(|index: i64| (range.start..range.end).contains(&index))
    };
    let own = |pod: &Pod| pod.controller.as_deref() == Some(facts.workload.uid.as_str());
    let pods = facts
        .view
        .pods
        .iter()
        .filter(|pod| own(pod) && wanted(pod) && holds(pod));
    let mut names: Vec<&str> = pods.map(|pod| pod.name.as_str()).collect();
    names.sort_unstable();
    names
}

fn waits_for_budget(pod: &GrantedPod<'_>) -> bool {
    let could = matches!(
        pod.gate_state,
        GateState::Open(_) | GateState::Consumed(_) | GateState::NotRun(_) | GateState::Stale(..)
    );
    could && !pod.granted && !pod.facts.pod.is_out_of_service()
}

pub(super) fn scale_blocked(
    facts: &Facts<'_>,
    findings: &Findings<'_>,
    waiting: &Waiting<'_>,
    conditions: &mut Conditions<'_>,
) {
    let kind = WorkloadCondition::ScaleBlocked;
    if let Some(message) = facts.view.write_errors.and_then(|errors| errors.scaling.clone()) {
        return conditions.set(kind, true, WorkloadReason::WriteFailed, message);
    }
    if let Some((reason, message)) = ended::within_crash_window(facts, findings) {
        return conditions.set(kind, true, reason, message);
    }
    if findings.without_index > holding_an_index(facts, |pod| pod.terminating).len() {
        let ended = holding_an_index(facts, |pod| pod.is_finished() && !pod.terminating);
        let or = if ended.is_empty() {
            String::new()
        } else {
            format!(", or delete finished pods: {}", join_names(&ended))
        };
        let have = form(findings.without_index, "has", "have");
        let message = format!(
            "{} {have} no index: all indexes in the range are in use; widen the range in annotation {INDEX_RANGE}{or}",
            pods(findings.without_index)
        );
        return conditions.set(kind, true, WorkloadReason::IndexesExhausted, message);
    }
    if let Some((reason, message)) = hooks(waiting, |entry| entry.scales) {
        conditions.set(kind, true, reason, message);
    }
}

pub(super) fn update_blocked(
    facts: &Facts<'_>,
    findings: &Findings<'_>,
    waiting: &Waiting<'_>,
    conditions: &mut Conditions<'_>,
) {
    let kind = WorkloadCondition::UpdateBlocked;
    if let Some((reason, message)) = unrecorded::refused(facts) {
        return conditions.set(kind, true, reason, message);
    }
    if let Some(Wait::Blocked(WorkloadReason::ProgressDeadlineExceeded, message)) = &findings.lifecycle.wait {
        let reason = WorkloadReason::ProgressDeadlineExceeded;
        return conditions.set(kind, true, reason, message.clone());
    }
    if let Some(message) = facts.view.write_errors.and_then(|errors| errors.updating.clone()) {
        return conditions.set(kind, true, WorkloadReason::WriteFailed, message);
    }
    if let Some(message) = dry_run::refusal(facts) {
        return conditions.set(kind, true, WorkloadReason::PodRefused, message);
    }
    if !findings.update_blockers.not_in_place.is_empty() {
        let message = format!(
            "{} cannot be updated in place: {}",
            pods(findings.update_blockers.pods),
            findings.update_blockers.not_in_place.join("; ")
        );
        return conditions.set(kind, true, WorkloadReason::NotInPlaceUpdatable, message);
    }
    let stalled: Vec<String> = facts
        .pods
        .iter()
        .filter_map(|pod| stalled(pod, facts.now))
        .collect();
    if !stalled.is_empty() {
        return conditions.set(
            kind,
            true,
            WorkloadReason::InPlaceStalled,
            join_first(&stalled, Clone::clone),
        );
    }
    if let Some((reason, message)) = hooks(waiting, |entry| !entry.scales) {
        return conditions.set(kind, true, reason, message);
    }
    if let Some(StepWait::Blocked(reason, message)) = &findings.canary.wait {
        return conditions.set(kind, true, *reason, message.clone());
    }
    if let Some(Wait::Blocked(reason, message)) = &findings.lifecycle.wait {
        conditions.set(kind, true, *reason, message.clone());
    }
}

/// Reports settings that are valid but surprising.
pub(super) fn spec_warning(facts: &Facts<'_>, conditions: &mut Conditions<'_>) {
    let object = facts.view.object;
    let paused = sets_paused(object, Source::Stored);
    let reason = if paused.is_some() {
        WorkloadReason::PausedInManifest
    } else {
        WorkloadReason::SettingIneffective
    };
    let warnings: Vec<_> = paused.into_iter().chain(ineffective_settings(object)).collect();
    if !warnings.is_empty() {
        let kind = WorkloadCondition::SpecWarning;
        conditions.set(kind, true, reason, sentence(&warnings));
    }
}

/// Returns why an in-place update does not finish; `None` if there is no error and it is not overdue.
fn stalled(pod: &PodFacts<'_>, now: Timestamp) -> Option<String> {
    let InPlacePhase::Written { since, complaint, .. } = &pod.phase else {
        return None;
    };
    let name = &pod.pod.name;
    if let Some(complaint) = complaint {
        return Some(format!(
            "pod {name}: {complaint}; fix the image, or revert the template"
        ));
    }
    let overdue = since.is_some_and(|since| since.checked_add(STALLED_AFTER).is_ok_and(|end| end <= now));
    overdue.then(|| {
        format!(
            "pod {name}: its in-place update has not finished after {}s; check its containers",
            STALLED_AFTER.as_secs()
        )
    })
}

/// Returns the reason of the longest-waiting pod whose hook needs a person, and a message about all such
/// pods.
fn hooks(waiting: &Waiting<'_>, concerns: fn(&WaitingPod<'_>) -> bool) -> Option<(WorkloadReason, String)> {
    let blocked = waiting
        .entries
        .iter()
        .filter(|entry| concerns(entry))
        .filter_map(|entry| Some((entry.state.reason()?, entry)));
    let blocked: Vec<_> = blocked.collect();
    let (reason, _) = blocked.first()?;
    let sentence = |(_, entry): &(WorkloadReason, &WaitingPod<'_>)| {
        let message = entry.condition.message.as_deref().unwrap_or_default();
        format!("pod {}: {message}", entry.condition.pod_name)
    };
    let remedies = HookKind::ALL.into_iter().filter(|kind| {
        let mut blocked = blocked.iter();
        blocked.any(|(_, entry)| entry.state == WaitState::Unsuccessful && entry.kind == *kind)
    });
    let remedies: String = remedies.map(remedy).collect();
    let causes = cut(join_first(&blocked, sentence), MAX_CAUSES_BYTES);
    Some((*reason, causes + &remedies))
}

/// Formats how users of plain kubectl run a hook again, or skip it.
fn remedy(kind: HookKind) -> String {
    let field = kind.field();
    format!(
        ". To rerun the hook, set spec.{field}.retry to true or delete the HookRun; to skip it for one pod, annotate \
         the pod with {SKIP_HOOK}=UID, where UID is the pod's metadata.uid"
    )
}
