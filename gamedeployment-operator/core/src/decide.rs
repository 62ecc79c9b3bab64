//! One decision: turns everything known about a workload into a plan.
//!
//! Total: every input yields a plan. Decisions share no memory; state that a later one needs is written to
//! the objects. A workload in its desired state gets an empty plan.
//!
//! Each stage takes the results of the earlier stages and returns the actions that it wants. This module
//! combines them in execution order.

use jiff::Timestamp;

use crate::autoscaler_annotations;
use crate::canary;
use crate::claim::{Claim, claim};
use crate::counts;
use crate::creation;
use crate::deadline::Deadline;
use crate::deletion;
use crate::draining_labels;
use crate::dry_run;
use crate::ended;
use crate::facts::Facts;
use crate::first_idle::{self, update::UpdateSearch};
use crate::gate::Gate;
use crate::grant;
use crate::guard_check;
use crate::history;
use crate::history_limit;
use crate::lifecycle::{self, HookProgress};
use crate::plan::{Action, FinalizerRemoval, Plan};
use crate::pod::Pod;
use crate::recreate::Recreate;
use crate::removal;
use crate::revision::Revision;
use crate::rollback;
use crate::rollout;
use crate::run_gc;
use crate::scale_down;
use crate::status::{self, Findings};
use crate::steps::{self, Confirmation};
use crate::view::View;
use crate::workload::{FieldError, Workload};

/// Computes the plan for one workload.
#[must_use]
pub fn decide(view: &View<'_>, now: Timestamp) -> Plan {
    if deletion::is_requested(view.object) {
        return decide_on_deletion(view, now);
    }
    let mut plan = Plan::default();
    let (mut workload, problems) = Workload::examine(view.object);
    let finalizer = deletion::follow_policy(view.object, &workload);
    if !problems.iter().all(FieldError::is_of_template) {
        plan.actions.extend(finalizer);
        return plan.reporting(status::refuse(view, &problems, now));
    }
    let (claimed, adopted) = claim(view, &workload);
    plan.add(adopted);
    let (history, recorded) = history::resolve_revisions(view, &workload, &problems, &claimed);
    plan.add(recorded);
    let Some(history) = history else {
        // The template needs a recorded revision before any pod is created from it.
        plan.actions.extend(finalizer);
        return plan.reporting(status::refuse(view, &problems, now));
    };
    workload.paused &= !history.rollback.is_some_and(|rollback| rollback.ignores_pause);
    let facts = Facts::new(view, &workload, history, &claimed.active, now);
    let findings = decide_on_pods(&facts, &claimed, &mut plan);
    conclude(&facts, &findings, finalizer, &mut plan);
    if plan.actions.is_empty() {
        plan.add(history_limit::delete_surplus(&facts, &claimed));
    }
    annotate(&facts, &findings, &mut plan);
    plan.reporting(status::report(&facts, &findings))
}

/// Computes the plan for a workload that is being deleted.
fn decide_on_deletion(view: &View<'_>, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    if !deletion::has_finalizer(view.object) {
        // The garbage collector deletes the pods along with the workload.
        return plan;
    }
    let (workload, problems) = Workload::examine(view.object);
    let removal = deletion::removal(view, &workload, &problems);
    let finalizer = removal.clone().map(Action::RemoveFinalizer);
    let is_valid = problems.iter().all(FieldError::is_of_template);
    let is_orphaning = deletion::orphans_pods(view.object);
    if !is_valid || is_orphaning || removal == Some(FinalizerRemoval::Unasked) {
        plan.actions.extend(finalizer);
        return plan.reporting(status::refuse(view, &problems, now));
    }
    let workload = workload.to_delete();
    // It adopts nothing and releases nothing.
    let (claimed, _) = claim(view, &workload);
    let placeholder = Revision::unrecorded(workload.template.clone(), &workload.name);
    let history = history::at_deletion(view, &workload, &claimed, &placeholder);
    let facts = Facts::new(view, &workload, history, &claimed.active, now);
    let findings = decide_on_pods(&facts, &claimed, &mut plan);
    conclude(&facts, &findings, finalizer, &mut plan);
    annotate(&facts, &findings, &mut plan);
    plan.reporting(status::report(&facts, &findings))
}

/// Adds the writes that follow the decisions on all pods.
fn conclude(facts: &Facts<'_>, findings: &Findings<'_>, finalizer: Option<Action>, plan: &mut Plan) {
    // At most one write to the workload per plan: each carries the resource version that the decision is
    // based on.
    if !plan.actions.contains(&Action::Pause) {
        match finalizer {
            // Before all other writes: a plan is carried out only up to a limit.
            Some(finalizer) => plan.actions.insert(0, finalizer),
            None => plan.actions.extend(run_gc::reset_retry(facts)),
        }
    }
    plan.actions.extend(run_gc::remove(facts, findings));
    let labelled = removal::label_pods(facts, &plan.actions);
    plan.actions.extend(labelled);
    let withdrawn = removal::drop_withdrawn(facts, &plan.actions);
    plan.actions.extend(withdrawn);
}

/// Plans the check of the guard, and adds the corrections of draining labels and the writes of autoscaler annotations.
/// These come last: an admission webhook that denies them must not delay anything else that is left to a pod without a
/// planned write. Nor may denied annotations keep players away from a pod whose update is cancelled.
fn annotate(facts: &Facts<'_>, findings: &Findings<'_>, plan: &mut Plan) {
    plan.guard_check = guard_check::plan(facts, &plan.actions);
    let drained = draining_labels::label_pods(facts, &findings.pods, &plan.actions);
    plan.actions.extend(drained);
    let annotated = autoscaler_annotations::annotate_pods(facts, &plan.actions);
    plan.actions.extend(annotated);
}

