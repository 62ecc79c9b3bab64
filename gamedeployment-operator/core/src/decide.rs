//! One decision: from what is known of a workload to what is to be done.
//!
//! Total: whatever is known, there is a plan. Nothing is remembered between decisions; what a later one needs is
//! written on the objects. A workload that is as it should be gets an empty plan.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::canary::{self, Advance, Canary};
use crate::claim::{Claim, claim};
use crate::creation;
use crate::ended;
use crate::facts::{Facts, Seat};
use crate::gate::{Gate, PodRef, Run, Standing};
use crate::grant::grant;
use crate::history;
use crate::history_limit;
use crate::hook_kind::HookKind;
use crate::plan::{Action, Plan, RunRef, Warning};
use crate::rollout::{self, Hindrances};
use crate::scale::Counts;
use crate::status::{self, Findings};
use crate::steps::{self, Confirmation};
use crate::trial::{self, Hold};
use crate::victims;
use crate::view::View;
use crate::workload::{Problem, UpdateType, Workload};

/// Decides.
#[must_use]
pub fn decide(view: &View<'_>, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    if view.object.metadata.deletion_timestamp.is_some() {
        // The garbage collector deletes the pods with it.
        return plan;
    }
    let (workload, problems) = Workload::examine(view.object);
    if !problems.iter().all(Problem::is_of_template) {
        status::refuse(view, &problems, &mut plan, now);
        return plan;
    }
    let claimed = claim(view, &workload, &mut plan);
    let Some(history) = history::settle(view, &workload, &problems, &claimed, &mut plan) else {
        // A template must be recorded before a pod is made of it.
        status::refuse(view, &problems, &mut plan, now);
        return plan;
    };
    let mut facts = Facts::new(view, &workload, history, &claimed.active, now);
    let findings = choose(&mut facts, &claimed, &mut plan);
    remove_runs(&facts, &findings, &mut plan);
    history_limit::trim(&facts, &claimed, &mut plan);
    status::report(&facts, &findings, &mut plan);
    plan
}

/// Chooses the pods that something is to be done to, puts their questions and takes their next steps.
fn choose<'a>(facts: &mut Facts<'a>, claimed: &Claim<'a>, plan: &mut Plan) -> Findings<'a> {
    let (view, workload) = (facts.view, facts.workload);
    let advance = Advance {
        old: facts.old().saturating_sub(leaving(facts)),
        updated_available: facts
            .seats
            .iter()
            .filter(|seat| !seat.old && seat.is_available())
            .count(),
    };
    let canary = if facts.history.unrecorded.is_some() {
        canary::hold(view, workload)
    } else {
        canary::steer(view, workload, &facts.history, advance, plan, facts.now)
    };
    let counts = counts(facts, &canary);
    let need = counts.need();
    victims::choose(facts, need);
    let old_left = facts
        .seats
        .iter()
        .filter(|seat| seat.old && seat.intent.is_none())
        .count();
    // Also a stopped update ends what is half done.
    let to_update = if workload.paused {
        0
    } else {
        old_left.saturating_sub(counts.to_keep_old())
    };
    let hindrances = if facts.history.unrecorded.is_some() {
        Hindrances::default()
    } else {
        rollout::choose(facts, to_update)
    };
    let gate = Gate::new(workload, view.cluster, view.runs, view.pods, facts.now);
    let confirmations = steps::confirm(facts, &gate, plan);
    if confirmations.iter().any(Confirmation::is_refused) {
        steps::hold_back(facts);
    }
    grant(
        facts,
        &gate,
        confirmations
            .iter()
            .filter(|confirmation| confirmation.available)
            .count(),
    );
    steps::take(facts, plan);
    let held = ended::settle(facts, claimed, &gate, need, plan);
    let unmade = creation::create(facts, claimed, need, held.len(), plan);
    if view.trouble.is_some() {
        let asked = facts
            .seats
            .iter()
            .filter(|seat| seat.intent.is_some() && seat.granted);
        plan.asking = asked.map(|seat| seat.pod.name.clone()).collect();
    }
    trial::put(facts, plan);
    Findings {
        canary,
        counts,
        hindrances,
        confirmations,
        unmade,
        held,
        ending: claimed.ending,
    }
}

/// Pods that somebody named, and those of which there are too many: they go, and no step waits for their hooks. What was
/// chosen before does not count here: it depends on the step.
fn leaving(facts: &Facts<'_>) -> usize {
    let workload = facts.workload;
    let named = |seat: &&Seat<'_>| workload.pods_to_delete.contains(&seat.pod.name);
    let (named, others): (Vec<_>, Vec<_>) = facts.seats.iter().partition(named);
    let surplus = others.len().saturating_sub(workload.replicas);
    named.iter().filter(|seat| seat.old).count() + surplus
}

