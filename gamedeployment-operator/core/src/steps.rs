//! The next step of every pod: mark, ask, take out, write, put in, confirm, delete.
//!
//! A choice is persisted on the pod before its hook is asked, and the hook's verdict before the pod is touched.

use jiff::{SignedDuration, Timestamp};
use shared_api::names::pod as annotation;

use crate::cluster::Node;
use crate::facts::{Chosen, Facts, Seat};
use crate::gate::{Act, Approval, GONE_AFTER, Gate, Intent, PodRef, Standing};
use crate::hook_kind::HookKind;
use crate::plan::{Action, Finished, Plan, PodChange};
use crate::pod::Pod;
use crate::progress::{self, Record, Stage};

/// A pod that was updated in place and waits for its `PostInplace` hook.
pub struct Confirmation<'a> {
    /// The pod.
    pub pod: &'a Pod,
    /// Whether it is available.
    pub available: bool,
    /// Where the question stands.
    pub standing: Standing<'a>,
}

impl Confirmation<'_> {
    /// Whether the pod is not well, by its hook.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        matches!(self.standing, Standing::Refused(_))
    }
}

/// Asks the `PostInplace` hook about pods whose update in place is finished.
pub fn confirm<'a>(facts: &Facts<'a>, gate: &Gate<'a>, plan: &mut Plan) -> Vec<Confirmation<'a>> {
    let mut waiting = Vec::new();
    if facts.workload.post_in_place.step.is_none() {
        return waiting;
    }
    for seat in facts.seats.iter().filter(|seat| wants_confirmation(seat)) {
        let standing = match gate.assess(seat.pod, &Intent::Confirm(seat.pod.revision().to_owned()), &[]) {
            Standing::Open(approval) => {
                let run = approval.run().map(str::to_owned);
                if let Act::Confirmed(confirmed) = approval.into_act() {
                    plan.actions.push(Action::Confirm(confirmed));
                }
                Standing::Used(run)
            }
            Standing::Unasked(question) => {
                if !facts.is_clearing(HookKind::PostInplace) {
                    plan.actions.push(Action::CreateRun(Box::new(question.render())));
                }
                Standing::Unasked(question)
            }
            standing @ (Standing::Used(_)
            | Standing::Asking(_)
            | Standing::Refused(_)
            | Standing::Stale(..)
            | Standing::Blocked(_)) => standing,
        };
        waiting.push(Confirmation {
            pod: seat.pod,
            available: seat.is_available(),
            standing,
        });
    }
    waiting
}

fn wants_confirmation(seat: &Seat<'_>) -> bool {
    let revision = seat.pod.revision();
    // The record comes last: it has to be parsed, and most pods were confirmed long ago.
    let updated_in_place = || progress::record(seat.pod).is_some_and(|record| record.revision == revision);
    !seat.old
        && seat.intent.is_none()
        && seat.stage == Stage::Idle
        && seat.pod.annotation(annotation::CONFIRMED) != Some(revision)
        && updated_in_place()
}

/// Begins no further update: a pod that was updated is not well.
pub fn hold_back(facts: &mut Facts<'_>) {
    for seat in &mut facts.seats {
        let update = matches!(
            seat.intent,
            Some(Intent::Recreate(_) | Intent::InPlace(_) | Intent::HotPatch(_))
        );
        if update && !seat.pod.is_out_of_service() {
            seat.intent = None;
        }
    }
}

/// Takes the next step of every pod.
pub fn take(facts: &mut Facts<'_>, plan: &mut Plan) {
    for at in 0..facts.seats.len() {
        let standing = facts.seats[at].standing.take();
        facts.seats[at].standing = take_one(facts, &facts.seats[at], standing, plan);
    }
}

/// Takes the next step of one pod. Returns where the question about it stands then.
fn take_one<'a>(
    facts: &Facts<'a>,
    seat: &Seat<'a>,
    standing: Option<Standing<'a>>,
    plan: &mut Plan,
) -> Option<Standing<'a>> {
    let deletes = seat.intent.as_ref().is_some_and(Intent::deletes);
    if seat.chosen.is_some() && !deletes {
        plan.actions.push(Action::Unmark(PodRef::of(seat.pod)));
        // One write to a pod at a time: each carries the version that it was decided on.
        return standing;
    }
    let (goes_on, standing) = match (&seat.intent, standing) {
        (Some(intent), Some(standing)) => {
            let (goes_on, standing) = act(facts, seat, intent, standing, plan);
            (goes_on, Some(standing))
        }
        (_, standing) => (false, standing),
    };
    if !goes_on {
        settle(facts, seat, plan);
    }
    wake(facts, seat, plan);
    standing
}

/// Does what the gate's answer allows. Says whether the pod is being written to, and where the question stands then.
fn act<'a>(
    facts: &Facts<'a>,
    seat: &Seat<'a>,
    intent: &Intent,
    standing: Standing<'a>,
    plan: &mut Plan,
) -> (bool, Standing<'a>) {
    match standing {
        Standing::Open(approval) if seat.granted => {
            let run = approval.run().map(str::to_owned);
            (open(facts, seat, approval, plan), Standing::Used(run))
        }
        Standing::Unasked(_)
        | Standing::Asking(_)
        | Standing::Refused(_)
        | Standing::Stale(..)
        | Standing::Blocked(_)
            if needs_mark(seat, intent) =>
        {
            plan.actions.push(Action::Mark(
                PodRef::of(seat.pod),
                Chosen::text(intent, facts.now),
            ));
            (true, standing)
        }
        Standing::Unasked(question)
            if seat.granted
                && !intent
                    .hook(facts.workload)
                    .is_some_and(|kind| facts.is_clearing(kind)) =>
        {
            plan.actions.push(Action::CreateRun(Box::new(question.render())));
            (false, Standing::Unasked(question))
        }
        Standing::Open(_)
        | Standing::Used(_)
        | Standing::Unasked(_)
        | Standing::Asking(_)
        | Standing::Refused(_)
        | Standing::Stale(..)
        | Standing::Blocked(_) => (false, standing),
    }
}

