//! One decision: turns everything known about a workload into a plan.
//!
//! Total: every input yields a plan. Decisions share no memory; state that a later one needs is written to
//! the objects. A workload in its desired state gets an empty plan.
//!
//! Each stage takes the results of the earlier stages and returns the actions that it wants. This module
//! combines them in execution order.

use jiff::Timestamp;

use crate::canary;
use crate::claim::{Claim, claim};
use crate::creation;
use crate::ended;
use crate::facts::Facts;
use crate::gate::Gate;
use crate::grant;
use crate::headcount;
use crate::history;
use crate::history_limit;
use crate::plan::{Action, Plan};
use crate::pod::Pod;
use crate::rollout;
use crate::status::{self, Findings};
use crate::steps::{self, Confirmation};
use crate::trial;
use crate::used_runs;
use crate::victims;
use crate::view::View;
use crate::workload::{Problem, Workload};

/// Computes the plan for one workload.
#[must_use]
pub fn decide(view: &View<'_>, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    if view.object.metadata.deletion_timestamp.is_some() {
        // The garbage collector deletes the pods along with the workload.
        return plan;
    }
    let (workload, problems) = Workload::examine(view.object);
    if !problems.iter().all(Problem::is_of_template) {
        return plan.reporting(status::refuse(view, &problems, now));
    }
    let (claimed, adopted) = claim(view, &workload);
    plan.add(adopted);
    let (history, recorded) = history::settle(view, &workload, &problems, &claimed);
    plan.add(recorded);
    let Some(history) = history else {
        // The template needs a recorded revision before any pod is created from it.
        return plan.reporting(status::refuse(view, &problems, now));
    };
    let facts = Facts::new(view, &workload, history, &claimed.active, now);
    let findings = decide_on_pods(&facts, &claimed, &mut plan);
    // At most one write to the workload per plan: each carries the resource version that the decision is
    // based on.
    if !plan.actions.contains(&Action::Pause) {
        plan.actions.extend(used_runs::reset_retry(&facts));
    }
    plan.actions.extend(used_runs::remove(&facts, &findings));
    if plan.actions.is_empty() {
        plan.add(history_limit::forget(&facts, &claimed));
    }
    plan.reporting(status::report(&facts, &findings))
}

/// Chooses the pods to delete or update, consults the gate for each and takes their next steps.
fn decide_on_pods<'a>(facts: &'a Facts<'a>, claimed: &Claim<'a>, plan: &mut Plan) -> Findings<'a> {
    let (canary, steered) = canary::steer(facts, headcount::advance(facts));
    plan.add(steered);
    let counts = headcount::count(facts, &canary);
    let is_updated = |pod: &&&Pod| facts.history.is_updated(pod.revision());
    let updated = claimed.adopted.iter().filter(is_updated).count();
    let need = counts
        .need()
        .after_adoption(claimed.adopted.len() - updated, updated);

    let chosen = victims::choose(facts, need);
    let (mut chosen, hindrances) = rollout::choose(facts, chosen, counts.to_keep_old());

    let view = facts.view;
    let gate = Gate::new(facts.workload, view.cluster, view.runs, view.pods, facts.now);
    let (confirmations, confirmed) = steps::confirm(facts, &gate, &chosen);
    plan.add(confirmed);
    if confirmations.iter().any(Confirmation::is_refused) {
        chosen = steps::hold_back(chosen);
    }

    let asked = grant::ask(facts, &gate, chosen);
    let confirming = confirmations.iter().filter(|confirmation| confirmation.available);
    let granted = grant::grant(facts, asked, confirming.count());
    let (pods, taken) = steps::take(facts, granted);
    plan.add(taken);

    let (held, removed) = ended::settle(facts, claimed, &gate, need);
    plan.add(removed);
    let (created, unmade) = creation::create(facts, claimed, need, held.len());
    // Creating a pod already tests the template, so skip the dry run.
    let tried = created.is_empty().then(|| trial::attempt(facts, &pods)).flatten();
    plan.add(created);
    plan.actions.extend(tried);
    if view.write_errors.is_some() {
        let asked = pods.iter().filter(|pod| pod.granted);
        plan.asking = asked.map(|pod| pod.facts.pod.name.clone()).collect();
    }
    Findings {
        pods,
        canary,
        counts,
        hindrances,
        confirmations,
        unmade,
        held,
        ending: claimed.ending,
    }
}

#[cfg(test)]
mod ended_tests;
#[cfg(test)]
mod floor_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod unrecorded_tests;