/// Selects the pods to delete or update, assesses each at the gate and takes their next steps.
fn decide_on_pods<'a>(facts: &'a Facts<'a>, claimed: &Claim<'a>, plan: &mut Plan) -> Findings<'a> {
    let progress = counts::rollout_progress(facts);
    let deadline = Deadline::of(facts);
    let (mut canary, steered) = canary::advance_steps(facts, progress, deadline);
    plan.add(steered);
    let (mut lifecycle, advanced) = lifecycle::advance(facts, &canary, progress, deadline);
    plan.add(advanced);
    let (remainder, limited) = deadline.limit(facts, &canary, progress, &mut lifecycle);
    plan.add(limited);
    // The successor of a named pod has the earlier revision while the open point leaves no room, if there is one.
    let named = counts::named(facts, false);
    let successors = if lifecycle.holds_creations { named } else { 0 };
    lifecycle.open = lifecycle.open.map(|open| open.saturating_sub(named - successors));
    let rollback = rollback::advance(facts, &canary, &mut lifecycle);
    if rollback.is_held {
        plan.actions.retain(|action| *action != Action::Pause);
    }
    let recreate = Recreate::of(facts, &lifecycle);
    let replicas = facts.workload.replicas;
    canary.partition = match recreate {
        Some(recreate) => recreate.partition(&lifecycle, replicas),
        None => lifecycle.partition(canary.partition, replicas),
    };
    let is_stopped = lifecycle.progress == HookProgress::Aborted && !facts.history.is_rollback();
    let counts = counts::count(facts, &canary, is_stopped);
    let is_updated = |pod: &&&Pod| facts.history.is_updated(pod.revision());
    let updated = claimed.adopted.iter().filter(is_updated).count();
    let mut diff = counts
        .diff()
        .after_adoption(claimed.adopted.len() - updated, updated);
    if let Some(open) = lifecycle.open {
        // Surge pods take places of pods to update.
        let taken = facts.updated() + facts.begun_in_place();
        let updated = diff.create_updated.min((open + successors).saturating_sub(taken));
        diff.create_old += diff.create_updated - updated;
        diff.create_updated = updated;
    }
    if lifecycle.holds_creations {
        diff.create_old = 0;
    }
    if let Some(recreate) = recreate {
        recreate.limit(facts, &mut diff);
    }
    if rollback.is_held || deletion::awaits_finalizer(facts.view.object, facts.workload) {
        (diff.create_old, diff.create_updated) = (0, 0);
    }

    let view = facts.view;
    let gate = Gate::new(facts.workload, view.cluster, view.runs, view.pods, facts.now);
    let (selected, search) = scale_down::select(facts, &gate, diff);
    let open = lifecycle
        .open
        .map(|open| open.saturating_sub(diff.create_updated));
    let to_keep_old = if is_stopped {
        facts.old()
    } else {
        counts.to_keep_old()
    };
    // Surplus pods that are not selected yet are not updated.
    let to_keep_old = to_keep_old + search.as_ref().map_or(0, |search| search.needed_old);
    let (mut selected, places, update_blockers) = rollout::select(facts, &gate, selected, to_keep_old, open);

    let (confirmations, confirmed) = steps::confirm(facts, &gate, &selected);
    plan.add(confirmed);
    if rollback.is_held || confirmations.iter().any(Confirmation::is_refused) {
        selected = steps::suspend_updates(selected);
    }

    let assessed = grant::assess(facts, &gate, selected);
    let confirming = confirmations.iter().filter(|confirmation| confirmation.available);
    let needed = search.as_ref().map_or(0, |search| search.needed);
    let (granted, update_search) = grant::grant(facts, assessed, confirming.count() + needed, places);
    let (pods, taken) = steps::next_steps(facts, &gate, granted);
    plan.add(taken);

    let (delayed, removed) = ended::replace(facts, claimed, &gate, diff);
    plan.add(removed);
    let (created, without_index) = creation::create(facts, claimed, diff, delayed.len());
    // Creating a pod already tests the template, so skip the dry run.
    let tried = created
        .is_empty()
        .then(|| dry_run::request(facts, &pods))
        .flatten();
    plan.add(created);
    plan.actions.extend(tried);
    if view.write_errors.is_some() {
        let granted = pods.iter().filter(|pod| pod.granted);
        let granted = granted.map(|pod| pod.facts.pod.name.as_str());
        let prospects = update_search.iter().flat_map(UpdateSearch::prospects);
        plan.granted = granted.chain(prospects).map(str::to_owned).collect();
    }
    let (scouts, scouting) = first_idle::plan_scouts(facts, search, update_search, &pods);
    plan.add(scouting);
    Findings {
        pods,
        canary,
        lifecycle,
        rollback,
        remainder,
        recreate,
        counts,
        update_blockers,
        scouts,
        confirmations,
        without_index,
        delayed,
        ending: claimed.ending,
    }
}

#[cfg(test)]
mod canary_hook_tests;
#[cfg(test)]
mod ended_tests;
#[cfg(test)]
mod erroring_run_tests;
#[cfg(test)]
mod floor_tests;
#[cfg(test)]
mod held_pod_event_tests;
#[cfg(test)]
mod held_pod_tests;
#[cfg(test)]
mod kept_run_tests;
#[cfg(test)]
mod owner_missing_tests;
#[cfg(test)]
mod status_size_tests;
#[cfg(test)]
mod suspended_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod unreadable_run_tests;
#[cfg(test)]
mod unrecorded_tests;