fn counts(facts: &Facts<'_>, canary: &Canary) -> Counts {
    let workload = facts.workload;
    let mut counts = Counts {
        replicas: workload.replicas,
        partition: canary.partition,
        surge: workload.max_surge,
        replaced: 0,
        old: facts.old(),
        updated: facts.updated(),
    };
    let can_change = |seat: &&Seat<'_>| workload.recreate_fallback || facts.history.can_change(seat.pod);
    // Surplus pods are no pods to update.
    let to_update = counts.to_update().min(counts.to_update_in_all());
    // An update in place needs no room beside the old pod, unless no pod may be unavailable.
    let updating = match workload.update {
        UpdateType::Rolling => to_update,
        UpdateType::InPlace | UpdateType::HotPatch if workload.max_unavailable == 0 => {
            let old = facts.seats.iter().filter(|seat| seat.old);
            to_update.min(old.filter(can_change).count())
        }
        UpdateType::InPlace | UpdateType::HotPatch | UpdateType::OnDelete => 0,
    };
    // An update that is stopped makes no room, and takes none back: that would cost a pod that serves.
    let updating = if workload.paused {
        updating.min(counts.surplus().min(facts.surge_before()))
    } else {
        updating
    };
    // A pod that was named goes where one may be missing; else its successor comes first.
    let named = |old: bool| {
        let named = |seat: &&Seat<'_>| seat.old == old && workload.pods_to_delete.contains(&seat.pod.name);
        if workload.max_unavailable == 0 {
            facts.seats.iter().filter(named).count()
        } else {
            0
        }
    };
    counts.replaced = named(false) + updating.max(named(true));
    counts
}

/// Removes the runs that nothing rests on: their pod is gone, their intent withdrawn, their verdict used; and where
/// `retry` is set, those that had no success.
fn remove_runs(facts: &Facts<'_>, findings: &Findings<'_>, plan: &mut Plan) {
    let workload = facts.workload;
    let mut reset = Vec::new();
    for kind in HookKind::ALL {
        if workload.hook(kind).retry && !facts.is_clearing(kind) {
            reset.push(kind);
        }
    }
    // One write to the workload at a time: each carries the version that it was decided on.
    if !reset.is_empty() && !plan.actions.contains(&Action::Pause) {
        plan.actions.push(Action::ResetRetry(reset));
    }
    let rested_on = rested_on(facts, findings);
    let pods =
        LazyCell::new(|| -> BTreeSet<&str> { facts.view.pods.iter().map(|pod| pod.uid.as_str()).collect() });
    let mut voids = told(facts, findings);
    for run in facts.view.runs {
        if run.terminating || run.kind.is_none() && !run.canary {
            continue;
        }
        let retried = run.kind.is_some_and(|kind| workload.hook(kind).retry) && run.is_unsuccessful();
        if retried || !is_in_use(run, &rested_on, facts, findings) {
            let pod = run.pod_uid.as_deref();
            plan.actions.push(Action::DeleteRun(RunRef {
                name: run.name.clone(),
                uid: run.uid.clone(),
                is_history: run.phase.is_final() && pod.is_some_and(|pod| !pods.contains(pod)),
                void: voids.remove(run.uid.as_str()).map(Box::new),
            }));
        }
    }
}

/// What people are told of runs that do not count, by their UIDs. Mostly there are none.
fn told<'s>(facts: &'s Facts<'_>, findings: &'s Findings<'_>) -> BTreeMap<&'s str, Warning> {
    let seats = facts.seats.iter();
    let seats = seats.filter_map(|seat| Some((seat.pod, seat.standing.as_ref()?)));
    let confirmations = findings.confirmations.iter();
    let confirmations = confirmations.map(|confirmation| (confirmation.pod, &confirmation.standing));
    let told = seats.chain(confirmations).filter_map(|(pod, standing)| {
        let Standing::Stale(run, void) = standing else {
            return None;
        };
        let (name, why) = (&run.name, &void.why);
        let warning = Warning {
            pod: Some(PodRef::of(pod)),
            reason: void.reason?,
            message: format!("HookRun {name} does not count: {why}; the pod is asked again"),
        };
        Some((run.uid.as_str(), warning))
    });
    told.collect()
}

fn is_in_use(run: &Run, rested_on: &BTreeSet<&str>, facts: &Facts<'_>, findings: &Findings<'_>) -> bool {
    if run.canary {
        // A step that has just passed is recorded first: else it would be asked again where that record is lost.
        let status = facts.view.object.status.as_ref();
        let recorded = status.and_then(|status| status.canary.as_ref()?.current_step_hook_run.as_deref());
        let name = Some(run.name.as_str());
        return findings.canary.run.as_deref() == name || recorded == name;
    }
    rested_on.contains(run.uid.as_str())
}

/// UIDs of the runs that something rests on.
fn rested_on<'s>(facts: &'s Facts<'_>, findings: &'s Findings<'_>) -> BTreeSet<&'s str> {
    let seats = facts
        .seats
        .iter()
        .filter_map(|seat| Some((seat.standing.as_ref()?, seat.granted)));
    let confirmations = findings
        .confirmations
        .iter()
        .map(|confirmation| (&confirmation.standing, true));
    let used = seats
        .chain(confirmations)
        .filter_map(|(standing, granted)| match standing {
            Standing::Asking(run) | Standing::Refused(run) => Some(run.uid.as_str()),
            // A verdict that cannot be used at once is void: the pod will be asked again when its turn comes.
            // A dry run takes a moment.
            Standing::Open(approval) => approval
                .run()
                .filter(|_| granted || facts.hold == Some(Hold::Trial)),
            Standing::Used(run) => run.as_deref(),
            Standing::Unasked(_) | Standing::Stale(..) | Standing::Blocked(_) => None,
        });
    used.collect()
}

#[cfg(test)]
mod ended_tests;
#[cfg(test)]
mod floor_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod unrecorded_tests;
