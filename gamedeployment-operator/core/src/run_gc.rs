//! Removal of HookRuns that nothing depends on: their pod is gone, their intent withdrawn or their verdict
//! used. Notices are kept as long as the selection that they are about.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};

use crate::dry_run::RecreationBlock;
use crate::facts::Facts;
use crate::gate::{GateState, PodRef, RolloutRun, Run, Selections, is_named_as_notice};
use crate::hook_kind::HookKind;
use crate::lifecycle;
use crate::plan::{Action, RunRef, Warning};
use crate::status::Findings;

/// Maximum number of warnings about runs without an owner in one plan. Usually all of them have one cause.
const MAX_OWNER_WARNINGS: usize = 10;

/// Resets `retry` of the hooks that have no unsuccessful run left.
#[must_use]
pub fn reset_retry(facts: &Facts<'_>) -> Option<Action> {
    let mut reset = Vec::new();
    let workload = facts.workload;
    for kind in HookKind::ALL {
        if workload.hook(kind).retry && !facts.is_clearing(kind) {
            reset.push(kind);
        }
    }
    (!reset.is_empty()).then_some(Action::ResetRetry(reset))
}

/// Removes the runs that nothing depends on, the unsuccessful runs of hooks whose `retry` is set, and runs without an
/// owner that have a name that a pod needs.
pub fn remove(facts: &Facts<'_>, findings: &Findings<'_>) -> impl Iterator<Item = Action> {
    let referenced = referenced(facts, findings);
    let pods =
        LazyCell::new(|| -> BTreeSet<&str> { facts.view.pods.iter().map(|pod| pod.uid.as_str()).collect() });
    let selections = LazyCell::new(|| {
        let uid = Some(facts.workload.uid.as_str());
        let own = facts.view.pods.iter().copied();
        Selections::of(own.filter(|pod| pod.controller.as_deref() == uid))
    });
    let mut warnings = stale_warnings(findings);
    let known = |run: &&&Run| {
        let has_purpose = run.kind.is_some() || run.rollout.is_some() || !run.may_open_gate();
        !run.terminating && has_purpose
    };
    let remove = move |run: &&Run| {
        let retried = run
            .retried_by()
            .is_some_and(|kind| facts.workload.hook(kind).retry)
            && (run.is_unsuccessful() || run.unreadable.is_some());
        let pod = run.pod_uid.as_deref();
        // An unreadable run blocks its gate until a person deletes it or sets `retry`: a new one may be
        // unreadable for the same reason.
        let is_unreadable = run.unreadable.is_some() && run.may_open_gate();
        let blocks = is_unreadable && (run.rollout.is_some() || pod.is_some_and(|pod| pods.contains(pod)));
        // A notice is not repeated while its pod remains selected. Its name decides: anyone can write its labels.
        let is_current = is_named_as_notice(&run.name) && selections.include(run);
        let unneeded = retried || !blocks && !is_current && !is_in_use(run, &referenced, facts, findings);
        unneeded.then(|| {
            Action::DeleteRun(RunRef {
                name: run.name.clone(),
                uid: run.uid.clone(),
                resource_version: None,
                is_history: run.phase.is_final() && pod.is_some_and(|pod| !pods.contains(pod)),
                stale_warning: warnings.remove(run.uid.as_str()).map(Box::new),
            })
        })
    };
    let own = facts.view.runs.iter().filter(known).filter_map(remove);
    own.chain(without_owner(findings))
}

/// Removes the runs without an owner that are in the way of pods. Pods with the same instance id may need one name.
fn without_owner(findings: &Findings<'_>) -> impl Iterator<Item = Action> {
    let in_the_way = findings.gate_states().filter_map(|(pod, gate_state, _)| {
        let GateState::Stale(run, _) = gate_state else {
            return None;
        };
        let is_removable = run.lacks_owner() && !run.terminating;
        is_removable.then(|| {
            (
                run.uid.as_str(),
                RunRef::without_owner(run, Some(PodRef::of(pod))),
            )
        })
    });
    let in_the_way: BTreeMap<&str, RunRef> = in_the_way.collect();
    in_the_way.into_values().enumerate().map(|(at, mut run)| {
        run.stale_warning = run.stale_warning.filter(|_| at < MAX_OWNER_WARNINGS);
        Action::DeleteRun(run)
    })
}

/// Warnings about stale runs, by UID. Usually there are none.
fn stale_warnings<'s>(findings: &'s Findings<'_>) -> BTreeMap<&'s str, Warning> {
    let stale_warnings = findings.gate_states().filter_map(|(pod, gate_state, _)| {
        let GateState::Stale(run, stale_reason) = gate_state else {
            return None;
        };
        let (name, why) = (&run.name, &stale_reason.why);
        let warning = Warning {
            pod: Some(PodRef::of(pod)),
            reason: stale_reason.reason?,
            message: format!("HookRun {name} does not count: {why}; rerunning the hook"),
        };
        Some((run.uid.as_str(), warning))
    });
    stale_warnings.collect()
}

fn is_in_use(run: &Run, referenced: &BTreeSet<&str>, facts: &Facts<'_>, findings: &Findings<'_>) -> bool {
    match &run.rollout {
        Some(RolloutRun::CanaryStep) => {
            // Keeps the run of a step that just passed until the status no longer names it: if that write were
            // lost, the hook would run again.
            let status = facts.view.object.status.as_ref();
            let recorded = status.and_then(|status| status.canary.as_ref()?.current_step_hook_run.as_deref());
            let name = Some(run.name.as_str());
            findings.canary.run.as_deref() == name || recorded == name
        }
        // A run that has not ended is terminated, not deleted: its Jobs end before its verdict is recorded.
        Some(RolloutRun::Lifecycle(lifecycle)) => {
            !run.phase.is_final()
                || findings.lifecycle.runs.contains(&run.name)
                || lifecycle::is_retained(run, lifecycle, &findings.lifecycle.hooks)
        }
        None => referenced.contains(run.uid.as_str()),
    }
}

/// UIDs of the runs that something depends on.
fn referenced<'s>(facts: &Facts<'_>, findings: &'s Findings<'_>) -> BTreeSet<&'s str> {
    let used = findings
        .gate_states()
        .filter_map(|(_, gate_state, granted)| match gate_state {
            GateState::Running(run) | GateState::Unsuccessful(run) => Some(run.uid.as_str()),
            // A verdict that cannot be used now is dropped: the hook runs again when the pod's turn comes. A
            // pending dry run is an exception, because it takes only a moment.
            GateState::Open(approval) => approval
                .run()
                .filter(|_| granted || facts.recreation_block == Some(RecreationBlock::DryRunPending)),
            GateState::Consumed(run) => run.as_deref(),
            GateState::NotRun(_) | GateState::Stale(..) | GateState::Blocked(_) => None,
        });
    used.chain(findings.scouts.kept.iter().copied()).collect()
}