/// Whether the choice of this pod is still to be recorded on it. One to be recreated is chosen when its turn comes.
fn needs_mark(seat: &Seat<'_>, intent: &Intent) -> bool {
    let chosen = match intent {
        Intent::Delete => true,
        Intent::Recreate(_) => seat.granted,
        Intent::InPlace(_) | Intent::HotPatch(_) | Intent::Confirm(_) => false,
    };
    chosen
        && seat
            .chosen
            .as_ref()
            .is_none_or(|chosen| chosen.intent != intent.text())
}

/// Uses an approval. Says whether the pod is being written to.
fn open(facts: &Facts<'_>, seat: &Seat<'_>, approval: Approval, plan: &mut Plan) -> bool {
    let update = match approval.into_act() {
        Act::Delete(delete) => {
            plan.actions.push(Action::DeletePod(delete));
            return true;
        }
        Act::Confirmed(_) => return false,
        Act::Update(update) => update,
    };
    let Ok(change) = facts.history.change(seat.pod) else {
        return false;
    };
    let grace = SignedDuration::from_secs(facts.workload.grace_seconds);
    let gated = seat.pod.has_readiness_gate;
    let out_for = match &seat.stage {
        Stage::Grace { to, since } if gated && to == update.to() => Some(since.unwrap_or(Timestamp::MIN)),
        Stage::Grace { .. } | Stage::Idle | Stage::OutOfService | Stage::Written { .. } | Stage::Finished => {
            None
        }
    };
    // A change of metadata restarts nothing: the pod stays in service. Where nothing keeps players out of it, there is
    // nothing to wait for: the verdict is fresh now.
    let at_once = update.hot() || !gated || change.images.is_empty() && !seat.pod.is_out_of_service();
    match out_for {
        Some(since) => {
            let end = since.checked_add(grace).unwrap_or(Timestamp::MAX);
            if facts.now < end {
                plan.wake_at(end);
                return true;
            }
        }
        None if at_once => {}
        None => {
            let already = seat.pod.in_place.as_ref().filter(|condition| !condition.ready);
            let since = already.and_then(|condition| condition.since).unwrap_or(facts.now);
            plan.actions.push(Action::TakeOut(update, since));
            return true;
        }
    }
    let written = written(facts, seat.pod, change.into_owned(), update.hot());
    plan.actions.push(Action::WriteUpdate(update, Box::new(written)));
    true
}

/// What an update writes to a pod, with the record that its end is seen by.
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
        // That was said of an earlier update, though it may have gone to the same revision.
        annotations.insert(annotation::CONFIRMED.to_owned(), None);
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
    PodChange {
        images: change.images,
        labels,
        annotations,
    }
}

/// Puts a pod into service that has no reason to be out of it.
fn settle(facts: &Facts<'_>, seat: &Seat<'_>, plan: &mut Plan) {
    let put_in = match &seat.stage {
        Stage::Finished | Stage::OutOfService => true,
        // Nothing was changed yet, so nothing is lost by calling it off. First the verdict goes that it was begun
        // with: it counts once. What the original began is written already in its label: that is gone on with.
        Stage::Grace { .. } => !progress::is_half_written(seat.pod) && !has_verdict(facts, seat.pod),
        Stage::Idle | Stage::Written { .. } => false,
    };
    if put_in {
        let record = progress::record(seat.pod).filter(|_| matches!(seat.stage, Stage::Finished));
        let finished = record.map(|record| Finished {
            revision: seat.pod.revision().to_owned(),
            mark: if seat.pod.has_readiness_gate {
                String::new()
            } else {
                record.mark()
            },
        });
        plan.actions.push(Action::PutIn(PodRef::of(seat.pod), finished));
    }
}

/// Whether a run about this pod has a verdict that opens a gate.
fn has_verdict(facts: &Facts<'_>, pod: &Pod) -> bool {
    facts.approved.contains(pod.uid.as_str())
}

/// When to look at a pod again though nothing happens.
fn wake(facts: &Facts<'_>, seat: &Seat<'_>, plan: &mut Plan) {
    if let Some(node) = seat.pod.node.as_ref().filter(|_| seat.intent.is_some()) {
        let left = match facts.view.cluster.node(node) {
            Node::There => SignedDuration::ZERO,
            Node::Unsure => GONE_AFTER,
            Node::Absent(since) => GONE_AFTER - since,
        };
        if left.is_positive() {
            plan.wake_at(facts.now.checked_add(left).unwrap_or(Timestamp::MAX));
        }
    }
    if let Stage::Written { look, since, .. } = &seat.stage {
        if let Some(look) = look {
            plan.wake_at(*look);
        }
        let overdue = since.and_then(|since| since.checked_add(STALLED_AFTER).ok());
        if let Some(overdue) = overdue.filter(|overdue| *overdue > facts.now) {
            plan.wake_at(overdue);
        }
    }
    let available_from = seat.pod.available_from(facts.workload.min_ready_seconds);
    if let Some(from) = available_from.filter(|from| *from > facts.now) {
        plan.wake_at(from);
    }
}

/// An update in place that shows no end for this long is reported.
pub const STALLED_AFTER: SignedDuration = SignedDuration::from_mins(5);
