//! The next step of every pod: record its selection, run the hook, take it out of service, update it, put it
//! into service, confirm the update, delete it.
//!
//! A selection for deletion and each question are persisted on the pod before its hook runs, and the hook's verdict
//! before the pod is changed. The notice about a selection, if there is one, is sent before the hook runs.

use std::ptr;

use jiff::{SignedDuration, Timestamp};
use shared_api::names::pod as annotation;

use crate::autoscaler_annotations;
use crate::cluster::Node;
use crate::draining_labels;
use crate::facts::{Facts, NamedBy, PodFacts, RecordedSelection};
use crate::gate::{
    Approval, ApprovedAction, Gate, GateState, Intent, NODE_GONE_AFTER, NODE_SETTLE_TIME, NextRun, PodRef,
    Question, REPORT_COUNTS_FOR,
};
use crate::hook_kind::HookKind;
use crate::plan::{Action, Finished, GatedWrite, PartialPlan, PodChange};
use crate::pod::Pod;
use crate::progress::{self, InPlacePhase, Record};
use crate::stages::{GrantedPod, SelectedPod, Selection};

/// A pod that was updated in place and waits for its `PostInplace` hook.
pub struct Confirmation<'a> {
    /// The pod, at the revision to confirm.
    pub pod: &'a Pod,
    /// Whether the pod is available.
    pub available: bool,
    /// Its gate state.
    pub gate_state: GateState<'a>,
}

impl Confirmation<'_> {
    /// Whether the hook reports that the pod is unhealthy.
    pub fn is_refused(&self) -> bool {
        matches!(self.gate_state, GateState::Unsuccessful(_))
    }
}

/// Runs the `PostInplace` hook for pods whose in-place update is finished.
#[must_use]
pub fn confirm<'a>(
    facts: &Facts<'a>,
    gate: &Gate<'a>,
    pods: &[SelectedPod<'a>],
) -> (Vec<Confirmation<'a>>, Vec<Action>) {
    let (mut waiting, mut actions) = (Vec::new(), Vec::new());
    if facts.workload.post_in_place.step.is_none() {
        return (waiting, actions);
    }
    for pod in pods.iter().filter(|pod| wants_confirmation(pod)) {
        let pod = pod.facts;
        let intent = Intent::Confirm(pod.pod.revision().to_owned());
        let gate_state = match gate.assess(pod.pod, &intent, &[]) {
            // A recorded selection is cleared first: two writes cannot use the same resource version.
            GateState::Open(approval) if pod.recorded_selection.is_none() => {
                let run = approval.run().map(str::to_owned);
                if let ApprovedAction::Confirmed(confirmed) = approval.into_action() {
                    actions.push(Action::Gated(GatedWrite::Confirm(confirmed)));
                }
                GateState::Consumed(run)
            }
            // The same holds for a question.
            GateState::NotRun(hook_request) if pod.recorded_selection.is_none() => {
                if !facts.is_clearing(HookKind::PostInplace) {
                    actions.push(
                        note_question(facts, pod, &intent)
                            .unwrap_or_else(|| Action::CreateRun(Box::new(hook_request.new_run()))),
                    );
                }
                GateState::NotRun(hook_request)
            }
            gate_state @ (GateState::Open(_)
            | GateState::Consumed(_)
            | GateState::NotRun(_)
            | GateState::Running(_)
            | GateState::Unsuccessful(_)
            | GateState::Stale(..)
            | GateState::Blocked(_)) => gate_state,
        };
        waiting.push(Confirmation {
            pod: pod.pod,
            available: pod.is_available(),
            gate_state,
        });
    }
    (waiting, actions)
}

fn wants_confirmation(pod: &SelectedPod<'_>) -> bool {
    let facts = pod.facts;
    let revision = facts.pod.revision();
    // Check the record last: parsing it costs time, and most pods were confirmed long ago.
    let updated_in_place = || progress::record(facts.pod).is_some_and(|record| record.revision == revision);
    !facts.old
        && pod.stays()
        && facts.phase == InPlacePhase::Idle
        && facts.pod.annotation(annotation::CONFIRMED) != Some(revision)
        && updated_in_place()
}

/// Starts no further update, because an updated pod is unhealthy: pods in service that were selected for one
/// are deselected. Surplus pods stay selected, whichever hook is responsible for them: `replicas` requires
/// their deletion.
#[must_use]
pub fn suspend_updates(mut pods: Vec<SelectedPod<'_>>) -> Vec<SelectedPod<'_>> {
    for pod in &mut pods {
        let updates = |selection: &mut Selection| {
            let updates = matches!(
                selection.intent,
                Intent::Recreate(_) | Intent::InPlace(_) | Intent::HotPatch(_)
            );
            updates && !selection.surplus
        };
        if !pod.facts.pod.is_out_of_service() {
            pod.selection.take_if(updates);
        }
    }
    pods
}

/// Outcome of one step.
enum PodStep {
    /// Writes to the pod. No other write may follow, since each carries the resource version that the
    /// decision is based on.
    Write(Action),
    /// Notes a question on the pod, unless another write to it is due.
    NoteQuestion(Action),
    /// Creates a HookRun for the pod.
    CreateRun(Action),
    /// Waits until this time and leaves the pod unchanged.
    Wait(Timestamp),
    /// Waits for the notice until this time.
    AwaitNotice(Timestamp),
    /// Does nothing.
    Nothing,
}

/// Takes the next step of every pod in order, both of those to delete or update and of those that stay.
#[must_use]
pub fn next_steps<'a>(
    facts: &Facts<'_>,
    gate: &Gate<'a>,
    granted: Vec<GrantedPod<'a>>,
) -> (Vec<GrantedPod<'a>>, PartialPlan) {
    let mut part = PartialPlan::default();
    let mut all = facts.pods.iter();
    let take = |pod: GrantedPod<'a>| {
        let before = all.by_ref().take_while(|other| !ptr::addr_eq(*other, pod.facts));
        before.for_each(|other| leave(facts, other, &mut part));
        if is_released(&pod) {
            part.actions.push(clear_selection(facts, pod.facts));
            return pod;
        }
        wakes(facts, pod.facts, true).for_each(|wake| part.wake_at(wake));
        let (pod, step) = act(facts, gate, pod);
        let put_in = || put_in(facts, pod.facts);
        match step {
            PodStep::Write(action) => part.actions.push(action),
            PodStep::NoteQuestion(action) => part.actions.push(put_in().unwrap_or(action)),
            PodStep::Wait(until) => part.wake_at(until),
            PodStep::AwaitNotice(until) => {
                part.wake_at(until);
                part.actions.extend(put_in());
            }
            PodStep::CreateRun(action) => part.actions.extend([action].into_iter().chain(put_in())),
            PodStep::Nothing => part.actions.extend(put_in()),
        }
        pod
    };
    let taken = granted.into_iter().map(take).collect();
    all.for_each(|other| leave(facts, other, &mut part));
    (taken, part)
}

/// Whether the recorded selection of a pod has ended: it is only updated, or is no longer named, and its update waits.
fn is_released(pod: &GrantedPod<'_>) -> bool {
    let Some(recorded) = &pod.facts.recorded_selection else {
        return false;
    };
    let was_replaced = recorded.is_replaced && pod.facts.named_by.is_none();
    match pod.intent {
        Intent::Delete => false,
        Intent::Recreate(_) => was_replaced && !pod.granted,
        Intent::InPlace(_) | Intent::HotPatch(_) | Intent::Confirm(_) => true,
    }
}

/// Undoes or finishes work on a pod that stays as it is.
fn leave(facts: &Facts<'_>, pod: &PodFacts<'_>, part: &mut PartialPlan) {
    if pod.recorded_selection.is_some() {
        part.actions.push(clear_selection(facts, pod));
        return;
    }
    wakes(facts, pod, false).for_each(|wake| part.wake_at(wake));
    part.actions.extend(put_in(facts, pod));
}

fn clear_selection(facts: &Facts<'_>, pod: &PodFacts<'_>) -> Action {
    Action::ClearSelection(PodRef::of(pod.pod), draining_labels::restore(facts, pod))
}

/// Acts on the gate state. Returns the new state and the step.
fn act<'a>(facts: &Facts<'_>, gate: &Gate<'a>, mut pod: GrantedPod<'a>) -> (GrantedPod<'a>, PodStep) {
    let needs_mark = needs_mark(&pod);
    let step;
    (pod.gate_state, step) = match pod.gate_state {
        GateState::Open(approval) if pod.granted => {
            let run = approval.run().map(str::to_owned);
            (GateState::Consumed(run), open(facts, pod.facts, approval))
        }
        gate_state @ (GateState::NotRun(_)
        | GateState::Running(_)
        | GateState::Unsuccessful(_)
        | GateState::Stale(..)
        | GateState::Blocked(_))
            if needs_mark =>
        {
            let text = RecordedSelection::text(&pod.intent, facts.now, is_replaced(pod.facts, pod.surplus));
            let labels = draining_labels::set(facts, pod.facts, &pod.intent);
            let mark = Action::RecordSelection(PodRef::of(pod.facts.pod), text, labels);
            (gate_state, PodStep::Write(mark))
        }
        GateState::NotRun(hook_request)
            if pod.granted
                && !pod
                    .intent
                    .hook(facts.workload)
                    .is_some_and(|kind| facts.is_clearing(kind)) =>
        {
            let run = || match gate.next_run(&hook_request) {
                NextRun::Create(new) => PodStep::CreateRun(Action::CreateRun(new)),
                NextRun::AwaitNotice(until) => PodStep::AwaitNotice(until),
            };
            let step = note_question(facts, pod.facts, &pod.intent).map_or_else(run, PodStep::NoteQuestion);
            (GateState::NotRun(hook_request), step)
        }
        // Deletion of the stale run goes on at the same time.
        GateState::Stale(run, stale_reason) if pod.granted && !stale_reason.is_stuck() => {
            let step = note_question(facts, pod.facts, &pod.intent);
            let step = step.map_or(PodStep::Nothing, PodStep::NoteQuestion);
            (GateState::Stale(run, stale_reason), step)
        }
        gate_state @ (GateState::Open(_)
        | GateState::Consumed(_)
        | GateState::NotRun(_)
        | GateState::Running(_)
        | GateState::Unsuccessful(_)
        | GateState::Stale(..)
        | GateState::Blocked(_)) => (gate_state, PodStep::Nothing),
    };
    (pod, step)
}

/// Returns the write that notes the next question on a pod, unless the pod shows it already and has its labels.
fn note_question(facts: &Facts<'_>, pod: &PodFacts<'_>, intent: &Intent) -> Option<Action> {
    let labels = draining_labels::set_before_update(facts, pod, intent);
    let is_labelled = labels.is_empty() || draining_labels::is_labelled_before_update(pod);
    if is_labelled && facts.view.cluster.is_new_question(pod.pod) {
        return None;
    }
    let question = Question::new(pod.pod, intent, facts.now);
    Some(Action::NoteQuestion(PodRef::of(pod.pod), question, labels))
}

/// Whether the selection of this pod still needs to be recorded on it. That of a pod to recreate is recorded
/// only once it is granted.
fn needs_mark(pod: &GrantedPod<'_>) -> bool {
    let chosen = match pod.intent {
        Intent::Delete => true,
        Intent::Recreate(_) => pod.granted,
        Intent::InPlace(_) | Intent::HotPatch(_) | Intent::Confirm(_) => false,
    };
    chosen && !pod.facts.is_recorded_for(&pod.intent)
}

/// Whether the selection ends when the pod is no longer named. A pod whose removal is requested stays after the
/// withdrawal; the selection of a pod in `podsToDelete` lasts if `replicas` requires a deletion as well.
fn is_replaced(pod: &PodFacts<'_>, surplus: bool) -> bool {
    match pod.named_by {
        Some(NamedBy::Request) => true,
        Some(NamedBy::List) => !surplus,
        None => false,
    }
}

/// Uses an approval.
fn open(facts: &Facts<'_>, pod: &PodFacts<'_>, approval: Approval<'_>) -> PodStep {
    let was_asked = approval.run().is_some() || pod.pod.is_out_of_service();
    let update = match approval.into_action() {
        ApprovedAction::Delete(delete) => {
            return PodStep::Write(Action::Gated(GatedWrite::DeletePod(delete)));
        }
        ApprovedAction::Confirmed(_) => return PodStep::Nothing,
        ApprovedAction::Update(update) => update,
    };
    let Ok(change) = facts.history.change(pod.pod) else {
        return PodStep::Nothing;
    };
    let grace = SignedDuration::from_secs(facts.workload.grace_seconds);
    let gated = pod.pod.has_readiness_gate;
    let out_for = match &pod.phase {
        InPlacePhase::Grace { to, since } if gated && to == update.to() => {
            Some(since.unwrap_or(Timestamp::MIN))
        }
        InPlacePhase::Grace { .. }
        | InPlacePhase::Idle
        | InPlacePhase::OutOfService
        | InPlacePhase::Written { .. }
        | InPlacePhase::Finished => None,
    };
    // A metadata change restarts nothing, so the pod stays in service. Without a readiness gate nothing keeps
    // players out, so waiting is pointless: the verdict is fresh now.
    let at_once = update.hot() || !gated || change.images.is_empty() && !pod.pod.is_out_of_service();
    match out_for {
        Some(since) => {
            let end = since.checked_add(grace).unwrap_or(Timestamp::MAX);
            if facts.now < end {
                return PodStep::Wait(end);
            }
        }
        None if at_once => {}
        None => {
            let already = pod.pod.in_place.as_ref().filter(|condition| !condition.ready);
            let since = already.and_then(|condition| condition.since).unwrap_or(facts.now);
            return PodStep::Write(Action::Gated(GatedWrite::SetNotReady(update, since)));
        }
    }
    let mut written = written(facts, pod.pod, change.into_owned(), update.hot());
    draining_labels::restore_in_update(facts, pod, was_asked, &mut written);
    PodStep::Write(Action::Gated(GatedWrite::WriteUpdate(update, Box::new(written))))
}

/// Builds the write of an update, including the record used to detect its completion.
fn written(facts: &Facts<'_>, pod: &Pod, change: crate::in_place::Change, hot: bool) -> PodChange {
    let to = &facts.history.update.name;
    let set = |(key, value): (String, String)| (key, Some(value));
    let remove = |key: String| (key, None);
    let mut labels: std::collections::BTreeMap<_, _> = change.labels.set.into_iter().map(set).collect();
    labels.extend(change.labels.removed.into_iter().map(remove));
    labels.retain(|key, _| !annotation::RESERVED_LABELS.contains(&key.as_str()));
    labels.insert(annotation::REVISION.to_owned(), Some(to.clone()));
    let mut annotations: std::collections::BTreeMap<_, _> =
        change.annotations.set.into_iter().map(set).collect();
    annotations.extend(change.annotations.removed.into_iter().map(remove));
    annotations.retain(|key, _| !annotation::RESERVED_ANNOTATIONS.contains(&key.as_str()));
    if pod.annotation(annotation::CONFIRMED).is_some() {
        // The confirmation belongs to an earlier update, possibly to the same revision.
        annotations.insert(annotation::CONFIRMED.to_owned(), None);
    }
    if pod.annotation(annotation::QUESTION).is_some() {
        annotations.insert(annotation::QUESTION.to_owned(), None);
    }
    let record = Record::new(pod, to, change.images.keys(), facts.now).text();
    if hot {
        annotations.insert(annotation::HOT_PATCH_STATE.to_owned(), Some(record));
        annotations.insert(
            annotation::HOT_PATCH_CONTAINER.to_owned(),
            Some("true".to_owned()),
        );
    } else {
        annotations.insert(annotation::IN_PLACE_STATE.to_owned(), Some(record));
    }
    if pod.annotation(annotation::IN_PLACE_GRACE).is_some() {
        annotations.insert(annotation::IN_PLACE_GRACE.to_owned(), None);
    }
    autoscaler_annotations::add_to_update(pod, facts.workload, &mut annotations);
    PodChange {
        images: change.images,
        labels,
        annotations,
    }
}

/// Puts a pod back into service if nothing requires it to be out.
fn put_in(facts: &Facts<'_>, pod: &PodFacts<'_>) -> Option<Action> {
    let put_in = |finished| Some(Action::SetReady(PodRef::of(pod.pod), finished));
    match &pod.phase {
        InPlacePhase::Finished => {
            let finished = progress::record(pod.pod).map(|record| Finished {
                revision: pod.pod.revision().to_owned(),
                mark: if pod.pod.has_readiness_gate {
                    String::new()
                } else {
                    record.mark()
                },
            });
            put_in(finished)
        }
        InPlacePhase::OutOfService => put_in(None),
        // Nothing has changed yet, so the update can be cancelled. The verdict that started it is removed
        // first, because it counts only once. An update started by the original operator is already written
        // to the pod's label and continues.
        InPlacePhase::Grace { to, .. }
            if !progress::is_half_written(pod.pod) && !has_verdict(facts, pod.pod, to) =>
        {
            put_in(None)
        }
        InPlacePhase::Grace { .. } | InPlacePhase::Idle | InPlacePhase::Written { .. } => None,
    }
}

/// Whether a run has a verdict that allows the in-place update of this pod to a revision.
fn has_verdict(facts: &Facts<'_>, pod: &Pod, to: &str) -> bool {
    let intent = Intent::InPlace(to.to_owned()).text();
    let mut runs = facts.approved.get(pod.uid.as_str()).into_iter().flatten();
    runs.any(|run| run.intent.as_deref() == Some(intent.as_str()))
}

/// Returns when to re-check a pod without an event. `chosen`: the pod is selected for deletion or update.
pub(crate) fn wakes(facts: &Facts<'_>, pod: &PodFacts<'_>, chosen: bool) -> impl Iterator<Item = Timestamp> {
    let later = |at: &Timestamp| *at > facts.now;
    let node = pod.pod.node.as_ref().filter(|_| chosen);
    let left = node.map(|node| match facts.view.cluster.node(node) {
        // A report that nothing has started stops counting.
        Node::Unwatched => pod.pod.reported.map_or(SignedDuration::ZERO, |reported| {
            REPORT_COUNTS_FOR - facts.now.duration_since(reported)
        }),
        Node::JustReady(since) if pod.pod.never_started() => NODE_SETTLE_TIME - since,
        Node::JustReady(_) | Node::Ready | Node::NotReady => SignedDuration::ZERO,
        Node::Unsure => NODE_GONE_AFTER,
        Node::Absent(since) => NODE_GONE_AFTER - since,
    });
    let left = left.filter(SignedDuration::is_positive);
    let gone = left.map(|left| facts.now.checked_add(left).unwrap_or(Timestamp::MAX));
    let (look, overdue) = match &pod.phase {
        InPlacePhase::Written { look, since, .. } => {
            let overdue = since.and_then(|since| since.checked_add(STALLED_AFTER).ok());
            (*look, overdue.filter(later))
        }
        InPlacePhase::Idle
        | InPlacePhase::OutOfService
        | InPlacePhase::Grace { .. }
        | InPlacePhase::Finished => (None, None),
    };
    let available = pod.pod.available_from(facts.workload.min_ready_seconds);
    let available = available.filter(|from| *from > facts.now);
    [gone, look, overdue, available].into_iter().flatten()
}

/// Time after which an unfinished in-place update is reported as stalled.
pub const STALLED_AFTER: SignedDuration = SignedDuration::from_mins(5);
